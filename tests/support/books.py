"""The books of a world: what the counters say against what the rows and the vectors are."""

from collections import Counter, defaultdict

from core.metadata.dynamo import Table
from core.metadata.rows import ChunkRow, Gone, Head, Source, reserved_chunk_ids
from core.metadata.table import Key, chunk
from core.model.collection import CollectionState
from core.model.document import DocumentState
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.tenant import Tenant
from tests.support.engines import World


class Books:
    """Everything that a world's table holds, sorted.

    Attributes:
        heads: every document's row.
        sources: every source's row, by tenant.
        gates: sums of a collection's counters, by the partition's beginning.
        chunks: every chunk that has a row, by tenant.
        accounted: every chunk that a document serves or that a later cleaning knows of, by tenant.
        served: the chunks of ready documents, by tenant.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.heads: list[Head] = []
        self.sources: list[tuple[Tenant, Source]] = []
        self.gates: dict[str, Counter[str]] = defaultdict(Counter)
        self.chunks: dict[Tenant, set[ChunkId]] = defaultdict(set)
        self.accounted: dict[Tenant, set[ChunkId]] = defaultdict(set)
        self.served: dict[Tenant, set[ChunkId]] = defaultdict(set)
        for row in world.rows():
            self._enter(world.stores.table, Key(row["pk"]["S"], row["sk"]["S"]))

    def _enter(self, rows: Table, key: Key) -> None:
        item = rows.get(key) or {}
        if key.sk == "HEAD":
            head = Head.read(item)
            self.heads.append(head)
            self.accounted[head.tenant] |= set(head.chunk_ids())
            if head.state == DocumentState.READY:
                self.served[head.tenant] |= set(head.served_chunk_ids())
        elif key.sk == "SOURCE":
            self.sources.append((Tenant(key.pk.split("#")[1]), Source.read(item)))
        elif key.sk.startswith("GONE#"):
            gone = Gone.read(item)
            tenant = Tenant(key.pk.split("#")[1])
            self.accounted[tenant] |= set(reserved_chunk_ids(gone.document_id, gone.reserved))
        elif key.sk == "GATE":
            for name in ("documents", "chunks", "working", "rows"):
                self.gates[key.pk.rpartition("#G#")[0]][name] += item.get(name, 0)
        elif key.sk.startswith("CHUNK#"):
            tenant, one = Tenant(key.pk.split("#")[1]), ChunkRow.read(item).chunk().id
            assert one is not None
            assert chunk(tenant, one) == key, "a chunk lies under another chunk's key"
            self.chunks[tenant].add(one)

    def check(self) -> None:
        """Every counter equals a recount; no chunk and no vector is of anything unknown; what is served is whole."""
        self._check_counters()
        self._check_sources()
        for tenant in {*self.chunks, *self.accounted}:
            stray = self.chunks[tenant] - self.accounted[tenant]
            assert not stray, f"chunk rows that no document and no mark knows: {sorted(stray)}"
            lost = self.served[tenant] - self.chunks[tenant]
            assert not lost, f"served chunks without a row: {sorted(lost)}"
            self._check_vectors(tenant)

    def _check_counters(self) -> None:
        recount: dict[str, Counter[str]] = defaultdict(Counter)
        for head in self.heads:
            counts = recount[f"T#{head.tenant}#C#{head.collection_id}"]
            ready = head.state == DocumentState.READY
            counts.update(rows=1, working=int(head.state.in_progress))
            counts.update(documents=int(ready), chunks=head.chunk_count if ready else 0)
        for collection in {*self.gates, *recount}:
            counted, held = +recount[collection], {k: v for k, v in self.gates[collection].items() if v}
            assert held == counted, f"the gates of {collection} say {held}, its rows {dict(counted)}"

    def _check_sources(self) -> None:
        heads = {(head.tenant, head.document_id): head for head in self.heads}
        current: set[tuple[Tenant, DocumentId]] = set()
        for tenant, source in self.sources:
            if not self._is_active(tenant, source.collection_id):
                continue  # nothing is served there, and the rest of the delete comes to it
            if source.current is not None:
                one = (tenant, source.current.document_id)
                current.add(one)
                head = heads.get(one)
                assert head is not None, f"source {source.key!r} serves a document without a row"
                assert head.state == DocumentState.READY, f"source {source.key!r} serves what is {head.state}"
                assert (head.attempt, head.number) == (source.current.attempt, source.current_number)
            for work in source.work.values():
                head = heads.get((tenant, work.document_id))
                alive = head is not None and head.state.in_progress
                assert alive or work.number < source.current_number, f"source {source.key!r} works on what has ended"
        ready = {one for one, head in heads.items() if head.state == DocumentState.READY and head.source_id is not None}
        unserved = {one for one in ready - current if self._is_active(one[0], heads[one].collection_id)}
        assert not unserved, f"ready versions that no source serves: {sorted(unserved)}"

    def _is_active(self, tenant: Tenant, collection_id: CollectionId) -> bool:
        row = self._world.stores.collections.get(tenant, collection_id)
        return row is not None and row.state == CollectionState.ACTIVE

    def _check_vectors(self, tenant: Tenant) -> None:
        space, store = self._world.embedder.space, self._world.vectors
        known = store.present(tenant, space, sorted(self.accounted[tenant]))
        stray = store.count(tenant, space) - len(known)
        assert stray == 0, f"{stray} vectors of {tenant} that no document and no mark knows"
        lost = self.served[tenant] - known
        assert not lost, f"served chunks without a vector: {sorted(lost)}"


def row_kinds(world: World) -> list[str]:
    """Every row's sort key."""
    return [row["sk"]["S"] for row in world.rows()]


def check_books(world: World) -> None:
    """See `Books.check`."""
    Books(world).check()

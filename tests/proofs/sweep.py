"""Proof: sweeps settle every stalled document of every tenant, and ask DynamoDB for little more than they must.

Ten documents of each tenant have stalled, each where its ingest died before another of its writes; one of them is a
version that was replaced and not yet removed. Sweeps drain them, a writer's life passes, and sweeps drain what is due
for its last cleaning. Then nothing may be left but what is served.

The least number of requests, which the sweeps' own is put beside:

- Listing: one query for each of the two ranges of each shard of the index, for each of the two drains.
- Reading: rows in batches of 100: the row of each document, with its source's or its content's where it is to leave it;
  and in the second drain the row, or the mark, of each.
- Writing: one transaction for each document that is failed or removed, since its guard is its own: a batch has no
  conditions, and one transaction for several would fail for all of them when one lives. In the second drain one guarded
  write for each failed document, which takes it out of the index.
- Deleting: the chunk rows that may have been written, in batches of 25, in both drains; and the marks.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import ceil
from time import perf_counter
from typing import Any

from core.engine import Engine
from core.metadata.dynamo import GET_LIMIT, WRITE_LIMIT, Table
from core.metadata.table import SWEEP_SHARDS
from core.model.collection import NewCollection, VectorSpace
from core.model.document import DocumentState
from core.model.errors import Unavailable
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.ingest import IngestInput
from core.model.recovery import RecoveryResult
from core.model.tenant import Tenant
from core.parts import Parts
from core.text.loaders import Loaders
from core.text.splitters import Splitters
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.types import VectorRecord
from tests.proofs.command import Options, Report, main
from tests.proofs.harness import LIFE_S, SETTINGS, STALLED_S, TABLE, Death
from tests.proofs.judge import Problem, Rows, moment_problems, quiet_problems, read_rows
from tests.support.clock import ManualClock
from tests.support.dynamodb import Items, MemoryDynamoDB
from tests.support.embedder import HashedEmbedder

TENANTS = 1000
EACH = 10
READS = ("get_item", "batch_get_item", "query")
SHOWN = 10
ENDLESS = 1e9
INGEST_WRITES = 7
"""Writes of one ingest: begin, three heartbeats, chunk rows, heartbeat, swap."""
RANGES = 2
STUCK = 100
SENTENCES = 6
"""Of four words each, two of which fill a chunk."""


class Client:
    """A client of the table that counts its requests, and dies before one of its writes.

    Attributes:
        requests: by operation.
        writes_left: writes until it dies; None: it does not.
    """

    def __init__(self, table: MemoryDynamoDB) -> None:
        self._table = table
        self.requests: Counter[str] = Counter()
        self.writes_left: int | None = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._table, name)

        def counted(**arguments: Any) -> Any:
            if name not in READS and self.writes_left is not None:
                if not self.writes_left:
                    raise Death
                self.writes_left -= 1
            self.requests[name] += 1
            return method(**arguments)

        return counted


class Texts(EmbeddedVectorStore):
    """The vectors' texts alone: nothing is searched here.

    Attributes:
        stuck: documents whose vectors cannot be deleted.
    """

    def __init__(self) -> None:
        super().__init__(None)
        self.texts: dict[ChunkId, str] = {}
        self.stuck: frozenset[DocumentId] = frozenset()

    def write(self, tenant: Tenant, space: VectorSpace, records: Sequence[VectorRecord]) -> None:
        self.texts |= {record.chunk_id: record.text for record in records}

    def delete(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> int:
        if self.stuck.intersection(one.document_id for one in chunk_ids):
            raise Unavailable("These vectors cannot be deleted")
        return sum(self.texts.pop(one, None) is not None for one in chunk_ids)


@dataclass
class World:
    """Tenants whose documents have stalled.

    Attributes:
        client: of the engine that sweeps.
    """

    tenants: int
    clock: ManualClock = field(default_factory=ManualClock)
    vectors: Texts = field(default_factory=Texts)
    table: MemoryDynamoDB = field(init=False)
    client: Client = field(init=False)
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        items: Items = {}
        for number in range(self.tenants):
            items |= self._stalled(Tenant(f"tenant-{number:04}"))
        # An index's past is not asked for, and a state of so many rows is large.
        self.table = MemoryDynamoDB(self.clock.monotonic, states_kept=1)
        self.table.set_back(items)
        self.client = Client(self.table)
        self.engine = self._engine(self.client)
        self.clock.advance(STALLED_S + 1)

    def _engine(self, client: Client) -> Engine:
        embedder = HashedEmbedder()
        table: Any = client
        return Engine(
            Parts(
                settings=SETTINGS,
                clock=self.clock,
                table=Table(table, TABLE, self.clock),
                loaders=Loaders(),
                splitters=Splitters(),
                embedders={embedder.space.model: embedder},
                vectors=self.vectors,
            )
        )

    def _stalled(self, tenant: Tenant) -> Items:
        """A tenant's rows after its ingests have died. Made in a table of its own, which is small and quick."""
        table = MemoryDynamoDB(self.clock.monotonic, states_kept=1)
        client = Client(table)
        engine = self._engine(client)
        new = NewCollection(name=str(tenant), chunk_size=8, chunk_overlap=0)
        collection = engine.collections.create(tenant, new).id
        for number in range(EACH - 1):
            key = f"{number}.txt" if number % 3 else None
            self._die(engine, client, _input(tenant, collection, number, key), tenant, 1 + number % (INGEST_WRITES - 1))
        engine.ingest.ingest(tenant, _input(tenant, collection, 0, "replaced.txt"), ENDLESS)
        self._die(engine, client, _input(tenant, collection, 1, "replaced.txt"), tenant, INGEST_WRITES)
        return table.items

    def _die(self, engine: Engine, client: Client, given: IngestInput, tenant: Tenant, writes: int) -> None:
        client.writes_left = writes
        try:
            engine.ingest.ingest(tenant, given, ENDLESS)
        except Death:
            pass
        else:
            raise RuntimeError(f"the ingest has no write after {writes}")
        finally:
            client.writes_left = None
        self.clock.advance(0.01)

    def drain(self) -> RecoveryResult:
        return self.engine.recovery.drain(ENDLESS)

    def rows(self) -> Rows:
        return read_rows(self.table.items)

    def problems(self) -> list[Problem]:
        """What is wrong when sweeps are through."""
        rows = self.rows()
        now = self.clock.now().strftime("%Y-%m-%dT%H:%M:%S")
        return moment_problems(rows, self.vectors.texts) + quiet_problems(rows, self.vectors.texts, now)


def _input(tenant: Tenant, collection: CollectionId, number: int, key: str | None) -> IngestInput:
    content = (f"{tenant}-{number} alpha beta gamma. " * SENTENCES).encode()
    return IngestInput(collection_id=collection, content=content, source_key=key)


def least(rows: Rows) -> dict[str, int]:
    """The least requests that could settle these documents, by operation."""
    failing = [head for head in rows.heads.values() if head.state.in_progress]
    removing = [head for head in rows.heads.values() if head.state == DocumentState.SUPERSEDED]
    due = len(failing) + len(removing)
    chunks = sum(len(head.chunk_ids()) for head in (*failing, *removing))
    return {
        "query": 2 * SWEEP_SHARDS * RANGES,
        "batch_get_item": ceil((due + len(failing)) / GET_LIMIT) + ceil(due / GET_LIMIT),
        "transact_write_items": due,
        "update_item": len(failing),
        "batch_write_item": ceil(chunks / WRITE_LIMIT) + ceil((chunks + len(removing)) / WRITE_LIMIT),
    }


def prove(options: Options, tell: Callable[[str], None], tenants: int = TENANTS) -> Report:
    """Stalls the documents of so many tenants, and sweeps."""
    tell("documents stall")
    world = World(tenants * options.rounds)
    before = world.rows()
    fewest = least(before)
    tell("the sweep drains them")
    start = perf_counter()
    first = world.drain()
    world.clock.advance(LIFE_S + 1)
    tell("the sweep cleans them a last time")
    second = world.drain()
    drained = perf_counter() - start
    problems = [*world.problems(), *_miscounted(world, first, second), *stuck_problems()]
    requests = sum(world.client.requests.values())
    return {
        "documents": EACH * world.tenants,
        "tenants": world.tenants,
        "failed": first.failed,
        "purged": first.purged,
        "cleaned": second.cleaned,
        "requests": requests,
        "requests_least": sum(fewest.values()),
        "requests_by_operation": dict(sorted(world.client.requests.items())),
        "least_by_operation": fewest,
        "requests_a_document": round(requests / (EACH * world.tenants), 2),
        "seconds_draining": round(drained, 1),
        "problems": len(problems),
        "broken": [f"{one.kind}: {one.detail}" for one in problems[:SHOWN]],
    }


def _miscounted(world: World, first: RecoveryResult, second: RecoveryResult) -> Iterator[Problem]:
    failed, purged = (EACH - 1) * world.tenants, world.tenants
    if first.failed != failed or first.purged != purged or first.left:
        yield Problem("other", f"the first drain is to fail {failed} and purge {purged}, and answers {first}")
    if second.cleaned != failed + purged or second.left:
        yield Problem("other", f"the second drain is to clean {failed + purged}, and answers {second}")


def stuck_problems() -> list[Problem]:
    """A sweep's worth of the oldest documents cannot be cleaned: the sweeps after it still reach the others."""
    world = World(2 * STUCK // EACH)
    oldest = sorted(world.rows().heads.values(), key=lambda head: head.heartbeat)
    world.vectors.stuck = frozenset(head.document_id for head in oldest[:STUCK])
    for _ in range(4):
        try:
            world.engine.recovery.sweep(timedelta(0))
        except Unavailable:
            continue
    waiting = [
        head.document_id
        for head in world.rows().heads.values()
        if (head.state.in_progress or head.state == DocumentState.SUPERSEDED)
        and head.document_id not in world.vectors.stuck
    ]
    return [Problem("left", f"{one} waits behind documents that cannot be cleaned") for one in waiting]


def held(report: Report) -> bool:
    return not report["problems"]


if __name__ == "__main__":
    main("sweep", prove, held=held)

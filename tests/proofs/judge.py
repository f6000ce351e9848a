"""What must be true of a world: at every moment, and once the sweeps have nothing left to do.

The judge reads the stores themselves. Of the engine's own code it uses the models of the rows and nothing that decides.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from boto3.dynamodb.types import TypeDeserializer

from core.metadata.jobs import Job, JobKind
from core.metadata.rows import ChunkRow, CollectionRow, Counts, Head, Info, Row, Source
from core.model.collection import CollectionState
from core.model.document import DocumentState, source_id
from core.model.errors import CollectionNotFound
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.query import RetrieveQuery
from core.model.recovery import RecoveryResult
from tests.proofs.harness import LIFE_S, TENANT, World, tag_of
from tests.support.dynamodb import Items

SWEEPS = 4
QUERY = "text"
ALL = 100


@dataclass(frozen=True)
class Problem:
    """A promise that was broken.

    Attributes:
        kind: lost, mixed, orphans, counters_wrong, empty_answers, left, living_failed or other.
    """

    kind: str
    detail: str


@dataclass
class Rows:
    """The table's rows, read."""

    collections: dict[CollectionId, CollectionRow] = field(default_factory=dict)
    names: dict[str, CollectionId] = field(default_factory=dict)
    gates: dict[CollectionId, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    fields: set[CollectionId] = field(default_factory=set)
    heads: dict[DocumentId, Head] = field(default_factory=dict)
    infos: dict[DocumentId, Info] = field(default_factory=dict)
    versions: set[tuple[str, DocumentId]] = field(default_factory=set)
    chunks: dict[ChunkId, str] = field(default_factory=dict)
    sources: dict[tuple[CollectionId, str], Source] = field(default_factory=dict)
    contents: dict[tuple[CollectionId, str], DocumentId] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    due: dict[str, str] = field(default_factory=dict)
    expiring: set[tuple[CollectionId, str]] = field(default_factory=set)

    def ready(self) -> list[Head]:
        """Ready documents of active collections."""
        return [
            head
            for head in self.heads.values()
            if head.state == DocumentState.READY and self.active(head.collection_id)
        ]

    def active(self, collection_id: CollectionId) -> bool:
        row = self.collections.get(collection_id)
        return row is not None and row.state == CollectionState.ACTIVE

    def served(self) -> list[Head]:
        """What retrieval may answer with: told from the sources and contents alone."""
        heads = []
        for (collection_id, _), source in self.sources.items():
            if source.current is not None and self.active(collection_id):
                head = self.heads.get(source.current.document_id)
                heads += [head] if head is not None and head.attempt == source.current.attempt else []
        heads += [head for head in self.ready() if head.source_id is None]
        return heads


def _plain(wire: Mapping[str, Any]) -> dict[str, Any]:
    deserialize = TypeDeserializer().deserialize
    plain: dict[str, Any] = _whole(deserialize({"M": dict(wire)}))
    return plain


def _whole(value: Any) -> Any:
    """Numbers of the table are integers."""
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return int(value) if type(value).__name__ == "Decimal" else value


class _Cache:
    """Rows that were read before: a world goes through the same items again and again."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Any]] = {}

    def read(self, item: Any) -> tuple[dict[str, Any], Any]:
        known = self._known.get(id(item))
        if known is None or known[0] is not item:
            plain = _plain(item)
            known = self._known[id(item)] = (item, (plain, _model(plain)))
            if len(self._known) > 20_000:
                self._known.clear()
        found: tuple[dict[str, Any], Any] = known[1]
        return found


def _model(plain: Mapping[str, Any]) -> Any:
    sort = plain["sk"].partition("#")[0]
    kinds: dict[str, type[Row]] = {"HEAD": Head, "INFO": Info, "SOURCE": Source, "COL": CollectionRow, "JOB": Job}
    if sort == "CHUNK":
        return ChunkRow.read(dict(plain)).chunk().text
    return kinds[sort].read(dict(plain)) if sort in kinds else None


_cache = _Cache()


def read_rows(items: Items) -> Rows:
    """Sorts the table's items by what they are.

    Raises:
        ValueError: a row of no known kind.
    """
    rows = Rows()
    for (partition, sort), item in items.items():
        plain, model = _cache.read(item)
        if "sweep_sk" in plain:
            rows.due[f"{partition} {sort}"] = plain["sweep_sk"]
        _place(rows, partition, sort, plain, model)
    return rows


def _place(rows: Rows, partition: str, sort: str, plain: dict[str, Any], model: Any) -> None:
    kind, _, rest = sort.partition("#")
    match kind:
        case "HEAD":
            rows.heads[model.document_id] = model
        case "INFO":
            rows.infos[model.document_id] = model
        case "CHUNK":
            attempt, _, index = rest.partition("#")
            document = DocumentId(partition.split("#D#")[1].partition("#")[0])
            rows.chunks[ChunkId.of(document, int(attempt), int(index))] = model
        case "V":
            rows.versions.add((partition, DocumentId(rest)))
        case "GONE":
            rows.gone.append(f"{partition} {sort}")
        case "UPLOAD" | "PAGE_TOKEN_KEY":
            pass
        case _:
            _place_of_collection(rows, partition, sort, plain, model)


def _place_of_collection(rows: Rows, partition: str, sort: str, plain: dict[str, Any], model: Any) -> None:
    kind, _, rest = sort.partition("#")
    match kind:
        case "COL":
            rows.collections[model.id] = model
        case "JOB":
            rows.jobs.append(model)
        case "NAME":
            rows.names[rest] = CollectionId(plain["collection_id"])
        case "GATE":
            rows.gates[_collection(partition)].append(plain)
        case "FIELDS":
            rows.fields.add(_collection(partition))
        case "CONTENT":
            rows.contents[_collection(partition), partition.rpartition("#")[2]] = DocumentId(plain["document_id"])
        case "SOURCE":
            place = (_collection(partition), partition.rpartition("#")[2])
            rows.sources[place] = model
            if "expires_at" in plain:
                rows.expiring.add(place)
        case _:
            raise ValueError(f"a row of no known kind: {partition} {sort}")


def _collection(partition: str) -> CollectionId:
    return CollectionId(partition.split("#C#")[1].partition("#")[0])


# -- at every moment ---------------------------------------------------------------------------------


def moment_problems(rows: Rows, vectors: Mapping[ChunkId, str]) -> list[Problem]:
    """What no moment may show: a version that is served without all its data, a counter that is off."""
    problems = _counter_problems(rows)
    served: defaultdict[tuple[CollectionId, str], list[Head]] = defaultdict(list)
    for head in rows.ready():
        if head.source_id is None:
            if rows.contents.get((head.collection_id, head.fingerprint)) != head.document_id:
                problems.append(Problem("mixed", f"{head.document_id} is ready, but its content names another"))
        else:
            served[head.collection_id, head.source_id].append(head)
        problems += _data_problems(rows, vectors, head)
    for place, source in rows.sources.items():
        ready = [head.document_id for head in served.pop(place, [])]
        current = [source.current.document_id] if source.current and rows.active(place[0]) else []
        if ready != current:
            problems.append(Problem("mixed", f"ready {ready} but the source serves {current}"))
    problems += [Problem("lost", f"{place} has ready documents and no source row") for place in served]
    return problems


def _counter_problems(rows: Rows) -> list[Problem]:
    problems = []
    for collection_id, gates in rows.gates.items():
        row = rows.collections.get(collection_id)
        if row is not None and row.state == CollectionState.EMPTIED:
            continue  # its gates go one after the other
        heads = [head for head in rows.heads.values() if head.collection_id == collection_id]
        ready = [head for head in heads if head.state == DocumentState.READY]
        right = {
            "documents": len(ready),
            "chunks": sum(head.chunk_count for head in ready),
            "working": sum(head.state.in_progress for head in heads),
            "rows": len(heads),
        }
        counted = {name: sum(gate.get(name, 0) for gate in gates) for name in Counts.model_fields}
        if counted != right:
            problems.append(Problem("counters_wrong", f"{counted}, in truth {right}"))
    return problems


def _data_problems(rows: Rows, vectors: Mapping[ChunkId, str], head: Head) -> list[Problem]:
    ids = [ChunkId.of(head.document_id, head.attempt, index) for index in range(head.chunk_count)]
    problems = []
    for where, there in (("row", rows.chunks), ("vector", vectors)):
        missing = [one for one in ids if one not in there]
        if missing:
            problems.append(
                Problem("lost", f"{len(missing)} of {len(ids)} chunks of {head.document_id} have no {where}")
            )
    tags = {tag_of(there[one]) for there in (rows.chunks, vectors) for one in ids if one in there}
    if len(tags) > 1:
        problems.append(Problem("mixed", f"{head.document_id} holds {sorted(tags)}"))
    return problems


# -- once all is quiet -------------------------------------------------------------------------------


def quiet_problems(rows: Rows, vectors: Mapping[ChunkId, str], now: str) -> list[Problem]:
    """What must not be left when nobody works any more and the sweeps are through."""
    served = {
        ChunkId.of(head.document_id, head.attempt, index) for head in rows.ready() for index in range(head.chunk_count)
    }
    orphans = [f"vector {one}" for one in vectors if one not in served]
    orphans += [f"chunk row {one}" for one in rows.chunks if one not in served]
    orphans += [f"{what}" for what in _rows_without_owner(rows)]
    problems = [Problem("orphans", each) for each in orphans]
    return problems + [Problem("left", each) for each in _left(rows, now)]


def _rows_without_owner(rows: Rows) -> list[str]:
    found = [f"info of {one}" for one in rows.infos if one not in rows.heads]
    found += [f"head of {one} without its info" for one in rows.heads if one not in rows.infos]
    found += [f"version row of {one}" for _, one in rows.versions if one not in rows.heads]
    found += [f"gates of {one}" for one in rows.gates if one not in rows.collections]
    found += [f"fields of {one}" for one in rows.fields if one not in rows.collections]
    found += [
        f"gates of {one}: {len(rows.gates.get(one, []))}" for one in rows.collections if len(rows.gates[one]) != 16
    ]
    found += [f"job of {one.collection_id}" for one in rows.jobs if one.collection_id not in rows.collections]
    found += [f"source of {place[0]}" for place in rows.sources if place[0] not in rows.collections]
    found += [
        f"content row of {document}"
        for (collection_id, _), document in rows.contents.items()
        if collection_id not in rows.collections or document not in rows.heads
    ]
    found += [
        f"{one.document_id} of no collection"
        for one in rows.heads.values()
        if one.collection_id not in rows.collections
    ]
    versioned = Counter(document for _, document in rows.versions)
    found += [
        f"{one.document_id} has {versioned[one.document_id]} version rows"
        for one in rows.heads.values()
        if versioned[one.document_id] != int(one.source_id is not None)
    ]
    named = {row.name: row.id for row in rows.collections.values()}
    return found + ([f"names {rows.names} of {named}"] if named != rows.names else [])


def _left(rows: Rows, now: str) -> list[str]:
    left = [f"mark {one}" for one in rows.gone]
    left += [f"{one.document_id} is {one.state}" for one in rows.heads.values() if one.state not in _SETTLED]
    left += [f"collection {one.id} is {one.state}" for one in rows.collections.values() if one.state != "active"]
    left += [f"{place} has work {source.work}" for place, source in rows.sources.items() if source.work]
    waiting = {f"JOB#{JobKind.RECONCILE}"}
    left += [
        f"due: {row}" for row, due in rows.due.items() if row.partition(" ")[2] not in waiting or due <= f"D#{now}"
    ]
    left += [
        f"job {one.kind} has not finished" for one in rows.jobs if one.kind == JobKind.REINDEX and not one.finished
    ]
    for place, source in rows.sources.items():
        if (place in rows.expiring) != (source.current is None and not source.work):
            left.append(f"{place} expires: {place in rows.expiring}, serves {source.current}")
        if source_id(source.key) != place[1]:
            left.append(f"the source {source.key!r} is in another's place")
    for gates in rows.gates.values():
        left += [f"gate {gate['pk']} is closed" for gate in gates if not gate["opened"]]
    return left


_SETTLED = (DocumentState.READY, DocumentState.FAILED)


# -- what it comes to --------------------------------------------------------------------------------

Summary = frozenset[tuple[str, ...]]


def summary(rows: Rows, known: Sequence[DocumentId] = ()) -> Summary:
    """What a caller can tell apart: collections and what each source serves.

    Args:
        known: documents of which it counts whether they are there, and in which state.
    """
    found: set[tuple[str, ...]] = {
        ("collection", row.name, row.description) for row in rows.collections.values() if rows.active(row.id)
    }
    for head in rows.ready():
        info = rows.infos[head.document_id]
        key = info.source_key if info.source_key is not None else ""
        tag = tag_of(rows.chunks.get(ChunkId.of(head.document_id, head.attempt, 0), "? "))
        found.add(("served", str(head.collection_id), key, tag, str(head.chunk_count), info.title))
    for one in known:
        if one in rows.heads:
            found.add(("document", str(one), rows.heads[one].state.value))
    return frozenset(found)


# -- a world -----------------------------------------------------------------------------------------


def look(world: World) -> tuple[Rows, list[Problem]]:
    """The world as it is now: its rows, and what is wrong at this moment, answers to questions included."""
    rows = read_rows(world.dynamodb.items)
    problems = moment_problems(rows, world.vector_texts()) + answer_problems(world, rows)
    return rows, problems + [Problem("other", each) for each in world.broken]


def answer_problems(world: World, rows: Rows) -> list[Problem]:
    """Asks, and compares with what the rows say is served: whole versions, nothing hidden, nothing missing."""
    problems = []
    everything = {
        ChunkId.of(head.document_id, head.attempt, index) for head in rows.served() for index in range(head.chunk_count)
    }
    for collection_id in rows.collections:
        right = {one for one in everything if rows.heads[one.document_id].collection_id == collection_id}
        for top_k in (1, 10, ALL):
            query = RetrieveQuery(query=QUERY, collections=[collection_id], top_k=top_k)
            problems += _answer(world, query, right, active=rows.active(collection_id))
    if any(rows.active(one) for one in rows.collections):
        problems += _answer(world, RetrieveQuery(query=QUERY, top_k=ALL), everything, active=True)
    return problems


def _answer(world: World, query: RetrieveQuery, right: set[ChunkId], *, active: bool) -> list[Problem]:
    try:
        result = world.plain.engine.retrieve(TENANT, query)
    except CollectionNotFound:
        return [Problem("empty_answers", "an active collection was not found")] if active else []
    if not active:
        return [Problem("mixed", "a collection that is being deleted answers")]
    ids = [hit.chunk.id for hit in result.hits]
    hidden = [one for one in ids if one not in right]
    if hidden:
        return [Problem("mixed", f"{len(hidden)} hits of what is not served, at top_k {query.top_k}")]
    if len(ids) != min(query.top_k, len(right)) or len(set(ids)) != len(ids):
        return [Problem("empty_answers", f"{len(ids)} of {len(right)} chunks at top_k {query.top_k}")]
    bad = [hit for hit in result.hits if hit.orphaned or not hit.hydrated or hit.document is None]
    return [Problem("lost", f"{len(bad)} hits without their rows")] if bad else []


def settle_world(world: World) -> tuple[Rows, list[Problem]]:
    """Lets a writer's life pass and sweeps, until a sweep has nothing left to do; then says what is wrong."""
    problems: list[Problem] = []
    for _ in range(SWEEPS):
        world.clock.advance(LIFE_S + 1)
        result = world.plain.engine.recovery.sweep()
        if not _did_something(result):
            break
    else:
        problems.append(Problem("left", f"the sweep had something to do {SWEEPS} times: {result}"))
    rows, found = look(world)
    vectors = world.vector_texts()
    problems += found + quiet_problems(rows, vectors, world.clock.now().strftime("%Y-%m-%dT%H:%M:%S"))
    problems += [Problem("orphans", each) for each in world.store_problems()]
    return rows, problems


def _did_something(result: RecoveryResult) -> bool:
    return any(value for name, value in result if name != "left")

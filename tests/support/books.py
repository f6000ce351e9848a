"""The book-keeper says what is wrong with the rows and the vectors of a world.

The book-keeper reads the stores themselves. Of the engine's own code it uses the models of the rows, and nothing that
decides. Unit tests call `check_books` at moments when nobody works. The proofs call `moment_problems` at every moment,
and `quiet_problems` once the sweeps have nothing left to do.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from core.metadata.jobs import JobKind
from core.metadata.rows import Counts, Head
from core.metadata.table import GATES
from core.model.collection import CollectionState
from core.model.document import DocumentState, source_id
from core.model.ids import ChunkId, CollectionId
from tests.support.contents import tag_of
from tests.support.engines import World
from tests.support.rows import Rows, read_rows

ENDED = (DocumentState.READY, DocumentState.FAILED)
"""The states in which a document may stay."""


@dataclass(frozen=True)
class Problem:
    """A promise that was broken.

    Attributes:
        kind: the key of the proof's last line that counts the problem: ``lost``, ``mixed``, ``orphans``,
            ``counters_wrong``, ``empty_answers``, ``left``, ``living_failed``, ``other``, or a kind of one proof alone.
    """

    kind: str
    detail: str


# -- at every moment ---------------------------------------------------------------------------------


def moment_problems(rows: Rows, vectors: Mapping[ChunkId, str], *, tagged: bool = True) -> list[Problem]:
    """What no moment may show: a version that is served without all its data, or a wrong counter.

    Args:
        tagged: whether each chunk's first word says which content it is of, so that mixed contents are seen.
    """
    problems = [*_counter_problems(rows), *_source_problems(rows)]
    problems += [Problem("mixed", misplaced) for misplaced in rows.misplaced]
    for head in rows.ready():
        problems += _data_problems(rows, vectors, head)
        if tagged:
            problems += _tag_problems(rows, vectors, head)
    return problems


def _source_problems(rows: Rows) -> Iterator[Problem]:
    """Sources and contents that do not serve just the ready documents."""
    served: defaultdict[tuple[CollectionId, str], list[Head]] = defaultdict(list)
    for head in rows.ready():
        if head.source_id is not None:
            served[head.collection_id, head.source_id].append(head)
        elif rows.contents.get((head.collection_id, head.fingerprint)) != head.document_id:
            yield Problem("mixed", f"{head.document_id} is ready, but its content names another document")
    for place, source in rows.sources.items():
        ready = [(head.document_id, head.attempt, head.number) for head in served.pop(place, [])]
        right = []
        if source.current and rows.active(place[0]):
            right = [(source.current.document_id, source.current.attempt, source.current_number)]
        if ready != right:
            yield Problem("mixed", f"ready are {ready}, but the source serves {right}")
    for place in served:
        yield Problem("lost", f"{place} has ready documents and no source row")


def _counter_problems(rows: Rows) -> Iterator[Problem]:
    heads: defaultdict[CollectionId, list[Head]] = defaultdict(list)
    for head in rows.heads.values():
        heads[head.collection_id].append(head)
    for collection_id in {**rows.gates, **heads}:
        row = rows.collections.get(collection_id)
        if row is not None and row.state == CollectionState.EMPTIED:
            continue  # its gates are deleted one after the other
        ready = [head for head in heads[collection_id] if head.state == DocumentState.READY]
        right = {
            "documents": len(ready),
            "chunks": sum(head.chunk_count for head in ready),
            "working": sum(head.state.in_progress for head in heads[collection_id]),
            "rows": len(heads[collection_id]),
        }
        gates = rows.gates.get(collection_id, [])
        counted = {name: sum(gate.get(name, 0) for gate in gates) for name in Counts.model_fields}
        if counted != right:
            yield Problem("counters_wrong", f"the gates of {collection_id} count {counted}, its rows {right}")


def _data_problems(rows: Rows, vectors: Collection[ChunkId], head: Head) -> Iterator[Problem]:
    chunk_ids = head.served_chunk_ids()
    for kind, stored in (("row", rows.chunks), ("vector", vectors)):
        missing = sum(chunk_id not in stored for chunk_id in chunk_ids)
        if missing:
            yield Problem("lost", f"{missing} of {len(chunk_ids)} chunks of {head.document_id} have no {kind}")


def _tag_problems(rows: Rows, vectors: Mapping[ChunkId, str], head: Head) -> Iterator[Problem]:
    chunk_ids = head.served_chunk_ids()
    texts = [stored[chunk_id] for stored in (rows.chunks, vectors) for chunk_id in chunk_ids if chunk_id in stored]
    tags = {tag_of(text) for text in texts}
    if len(tags) > 1:
        yield Problem("mixed", f"{head.document_id} holds {sorted(tags)}")


# -- once nobody works -------------------------------------------------------------------------------


def stray_problems(rows: Rows, vectors: Collection[ChunkId], accounted: Collection[ChunkId]) -> Iterator[Problem]:
    """Chunk rows and vectors that are of no accounted chunk."""
    for kind, stored in (("vector", vectors), ("chunk row", rows.chunks)):
        for chunk_id in stored:
            if chunk_id not in accounted:
                yield Problem("orphans", f"{kind} {chunk_id}")


def quiet_problems(rows: Rows, vectors: Collection[ChunkId], now: str) -> list[Problem]:
    """What must not be left when nobody works any more and the sweeps have nothing left to do.

    Args:
        now: the time, as the sweep's index writes it.
    """
    served = {chunk_id for head in rows.ready() for chunk_id in head.served_chunk_ids()}
    problems = list(stray_problems(rows, vectors, served))
    problems += [Problem("orphans", row) for row in _rows_without_owner(rows)]
    return problems + [Problem("left", row) for row in _left(rows, now)]


def _rows_without_owner(rows: Rows) -> Iterator[str]:
    yield from (f"info of {document_id}" for document_id in rows.infos if document_id not in rows.heads)
    yield from (f"version row of {document_id}" for _, document_id in rows.versions if document_id not in rows.heads)
    versions = Counter(document_id for _, document_id in rows.versions)
    for document_id, head in rows.heads.items():
        if document_id not in rows.infos:
            yield f"head of {document_id} without its info"
        if head.collection_id not in rows.collections:
            yield f"{document_id} of no collection"
        if versions[document_id] != int(head.source_id is not None):
            yield f"{document_id} has {versions[document_id]} version rows"
    owned: Mapping[str, Collection[CollectionId]] = {
        "gates": rows.gates,
        "fields": rows.fields,
        "job": [job.collection_id for job in rows.jobs],
        "source": [collection_id for collection_id, _ in rows.sources],
        "content row": [collection_id for collection_id, _ in rows.contents],
    }
    for kind, owners in owned.items():
        yield from (f"{kind} of {owner}" for owner in owners if owner not in rows.collections)
    for document_id in rows.contents.values():
        if document_id not in rows.heads:
            yield f"content row of {document_id}"
    for collection_id in rows.collections:
        gates = rows.gates.get(collection_id, [])
        if len(gates) != GATES:
            yield f"gates of {collection_id}: {len(gates)}"
    named = sorted((row.name, row.id) for row in rows.collections.values())
    names = sorted((name, collection_id) for (_, name), collection_id in rows.names.items())
    if named != names:
        yield f"names {names} of {named}"


def _left(rows: Rows, now: str) -> Iterator[str]:
    yield from (f"mark {mark}" for mark in rows.marks)
    yield from (f"{head.document_id} is {head.state}" for head in rows.heads.values() if head.state not in ENDED)
    yield from (f"collection {row.id} is {row.state}" for row in rows.collections.values() if row.state != "active")
    for row, due in rows.due.items():
        if row.partition(" ")[2] != f"JOB#{JobKind.RECONCILE}" or due <= f"D#{now}":
            yield f"due: {row}"
    for job in rows.jobs:
        if job.kind == JobKind.REINDEX and not job.finished:
            yield f"job {job.kind} has not finished"
    for place, source in rows.sources.items():
        if source.in_progress:
            yield f"{place} has work {source.in_progress}"
        if (place in rows.expiring) != (source.current is None and not source.in_progress):
            yield f"{place} expires: {place in rows.expiring}, serves {source.current}"
        if source_id(source.key) != place[1]:
            yield f"the source {source.key!r} lies in the place of another"
    yield from (f"gate {gate['pk']} is closed" for gates in rows.gates.values() for gate in gates if not gate["opened"])


# -- a world -----------------------------------------------------------------------------------------


def check_books(world: World) -> None:
    """Fails where a counter differs from a recount, where a served document is not whole, where a chunk row or a vector
    is of nothing that the rows know, and where a source works on a document that has ended."""
    rows, vectors = read_rows(world.items), world.vector_texts()
    problems = moment_problems(rows, vectors, tagged=False)
    problems += stray_problems(rows, vectors, rows.accounted())
    problems += [Problem("left", work) for work in _ended_work(rows)]
    problems += [Problem("orphans", problem) for problem in world.store_problems()]
    assert not problems, problems


def _ended_work(rows: Rows) -> Iterator[str]:
    """The work of active collections' sources on documents that have ended, unless a newer version is served."""
    for (collection_id, _), source in rows.sources.items():
        for work in source.in_progress.values() if rows.active(collection_id) else ():
            head = rows.heads.get(work.document_id)
            if (head is None or not head.state.in_progress) and work.number >= source.current_number:
                yield f"source {source.key!r} works on {work.document_id}, which has ended"


def row_kinds(world: World) -> list[str]:
    """The sort key of every row, in order of the rows' keys."""
    return [row["sk"]["S"] for row in world.rows()]

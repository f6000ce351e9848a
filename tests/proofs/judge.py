"""The judge of a proof: asks questions, sweeps until nothing is left to do, and says what is wrong with the world.

What must be true of rows and vectors is in `tests.support.books`.
"""

from collections.abc import Sequence

from core.model.errors import CollectionNotFound
from core.model.ids import ChunkId, DocumentId
from core.model.query import RetrieveQuery
from core.model.recovery import RecoveryResult
from tests.proofs.harness import LIFE_S, TENANT
from tests.support.books import Problem, moment_problems, quiet_problems
from tests.support.contents import tag_of
from tests.support.engines import World
from tests.support.rows import Rows, read_rows

SWEEPS = 4
QUERY = "text"
ALL = 100

Summary = frozenset[tuple[str, ...]]


def summary(rows: Rows, known: Sequence[DocumentId] = ()) -> Summary:
    """What callers can tell apart: the collections, and what each source serves.

    Args:
        known: documents whose presence and state belong to the summary too.
    """
    entries: set[tuple[str, ...]] = {
        ("collection", row.name, row.description) for row in rows.collections.values() if rows.active(row.id)
    }
    for head in rows.ready():
        info = rows.infos[head.document_id]
        key = info.source_key if info.source_key is not None else ""
        tag = tag_of(rows.chunks.get(ChunkId.of(head.document_id, head.attempt, 0), "? "))
        entries.add(("served", str(head.collection_id), key, tag, str(head.chunk_count), info.title))
    for document_id in known:
        if document_id in rows.heads:
            entries.add(("document", str(document_id), rows.heads[document_id].state.value))
    return frozenset(entries)


# -- a world -----------------------------------------------------------------------------------------


def look(world: World) -> tuple[Rows, list[Problem]]:
    """Reads the rows of the world, and says what is wrong with them and with answers at this moment."""
    rows = read_rows(world.items)
    problems = moment_problems(rows, world.vector_texts()) + answer_problems(world, rows)
    return rows, problems + [Problem("other", broken) for broken in world.broken]


def answer_problems(world: World, rows: Rows) -> list[Problem]:
    """Asks questions, and compares the answers with what the rows say is served: whole versions, and nothing hidden."""
    problems = []
    everything = {chunk_id for head in rows.served() for chunk_id in head.served_chunk_ids()}
    for collection_id in rows.collections:
        right = {chunk_id for chunk_id in everything if rows.heads[chunk_id.document_id].collection_id == collection_id}
        for top_k in (1, 10, ALL):
            query = RetrieveQuery(query=QUERY, collections=[collection_id], top_k=top_k)
            problems += _answer(world, query, right, active=rows.active(collection_id))
    if any(map(rows.active, rows.collections)):
        problems += _answer(world, RetrieveQuery(query=QUERY, top_k=ALL), everything, active=True)
    return problems


def _answer(world: World, query: RetrieveQuery, right: set[ChunkId], *, active: bool) -> list[Problem]:
    try:
        hits = world.engine.retrieve(TENANT, query).hits
    except CollectionNotFound:
        return [Problem("empty_answers", "an active collection was not found")] if active else []
    if not active:
        return [Problem("mixed", "a collection that is being deleted answers")]
    chunk_ids = [hit.chunk.id for hit in hits]
    hidden = [chunk_id for chunk_id in chunk_ids if chunk_id not in right]
    if hidden:
        return [Problem("mixed", f"{len(hidden)} hits of what is not served, at top_k {query.top_k}")]
    if len(chunk_ids) != min(query.top_k, len(right)) or len(set(chunk_ids)) != len(chunk_ids):
        return [Problem("empty_answers", f"{len(chunk_ids)} of {len(right)} chunks at top_k {query.top_k}")]
    bad = [hit for hit in hits if hit.orphaned or not hit.hydrated or hit.document is None]
    return [Problem("lost", f"{len(bad)} hits without their rows")] if bad else []


def sweep_until_quiet(world: World) -> tuple[Rows, list[Problem]]:
    """Lets a writer's life pass and sweeps, until a sweep has nothing left to do; then says what is wrong."""
    problems: list[Problem] = []
    for _ in range(SWEEPS):
        world.clock.advance(LIFE_S + 1)
        result = world.engine.recovery.sweep()
        if not _did_something(result):
            break
    else:
        problems.append(Problem("left", f"the sweep had something to do {SWEEPS} times: {result}"))
    rows, found = look(world)
    problems += found + quiet_problems(rows, world.vector_texts(), world.clock.now().strftime("%Y-%m-%dT%H:%M:%S"))
    problems += [Problem("orphans", each) for each in world.store_problems()]
    return rows, problems


def _did_something(result: RecoveryResult) -> bool:
    return any(count for name, count in result if name != "left")

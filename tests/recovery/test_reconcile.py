"""Reconcile compares rows and vectors in both directions and repairs the differences."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from core.metadata import table
from core.metadata.documents import Documents
from core.metadata.dynamo import Action
from core.metadata.jobs import Jobs
from core.model.collection import Collection
from core.model.document import DocumentState
from core.model.errors import CollectionNotFound, Unavailable
from core.model.ids import ChunkId, DocumentId
from core.model.recovery import ReconcileReport
from core.recovery import ready_chunks, reconcile
from core.recovery.jobs import LEASE
from core.vectors.types import VectorRecord
from tests.recovery.conftest import BusyEmbedder, all_vectors, chunks_of, ready, words
from tests.support.books import check_books
from tests.support.engines import ACME, GLOBEX, World
from tests.support.meddling import CrashError, MeddlingVectors, Recorder, crash, die

STALLED_S = 15 * 60
NEVER = DocumentId.from_int(77 << 24)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes each step of the job take a few chunks and documents alone."""
    monkeypatch.setattr(reconcile, "CHUNKS_AT_ONCE", 3)
    monkeypatch.setattr(reconcile, "DOCUMENTS_AT_ONCE", 2)
    monkeypatch.setattr(ready_chunks, "DOCUMENTS_AT_ONCE", 2)


def run(world: World, collection: Collection, seconds: float = 1000.0) -> ReconcileReport:
    return world.engine.reconcile.run(ACME, collection.id, world.deadline(seconds))


def found(report: ReconcileReport) -> dict[str, int]:
    """Returns the counters of a report that are not zero."""
    names = ("embedded_again", "removed", "lost", "counters_corrected")
    return {name: getattr(report, name) for name in names if getattr(report, name)}


def stray(world: World, collection: Collection, *chunks: ChunkId) -> None:
    """Writes stray vectors, which belong to no chunk row."""
    [vector] = world.embedder.embed(["stray"]).vectors
    records = [VectorRecord(chunk_id, collection.id, None, None, "stray", vector) for chunk_id in chunks]
    world.vectors.write(ACME, world.embedder.space, records)


def lose_vectors(world: World, *chunks: ChunkId) -> None:
    assert world.vectors.delete(ACME, world.embedder.space, chunks) == len(chunks)


def miscount(world: World, collection: Collection, **changes: int) -> None:
    """Adds to the counters of a gate, so that they are wrong."""
    update = "ADD " + ", ".join(f"#{name} :{name}" for name in changes)
    world.stores.table.write(Action(table.gate(ACME, collection.id, 3), update=update, values=dict(changes)))


def rows_but_the_job(world: World) -> list[object]:
    return [row for row in world.rows() if not row["sk"]["S"].startswith("JOB#")]


def test_a_reconcile_changes_nothing_in_a_consistent_collection(
    world: World, collection: Collection, busy: BusyEmbedder
) -> None:
    ready(world, collection, "warp", 3)
    ready(world, collection, "weft", 2)
    rows, vectors = rows_but_the_job(world), all_vectors(world, collection)
    busy.embedded.clear()
    report = run(world, collection)
    assert (report.chunks, report.vectors, found(report), report.finished) == (5, 5, {}, True)
    assert (rows_but_the_job(world), all_vectors(world, collection)) == (rows, vectors)
    assert busy.embedded == []


def test_only_missing_vectors_are_embedded_again(world: World, collection: Collection, busy: BusyEmbedder) -> None:
    warp, weft = ready(world, collection, "warp", 3), ready(world, collection, "weft", 2)
    lose_vectors(world, chunks_of(warp, 3)[1], *chunks_of(weft, 2))
    busy.embedded.clear()
    assert found(run(world, collection)) == {"embedded_again": 3}
    assert sorted(busy.embedded) == ["warp part1 text", "weft part0 text", "weft part1 text"]
    check_books(world)


@pytest.mark.parametrize(
    "of",
    [
        lambda document: ChunkId.of(NEVER, 1, 0),
        lambda document: ChunkId.of(document, 2, 0),
        lambda document: ChunkId.of(document, 1, 2),
        lambda document: ChunkId.of(document, 1, 1_000_000),
    ],
    ids=["a document that never was", "another attempt", "one more index", "the last index"],
)
def test_a_vector_that_no_row_serves_is_removed(
    world: World, collection: Collection, of: Callable[[DocumentId], ChunkId]
) -> None:
    document = ready(world, collection, "warp", 2)
    stray(world, collection, of(document))
    assert found(run(world, collection)) == {"removed": 1}
    assert all_vectors(world, collection) == chunks_of(document, 2)


def test_a_chunk_whose_row_is_lost_is_reported_and_its_vector_removed(world: World, collection: Collection) -> None:
    document = ready(world, collection, "warp", 3)
    first, lost, last = chunks_of(document, 3)
    world.stores.documents.delete_chunks(ACME, [lost])
    assert found(run(world, collection)) == {"lost": 1, "removed": 1}
    assert all_vectors(world, collection) == [first, last]
    assert found(run(world, collection)) == {"lost": 1}, "a lost chunk is reported by every run"


def test_data_of_a_document_in_progress_is_left_alone(world: World, collection: Collection, recorder: Recorder) -> None:
    ready(world, collection, "warp")
    die(world, recorder, collection, words("working", 3), source_key="working")
    rows, vectors = rows_but_the_job(world), all_vectors(world, collection)
    assert found(run(world, collection)) == {}
    assert (rows_but_the_job(world), all_vectors(world, collection)) == (rows, vectors)


def test_vectors_of_a_claimed_attempt_are_removed_and_those_of_the_claim_stay(
    world: World, collection: Collection, recorder: Recorder
) -> None:
    document = die(world, recorder, collection, words("working", 2), source_key="working")
    world.clock.advance(STALLED_S + 1)
    die(world, recorder, collection, words("working", 2), source_key="working")
    assert found(run(world, collection)) == {"removed": 2}
    assert all_vectors(world, collection) == [ChunkId.of(document, 2, index) for index in range(2)]


def test_a_failed_document_keeps_its_row_and_loses_its_vectors(
    world: World, collection: Collection, busy: BusyEmbedder
) -> None:
    busy.failure = Unavailable("no answer")
    with pytest.raises(Unavailable) as failure:
        world.ingest(collection, "failed", source_key="failed")
    busy.failure = None
    document = failure.value.extras["document_id"]
    assert isinstance(document, DocumentId)
    stray(world, collection, ChunkId.of(document, 1, 0))
    rows = rows_but_the_job(world)
    assert found(run(world, collection)) == {"removed": 1}
    assert rows_but_the_job(world) == rows


def test_a_version_that_becomes_current_during_a_reconcile_is_left_alone(
    world: World, collection: Collection, busy: BusyEmbedder
) -> None:
    lost = ready(world, collection, "warp", 2)
    lose_vectors(world, *chunks_of(lost, 2))

    def replace() -> None:
        busy.during = None
        ready(world, collection, "weft", 2)
        world.ingest(collection, words("new", 4), source_key="warp")

    busy.during = replace
    assert found(run(world, collection)) == {}, "a document that was replaced meanwhile needs nothing"
    assert len(all_vectors(world, collection)) == 6
    check_books(world)


def test_another_collection_and_another_tenant_are_left_alone(world: World, collection: Collection) -> None:
    other = world.collection("other")
    theirs = world.collection("theirs", GLOBEX)
    world.ingest(theirs, "one two", GLOBEX, source_key="a")
    stray(world, other, ChunkId.of(NEVER, 1, 0))
    miscount(world, other, rows=1)
    assert found(run(world, collection)) == {}
    assert all_vectors(world, other) == [ChunkId.of(NEVER, 1, 0)]
    assert world.vector_count(GLOBEX) == 1
    with pytest.raises(CollectionNotFound):
        world.engine.reconcile.run(GLOBEX, collection.id, world.deadline())


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("documents", [0, 1, 2, 5])
def test_counters_that_disagree_with_the_rows_are_corrected(
    world: World, collection: Collection, recorder: Recorder, documents: int
) -> None:
    for number in range(documents):
        ready(world, collection, f"n{number}", 2)
    die(world, recorder, collection, "working", source_key="working")
    miscount(world, collection, documents=3, chunks=-7, working=-1, rows=2)
    assert found(run(world, collection)) == {"counters_corrected": 1}
    check_books(world)
    assert found(run(world, collection)) == {}


def test_a_gate_that_changes_during_a_recount_is_left_to_the_next_run(world: World, collection: Collection) -> None:
    ready(world, collection, "warp")
    miscount(world, collection, documents=1)
    sleep = world.clock.sleep

    def sleep_and_ingest(seconds: float) -> None:
        world.clock.sleep = sleep  # type: ignore[method-assign]  # one instance's own
        ready(world, collection, "weft")
        sleep(seconds)

    world.clock.sleep = sleep_and_ingest  # type: ignore[method-assign]  # one instance's own
    assert found(run(world, collection)) == {}
    assert found(run(world, collection)) == {"counters_corrected": 1}
    check_books(world)


def test_a_reconcile_waits_for_a_listing_index_that_is_behind(world: World, collection: Collection) -> None:
    ready(world, collection, "warp")
    world.dynamodb.lag = 3.0
    assert found(run(world, collection)) == {}
    check_books(world)


def test_chunks_of_a_document_deleted_during_a_reconcile_are_not_reported_as_lost(
    world: World, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = ready(world, collection, "warp")
    look = Documents.existing_chunks

    def delete_and_look(*arguments: object) -> object:
        world.engine.documents.delete(ACME, document)
        return look(*arguments)  # type: ignore[arg-type]  # what it was given

    monkeypatch.setattr(Documents, "existing_chunks", delete_and_look)
    assert found(run(world, collection)) == {}


def damage(world: World, collection: Collection) -> dict[str, int]:
    """Damages the collection in every way, and returns what a report must count."""
    documents = [ready(world, collection, f"n{number}", 4) for number in range(5)]
    lose_vectors(world, chunks_of(documents[0], 4)[3], *chunks_of(documents[3], 4))
    stray(world, collection, ChunkId.of(NEVER, 1, 0), *(ChunkId.of(documents[4], 1, index) for index in range(4, 9)))
    world.stores.documents.delete_chunks(ACME, [chunks_of(documents[2], 4)[0]])
    miscount(world, collection, rows=1)
    return {"embedded_again": 5, "removed": 7, "lost": 1, "counters_corrected": 1}


@pytest.mark.usefixtures("small_pages")
def test_a_reconcile_that_meets_its_deadline_many_times_reports_the_same(
    world: World, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = damage(world, collection)
    save = Jobs.save

    def slowly(*arguments: object) -> object:
        world.clock.advance(10)
        return save(*arguments)  # type: ignore[arg-type]  # what it was given

    monkeypatch.setattr(Jobs, "save", slowly)
    reports = [run(world, collection, 15)]
    while not reports[-1].finished and len(reports) < 100:
        reports.append(run(world, collection, 15))
    assert len(reports) > 10
    report = reports[-1]
    assert found(report) == right
    assert (report.chunks, report.started_at < report.updated_at) == (19, True)


@pytest.mark.usefixtures("small_pages")
def test_a_reconcile_continues_from_the_last_step_of_a_worker_that_died(
    world: World, collection: Collection, vectors: MeddlingVectors, busy: BusyEmbedder
) -> None:
    right = damage(world, collection)
    vectors.before_delete = crash
    with pytest.raises(CrashError):
        run(world, collection)
    assert not run(world, collection).finished, "no other worker takes the job before its lease is over"
    world.clock.advance(LEASE.total_seconds() + 1)
    busy.embedded.clear()
    assert found(run(world, collection)) == right
    assert {text.split()[0] for text in busy.embedded} == {"n3"}, "the first document has been repaired already"


def test_a_second_reconcile_answers_with_the_progress_of_the_running_one(
    world: World, collection: Collection, busy: BusyEmbedder
) -> None:
    document = ready(world, collection, "warp", 2)
    lose_vectors(world, *chunks_of(document, 2))
    busy.embedded.clear()
    seen = []
    busy.during = lambda: seen.append(run(world, collection))
    assert found(run(world, collection)) == {"embedded_again": 2}
    assert [(found(report), report.finished) for report in seen] == [({}, False)]
    assert len(busy.embedded) == 2


def test_the_sweep_reconciles_every_collection_once_an_interval(
    world: World, collection: Collection, recorder: Recorder
) -> None:
    document = ready(world, collection, "warp", 2)
    world.clock.advance(timedelta(hours=25).total_seconds())
    assert world.engine.recovery.sweep().advanced == 1
    lose_vectors(world, chunks_of(document, 2)[0])
    world.clock.advance(timedelta(hours=23).total_seconds())
    assert world.engine.recovery.sweep().advanced == 0
    world.clock.advance(timedelta(hours=2).total_seconds())
    assert world.engine.recovery.sweep().advanced == 1
    assert all_vectors(world, collection) == chunks_of(document, 2)
    assert world.engine.documents.get(ACME, document).state == DocumentState.READY

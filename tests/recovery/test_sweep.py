"""The sweep fails stalled documents, removes data that late writers may have left, and purges superseded documents,
for every tenant."""

from datetime import timedelta

import pytest
from botocore.exceptions import ReadTimeoutError

from core.metadata import table
from core.metadata.dynamo import Action
from core.model.collection import Collection
from core.model.document import DocumentState
from core.model.errors import IngestInterrupted, Unavailable
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.page import PageRequest
from core.model.recovery import RecoveryResult
from core.settings import Settings
from core.vectors.types import VectorRecord
from tests.support.books import check_books, row_kinds
from tests.support.engines import ACME, GLOBEX, TABLE, World
from tests.support.meddling import CrashError, MeddlingVectors, Recorder, at_next_request, crash, die
from tests.support.memory import memory_world

ALL = PageRequest(limit=100)
STALLED_S = 15 * 60
LIFE_S = 20 * 60


def leave_superseded(world: World, vectors: MeddlingVectors, collection: Collection, key: str = "a") -> DocumentId:
    """Replaces a document whose data cannot be purged, and returns its ID."""
    old = world.ingest(collection, f"old {key}", source_key=key)
    vectors.failing = {"delete"}
    world.ingest(collection, f"new {key}", source_key=key)
    vectors.failing = set()
    assert old.document_id is not None
    return old.document_id


def die_often(world: World, recorder: Recorder, count: int, apart_s: float = 0.0) -> list[DocumentId]:
    """Runs ingests that die, some time apart, and lets enough time pass that all their documents have stalled."""
    collection, died = world.collection(), []
    for number in range(count):
        died.append(die(world, recorder, collection, f"words {number}", source_key=str(number)))
        world.clock.advance(apart_s)
    world.clock.advance(STALLED_S + 1)
    return died


@pytest.fixture
def small(recorder: Recorder, vectors: MeddlingVectors) -> World:
    """A world whose sweeps take up at most two documents."""
    settings = Settings(table=TABLE, embedder="none", vectors="none", batch_size=2)
    return memory_world(recorder, vectors, settings)


def test_a_stalled_document_is_failed_with_its_reason_and_its_data_is_removed(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    stalled = die(world, recorder, collection, "one two", source_key="a")
    assert world.vector_count() == 1
    world.clock.advance(STALLED_S + 1)
    assert world.engine.recovery.sweep() == RecoveryResult(failed=1)
    document = world.engine.documents.get(ACME, stalled)
    assert document.state == DocumentState.FAILED
    assert document.error is not None
    assert (document.error.code, document.error.detail) == ("ingest_interrupted", str(IngestInterrupted()))
    assert world.vector_count() == 0
    assert "CHUNK#01#0000000" not in row_kinds(world)
    fired = recorder.of("ingest_failed")
    assert fired == [
        {"tenant": ACME, "collection_id": collection.id, "document_id": stalled, "failure": document.error}
    ]
    check_books(world)


def test_a_document_that_is_alive_is_left_alone(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    alive = die(world, recorder, collection, "one", source_key="a")
    before = world.rows()
    world.clock.advance(STALLED_S - 1)
    assert world.engine.recovery.sweep() == RecoveryResult()
    assert world.rows() == before
    assert world.engine.documents.get(ACME, alive).state == DocumentState.PROCESSING


@pytest.mark.parametrize("stalled_after", [timedelta(0), timedelta(seconds=-7), timedelta(days=-400)])
def test_a_sweep_with_an_argument_of_zero_or_less_fails_every_silent_document(
    world: World, recorder: Recorder, stalled_after: timedelta
) -> None:
    die(world, recorder, world.collection(), "one", source_key="a")
    world.clock.advance(0.001)
    assert world.engine.recovery.sweep(stalled_after).failed == 1


def test_a_sweep_fails_documents_that_are_silent_for_longer_than_its_argument(world: World, recorder: Recorder) -> None:
    die(world, recorder, world.collection(), "one", source_key="a")
    world.clock.advance(60)
    assert world.engine.recovery.sweep(timedelta(seconds=61)).failed == 0
    assert world.engine.recovery.sweep(timedelta(seconds=59)).failed == 1


def test_a_stalled_document_that_is_still_pending_is_failed_too(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    recorder.on["ingest_started"] = crash
    with pytest.raises(CrashError):
        world.ingest(collection, "one", source_key="a")
    assert world.engine.documents.list(ACME, ALL).items[0].state == DocumentState.PENDING
    world.clock.advance(STALLED_S + 1)
    assert world.engine.recovery.sweep().failed == 1
    check_books(world)


@pytest.mark.parametrize("stalled_after", [None, timedelta(0), timedelta(days=-1)])
@pytest.mark.parametrize("moment", ["after the sweep has read the row", "before the sweep writes the row"])
def test_a_document_with_a_heartbeat_during_a_sweep_is_not_failed(
    world: World, recorder: Recorder, stalled_after: timedelta | None, moment: str
) -> None:
    stalled = die(world, recorder, world.collection(), "one", source_key="a")
    head = world.stores.documents.head(ACME, stalled)
    assert head is not None
    world.clock.advance(STALLED_S + 1)

    def beat() -> None:
        world.clock.advance(1)
        world.stores.transitions.heartbeat(head)

    if moment.startswith("after"):
        at_next_request(world, "batch_get_item", after=beat)
    else:
        at_next_request(world, "transact_write_items", before=beat)
    assert world.engine.recovery.sweep(stalled_after) == RecoveryResult()
    assert world.engine.documents.get(ACME, stalled).state == DocumentState.PROCESSING
    assert world.vector_count() == 1, "all data of the document is kept"
    assert recorder.of("ingest_failed") == []
    check_books(world)


def test_a_sweep_reads_rows_one_by_one_when_their_batch_cannot_be_read(world: World, recorder: Recorder) -> None:
    die_often(world, recorder, 3)

    def fail() -> None:
        raise ReadTimeoutError(endpoint_url="loopback")

    at_next_request(world, "batch_get_item", before=fail)
    assert world.engine.recovery.sweep() == RecoveryResult(failed=3)
    check_books(world)


@pytest.mark.parametrize("state", ["stalled", "superseded"])
def test_two_sweeps_at_the_same_time_count_a_document_once(
    world: World, recorder: Recorder, vectors: MeddlingVectors, state: str
) -> None:
    collection = world.collection()
    other_sweep: list[RecoveryResult] = []

    def sweep() -> None:
        other_sweep.append(world.engine.recovery.sweep())

    if state == "stalled":
        die(world, recorder, collection, "one", source_key="a")
        at_next_request(world, "batch_get_item", after=sweep)
    else:
        leave_superseded(world, vectors, collection)
        vectors.before_delete = sweep
    world.clock.advance(STALLED_S + 1)
    first = RecoveryResult(failed=1) if state == "stalled" else RecoveryResult(purged=1)
    this_sweep = world.engine.recovery.sweep()
    assert [*other_sweep, this_sweep] == [first, RecoveryResult()]
    assert len(recorder.of("ingest_failed")) == first.failed
    check_books(world)


def test_a_superseded_document_is_purged_by_the_sweep(world: World, vectors: MeddlingVectors) -> None:
    collection = world.collection()
    old = leave_superseded(world, vectors, collection)
    assert world.vector_count() == 2
    check_books(world)
    world.clock.advance(STALLED_S + 1)
    assert world.engine.recovery.sweep() == RecoveryResult(purged=1)
    assert world.vector_count() == 1
    assert [document.id == old for document in world.engine.documents.list(ACME, ALL).items] == [False]
    assert f"V#{old}" not in row_kinds(world)
    check_books(world)
    assert world.engine.recovery.sweep() == RecoveryResult()


def test_a_failed_document_is_cleaned_again_after_a_writers_life(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    stalled = die(world, recorder, collection, "one", source_key="a")
    world.clock.advance(STALLED_S + 1)
    world.engine.recovery.sweep()
    head = world.stores.documents.head(ACME, stalled)
    assert head is not None
    write_late(world, head.chunk_ids()[0], collection.id)
    world.clock.advance(LIFE_S - 1)
    assert world.engine.recovery.sweep() == RecoveryResult()
    world.clock.advance(1)
    assert world.engine.recovery.sweep() == RecoveryResult(cleaned=1)
    assert world.vector_count() == 0, "the vector that a dead process wrote late is removed"
    assert world.engine.documents.get(ACME, stalled).state == DocumentState.FAILED, (
        "the row of the failed document stays"
    )
    world.clock.advance(LIFE_S)
    assert world.engine.recovery.sweep() == RecoveryResult()
    check_books(world)


def write_late(world: World, chunk_id: ChunkId, collection_id: CollectionId) -> None:
    """Writes the vector of a chunk as a late writer would."""
    vector = world.embedder.embed(["late"]).vectors[0]
    record = VectorRecord(chunk_id, collection_id, None, None, "late", vector)
    world.vectors.write(ACME, world.embedder.space, [record])


def test_a_late_writer_mark_is_cleaned_and_removed_after_a_writers_life(world: World) -> None:
    collection = world.collection()
    result = world.ingest(collection, "one", source_key="a")
    assert result.document_id is not None
    world.engine.documents.delete(ACME, result.document_id)
    assert "GONE#ALL" in row_kinds(world)
    world.clock.advance(LIFE_S - 1)
    assert world.engine.recovery.sweep() == RecoveryResult()
    world.clock.advance(1)
    assert world.engine.recovery.sweep() == RecoveryResult(cleaned=1)
    assert "GONE#ALL" not in row_kinds(world)


def test_a_sweep_takes_up_documents_of_every_tenant_under_their_own_tenant(world: World, recorder: Recorder) -> None:
    for tenant in (ACME, GLOBEX):
        collection = world.collection(tenant=tenant)
        die(world, recorder, collection, "one", tenant=tenant, source_key="a")
    world.clock.advance(STALLED_S + 1)
    assert world.engine.recovery.sweep().failed == 2
    assert {details["tenant"] for details in recorder.of("ingest_failed")} == {ACME, GLOBEX}
    assert (world.vector_count(ACME), world.vector_count(GLOBEX)) == (0, 0)
    check_books(world)


def test_a_document_that_cannot_be_purged_stops_no_other_and_its_error_is_raised_last(
    world: World, recorder: Recorder, vectors: MeddlingVectors
) -> None:
    collection = world.collection()
    bad = leave_superseded(world, vectors, collection, "bad")
    world.clock.advance(1)
    leave_superseded(world, vectors, collection, "good")
    die(world, recorder, collection, "three", source_key="dead")
    vectors.refuses = {bad}
    world.clock.advance(STALLED_S + 6 * 60)
    with pytest.raises(Unavailable):
        world.engine.recovery.sweep()
    states = {
        document.source_key: document.state
        for document in world.engine.documents.list(ACME, ALL, state=DocumentState.FAILED).items
    }
    assert states == {"dead": "failed"}
    left = world.engine.documents.list(ACME, ALL, state=DocumentState.SUPERSEDED).items
    assert [document.id for document in left] == [bad]
    check_books(world)
    assert world.engine.recovery.sweep() == RecoveryResult(), "a document that could not be cleaned is postponed"
    vectors.refuses = set()
    world.clock.advance(5 * 60)
    assert world.engine.recovery.sweep() == RecoveryResult(purged=1)
    check_books(world)


def test_a_stalled_document_that_cannot_be_cleaned_is_failed_and_its_error_is_raised(
    world: World, recorder: Recorder, vectors: MeddlingVectors
) -> None:
    collection = world.collection()
    stalled = die(world, recorder, collection, "one", source_key="a")
    vectors.refuses = {stalled}
    world.clock.advance(STALLED_S + 1)
    with pytest.raises(Unavailable):
        world.engine.recovery.sweep()
    assert world.engine.documents.get(ACME, stalled).state == DocumentState.FAILED
    assert len(recorder.of("ingest_failed")) == 1
    vectors.refuses = set()
    world.clock.advance(LIFE_S)
    assert world.engine.recovery.sweep() == RecoveryResult(cleaned=1)
    assert world.vector_count() == 0
    check_books(world)


def test_a_row_that_cannot_be_parsed_stops_no_other_document(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    broken = die(world, recorder, collection, "one", source_key="a")
    key = table.head(ACME, broken)
    world.stores.table.write(Action(key, update="SET attempt = :wrong", values={"wrong": "not a number"}))
    world.clock.advance(10 * 60)
    good = die(world, recorder, collection, "two", source_key="b")
    world.clock.advance(STALLED_S + 6 * 60)
    with pytest.raises(ValueError, match="attempt"):
        world.engine.recovery.sweep()
    assert world.engine.documents.get(ACME, good).state == DocumentState.FAILED


def test_a_sweep_takes_at_most_batch_size_documents_and_the_oldest_first(small: World, recorder: Recorder) -> None:
    died = die_often(small, recorder, 5, apart_s=5 * 60)
    failed = []
    for _ in range(3):
        small.engine.recovery.sweep()
        failed.append({details["document_id"] for details in recorder.of("ingest_failed")})
    assert failed == [set(died[:2]), set(died[:4]), set(died)]


def test_a_row_without_a_tenant_is_skipped_and_counted(world: World) -> None:
    key = table.Key("D#doc_01kdvdna00fxyrv9f717a00000", "HEAD")
    put = {"sweep_pk": "SWEEP#0", "sweep_sk": table.stalled_since(world.clock.now())}
    world.stores.table.write(Action(key, put=put))
    before = world.rows()
    world.clock.advance(STALLED_S + 1)
    assert world.engine.recovery.sweep() == RecoveryResult(skipped_no_tenant=1)
    assert world.rows() == before


def test_a_drain_takes_up_every_due_document_once(small: World, recorder: Recorder) -> None:
    die_often(small, recorder, 7)
    assert small.engine.recovery.drain(small.deadline()) == RecoveryResult(failed=7, left=0)
    assert len(recorder.of("ingest_failed")) == 7
    check_books(small)


def test_a_drain_that_meets_its_deadline_counts_the_documents_that_are_left(small: World, recorder: Recorder) -> None:
    die_often(small, recorder, 5)
    assert small.engine.recovery.drain(small.clock.monotonic()) == RecoveryResult(left=5)
    recorder.on["ingest_failed"] = lambda: small.clock.advance(60)
    assert small.engine.recovery.drain(small.deadline(30)) == RecoveryResult(failed=1, left=4)


def test_a_drain_raises_its_first_error_at_the_end_and_logs_its_counts(
    world: World, recorder: Recorder, vectors: MeddlingVectors, caplog: pytest.LogCaptureFixture
) -> None:
    collection = world.collection()
    bad = leave_superseded(world, vectors, collection, "bad")
    die(world, recorder, collection, "three", source_key="dead")
    vectors.refuses = {bad}
    world.clock.advance(STALLED_S + 6 * 60)
    with pytest.raises(Unavailable):
        world.engine.recovery.drain(world.deadline())
    assert len(recorder.of("ingest_failed")) == 1
    assert f"in part: {RecoveryResult(failed=1)}" in caplog.text
    check_books(world)

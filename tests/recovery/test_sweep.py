"""The sweep fails stalled documents, removes data that late writers may have left, and purges superseded documents,
for every tenant."""

from datetime import timedelta

import pytest
from botocore.exceptions import ReadTimeoutError

from core.metadata import table
from core.metadata.dynamo import Action
from core.model.document import DocumentState
from core.model.errors import IngestInterrupted, Unavailable
from core.model.page import PageRequest
from core.model.recovery import RecoveryResult
from core.settings import Settings
from core.vectors.types import VectorRecord
from tests.support.books import check_books, row_kinds
from tests.support.engines import ACME, GLOBEX, TABLE, World
from tests.support.meddling import CrashError, MeddlingVectors, Recorder, crash, die
from tests.support.memory import memory_world

ALL = PageRequest(limit=100)
STALLED_S = 15 * 60
LIFE_S = 20 * 60


def leave_superseded(world: World, vectors: MeddlingVectors, collection: object, key: str = "a") -> str:
    """Replaces a document whose data could not be purged, and returns its ID."""
    old = world.ingest(collection, f"old {key}", source_key=key)  # type: ignore[arg-type]
    vectors.failing = {"delete"}
    world.ingest(collection, f"new {key}", source_key=key)  # type: ignore[arg-type]
    vectors.failing = set()
    assert old.document_id is not None
    return old.document_id


def test_a_stalled_document_is_failed_with_the_reason_and_its_data_goes(world: World, recorder: Recorder) -> None:
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
    assert [(one["tenant"], one["collection_id"], one["document_id"]) for one in fired] == [
        (ACME, collection.id, stalled)
    ]
    assert fired[0]["failure"] == document.error
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
def test_zero_or_less_as_an_argument_means_now_and_reaches_no_further(
    world: World, recorder: Recorder, stalled_after: timedelta
) -> None:
    collection = world.collection()
    die(world, recorder, collection, "one", source_key="a")
    world.clock.advance(0.001)
    assert world.engine.recovery.sweep(stalled_after).failed == 1


def test_how_long_ago_is_an_argument(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    die(world, recorder, collection, "one", source_key="a")
    world.clock.advance(60)
    assert world.engine.recovery.sweep(timedelta(seconds=61)).failed == 0
    assert world.engine.recovery.sweep(timedelta(seconds=59)).failed == 1


def test_a_document_that_was_never_more_than_pending_is_failed_as_well(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    recorder.on["ingest_started"] = crash
    with pytest.raises(CrashError):
        world.ingest(collection, "one", source_key="a")
    assert world.engine.documents.list(ACME, ALL).items[0].state == DocumentState.PENDING
    world.clock.advance(STALLED_S + 1)
    assert world.engine.recovery.sweep().failed == 1
    check_books(world)


@pytest.mark.parametrize("stalled_after", [None, timedelta(0), timedelta(days=-1)])
def test_a_heartbeat_between_the_listing_and_the_mark_wins(
    world: World, recorder: Recorder, stalled_after: timedelta | None
) -> None:
    collection = world.collection()
    stalled = die(world, recorder, collection, "one", source_key="a")
    head = world.stores.documents.head(ACME, stalled)
    assert head is not None
    world.clock.advance(STALLED_S + 1)
    read = world.dynamodb.batch_get_item

    def beat_then_read(**arguments: object) -> object:
        world.dynamodb.batch_get_item = read
        answer = read(**arguments)
        world.clock.advance(1)
        world.stores.transitions.heartbeat(head)
        return answer

    world.dynamodb.batch_get_item = beat_then_read
    assert world.engine.recovery.sweep(stalled_after) == RecoveryResult()
    assert world.engine.documents.get(ACME, stalled).state == DocumentState.PROCESSING
    assert world.vector_count() == 1, "all data of the document is kept"
    assert recorder.of("ingest_failed") == []
    check_books(world)


def test_a_heartbeat_between_the_read_and_the_mark_wins(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    stalled = die(world, recorder, collection, "one", source_key="a")
    head = world.stores.documents.head(ACME, stalled)
    assert head is not None
    world.clock.advance(STALLED_S + 1)
    write = world.dynamodb.transact_write_items

    def beat_then_write(**arguments: object) -> object:
        world.dynamodb.transact_write_items = write
        world.clock.advance(1)
        world.stores.transitions.heartbeat(head)
        return write(**arguments)

    world.dynamodb.transact_write_items = beat_then_write
    assert world.engine.recovery.sweep() == RecoveryResult()
    assert world.engine.documents.get(ACME, stalled).state == DocumentState.PROCESSING
    assert world.vector_count() == 1, "all data of the document is kept"
    check_books(world)


def test_rows_that_cannot_be_read_at_once_are_read_one_by_one(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    for number in range(3):
        die(world, recorder, collection, f"content {number}", source_key=str(number))
    world.clock.advance(STALLED_S + 1)
    read = world.dynamodb.batch_get_item

    def fail_once(**arguments: object) -> object:
        world.dynamodb.batch_get_item = read
        raise ReadTimeoutError(endpoint_url="loopback")

    world.dynamodb.batch_get_item = fail_once
    assert world.engine.recovery.sweep() == RecoveryResult(failed=3)
    check_books(world)


def test_of_two_sweeps_that_list_one_document_one_counts_it(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    die(world, recorder, collection, "one", source_key="a")
    world.clock.advance(STALLED_S + 1)
    read = world.dynamodb.batch_get_item
    others: list[RecoveryResult] = []

    def sweep_then_read(**arguments: object) -> object:
        world.dynamodb.batch_get_item = read
        answer = read(**arguments)
        others.append(world.engine.recovery.sweep())
        return answer

    world.dynamodb.batch_get_item = sweep_then_read
    mine = world.engine.recovery.sweep()
    assert [one.failed for one in (*others, mine)] == [1, 0]
    assert len(recorder.of("ingest_failed")) == 1
    check_books(world)


def test_a_superseded_document_loses_its_data_and_then_its_rows(world: World, vectors: MeddlingVectors) -> None:
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


def test_of_two_sweeps_one_counts_a_superseded_document(world: World, vectors: MeddlingVectors) -> None:
    collection = world.collection()
    leave_superseded(world, vectors, collection)
    world.clock.advance(STALLED_S + 1)
    others: list[RecoveryResult] = []
    vectors.before_delete = lambda: others.append(world.engine.recovery.sweep())
    mine = world.engine.recovery.sweep()
    assert [one.purged for one in (*others, mine)] == [1, 0]
    check_books(world)


def test_a_failed_document_is_cleaned_once_more_after_the_writers_life(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    stalled = die(world, recorder, collection, "one", source_key="a")
    world.clock.advance(STALLED_S + 1)
    world.engine.recovery.sweep()
    head = world.stores.documents.head(ACME, stalled)
    assert head is not None
    revive(world, head.chunk_ids()[0], collection.id)
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


def revive(world: World, chunk_id: object, collection_id: object) -> None:
    vector = world.embedder.embed(["late"]).vectors[0]
    late = VectorRecord(chunk_id, collection_id, None, None, "late", vector)  # type: ignore[arg-type]
    world.vectors.write(ACME, world.embedder.space, [late])


def test_the_mark_of_a_removed_document_is_cleaned_after_the_writers_life(world: World) -> None:
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


def test_every_tenant_is_swept_and_each_under_its_own_name(world: World, recorder: Recorder) -> None:
    for tenant in (ACME, GLOBEX):
        collection = world.collection(tenant=tenant)
        die(world, recorder, collection, "one", tenant=tenant, source_key="a")
    world.clock.advance(STALLED_S + 1)
    assert world.engine.recovery.sweep().failed == 2
    assert {one["tenant"] for one in recorder.of("ingest_failed")} == {ACME, GLOBEX}
    assert (world.vector_count(ACME), world.vector_count(GLOBEX)) == (0, 0)
    check_books(world)


def test_a_document_whose_data_cannot_be_deleted_does_not_stop_the_rest_and_is_raised_after_it(
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
    assert [one.id for one in left] == [bad]
    check_books(world)
    assert world.engine.recovery.sweep() == RecoveryResult(), "a document that could not be cleaned is postponed"
    vectors.refuses = set()
    world.clock.advance(5 * 60)
    assert world.engine.recovery.sweep() == RecoveryResult(purged=1)
    check_books(world)


def test_a_stalled_document_whose_data_cannot_be_deleted_is_failed_and_the_error_is_raised(
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


def test_a_row_that_cannot_even_be_read_stops_no_other(world: World, recorder: Recorder) -> None:
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


def test_a_sweep_takes_at_most_batch_size_documents_and_the_oldest_first(
    recorder: Recorder, vectors: MeddlingVectors
) -> None:
    settings = Settings(table=TABLE, embedder="none", vectors="none", batch_size=2)
    world = memory_world(recorder, vectors, settings)
    collection = world.collection()
    died = []
    for number in range(5):
        died.append(die(world, recorder, collection, f"words {number}", source_key=str(number)))
        world.clock.advance(5 * 60)
    world.clock.advance(STALLED_S)
    taken = []
    for _ in range(3):
        world.engine.recovery.sweep()
        taken.append([one["document_id"] for one in recorder.of("ingest_failed")])
    assert [set(taken[0]), set(taken[1]), set(taken[2])] == [set(died[:2]), set(died[:4]), set(died)]


def test_a_row_without_a_tenant_is_left_alone_and_counted(world: World) -> None:
    key = table.Key("D#doc_01kdvdna00fxyrv9f717a00000", "HEAD")
    put = {"sweep_pk": "SWEEP#0", "sweep_sk": table.stalled_since(world.clock.now())}
    world.stores.table.write(Action(key, put=put))
    before = world.rows()
    world.clock.advance(STALLED_S + 1)
    assert world.engine.recovery.sweep() == RecoveryResult(skipped_no_tenant=1)
    assert world.rows() == before


def test_a_drain_takes_all_there_is_and_nothing_twice(recorder: Recorder, vectors: MeddlingVectors) -> None:
    settings = Settings(table=TABLE, embedder="none", vectors="none", batch_size=2)
    world = memory_world(recorder, vectors, settings)
    collection = world.collection()
    for number in range(7):
        die(world, recorder, collection, f"words {number}", source_key=str(number))
    world.clock.advance(STALLED_S + 1)
    assert world.engine.recovery.drain(world.deadline()) == RecoveryResult(failed=7, left=0)
    assert len(recorder.of("ingest_failed")) == 7
    check_books(world)


def test_a_drain_whose_time_is_up_says_how_many_are_left(recorder: Recorder, vectors: MeddlingVectors) -> None:
    settings = Settings(table=TABLE, embedder="none", vectors="none", batch_size=2)
    world = memory_world(recorder, vectors, settings)
    collection = world.collection()
    for number in range(5):
        die(world, recorder, collection, f"words {number}", source_key=str(number))
    world.clock.advance(STALLED_S + 1)
    assert world.engine.recovery.drain(world.clock.monotonic()) == RecoveryResult(left=5)
    recorder.on["ingest_failed"] = lambda: world.clock.advance(60)
    assert world.engine.recovery.drain(world.deadline(30)) == RecoveryResult(failed=1, left=4)


def test_a_drain_raises_the_first_error_when_the_rest_is_done_and_logs_its_counts(
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

"""Content in progress is answered with its document while its writer is alive, and claimed once it has stalled."""

from datetime import timedelta
from typing import Any

import pytest

from core.model.document import DocumentState
from core.model.errors import IngestInterrupted, Unavailable
from core.model.ids import MAX_ATTEMPT
from core.model.page import PageRequest
from core.settings import Settings
from tests.support.books import check_books, row_kinds
from tests.support.engines import ACME, TABLE, World
from tests.support.meddling import MeddlingVectors, Recorder, die
from tests.support.memory import memory_world

ALL = PageRequest(limit=100)
STALLED_S = 15 * 60


@pytest.mark.parametrize("fields", [{"source_key": "a"}, {}], ids=["keyed", "unkeyed"])
def test_content_in_progress_is_answered_with_its_document_and_nothing_is_embedded(
    world: World, recorder: Recorder, fields: dict[str, Any]
) -> None:
    collection = world.collection()
    working = die(world, recorder, collection, "words", **fields)
    calls, before = world.embedder.calls, world.rows()
    world.clock.advance(STALLED_S - 1)
    result = world.ingest(collection, "words", **fields)
    assert (result.document_id, result.state, result.chunk_count) == (working, DocumentState.PROCESSING, 0)
    assert (result.unchanged, result.replaced) == (False, [])
    assert (world.embedder.calls, world.rows()) == (calls, before)


def test_new_content_of_a_source_does_not_wait_for_content_in_progress(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    die(world, recorder, collection, "words", source_key="a")
    assert world.ingest(collection, "other words", source_key="a").state == DocumentState.READY
    check_books(world)


@pytest.mark.parametrize("fields", [{"source_key": "a"}, {}], ids=["keyed", "unkeyed"])
def test_a_claim_keeps_the_document_id_and_takes_the_next_attempt(
    world: World, recorder: Recorder, fields: dict[str, Any]
) -> None:
    collection = world.collection()
    working = die(world, recorder, collection, "words", **fields)
    world.clock.advance(STALLED_S)
    result = world.ingest(collection, "words", **fields)
    assert (result.document_id, result.state, result.replaced) == (working, DocumentState.READY, [])
    chunks = world.engine.chunks.list(ACME, ALL, document_id=working).items
    assert [chunk.id.attempt for chunk in chunks if chunk.id] == [2]
    check_books(world)


def test_a_claim_replaces_the_description_of_the_document(world: World, recorder: Recorder) -> None:
    notes = world.collection()
    dead = die(world, recorder, notes, "The loom.", source_key="loom", title="Old", source="a", metadata={"by": "x"})
    world.clock.advance(16 * 60)
    taken = world.ingest(notes, "The loom.", source_key="loom", source="b", metadata={"by": "y"})
    document = world.engine.documents.get(ACME, dead)
    assert taken.document_id == dead
    assert (document.title, document.source, document.metadata) == ("Old", "b", {"by": "y"})


def test_the_setting_stalled_after_s_says_when_a_document_can_be_claimed(
    recorder: Recorder, vectors: MeddlingVectors
) -> None:
    settings = Settings(table=TABLE, embedder="none", vectors="none", stalled_after_s=120)
    world = memory_world(recorder, vectors, settings)
    collection = world.collection()
    working = die(world, recorder, collection, "words", source_key="a")
    world.clock.advance(119)
    assert world.ingest(collection, "words", source_key="a").state == DocumentState.PROCESSING
    world.clock.advance(1)
    assert world.ingest(collection, "words", source_key="a").document_id == working


@pytest.mark.parametrize("at", ["ingest_started", "ingest_chunked", "ingest_embedded"])
def test_a_claimed_attempt_can_write_no_more_and_its_data_is_removed(
    world: World, recorder: Recorder, vectors: MeddlingVectors, at: str
) -> None:
    collection = world.collection()
    answers = []

    def overtake() -> None:
        world.clock.advance(STALLED_S)
        answers.append(world.ingest(collection, "words", source_key="a"))

    recorder.on[at] = overtake
    with pytest.raises(IngestInterrupted) as raised:
        world.ingest(collection, "words", source_key="a")
    assert [answer.state for answer in answers] == [DocumentState.READY]
    assert raised.value.extras == {"document_id": answers[0].document_id}
    chunks = world.engine.chunks.list(ACME, ALL, collection_id=collection.id).items
    assert [(chunk.text, chunk.id and chunk.id.attempt) for chunk in chunks] == [("words", 2)]
    assert world.vector_count() == 1
    assert recorder.of("ingest_failed") == [], "an overtaken ingest does not count as failed"
    check_books(world)


def test_an_attempt_claimed_between_its_chunk_rows_and_its_vectors_leaves_neither(
    world: World, recorder: Recorder, vectors: MeddlingVectors
) -> None:
    collection = world.collection()

    def overtake() -> None:
        world.clock.advance(STALLED_S)
        world.ingest(collection, "words", source_key="a")

    vectors.before_write = overtake
    with pytest.raises(IngestInterrupted):
        world.ingest(collection, "words", source_key="a")
    assert world.vector_count() == 1
    assert len([kind for kind in row_kinds(world) if kind.startswith("CHUNK#")]) == 1
    check_books(world)


def test_the_data_of_a_dead_attempt_is_removed_after_a_writers_life(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    working = die(world, recorder, collection, "words", source_key="a")
    world.clock.advance(STALLED_S)
    world.ingest(collection, "words", source_key="a")
    assert world.vector_count() == 2, "the dead attempt and the living attempt have a vector each"
    check_books(world)
    world.clock.advance(20 * 60)
    assert world.engine.recovery.sweep().cleaned == 1
    assert not any(kind.startswith("GONE#") for kind in row_kinds(world))
    assert world.vector_count() == 1
    assert len(world.engine.chunks.list(ACME, ALL, document_id=working).items) == 1
    check_books(world)


def test_a_document_whose_every_attempt_dies_fails_after_15_attempts(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    working = die(world, recorder, collection, "words", source_key="a")
    for _ in range(MAX_ATTEMPT - 1):
        world.clock.advance(STALLED_S)
        assert die(world, recorder, collection, "words", source_key="a") == working
    world.clock.advance(STALLED_S)
    with pytest.raises(IngestInterrupted, match="15 attempts") as raised:
        world.ingest(collection, "words", source_key="a")
    assert raised.value.extras == {"document_id": working}
    document = world.engine.documents.get(ACME, working)
    assert document.state == DocumentState.FAILED
    assert document.error is not None
    assert "15 attempts" in document.error.detail
    assert [details["document_id"] for details in recorder.of("ingest_failed")] == [working]
    check_books(world)
    result = world.ingest(collection, "words", source_key="a")
    assert result.state == DocumentState.READY
    assert result.document_id != working
    check_books(world)


def test_content_in_progress_with_too_low_a_number_is_not_joined(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    old = die(world, recorder, collection, "old", source_key="a")
    world.ingest(collection, "new", source_key="a")
    result = world.ingest(collection, "old", source_key="a")
    assert result.state == DocumentState.READY
    assert result.document_id != old
    check_books(world)


def test_a_source_has_at_most_16_versions_in_progress(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    for number in range(16):
        die(world, recorder, collection, f"words {number}", source_key="a")
    before = world.rows()
    with pytest.raises(Unavailable, match="16 versions"):
        world.ingest(collection, "one more", source_key="a")
    assert world.rows() == before
    world.clock.advance(STALLED_S + 1)
    world.engine.recovery.sweep(timedelta(0))
    assert world.ingest(collection, "one more", source_key="a").state == DocumentState.READY
    check_books(world)


def test_a_writer_stops_writing_after_a_writers_life(world: World, recorder: Recorder) -> None:
    collection = world.collection()

    def outlive() -> None:
        world.clock.advance(20 * 60)

    recorder.on["ingest_embedded"] = outlive
    before = world.vector_count()
    with pytest.raises(IngestInterrupted):
        world.ingest(collection, "words", source_key="a")
    assert world.vector_count() == before
    assert not any(kind.startswith("CHUNK#") for kind in row_kinds(world))
    assert world.engine.recovery.sweep().failed == 1
    check_books(world)

"""A delete during an ingest interrupts the ingest, and no data of the document is left."""

from collections.abc import Callable

import pytest

from core.model.collection import Collection
from core.model.document import DocumentState
from core.model.errors import CollectionNotFound, IngestInterrupted
from core.model.ids import DocumentId
from core.model.page import PageRequest
from tests.support.books import check_books, row_kinds
from tests.support.engines import ACME, World
from tests.support.meddling import MeddlingVectors, Recorder

ALL = PageRequest(limit=100)
MOMENTS = ["ingest_started", "ingest_chunked", "ingest_embedded", "between rows and vectors", "after vectors"]
Deleting = Callable[[World, Collection, DocumentId], object]


def set_off(
    world: World, recorder: Recorder, vectors: MeddlingVectors, moment: str, step: Callable[[], object]
) -> None:
    """Takes a step once, at a given moment of the next ingest."""
    if moment == "between rows and vectors":
        vectors.before_write = step
    elif moment == "after vectors":
        vectors.after_write = step
    else:
        recorder.on[moment] = step


def delete_document(world: World, collection: Collection, document_id: DocumentId) -> object:
    return world.engine.documents.delete(ACME, document_id)


def delete_source(world: World, collection: Collection, document_id: DocumentId) -> object:
    return world.engine.documents.delete_source(ACME, collection.id, "a", world.deadline())


def delete_collection(world: World, collection: Collection, document_id: DocumentId) -> object:
    return world.engine.collections.delete(ACME, collection.id, world.deadline())


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("deleting", [delete_document, delete_source, delete_collection])
def test_a_delete_interrupts_the_running_ingest_of_its_document(
    world: World, recorder: Recorder, vectors: MeddlingVectors, deleting: Deleting, moment: str
) -> None:
    collection = world.collection()
    started: list[DocumentId] = []

    def step() -> None:
        started.append(recorder.of("ingest_started")[-1]["document_id"])
        deleting(world, collection, started[0])

    set_off(world, recorder, vectors, moment, step)
    with pytest.raises(IngestInterrupted) as raised:
        world.ingest(collection, "one two three", source_key="a")
    assert raised.value.extras == {"document_id": started[0]}
    assert world.vector_count() == 0
    assert not {"HEAD", "INFO", "CHUNK#01#0000000"} & set(row_kinds(world))
    assert world.engine.documents.count(ACME) == 0
    assert recorder.of("ingest_failed") == []
    check_books(world)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_sweep_that_fails_a_silent_ingest_interrupts_the_ingest(
    world: World, recorder: Recorder, vectors: MeddlingVectors, moment: str
) -> None:
    collection = world.collection()
    world.ingest(collection, "old", source_key="a")

    def step() -> None:
        world.clock.advance(16 * 60)
        assert world.engine.recovery.sweep().failed == 1

    set_off(world, recorder, vectors, moment, step)
    with pytest.raises(IngestInterrupted):
        world.ingest(collection, "new", source_key="a")
    assert world.vector_count() == 1
    assert len(recorder.of("ingest_failed")) == 1, "only the sweep has reported a failure"
    states = [document.state for document in world.engine.documents.list(ACME, ALL).items]
    assert sorted(states) == [DocumentState.FAILED, DocumentState.READY]
    check_books(world)


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_ingest_into_a_collection_that_is_being_deleted_is_interrupted(
    world: World, recorder: Recorder, vectors: MeddlingVectors, moment: str
) -> None:
    collection = world.collection()

    def step() -> None:
        assert not world.engine.collections.delete(ACME, collection.id, world.clock.monotonic()).complete

    set_off(world, recorder, vectors, moment, step)
    with pytest.raises(IngestInterrupted):
        world.ingest(collection, "one two", source_key="a")
    assert world.vector_count() == 0
    assert recorder.of("ingest_failed") == []
    assert world.engine.collections.delete(ACME, collection.id, world.deadline()).complete
    check_books(world)


def test_an_ingest_whose_collection_closes_after_its_check_raises_CollectionNotFound(
    world: World, recorder: Recorder
) -> None:
    collection = world.collection()
    read = world.dynamodb.get_item

    def close_after_the_check(**arguments: object) -> object:
        world.dynamodb.get_item = read
        answer = read(**arguments)
        world.engine.collections.delete(ACME, collection.id, world.clock.monotonic())
        return answer

    world.dynamodb.get_item = close_after_the_check
    with pytest.raises(CollectionNotFound):
        world.ingest(collection, "one two", source_key="a")
    assert world.embedder.calls == 0
    assert "HEAD" not in row_kinds(world)


def test_a_version_that_starts_after_a_source_was_deleted_is_kept(
    world: World, recorder: Recorder, vectors: MeddlingVectors
) -> None:
    collection = world.collection()
    world.ingest(collection, "one", source_key="a")
    vectors.before_delete = lambda: world.ingest(collection, "two", source_key="a")
    world.engine.documents.delete_source(ACME, collection.id, "a", world.deadline())
    chunks = world.engine.chunks.list(ACME, ALL, collection_id=collection.id).items
    assert [chunk.text for chunk in chunks] == ["two"]
    check_books(world)

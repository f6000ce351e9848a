"""A document whose vectors are written, but not searchable yet, is finished by a message of the queue."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from core.ingest.finish import FinishMessage
from core.model.collection import Collection
from core.model.document import Document, DocumentState
from core.model.errors import DocumentNotFound, NotYetSearchable, Unavailable
from core.model.ids import ChunkId, DocumentId
from core.model.ingest import IngestResult
from core.model.page import PageRequest
from core.model.query import RetrieveQuery
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.vectors.types import VectorQuery, VectorRecord
from tests.support.books import check_books
from tests.support.engines import ACME, World
from tests.support.meddling import CrashError, MeddlingVectors, Recorder, crash

CONTENT = "---\ntitle: Looms\nyear: 2024\n---\nA loom holds the warp."
MARKDOWN: dict[str, Any] = {"source_key": "looms.md", "source_type": "text/markdown"}
HOUR = 3600


class SlowVectors(MeddlingVectors):
    """A vector store that accepts writes at once, but whose searches see them only while ``shows`` is set.

    Attributes:
        on_look: a step that runs once, when the store is next asked which vectors are searchable.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shows = False
        self.on_look: Callable[[], object] | None = None

    def write(self, tenant: Tenant, space: VectorSpace, records: Sequence[VectorRecord]) -> None:
        super().write(tenant, space, records)
        if not self.shows:
            raise NotYetSearchable("not yet")

    def present(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> set[ChunkId]:
        look, self.on_look = self.on_look, None
        if look is not None:
            look()
        return super().present(tenant, space, chunk_ids) if self.shows else set()

    def search(self, tenant: Tenant, space: VectorSpace, query: VectorQuery) -> Any:
        return super().search(tenant, space, query) if self.shows else []


class Queue:
    """A queue that records its messages. A step runs before or after each message is sent."""

    def __init__(self) -> None:
        self.sent: list[FinishMessage] = []
        self.before: Callable[[], object] = lambda: None
        self.after: Callable[[], object] = lambda: None

    def send(self, tenant: Tenant, document_id: DocumentId, attempt: int) -> None:
        self.before()
        self.sent.append(FinishMessage(tenant, document_id, attempt))
        self.after()


@pytest.fixture
def vectors() -> Iterator[SlowVectors]:
    store = SlowVectors()
    yield store
    store.close()


@pytest.fixture
def queue(world: World) -> Queue:
    queue = Queue()
    world.rebuild(finish_queue=queue)
    return queue


@pytest.fixture
def notes(world: World, queue: Queue) -> Collection:
    return world.collection()


def finish(world: World, message: FinishMessage) -> bool:
    return world.engine.ingest.finish(*message, world.deadline())


def document(world: World, result: IngestResult) -> Document:
    assert result.document_id is not None
    return world.engine.documents.get(ACME, result.document_id)


def found(world: World, collection: Collection) -> list[str]:
    answer = world.engine.retrieve(ACME, RetrieveQuery(query="loom", collections=[collection.id]))
    return [hit.chunk.text for hit in answer.hits]


class TestIngestOfADocumentThatIsNotSearchableYet:
    def test_an_ingest_is_answered_as_processing_and_the_queue_gets_its_IDs_alone(
        self, world: World, notes: Collection, queue: Queue, recorder: Recorder
    ) -> None:
        result = world.ingest(notes, CONTENT, **MARKDOWN)
        assert (result.state, result.chunk_count) == (DocumentState.PROCESSING, 0)
        [message] = queue.sent
        assert message == (ACME, result.document_id, 1)
        assert json.loads(message.body) == {
            "finish": {"tenant": "acme", "document_id": result.document_id, "attempt": 1}
        }
        assert "ingest_completed" not in recorder.hooks
        assert found(world, notes) == []

    def test_the_same_content_joins_the_waiting_document_without_embedding(
        self, world: World, notes: Collection, queue: Queue
    ) -> None:
        first = world.ingest(notes, CONTENT, **MARKDOWN)
        world.clock.advance(HOUR)
        again = world.ingest(notes, CONTENT, **MARKDOWN)
        assert (again.document_id, again.state) == (first.document_id, DocumentState.PROCESSING)
        assert len(world.embedder.embedded) == len(queue.sent) == 1

    def test_a_document_fails_without_a_queue_and_leaves_no_vector(self, world: World, notes: Collection) -> None:
        world.rebuild(finish_queue=None)
        with pytest.raises(Unavailable) as raised:
            world.ingest(notes, CONTENT, **MARKDOWN)
        failed = world.engine.documents.get(ACME, raised.value.extras["document_id"])
        assert failed.error is not None
        assert (failed.state, failed.error.stage) == (DocumentState.FAILED, "write")
        assert world.vector_count() == 0

    def test_a_document_fails_when_the_queue_does_not_take_its_message(
        self, world: World, notes: Collection, queue: Queue
    ) -> None:
        def refuse() -> None:
            raise Unavailable("The queue does not answer")

        queue.before = refuse
        with pytest.raises(Unavailable, match="queue"):
            world.ingest(notes, CONTENT, **MARKDOWN)
        assert world.vector_count() == 0
        check_books(world)

    def test_all_batches_are_written_when_the_first_batch_is_not_searchable_yet(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("core.ingest.stages.WRITE_AT_ONCE", 1)
        world.ingest(notes, " ".join(f"Thread {number} crosses the warp." for number in range(300)))
        vectors.shows = True
        assert finish(world, queue.sent[0])
        check_books(world)


class TestFinish:
    def test_a_searchable_document_becomes_ready_with_the_title_from_its_content(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors, recorder: Recorder
    ) -> None:
        result = world.ingest(notes, CONTENT, **MARKDOWN)
        vectors.shows = True
        assert finish(world, queue.sent[0])
        ready = document(world, result)
        assert (ready.state, ready.chunk_count) == (DocumentState.READY, 1)
        assert (ready.title, ready.attributes) == ("Looms", {"year": 2024})
        assert world.embedder.embedded == ["A loom holds the warp."]
        assert found(world, notes) == ["A loom holds the warp."]
        assert [details["result"].state for details in recorder.of("ingest_completed")] == [DocumentState.READY]
        assert world.ingest(notes, CONTENT, **MARKDOWN).unchanged
        check_books(world)

    def test_a_finished_document_replaces_the_version_that_was_served(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors
    ) -> None:
        vectors.shows = True
        old = world.ingest(notes, "The old loom.", **MARKDOWN)
        vectors.shows = False
        world.ingest(notes, CONTENT, **MARKDOWN)
        vectors.shows = True
        assert found(world, notes) == ["The old loom."]
        assert finish(world, queue.sent[0])
        assert found(world, notes) == ["A loom holds the warp."]
        with pytest.raises(DocumentNotFound):
            document(world, old)
        check_books(world)

    def test_a_finish_message_that_is_delivered_twice_has_the_effect_of_one(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors
    ) -> None:
        world.ingest(notes, CONTENT, **MARKDOWN)
        vectors.shows = True
        vectors.on_look = lambda: finish(world, queue.sent[0])
        assert finish(world, queue.sent[0])
        assert finish(world, queue.sent[0])
        assert found(world, notes) == ["A loom holds the warp."]
        check_books(world)

    def test_a_document_is_finished_after_its_writer_died_behind_the_message(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors
    ) -> None:
        queue.after = crash
        with pytest.raises(CrashError):
            world.ingest(notes, CONTENT, **MARKDOWN)
        vectors.shows = True
        assert finish(world, queue.sent[0])
        assert found(world, notes) == ["A loom holds the warp."]
        check_books(world)

    def test_a_writer_whose_message_was_sent_despite_an_error_answers_ready(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors
    ) -> None:
        def finished_meanwhile() -> None:
            vectors.shows = True
            assert finish(world, queue.sent[0])
            raise Unavailable("The queue's answer was lost")

        queue.after = finished_meanwhile
        assert world.ingest(notes, CONTENT, **MARKDOWN).state == DocumentState.READY
        assert found(world, notes) == ["A loom holds the warp."]
        check_books(world)


class TestFinishOfADocumentThatIsNotSearchableYet:
    def test_a_finish_that_finds_no_searchable_vectors_keeps_the_document_alive(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors
    ) -> None:
        result = world.ingest(notes, CONTENT, **MARKDOWN)
        for _ in range(3):
            world.clock.advance(HOUR)
            world.engine.recovery.sweep()
            assert not finish(world, queue.sent[0])
        assert document(world, result).state == DocumentState.PROCESSING
        vectors.shows = True
        assert finish(world, queue.sent[0])
        assert document(world, result).state == DocumentState.READY

    def test_a_document_with_one_vector_missing_is_not_finished(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors
    ) -> None:
        world.ingest(notes, " ".join(f"Thread {number} crosses the warp." for number in range(300)))
        vectors.shows = True
        message = queue.sent[0]
        vectors.delete(ACME, world.embedder.space, [ChunkId.of(message.document_id, 1, 1)])
        assert not finish(world, message)

    def test_a_document_whose_message_is_lost_fails_and_leaves_no_vector(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors
    ) -> None:
        queue.before = crash
        with pytest.raises(CrashError):
            world.ingest(notes, CONTENT, **MARKDOWN)
        assert world.engine.recovery.sweep().failed == 0
        world.clock.advance(HOUR + world.engine.settings.stalled_after_s + 1)
        assert world.engine.recovery.sweep().failed == 1
        assert world.vector_count() == 0
        check_books(world)

    def test_a_finish_that_takes_longer_than_a_writers_life_is_tried_again(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors
    ) -> None:
        result = world.ingest(notes, CONTENT, **MARKDOWN)
        vectors.shows = True
        vectors.on_look = lambda: world.clock.advance(world.engine.settings.writer_life_s)
        assert not world.engine.ingest.finish(*queue.sent[0], world.deadline(10 * HOUR))
        assert document(world, result).state == DocumentState.PROCESSING
        assert finish(world, queue.sent[0])


def delete(world: World, notes: Collection, message: FinishMessage) -> None:
    world.engine.documents.delete(ACME, message.document_id)


def delete_collection(world: World, notes: Collection, message: FinishMessage) -> None:
    world.engine.collections.delete(ACME, notes.id, world.deadline())


def delete_source(world: World, notes: Collection, message: FinishMessage) -> None:
    world.engine.documents.delete_source(ACME, notes.id, MARKDOWN["source_key"], world.deadline())


def overtake(world: World, notes: Collection, message: FinishMessage) -> None:
    assert isinstance(world.vectors, SlowVectors)
    world.vectors.shows = True
    assert world.ingest(notes, "A newer loom.", **MARKDOWN).state == DocumentState.READY


def fail(world: World, notes: Collection, message: FinishMessage) -> None:
    world.clock.advance(HOUR + world.engine.settings.stalled_after_s + 1)
    assert world.engine.recovery.sweep().failed == 1


def claim(world: World, notes: Collection, message: FinishMessage) -> None:
    world.clock.advance(HOUR + world.engine.settings.stalled_after_s + 1)
    assert world.ingest(notes, CONTENT, **MARKDOWN).document_id == message.document_id


MEANWHILE: list[Callable[[World, Collection, FinishMessage], None]] = [
    delete,
    delete_collection,
    delete_source,
    overtake,
    fail,
    claim,
]
SERVED: dict[object, list[str]] = {overtake: ["A newer loom."], claim: ["A loom holds the warp."]}


class TestFinishOfADocumentThatWasTaken:
    @pytest.mark.parametrize("when", ["before", "while it looks"])
    @pytest.mark.parametrize("meanwhile", MEANWHILE, ids=lambda step: step.__name__)
    def test_a_document_that_was_taken_meanwhile_stays_taken_and_its_message_is_acknowledged(
        self,
        world: World,
        notes: Collection,
        queue: Queue,
        vectors: SlowVectors,
        meanwhile: Callable[[World, Collection, FinishMessage], None],
        when: str,
    ) -> None:
        world.ingest(notes, CONTENT, **MARKDOWN)
        message = queue.sent[0]
        if when == "before":
            meanwhile(world, notes, message)
            vectors.shows = True
        else:
            vectors.shows = True
            vectors.on_look = lambda: meanwhile(world, notes, message)
        # A finish that takes longer than a writer's life is tried a second time.
        assert finish(world, message) or finish(world, message)
        for later in queue.sent[1:]:
            assert finish(world, later)
        world.clock.advance(world.engine.settings.writer_life_s)
        world.engine.recovery.sweep()
        served = SERVED.get(meanwhile, [])
        assert world.vector_count() == len(served)
        if meanwhile is not delete_collection:
            assert found(world, notes) == served
            page = world.engine.documents.list(ACME, PageRequest(limit=10), collection_id=notes.id)
            assert not any(listed.state.in_progress for listed in page.items)
        check_books(world)

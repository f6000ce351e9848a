"""A document that is written whole, and that searches do not see yet, is finished from the queue."""

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
    """Takes a write at once, and shows what it took when ``shows`` is set.

    Attributes:
        on_look: what to do, once, when someone looks.
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
    """What was sent, and what happens then."""

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


class TestLeft:
    def test_it_is_answered_as_in_progress_and_the_queue_knows_its_names_alone(
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

    def test_the_same_content_joins_it_and_is_not_embedded_again(
        self, world: World, notes: Collection, queue: Queue
    ) -> None:
        first = world.ingest(notes, CONTENT, **MARKDOWN)
        world.clock.advance(HOUR)
        again = world.ingest(notes, CONTENT, **MARKDOWN)
        assert (again.document_id, again.state) == (first.document_id, DocumentState.PROCESSING)
        assert len(world.embedder.embedded) == len(queue.sent) == 1

    def test_without_a_queue_it_fails_and_leaves_nothing(self, world: World, notes: Collection) -> None:
        world.rebuild(finish_queue=None)
        with pytest.raises(Unavailable) as raised:
            world.ingest(notes, CONTENT, **MARKDOWN)
        failed = world.engine.documents.get(ACME, raised.value.extras["document_id"])
        assert failed.error is not None
        assert (failed.state, failed.error.stage) == (DocumentState.FAILED, "write")
        assert world.vector_count() == 0

    def test_a_queue_that_does_not_take_it_fails_it(self, world: World, notes: Collection, queue: Queue) -> None:
        def refuse() -> None:
            raise Unavailable("The queue does not answer")

        queue.before = refuse
        with pytest.raises(Unavailable, match="queue"):
            world.ingest(notes, CONTENT, **MARKDOWN)
        assert world.vector_count() == 0
        check_books(world)

    def test_a_store_that_is_slow_with_one_part_of_many_is_given_the_rest(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("core.ingest.stages.WRITE_AT_ONCE", 1)
        world.ingest(notes, " ".join(f"Thread {number} crosses the warp." for number in range(300)))
        vectors.shows = True
        assert finish(world, queue.sent[0])
        check_books(world)


class TestFinished:
    def test_it_is_ready_and_found_once_searches_see_it_with_what_loading_taught(
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
        assert [one["result"].state for one in recorder.of("ingest_completed")] == [DocumentState.READY]
        assert world.ingest(notes, CONTENT, **MARKDOWN).unchanged
        check_books(world)

    def test_it_replaces_the_version_that_was_served_until_then(
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

    def test_a_message_that_comes_twice_does_what_one_does(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors
    ) -> None:
        world.ingest(notes, CONTENT, **MARKDOWN)
        vectors.shows = True
        vectors.on_look = lambda: finish(world, queue.sent[0])
        assert finish(world, queue.sent[0])
        assert finish(world, queue.sent[0])
        assert found(world, notes) == ["A loom holds the warp."]
        check_books(world)

    def test_a_writer_that_dies_once_it_has_sent_the_message_is_not_missed(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors
    ) -> None:
        queue.after = crash
        with pytest.raises(CrashError):
            world.ingest(notes, CONTENT, **MARKDOWN)
        vectors.shows = True
        assert finish(world, queue.sent[0])
        assert found(world, notes) == ["A loom holds the warp."]
        check_books(world)

    def test_a_writer_that_hears_too_late_that_its_message_went_out_answers_as_it_is(
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


class TestWaiting:
    def test_a_look_that_does_not_see_it_keeps_it_alive(
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

    def test_a_part_of_it_is_not_enough(
        self, world: World, notes: Collection, queue: Queue, vectors: SlowVectors
    ) -> None:
        world.ingest(notes, " ".join(f"Thread {number} crosses the warp." for number in range(300)))
        vectors.shows = True
        message = queue.sent[0]
        vectors.delete(ACME, world.embedder.space, [ChunkId.of(message.document_id, 1, 1)])
        assert not finish(world, message)

    def test_one_whose_message_is_lost_fails_in_the_end_and_leaves_nothing(
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

    def test_a_look_beyond_the_writers_life_makes_nothing_ready_and_comes_back(
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


class TestNoLongerIts:
    @pytest.mark.parametrize("when", ["before", "while it looks"])
    @pytest.mark.parametrize("meanwhile", MEANWHILE, ids=lambda step: step.__name__)
    def test_what_was_taken_from_it_stays_taken_and_the_message_is_settled(
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
        # One that looks for longer than a writer lives comes back once.
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
            assert not any(one.state.in_progress for one in page.items)
        check_books(world)

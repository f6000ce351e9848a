"""A deleted collection is closed at once, its delete is finished by a later call or the sweep, and nothing is left."""

from collections.abc import Callable

import pytest

from core.metadata import table
from core.model.collection import Collection, CollectionUpdate
from core.model.context import ChunkRef
from core.model.document import DocumentState
from core.model.errors import ChunkNotFound, CollectionNotFound, DocumentNotFound, StaleRanking, Unavailable
from core.model.page import PageRequest
from core.model.query import RetrieveQuery
from core.model.recovery import RecoveryResult
from tests.support.books import check_books, row_kinds
from tests.support.engines import ACME, GLOBEX, World
from tests.support.meddling import CrashError, MeddlingVectors, Recorder, crash, die

ALL = PageRequest(limit=100)
STALLED_S = 15 * 60
LIFE_S = 20 * 60


@pytest.fixture
def full(world: World, recorder: Recorder) -> Collection:
    """A collection with documents in every state."""
    collection = world.collection(chunk_size=2, chunk_overlap=0)
    world.ingest(collection, "one two three", source_key="a", attributes={"year": 2020})
    world.ingest(collection, "four")
    world.ingest(collection, "five", source_key="b")
    die(world, recorder, collection, "six", source_key="b")
    die(world, recorder, collection, "seven")
    world.embedder.failure = Unavailable("The model does not answer")
    with pytest.raises(Unavailable):
        world.ingest(collection, "eight", source_key="c")
    world.embedder.failure = None
    return collection


def test_a_delete_of_a_collection_removes_and_counts_everything_in_it(
    world: World, recorder: Recorder, full: Collection
) -> None:
    kept = world.collection("kept")
    world.ingest(kept, "one two three", source_key="a")
    theirs = world.collection("notes", tenant=GLOBEX)
    world.ingest(theirs, "one two three", tenant=GLOBEX, source_key="a")
    documents = {document.id for document in world.engine.documents.list(ACME, ALL, full.id).items}
    deletion = world.engine.collections.delete(ACME, full.id, world.deadline())
    assert deletion.complete
    assert set(deletion.documents) == documents
    assert len(documents) == 6
    assert (deletion.chunks, deletion.vectors) == (4, 6)
    assert recorder.of("collection_deleted") == [{"tenant": ACME, "collection_id": full.id}]
    assert (world.vector_count(ACME), world.vector_count(GLOBEX)) == (1, 1)
    assert world.engine.collections.stats(ACME, kept.id).document_count == 1
    assert world.engine.collections.stats(GLOBEX, theirs.id).document_count == 1
    check_books(world)


def test_no_row_of_a_deleted_collection_is_left_after_two_writers_lives(world: World, full: Collection) -> None:
    world.engine.collections.list(ACME, PageRequest(limit=1))
    world.collection("other")
    token = world.engine.collections.list(ACME, PageRequest(limit=1)).next_page_token
    assert token is not None
    for collection in world.engine.collections.list(ACME, ALL).items:
        world.engine.collections.delete(ACME, collection.id, world.deadline())
    for _ in range(2):
        world.clock.advance(LIFE_S)
        world.engine.recovery.drain(world.deadline())
    assert world.keys() == [tuple(table.PAGE_TOKEN_KEY)]
    assert world.vector_count() == 0


def test_a_collection_is_not_found_as_soon_as_its_delete_has_begun(world: World, full: Collection) -> None:
    document = world.engine.documents.list(ACME, ALL, full.id, DocumentState.READY).items[0]
    chunk = world.engine.chunks.list(ACME, ALL, document_id=document.id).items[0]
    assert chunk.id is not None
    cut = world.engine.collections.delete(ACME, full.id, world.clock.monotonic())
    assert (cut.complete, cut.documents) == (False, [])
    engine, before = world.engine, world.embedder.calls
    calls: tuple[Callable[[], object], ...] = (
        lambda: engine.collections.get(ACME, full.id),
        lambda: engine.collections.get_by_name(ACME, full.name),
        lambda: engine.collections.stats(ACME, full.id),
        lambda: engine.collections.update(ACME, full.id, CollectionUpdate(name="x")),
        lambda: engine.documents.list(ACME, ALL, full.id),
        lambda: engine.documents.count(ACME, full.id),
        lambda: engine.chunks.list(ACME, ALL, full.id),
        lambda: engine.documents.delete_source(ACME, full.id, "a", world.deadline()),
        lambda: engine.retrieve(ACME, RetrieveQuery(query="one", collections=[full.id])),
        lambda: engine.compare(ACME, RetrieveQuery(query="one", collections=[full.id])),
        lambda: world.ingest(full, "new", source_key="z"),
    )
    for call in calls:
        with pytest.raises(CollectionNotFound):
            call()
    calls = (
        lambda: engine.documents.get(ACME, document.id),
        lambda: engine.documents.delete(ACME, document.id),
        lambda: engine.chunks.list(ACME, ALL, document_id=document.id),
    )
    for call in calls:
        with pytest.raises(DocumentNotFound):
            call()
    chunk_id = chunk.id
    for call in (lambda: engine.chunks.get(ACME, chunk_id), lambda: engine.chunks.lineage(ACME, chunk_id)):
        with pytest.raises(ChunkNotFound):
            call()
    with pytest.raises(StaleRanking):
        engine.assemble_refs(ACME, [ChunkRef(chunk_id=chunk.id)])
    assert engine.collections.list(ACME, ALL).items == []
    assert (engine.collections.count(ACME), engine.documents.count(ACME)) == (0, 0)
    assert engine.documents.list(ACME, ALL).items == []
    assert engine.retrieve(ACME, RetrieveQuery(query="one")).hits == []
    assert world.embedder.calls == before, "nothing was embedded"


def test_the_name_of_a_deleted_collection_is_free_at_once(world: World, full: Collection) -> None:
    world.engine.collections.delete(ACME, full.id, world.clock.monotonic())
    again = world.collection(full.name)
    world.ingest(again, "one two", source_key="a")
    assert world.engine.collections.delete(ACME, full.id, world.deadline()).complete
    assert world.engine.collections.get_by_name(ACME, full.name).id == again.id
    world.clock.advance(LIFE_S)
    world.engine.recovery.drain(world.deadline())
    assert world.engine.collections.stats(ACME, again.id).document_count == 1
    check_books(world)


def test_an_interrupted_delete_is_continued_by_the_next_delete(
    world: World, recorder: Recorder, vectors: MeddlingVectors, full: Collection
) -> None:
    vectors.before_delete = lambda: world.clock.advance(60)
    cut = world.engine.collections.delete(ACME, full.id, world.deadline(30))
    assert not cut.complete
    assert len(cut.documents) == 1
    assert recorder.of("collection_deleted") == []
    check_books(world)
    rest = world.engine.collections.delete(ACME, full.id, world.deadline())
    assert rest.complete
    assert len(rest.documents) == 5
    assert not set(cut.documents) & set(rest.documents)
    assert len(recorder.of("collection_deleted")) == 1
    with pytest.raises(CollectionNotFound):
        world.engine.collections.delete(ACME, full.id, world.deadline())
    check_books(world)


def test_an_interrupted_delete_is_finished_by_the_sweep(world: World, recorder: Recorder, full: Collection) -> None:
    world.engine.collections.delete(ACME, full.id, world.clock.monotonic())
    world.clock.advance(STALLED_S + 1)
    result = world.engine.recovery.drain(world.deadline())
    assert (result.cleaned, result.left) == (1, 0)
    assert world.vector_count() == 0
    assert "HEAD" not in row_kinds(world)
    assert recorder.of("collection_deleted") == [{"tenant": ACME, "collection_id": full.id}]
    with pytest.raises(CollectionNotFound):
        world.engine.collections.delete(ACME, full.id, world.deadline())


def test_a_delete_whose_process_dies_at_any_write_is_finished_by_the_next_delete(
    world: World, vectors: MeddlingVectors, full: Collection
) -> None:
    for _ in range(3):
        vectors.before_delete = crash
        with pytest.raises(CrashError):
            world.engine.collections.delete(ACME, full.id, world.deadline())
        check_books(world)
        with pytest.raises(CollectionNotFound):
            world.engine.collections.get(ACME, full.id)
    assert world.engine.collections.delete(ACME, full.id, world.deadline()).complete
    check_books(world)


def test_vectors_that_cannot_be_deleted_are_an_error_and_the_delete_can_be_called_again(
    world: World, vectors: MeddlingVectors, full: Collection
) -> None:
    vectors.failing = {"delete"}
    with pytest.raises(Unavailable):
        world.engine.collections.delete(ACME, full.id, world.deadline())
    vectors.failing = set()
    assert world.engine.collections.delete(ACME, full.id, world.deadline()).complete
    assert world.vector_count() == 0
    check_books(world)


def test_a_listing_index_that_is_behind_does_not_end_a_delete(world: World, full: Collection) -> None:
    world.dynamodb.lag = 5.0
    world.ingest(full, "just now", source_key="z")
    deletion = world.engine.collections.delete(ACME, full.id, world.deadline())
    assert deletion.complete
    assert len(deletion.documents) == 7
    assert "HEAD" not in row_kinds(world)
    world.clock.advance(LIFE_S)
    world.engine.recovery.drain(world.deadline())
    world.clock.advance(LIFE_S)
    world.engine.recovery.drain(world.deadline())
    assert world.keys() == []


def test_a_delete_waits_for_the_listing_index_only_until_its_deadline(world: World, full: Collection) -> None:
    world.dynamodb.lag = 1000.0
    assert not world.engine.collections.delete(ACME, full.id, world.deadline(20)).complete


def test_one_large_delete_does_not_keep_the_sweep_from_other_documents(
    world: World, recorder: Recorder, vectors: MeddlingVectors, full: Collection
) -> None:
    other = world.collection("other")
    world.engine.collections.delete(ACME, full.id, world.clock.monotonic())
    world.clock.advance(60)
    waiting = die(world, recorder, other, "words", source_key="a")
    world.clock.advance(STALLED_S + 6 * 60)

    def slowly() -> None:
        world.clock.advance(15)
        vectors.before_delete = slowly

    vectors.before_delete = slowly
    world.engine.recovery.drain(world.deadline(90))
    assert world.engine.documents.get(ACME, waiting).state == DocumentState.FAILED, (
        "the stalled document is failed in the same sweep"
    )


def test_an_empty_collection_is_deleted_too(world: World) -> None:
    collection = world.collection()
    deletion = world.engine.collections.delete(ACME, collection.id, world.deadline())
    assert (deletion.documents, deletion.complete) == ([], True)
    world.clock.advance(LIFE_S)
    assert world.engine.recovery.sweep() == RecoveryResult(cleaned=1)
    assert world.keys() == []

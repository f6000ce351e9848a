"""An answer during the replacement of a source holds one version of the source and is never empty."""

from typing import Any

import pytest

from core.model.collection import Collection
from core.model.document import DocumentState, source_id
from core.model.hit import ReasonCode, RetrieveResult
from core.model.ids import ChunkId, DocumentId
from core.model.query import RetrieveQuery
from core.vectors.types import VectorRecord
from tests.support.books import check_books
from tests.support.engines import ACME, World
from tests.support.meddling import MeddlingVectors, RecordedMetrics, Recorder, die

QUERY = "red green blue"


@pytest.fixture
def collection(world: World) -> Collection:
    return world.collection(chunk_size=3, chunk_overlap=0)


def ask(world: World, top_k: int = 10, **fields: object) -> RetrieveResult:
    return world.engine.retrieve(ACME, RetrieveQuery.model_validate({"query": QUERY, "top_k": top_k, **fields}))


def texts(result: RetrieveResult) -> list[str]:
    return [hit.chunk.text for hit in result.hits]


@pytest.mark.parametrize("top_k", [1, 2, 10])
def test_an_answer_during_a_swap_holds_one_version_and_is_not_empty(
    world: World, vectors: MeddlingVectors, collection: Collection, top_k: int
) -> None:
    world.ingest(collection, "red green old1 red green old2", source_key="a")
    vectors.after_search = [lambda: world.ingest(collection, "red green new1 red green new2", source_key="a")]
    seen = texts(ask(world, top_k))
    assert seen, "a version of the source was served at every moment"
    assert len({text[-4:-1] for text in seen}) == 1, f"the answer holds one version alone: {seen}"
    assert len(seen) == min(2, top_k)


@pytest.mark.parametrize("top_k", [1, 2, 10])
def test_a_version_that_becomes_current_between_two_rounds_is_in_the_answer(
    world: World, recorder: Recorder, vectors: MeddlingVectors, collection: Collection, top_k: int
) -> None:
    world.ingest(collection, "red old old", source_key="a")
    answers = []

    def nothing() -> None:
        return

    def look_while_the_new_version_is_written_and_not_swapped() -> None:
        rounds_before_the_swap = [nothing, swap]
        vectors.after_search = list(rounds_before_the_swap)
        answers.append(ask(world, top_k))

    def swap() -> None:
        """Finishes the ingest between the first and the second round of the search."""
        head, source = world.stores.documents.head_and_source(working)
        assert head is not None
        world.stores.transitions.swap(head, chunk_count=1, info=None, source_as_read=source)

    document = die(world, recorder, collection, "red green blue", source_key="a")
    found = world.stores.documents.head(ACME, document)
    assert found is not None
    working = found
    look_while_the_new_version_is_written_and_not_swapped()
    assert texts(answers[0]) == ["red green blue"]
    assert len(vectors.searches) > 2


def test_an_answer_with_top_k_1_during_a_replacement_is_never_empty(
    world: World, recorder: Recorder, vectors: MeddlingVectors, collection: Collection
) -> None:
    world.ingest(collection, "red old old", source_key="a")
    seen: list[list[str]] = []

    def look() -> None:
        seen.append(texts(ask(world, 1)))

    recorder.on = dict.fromkeys(("ingest_started", "ingest_chunked", "ingest_embedded"), look)
    vectors.before_write, vectors.after_write, vectors.before_delete = look, look, look
    world.ingest(collection, "red green blue", source_key="a")
    look()
    assert seen == [["red old old"]] * 5 + [["red green blue"]] * 2


def test_generations_that_are_not_served_take_no_place_from_served_chunks(
    world: World, recorder: Recorder, collection: Collection
) -> None:
    for number in range(3):
        world.ingest(collection, f"pale {number}", source_key=str(number))
    for number in range(12):
        die(world, recorder, collection, f"red green blue {number}", source_key="a")
        die(world, recorder, collection, f"red blue green {number}")
    result = ask(world, 3)
    assert len(result.hits) == 3
    assert {text.split()[0] for text in texts(result)} == {"pale"}
    assert [hit.rank for hit in result.hits] == [1, 2, 3]
    assert result.reason is None
    one = ask(world, 4)
    assert len(one.hits) == 3
    assert one.reason is not None
    assert one.reason.code == ReasonCode.STILL_INGESTING
    assert one.reason.in_progress == 24


def test_a_source_that_is_replaced_in_every_round_ends_at_a_named_bound(
    world: World, vectors: MeddlingVectors, collection: Collection
) -> None:
    world.ingest(collection, "red green 0", source_key="a")
    numbers = iter(range(1, 100))

    def replace() -> None:
        world.ingest(collection, f"red green {next(numbers)}", source_key="a")
        vectors.after_search.append(replace)

    vectors.after_search = [replace]
    result = ask(world, 1)
    assert result.reason is None or result.reason.code == ReasonCode.REFILL_BOUND
    assert len(vectors.searches) <= 5


def test_a_document_deleted_during_a_search_is_no_orphan(
    world: World, vectors: MeddlingVectors, collection: Collection
) -> None:
    gone = world.ingest(collection, "red green blue").document_id
    world.ingest(collection, "pale")
    assert gone is not None
    read = world.dynamodb.batch_get_item

    def delete_after_the_rows_were_read(**arguments: object) -> object:
        answer = read(**arguments)
        if "HEAD" in str(arguments):
            world.dynamodb.batch_get_item = read
            world.engine.documents.delete(ACME, gone)
        return answer

    world.dynamodb.batch_get_item = delete_after_the_rows_were_read
    result = ask(world)
    assert texts(result) == ["pale"]
    check_books(world)


@pytest.mark.parametrize("fields", [{"source_key": "a"}, {}], ids=["keyed", "unkeyed"])
def test_chunks_of_an_abandoned_attempt_are_not_in_the_answer(
    world: World, recorder: Recorder, collection: Collection, fields: dict[str, Any]
) -> None:
    die(world, recorder, collection, "red green", **fields)
    world.clock.advance(16 * 60)
    world.ingest(collection, "red green", **fields)
    assert world.vector_count() == 2, "both attempts have a vector"
    result = ask(world)
    assert [hit.chunk.id.attempt for hit in result.hits if hit.chunk.id] == [2]


# -- orphans ------------------------------------------------------------------------------------------


def vector_without_row(world: World, collection: Collection, document: DocumentId, key: str | None = None) -> ChunkId:
    chunk_id = ChunkId.of(document, 1, 3)
    vector = world.embedder.embed([QUERY]).vectors[0]
    record = VectorRecord(chunk_id, collection.id, source_id(key) if key else None, key, "stray words", vector)
    world.vectors.write(ACME, world.embedder.space, [record])
    return chunk_id


def test_an_unkeyed_vector_without_any_row_is_kept_as_an_orphan(world: World, collection: Collection) -> None:
    metrics = RecordedMetrics()
    world.rebuild(metrics=metrics)
    chunk_id = vector_without_row(world, collection, DocumentId.new(1, 1))
    world.ingest(collection, "red")
    result = ask(world)
    orphan, real = result.hits
    assert (orphan.orphaned, orphan.hydrated, orphan.rank, orphan.document) == (True, False, 1, None)
    assert (orphan.chunk.id, orphan.chunk.text) == (chunk_id, "stray words")
    assert (orphan.chunk.document_id, orphan.chunk.collection_id, orphan.chunk.index) == (
        DocumentId.new(1, 1),
        collection.id,
        3,
    )
    assert (real.orphaned, real.hydrated, real.rank) == (False, True, 2)
    assert metrics.of("orphaned_hits") == [1]


def test_a_keyed_vector_without_a_row_is_dropped(world: World, collection: Collection) -> None:
    vector_without_row(world, collection, DocumentId.new(1, 1), key="a")
    world.ingest(collection, "red", source_key="b")
    assert texts(ask(world)) == ["red"]


def test_a_vector_of_a_removed_document_is_no_orphan(world: World, collection: Collection) -> None:
    result = world.ingest(collection, "red green blue")
    assert result.document_id is not None
    world.engine.documents.delete(ACME, result.document_id)
    vector_without_row(world, collection, result.document_id)
    assert ask(world).hits == []


@pytest.mark.parametrize("state", ["processing", "failed"])
def test_a_vector_of_a_document_that_is_not_ready_is_no_orphan(
    world: World, recorder: Recorder, collection: Collection, state: str
) -> None:
    document = die(world, recorder, collection, "red green blue")
    if state == "failed":
        world.clock.advance(16 * 60)
        world.engine.recovery.sweep()
        assert world.engine.documents.get(ACME, document).state == DocumentState.FAILED
    vector_without_row(world, collection, document)
    assert ask(world).hits == []


def test_a_dropped_match_of_a_keyed_document_is_replaced_by_the_next_match(
    world: World, collection: Collection
) -> None:
    first = world.ingest(collection, "red green blue", source_key="a")
    world.ingest(collection, "red", source_key="b")
    assert first.document_id is not None
    world.stores.documents.delete_chunks(ACME, [ChunkId.of(first.document_id, 1, 0)])
    assert texts(ask(world, 1)) == ["red"]
    result = ask(world, 2)
    assert texts(result) == ["red"]
    assert result.reason is not None

"""Deletes of a source and of a document remove rows, chunks and vectors."""

import pytest

from core.metadata import table
from core.model.document import DocumentState, source_id
from core.model.errors import CollectionNotFound, DocumentNotFound, InvalidArgument, Unavailable
from core.model.ids import CollectionId, DocumentId
from core.model.page import PageRequest
from core.vectors.types import VectorRecord
from tests.support.books import check_books, row_kinds
from tests.support.engines import ACME, GLOBEX, World
from tests.support.meddling import MeddlingVectors, Recorder, die

ALL = PageRequest(limit=100)
LIFE_S = 20 * 60


def fail(world: World, collection: object, content: str, **fields: object) -> DocumentId:
    world.embedder.failure = Unavailable("The model does not answer")
    with pytest.raises(Unavailable) as raised:
        world.ingest(collection, content, **fields)  # type: ignore[arg-type]
    world.embedder.failure = None
    failed: DocumentId = raised.value.extras["document_id"]
    return failed


def test_a_delete_of_a_source_removes_its_versions_in_every_state(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    world.ingest(collection, "kept", source_key="b")
    ready = world.ingest(collection, "one two", source_key="a")
    working = die(world, recorder, collection, "three", source_key="a")
    failed = fail(world, collection, "four", source_key="a")
    deletion = world.engine.documents.delete_source(ACME, collection.id, "a", world.deadline())
    assert set(deletion.documents) == {ready.document_id, working, failed}
    assert (deletion.chunks, deletion.vectors, deletion.complete) == (1, 2, True)
    assert [document.source_key for document in world.engine.documents.list(ACME, ALL).items] == ["b"]
    assert world.vector_count() == 1
    assert {details["document_id"] for details in recorder.of("document_deleted")} == {
        ready.document_id,
        working,
        failed,
    }
    assert {details["tenant"] for details in recorder.of("document_deleted")} == {ACME}
    check_books(world)


def test_a_source_can_be_deleted_by_its_source_id(world: World) -> None:
    collection = world.collection()
    first = world.ingest(collection, "one", source_key="a")
    deletion = world.engine.documents.delete_source(ACME, collection.id, source_id("a"), world.deadline())
    assert deletion.documents == [first.document_id]


def test_a_key_that_looks_like_a_source_id_is_a_key_when_no_source_has_that_id(world: World) -> None:
    collection, key = world.collection(), "0" * 64
    first = world.ingest(collection, "one", source_key=key)
    assert world.engine.documents.list(ACME, ALL, collection.id, source_key=key).items[0].id == first.document_id
    assert world.engine.documents.delete_source(ACME, collection.id, key, world.deadline()).documents == [
        first.document_id
    ]


def test_a_delete_of_an_unknown_source_succeeds(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    before = world.rows()
    deletion = world.engine.documents.delete_source(ACME, collection.id, "never", world.deadline())
    assert (deletion.documents, deletion.chunks, deletion.vectors, deletion.complete) == ([], 0, 0, True)
    assert world.rows() == before
    assert recorder.of("document_deleted") == []


@pytest.mark.parametrize("key", ["", " ", "x" * 1025])
def test_a_wrong_key_is_refused_before_anything_is_deleted(world: World, key: str) -> None:
    collection = world.collection()
    world.ingest(collection, "one", source_key="a")
    before = world.rows()
    with pytest.raises(InvalidArgument):
        world.engine.documents.delete_source(ACME, collection.id, key, world.deadline())
    assert world.rows() == before


def test_another_tenants_source_and_document_read_as_not_found_and_nothing_is_deleted(world: World) -> None:
    collection = world.collection(tenant=GLOBEX)
    theirs = world.ingest(collection, "one", tenant=GLOBEX, source_key="a")
    assert theirs.document_id is not None
    before = world.rows()
    with pytest.raises(CollectionNotFound):
        world.engine.documents.delete_source(ACME, collection.id, "a", world.deadline())
    with pytest.raises(DocumentNotFound):
        world.engine.documents.delete(ACME, theirs.document_id)
    with pytest.raises(CollectionNotFound):
        world.engine.documents.delete_source(ACME, CollectionId.new(1, 1), "a", world.deadline())
    assert world.rows() == before
    assert world.vector_count(GLOBEX) == 1


def test_failed_versions_are_deleted_even_after_the_row_of_their_source_expired(world: World) -> None:
    collection = world.collection()
    world.ingest(collection, "one", source_key="a")
    world.engine.documents.delete_source(ACME, collection.id, "a", world.deadline())
    failed = fail(world, collection, "two", source_key="a")
    row = next(row for row in world.rows() if row["sk"]["S"] == "SOURCE")
    assert int(row["expires_at"]["N"]) == int(world.clock.now().timestamp()) + 30 * 24 * 3600
    world.dynamodb.delete_item(TableName="", Key={"pk": row["pk"], "sk": row["sk"]})
    deletion = world.engine.documents.delete_source(ACME, collection.id, "a", world.deadline())
    assert deletion.documents == [failed]
    check_books(world)


def test_a_source_with_a_current_version_or_work_in_progress_does_not_expire(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    world.ingest(collection, "one", source_key="a")
    die(world, recorder, collection, "two", source_key="b")
    sources = [row for row in world.rows() if row["sk"]["S"] == "SOURCE"]
    assert len(sources) == 2
    assert all("expires_at" not in row for row in sources)
    world.engine.documents.delete_source(ACME, collection.id, "a", world.deadline())
    world.ingest(collection, "three", source_key="a")
    assert all("expires_at" not in row for row in world.rows() if row["sk"]["S"] == "SOURCE")


def test_a_source_whose_vectors_cannot_be_deleted_is_an_error_and_no_longer_served(
    world: World, vectors: MeddlingVectors
) -> None:
    collection = world.collection()
    world.ingest(collection, "one", source_key="a")
    vectors.failing = {"delete"}
    with pytest.raises(Unavailable):
        world.engine.documents.delete_source(ACME, collection.id, "a", world.deadline())
    assert world.engine.chunks.count(ACME, collection.id) == 0
    assert world.engine.collections.stats(ACME, collection.id).document_count == 0
    check_books(world)
    vectors.failing = set()
    world.clock.advance(16 * 60)
    assert world.engine.recovery.sweep().purged == 1
    assert world.vector_count() == 0
    check_books(world)


def test_a_delete_of_a_source_that_meets_its_deadline_can_be_called_again(world: World) -> None:
    collection = world.collection()
    fail(world, collection, "one", source_key="a")
    fail(world, collection, "two", source_key="a")
    cut = world.engine.documents.delete_source(ACME, collection.id, "a", world.clock.monotonic())
    assert (cut.complete, cut.documents) == (False, [])
    rest = world.engine.documents.delete_source(ACME, collection.id, "a", world.deadline())
    assert rest.complete
    assert len(rest.documents) == 2
    check_books(world)


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("state", ["ready", "processing", "failed", "superseded"])
def test_a_document_can_be_deleted_in_every_state(
    world: World, recorder: Recorder, vectors: MeddlingVectors, state: str, keyed: bool
) -> None:
    collection = world.collection()
    fields = {"source_key": "a"} if keyed else {}
    if state == "processing":
        document_id = die(world, recorder, collection, "one two", **fields)
    elif state == "failed":
        document_id = fail(world, collection, "one two", **fields)
    else:
        found = world.ingest(collection, "one two", **fields).document_id  # type: ignore[arg-type]
        assert found is not None
        document_id = found
    if state == "superseded":
        vectors.failing = {"delete"}
        with pytest.raises(Unavailable):
            world.engine.documents.delete(ACME, document_id)
        vectors.failing = set()
    assert world.engine.documents.get(ACME, document_id).state == state
    deletion = world.engine.documents.delete(ACME, document_id)
    assert (deletion.documents, deletion.complete) == ([document_id], True)
    assert deletion.chunks == (1 if state in ("ready", "superseded") else 0)
    assert deletion.vectors == (0 if state == "failed" else 1)
    with pytest.raises(DocumentNotFound):
        world.engine.documents.get(ACME, document_id)
    with pytest.raises(DocumentNotFound):
        world.engine.documents.delete(ACME, document_id)
    assert world.vector_count() == 0
    assert not {"HEAD", "INFO", "CONTENT", f"V#{document_id}"} & set(row_kinds(world))
    assert [details["document_id"] for details in recorder.of("document_deleted")] == [document_id]
    check_books(world)
    assert world.ingest(collection, "one two", **fields).state == DocumentState.READY  # type: ignore[arg-type]
    world.clock.advance(LIFE_S)
    world.engine.recovery.drain(world.deadline())
    check_books(world)


def test_a_dead_writers_late_vector_is_removed_after_its_life(world: World, vectors: MeddlingVectors) -> None:
    collection = world.collection()
    result = world.ingest(collection, "one", source_key="a")
    assert result.document_id is not None
    head = world.stores.documents.head(ACME, result.document_id)
    assert head is not None
    world.engine.documents.delete(ACME, result.document_id)
    late = VectorRecord(
        head.served_chunk_ids()[0], collection.id, head.source_id, "a", "one", world.embedder.embed(["one"]).vectors[0]
    )
    vectors.write(ACME, world.embedder.space, [late])
    assert world.vector_count() == 1
    check_books(world)
    world.clock.advance(LIFE_S)
    world.engine.recovery.drain(world.deadline())
    assert world.vector_count() == 0
    assert table.late_writer_mark(ACME, result.document_id).sk not in row_kinds(world)

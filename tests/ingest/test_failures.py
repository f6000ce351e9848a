"""A failed ingest leaves a row with the reason and no data, and the version served before stays served."""

from collections.abc import Callable

import pytest

from core.model.document import Document, DocumentState
from core.model.errors import EmptyContent, InvalidArgument, Unavailable, WeftError
from core.model.ingest import IngestInput
from core.model.page import PageRequest
from tests.support.books import check_books
from tests.support.engines import ACME, World
from tests.support.meddling import MeddlingVectors, Recorder

ALL = PageRequest(limit=100)
SECRET = "zyzzyva"


def failed(world: World) -> Document:
    found = world.engine.documents.list(ACME, ALL, state=DocumentState.FAILED).items
    assert len(found) == 1, "one document has failed"
    return found[0]


def served(world: World, collection_id: object) -> list[str]:
    chunks = world.engine.chunks.list(ACME, ALL, collection_id=collection_id).items  # type: ignore[arg-type]
    return [chunk.text for chunk in chunks]


def break_load(world: World, vectors: MeddlingVectors) -> dict[str, object]:
    return {"content": "---\nonly: front matter\n---\n", "source_type": "text/markdown"}


def break_chunk(world: World, vectors: MeddlingVectors) -> dict[str, object]:
    def count(text: str) -> int:
        raise InvalidArgument("The text cannot be counted")

    world.embedder.counter.count = count  # type: ignore[method-assign]
    return {}


def break_embed(world: World, vectors: MeddlingVectors) -> dict[str, object]:
    world.embedder.failure = Unavailable("The model does not answer", retry_after_s=9)
    return {}


def break_write(world: World, vectors: MeddlingVectors) -> dict[str, object]:
    vectors.failing = {"write"}
    return {}


def break_unexpectedly(world: World, vectors: MeddlingVectors) -> dict[str, object]:
    world.embedder.failure = ZeroDivisionError(f"a text: {SECRET}")
    return {}


Breaking = Callable[[World, MeddlingVectors], dict[str, object]]


@pytest.mark.parametrize(
    ("breaking", "stage", "code", "error"),
    [
        (break_load, "load", "empty_content", EmptyContent),
        (break_chunk, "chunk", "invalid_argument", InvalidArgument),
        (break_embed, "embed", "unavailable", Unavailable),
        (break_write, "write", "unavailable", Unavailable),
        (break_unexpectedly, "embed", "internal_error", ZeroDivisionError),
    ],
)
def test_a_failed_document_keeps_its_reason_and_the_old_version_stays_served(
    world: World,
    vectors: MeddlingVectors,
    recorder: Recorder,
    breaking: Breaking,
    stage: str,
    code: str,
    error: type[Exception],
) -> None:
    collection = world.collection()
    world.ingest(collection, "old words", source_key="a")
    fields = {"content": f"new {SECRET}", **breaking(world, vectors)}
    with pytest.raises(error) as raised:
        world.ingest(collection, source_key="a", **fields)  # type: ignore[arg-type]
    document = failed(world)
    assert document.error is not None
    assert (document.error.stage, document.error.code) == (stage, code)
    assert document.error.detail
    assert SECRET not in document.error.detail, "no text of the document"
    assert (document.chunk_count, document.source_key) == (0, "a")
    if isinstance(raised.value, WeftError):
        assert raised.value.extras["document_id"] == document.id, "the error names the document that says why"
    assert served(world, collection.id) == ["old words"]
    assert world.vector_count() == 1, "the failed document has no vector left"
    fired = recorder.of("ingest_failed")
    assert [(details["tenant"], details["document_id"], details["failure"]) for details in fired] == [
        (ACME, document.id, document.error)
    ]
    assert recorder.hooks.count("ingest_completed") == 1, "only the first ingest has completed"
    check_books(world)


def test_the_same_content_becomes_a_new_document_after_a_failure(world: World) -> None:
    collection = world.collection()
    world.embedder.failure = Unavailable("The model does not answer")
    with pytest.raises(Unavailable):
        world.ingest(collection, "words", source_key="a")
    world.embedder.failure = None
    before = failed(world)
    result = world.ingest(collection, "words", source_key="a")
    assert (result.state, result.unchanged, result.replaced) == (DocumentState.READY, False, [])
    assert result.document_id != before.id
    check_books(world)


def test_failed_versions_of_a_source_are_removed_by_its_next_swap(world: World) -> None:
    collection = world.collection()
    world.ingest(collection, "one", source_key="a")
    world.embedder.failure = Unavailable("The model does not answer")
    for content in ("two", "three"):
        with pytest.raises(Unavailable):
            world.ingest(collection, content, source_key="a")
    with pytest.raises(Unavailable):
        world.ingest(collection, "other", source_key="b")
    world.embedder.failure = None
    result = world.ingest(collection, "four", source_key="a")
    left = world.engine.documents.list(ACME, ALL).items
    assert [(document.source_key, document.state) for document in left] == [("a", "ready"), ("b", "failed")]
    assert left[0].id == result.document_id
    check_books(world)


def test_a_document_that_is_empty_after_loading_fails_with_EmptyContent(world: World) -> None:
    collection = world.collection()
    with pytest.raises(EmptyContent) as refused:
        world.ingest(collection, "---\ntitle: x\n---\n  \n", source_type="text/markdown")
    assert refused.value.status == 400
    assert refused.value.extras["document_id"] == failed(world).id
    check_books(world)


def test_an_ingest_that_takes_too_long_fails_with_that_reason(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    recorder.on["ingest_chunked"] = lambda: world.clock.advance(100)
    given = IngestInput(collection_id=collection.id, content=b"words", source_key="a")
    with pytest.raises(Unavailable, match="longer than one call"):
        world.engine.ingest.ingest(ACME, given, world.deadline(60))
    document = failed(world)
    assert document.error is not None
    assert document.error.code == "unavailable"
    check_books(world)


def test_data_that_cannot_be_removed_at_once_is_removed_after_a_writers_life(
    world: World, vectors: MeddlingVectors
) -> None:
    collection = world.collection()

    def fail() -> None:
        vectors.failing = {"delete"}
        raise Unavailable("The vector store does not answer")

    vectors.after_write = fail
    with pytest.raises(Unavailable):
        world.ingest(collection, "words", source_key="a")
    assert world.vector_count() == 1, "the vector of the failed document could not be removed"
    check_books(world)
    vectors.failing = set()
    world.clock.advance(world.engine.settings.writer_life_s)
    assert world.engine.recovery.sweep().cleaned == 1
    assert world.vector_count() == 0
    check_books(world)
    assert world.engine.recovery.sweep().cleaned == 0, "the data is cleaned only once"


def test_a_refused_content_is_a_failed_document_and_the_old_version_stays_served(
    world: World, recorder: Recorder
) -> None:
    collection = world.collection()
    world.ingest(collection, "old words", source_key="a", source_version="1")
    given = IngestInput(collection_id=collection.id, content=b"", source_key="a", source_version="2", title="Big")
    result = world.engine.ingest.refuse(ACME, given, InvalidArgument("too odd"))
    assert (result.state, result.chunk_count) == (DocumentState.FAILED, 0)
    document = failed(world)
    assert document.id == result.document_id
    assert document.error is not None
    assert (document.error.code, document.error.detail, document.title) == ("invalid_argument", "too odd", "Big")
    assert served(world, collection.id) == ["old words"]
    assert [details["document_id"] for details in recorder.of("ingest_failed")] == [document.id]
    check_books(world)


def test_a_refusal_that_is_repeated_or_outdated_records_nothing(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    given = IngestInput(collection_id=collection.id, content=b"", source_key="a", source_version="2")
    world.engine.ingest.refuse(ACME, given, InvalidArgument("too odd"))
    before = world.rows()
    again = world.engine.ingest.refuse(ACME, given, InvalidArgument("too odd"))
    late = world.engine.ingest.refuse(ACME, given.model_copy(update={"source_version": "1"}), InvalidArgument("odd"))
    assert {again.state, late.state} == {DocumentState.SUPERSEDED}
    assert world.rows() == before
    assert len(recorder.of("ingest_failed")) == 1


def test_a_refusal_takes_the_version_of_its_content(world: World) -> None:
    collection = world.collection()
    given = IngestInput(collection_id=collection.id, content=b"", source_key="a", source_version="5")
    world.engine.ingest.refuse(ACME, given, InvalidArgument("too odd"))
    late = world.ingest(collection, "older", source_key="a", source_version="4")
    assert late.state == DocumentState.SUPERSEDED
    assert world.ingest(collection, "newer", source_key="a", source_version="6").state == DocumentState.READY
    check_books(world)

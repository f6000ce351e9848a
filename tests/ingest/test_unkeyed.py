"""An ingest without a source key keeps each content at most once in a collection."""

import pytest

from core.model.document import DocumentState
from core.model.errors import DuplicateDocument, Unavailable
from core.model.page import PageRequest
from tests.support.books import check_books
from tests.support.engines import ACME, GLOBEX, World
from tests.support.meddling import Recorder, die

ALL = PageRequest(limit=100)


def test_unkeyed_content_that_is_ready_is_a_duplicate_of_the_named_document(world: World) -> None:
    collection = world.collection()
    first = world.ingest(collection, "same")
    calls, before = world.embedder.calls, world.rows()
    with pytest.raises(DuplicateDocument) as refused:
        world.ingest(collection, "same")
    assert refused.value.extras == {"document_id": first.document_id}
    assert (world.embedder.calls, world.rows()) == (calls, before)


def test_a_different_description_does_not_make_unkeyed_content_new(world: World) -> None:
    collection = world.collection()
    world.ingest(collection, "same", title="One", attributes={"year": 1})
    with pytest.raises(DuplicateDocument):
        world.ingest(collection, "same", title="Two", attributes={"year": 2})


def test_the_same_content_in_another_collection_or_tenant_is_no_duplicate(world: World) -> None:
    world.ingest(world.collection("here"), "same")
    assert world.ingest(world.collection("there"), "same").state == DocumentState.READY
    assert world.ingest(world.collection("here", tenant=GLOBEX), "same", tenant=GLOBEX).state == DocumentState.READY
    check_books(world)


def test_content_of_a_keyed_document_is_no_duplicate(world: World) -> None:
    collection = world.collection()
    world.ingest(collection, "same", source_key="a")
    assert world.ingest(collection, "same").state == DocumentState.READY


def test_unkeyed_content_that_has_failed_becomes_a_new_document(world: World) -> None:
    collection = world.collection()
    world.embedder.failure = Unavailable("The model does not answer")
    with pytest.raises(Unavailable):
        world.ingest(collection, "same")
    world.embedder.failure = None
    failed = world.engine.documents.list(ACME, ALL).items[0]
    result = world.ingest(collection, "same")
    assert result.state == DocumentState.READY
    assert result.document_id != failed.id
    assert world.engine.documents.count(ACME, state=DocumentState.FAILED) == 1, (
        "the failed document stays until it is deleted"
    )
    check_books(world)


def test_unkeyed_content_in_progress_is_answered_with_its_document(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    working = die(world, recorder, collection, "same")
    calls = world.embedder.calls
    result = world.ingest(collection, "same")
    assert (result.state, result.chunk_count) == (DocumentState.PROCESSING, 0)
    assert result.document_id == working
    assert world.embedder.calls == calls


def test_unkeyed_content_is_ingested_again_after_its_document_was_deleted(world: World) -> None:
    collection = world.collection()
    first = world.ingest(collection, "same")
    assert first.document_id is not None
    world.engine.documents.delete(ACME, first.document_id)
    assert world.ingest(collection, "same").state == DocumentState.READY
    check_books(world)

"""A batch ingests several documents and has an answer for each, in the order of the inputs."""

from threading import Barrier

import pytest

from core.model.document import DocumentState
from core.model.errors import (
    CollectionNotFound,
    DuplicateDocument,
    EmptyContent,
    InternalError,
    InvalidArgument,
    Unavailable,
    WeftError,
)
from core.model.ids import CollectionId
from core.model.ingest import IngestInput, IngestResult
from core.model.page import PageRequest
from core.settings import Settings
from tests.support.books import check_books
from tests.support.engines import ACME, TABLE, World
from tests.support.meddling import MeddlingVectors, Recorder
from tests.support.memory import memory_world

ALL = PageRequest(limit=100)


def made(collection_id: CollectionId, content: str, **fields: object) -> IngestInput:
    return IngestInput.model_validate({"collection_id": collection_id, "content": content.encode(), **fields})


def test_a_batch_has_an_answer_for_every_input_in_the_order_of_inputs(world: World) -> None:
    here = world.collection().id
    items = [made(here, f"content {number}", source_key=str(number)) for number in range(12)]
    answers = world.engine.ingest.batch(ACME, items, world.deadline())
    assert len(answers) == 12
    for item, answer in zip(items, answers, strict=True):
        assert isinstance(answer, IngestResult)
        assert answer.document_id is not None
        assert world.engine.documents.get(ACME, answer.document_id).source_key == item.source_key
    check_books(world)


def test_a_refused_document_of_a_batch_stops_no_other_document(world: World) -> None:
    here = world.collection().id
    refused = InvalidArgument("no such field", field="documents.1.contnet")
    items: list[IngestInput | WeftError] = [
        made(here, "one", source_key="a"),
        refused,
        made(here, " ", source_key="b"),
        made(CollectionId.new(1, 1), "two", source_key="c"),
        made(here, "three"),
        made(here, "three"),
        made(here, "four", source_key="d"),
    ]
    answers = world.engine.ingest.batch(ACME, items, world.deadline())
    assert answers[1] is refused
    assert [type(answer) for answer in answers] == [
        IngestResult,
        InvalidArgument,
        EmptyContent,
        CollectionNotFound,
        IngestResult,
        DuplicateDocument,
        IngestResult,
    ]
    assert world.engine.collections.stats(ACME, here).document_count == 3
    check_books(world)


def test_an_unexpected_error_of_a_document_keeps_the_other_answers_of_a_batch(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    here = world.collection().id
    count = world.embedder.counter.count

    def stumble(text: str) -> int:
        if "zyzzyva" in text:
            raise RecursionError(text)
        return count(text)

    world.embedder.counter.count = stumble  # type: ignore[method-assign]  # a text that a part cannot stand
    items = [made(here, "one"), made(here, "zyzzyva"), made(here, "two")]
    answers = world.engine.ingest.batch(ACME, items, world.deadline())
    assert [type(answer) for answer in answers] == [IngestResult, InternalError, IngestResult]
    assert "RecursionError" in caplog.text
    assert "zyzzyva" not in caplog.text + str(answers[1]), "no text of a document in logs or errors"
    check_books(world)


def test_inputs_with_the_same_source_key_run_in_the_order_of_inputs(world: World) -> None:
    here = world.collection().id
    items = [made(here, f"content {number}", source_key=f"key {number % 3}") for number in range(30)]
    answers = world.engine.ingest.batch(ACME, items, world.deadline())
    for place, answer in enumerate(answers):
        assert isinstance(answer, IngestResult)
        before = answers[place - 3] if place >= 3 else None
        assert answer.replaced == ([before.document_id] if isinstance(before, IngestResult) else [])
    texts = [chunk.text for chunk in world.engine.chunks.list(ACME, ALL, collection_id=here).items]
    assert sorted(texts) == ["content 27", "content 28", "content 29"]
    check_books(world)


def test_the_same_unkeyed_content_twice_in_a_batch_is_ready_once_and_then_a_duplicate(world: World) -> None:
    here = world.collection().id
    answers = world.engine.ingest.batch(ACME, [made(here, "same") for _ in range(5)], world.deadline())
    first = answers[0]
    assert isinstance(first, IngestResult)
    assert first.state == DocumentState.READY
    others = [answer for answer in answers[1:] if isinstance(answer, DuplicateDocument)]
    assert [other.extras["document_id"] for other in others] == [first.document_id] * 4


def test_an_input_that_has_not_begun_at_the_deadline_is_unavailable(
    recorder: Recorder, vectors: MeddlingVectors
) -> None:
    settings = Settings(table=TABLE, embedder="none", vectors="none", ingest_concurrency=1)
    world = memory_world(recorder, vectors, settings)
    here = world.collection().id
    recorder.on["ingest_completed"] = lambda: world.clock.advance(100)
    items = [made(here, f"content {number}", source_key="a") for number in range(3)]
    answers = world.engine.ingest.batch(ACME, items, world.deadline(50))
    assert isinstance(answers[0], IngestResult)
    for answer in answers[1:]:
        assert isinstance(answer, Unavailable)
        assert answer.extras["retry_after_s"] > 0
    assert world.engine.documents.count(ACME) == 1
    check_books(world)


def test_a_batch_without_inputs_has_no_answers(world: World) -> None:
    assert world.engine.ingest.batch(ACME, [], world.deadline()) == []
    errors: list[IngestInput | WeftError] = [InvalidArgument("one"), InvalidArgument("two")]
    assert world.engine.ingest.batch(ACME, errors, world.deadline()) == errors


def test_a_batch_runs_as_many_ingests_at_the_same_time_as_its_setting_allows(
    recorder: Recorder, vectors: MeddlingVectors
) -> None:
    settings = Settings(table=TABLE, embedder="none", vectors="none", ingest_concurrency=3)
    world = memory_world(recorder, vectors, settings)
    here = world.collection().id
    meeting = Barrier(3, timeout=20)
    embed = world.embedder.embed
    world.embedder.embed = lambda texts: (meeting.wait(), embed(texts))[1]  # type: ignore[method-assign]
    items = [made(here, f"content {number}", source_key=str(number)) for number in range(3)]
    answers = world.engine.ingest.batch(ACME, items, world.deadline())
    assert all(isinstance(answer, IngestResult) for answer in answers), "three documents are embedded at the same time"
    check_books(world)

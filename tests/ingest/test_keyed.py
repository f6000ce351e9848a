"""An ingest with a source key creates or replaces the current version of that source."""

import hashlib

import pytest

from core.model.document import DocumentState, source_id
from core.model.errors import (
    CollectionNotFound,
    DocumentNotFound,
    EmptyContent,
    InvalidArgument,
    Unavailable,
    UnsupportedMediaType,
)
from core.model.ids import CollectionId
from core.model.ingest import IngestInput
from core.model.page import PageRequest
from tests.support.books import check_books
from tests.support.engines import ACME, GLOBEX, World
from tests.support.meddling import Recorder

ALL = PageRequest(limit=100)


def test_a_document_is_ready_when_its_ingest_answers(world: World) -> None:
    collection = world.collection()
    result = world.ingest(
        collection,
        "the quick brown fox",
        source_key="fox",
        title="Fox",
        source="https://example.org/fox",
        metadata={"team": "red"},
        attributes={"year": 2020, "score": 0.5},
        source_version="A",
    )
    assert (result.state, result.chunk_count) == (DocumentState.READY, 1)
    assert (result.unchanged, result.replaced, result.superseded_by) == (False, [], None)
    assert result.document_id is not None
    found = world.engine.documents.get(ACME, result.document_id)
    assert (found.id, found.collection_id, found.tenant) == (result.document_id, collection.id, ACME)
    assert (found.title, found.source, found.source_type) == ("Fox", "https://example.org/fox", "text/plain")
    assert (found.source_key, found.source_id, found.source_version) == ("fox", source_id("fox"), "A")
    assert found.content_hash == hashlib.sha256(b"the quick brown fox").hexdigest()
    assert (found.state, found.error, found.chunk_count) == (DocumentState.READY, None, 1)
    assert (found.metadata, found.attributes) == ({"team": "red"}, {"year": 2020, "score": 0.5})
    check_books(world)


def test_unchanged_content_of_a_source_is_not_embedded_again(world: World) -> None:
    collection = world.collection()
    first = world.ingest(collection, "same", source_key="a")
    calls = world.embedder.calls
    again = world.ingest(collection, "same", source_key="a")
    assert (again.unchanged, again.document_id, again.chunk_count) == (True, first.document_id, 1)
    assert again.state == DocumentState.READY
    assert world.embedder.calls == calls
    check_books(world)


def test_a_new_description_of_unchanged_content_changes_the_document_in_place(world: World) -> None:
    collection = world.collection()
    first = world.ingest(collection, "same", source_key="a", title="Old", source="old", metadata={"k": "1"})
    world.clock.advance(5)
    again = world.ingest(collection, "same", source_key="a", title="New", source="new", metadata={"k": "2"})
    assert (again.unchanged, again.document_id) == (True, first.document_id)
    assert first.document_id is not None
    found = world.engine.documents.get(ACME, first.document_id)
    assert (found.title, found.source, found.metadata) == ("New", "new", {"k": "2"})
    assert found.updated_at == world.clock.now()
    chunk = world.engine.chunks.list(ACME, ALL, collection_id=collection.id).items[0]
    assert chunk.origin == "new"


def test_fields_that_an_unchanged_ingest_does_not_name_keep_their_values(world: World) -> None:
    collection = world.collection()
    first = world.ingest(collection, "same", source_key="a", title="Old", metadata={"k": "1"})
    world.ingest(collection, "same", source_key="a")
    assert first.document_id is not None
    found = world.engine.documents.get(ACME, first.document_id)
    assert (found.title, found.metadata) == ("Old", {"k": "1"})


def test_an_empty_title_keeps_the_title_from_the_documents_front_matter(world: World) -> None:
    collection = world.collection()
    content = "---\ntitle: Own\n---\nbody"
    first = world.ingest(collection, content, source_key="a", source_type="text/markdown", title="")
    again = world.ingest(collection, content, source_key="a", source_type="text/markdown", title="")
    assert again.unchanged
    assert first.document_id is not None
    assert world.engine.documents.get(ACME, first.document_id).title == "Own"


def test_changed_attributes_make_a_new_version(world: World) -> None:
    collection = world.collection()
    first = world.ingest(collection, "same", source_key="a", attributes={"year": 2020})
    second = world.ingest(collection, "same", source_key="a", attributes={"year": 2021})
    assert (second.unchanged, second.replaced) == (False, [first.document_id])


@pytest.mark.parametrize(("one", "other"), [(True, 1), (1, 1.0), ("1", 1), ([], "")])
def test_equal_looking_attributes_of_different_types_make_a_new_version(
    world: World, one: object, other: object
) -> None:
    collection = world.collection()
    world.ingest(collection, "same", source_key="a", attributes={"value": one})
    assert not world.ingest(collection, "same", source_key="a", attributes={"value": other}).unchanged


def test_attributes_in_another_order_are_unchanged(world: World) -> None:
    collection = world.collection()
    world.ingest(collection, "same", source_key="a", attributes={"x": 1, "y": 2})
    assert world.ingest(collection, "same", source_key="a", attributes={"y": 2, "x": 1}).unchanged


def test_the_same_bytes_with_another_media_type_make_a_new_version(world: World) -> None:
    collection = world.collection()
    first = world.ingest(collection, "# same", source_key="a", source_type="text/plain")
    second = world.ingest(collection, "# same", source_key="a", source_type="text/markdown")
    assert second.replaced == [first.document_id]


def test_new_content_replaces_the_old_version_and_removes_its_data(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    first = world.ingest(collection, "first words", source_key="a")
    second = world.ingest(collection, "second words", source_key="a")
    assert second.replaced == [first.document_id]
    assert first.document_id is not None
    with pytest.raises(DocumentNotFound):
        world.engine.documents.get(ACME, first.document_id)
    texts = [chunk.text for chunk in world.engine.chunks.list(ACME, ALL, collection_id=collection.id).items]
    assert texts == ["second words"]
    assert world.vector_count() == 1
    check_books(world)


def test_content_of_a_replaced_version_becomes_a_new_version_when_it_returns(world: World) -> None:
    collection = world.collection()
    first = world.ingest(collection, "one", source_key="a")
    second = world.ingest(collection, "two", source_key="a")
    third = world.ingest(collection, "one", source_key="a")
    assert third.document_id not in (first.document_id, second.document_id)
    assert third.replaced == [second.document_id]
    check_books(world)


def test_sources_with_other_keys_collections_or_tenants_do_not_affect_each_other(world: World) -> None:
    here, there = world.collection("here"), world.collection("there")
    foreign = world.collection("here", tenant=GLOBEX)
    answers = [
        world.ingest(here, "same", source_key="a"),
        world.ingest(here, "same", source_key="A"),
        world.ingest(here, "same", source_key=" a"),
        world.ingest(there, "same", source_key="a"),
        world.ingest(foreign, "same", tenant=GLOBEX, source_key="a"),
    ]
    assert all(answer.replaced == [] and not answer.unchanged for answer in answers)
    assert len({answer.document_id for answer in answers}) == 5
    check_books(world)


def test_keyed_content_is_no_duplicate_of_the_same_unkeyed_content(world: World) -> None:
    collection = world.collection()
    world.ingest(collection, "same")
    assert world.ingest(collection, "same", source_key="a").state == DocumentState.READY
    assert world.ingest(collection, "same", source_key="b").state == DocumentState.READY


def test_the_callers_title_and_attributes_come_before_the_front_matters(world: World) -> None:
    collection = world.collection()
    content = "---\ntitle: Own\nyear: 2020\n---\nbody"
    own = world.ingest(collection, content, source_key="a", source_type="text/markdown")
    told = world.ingest(
        collection, content, source_key="b", source_type="text/markdown", title="Told", attributes={"year": 1}
    )
    assert own.document_id is not None
    assert told.document_id is not None
    found = world.engine.documents.get(ACME, own.document_id)
    assert (found.title, found.attributes) == ("Own", {"year": 2020})
    found = world.engine.documents.get(ACME, told.document_id)
    assert (found.title, found.attributes) == ("Told", {"year": 1})


def test_caller_and_front_matter_together_give_a_document_at_most_64_attributes(world: World) -> None:
    collection = world.collection()
    front = "\n".join(f"own{number}: {number}" for number in range(60))
    result = world.ingest(
        collection,
        f"---\n{front}\n---\nbody",
        source_key="a",
        source_type="text/markdown",
        attributes={f"told{number}": number for number in range(60)},
    )
    assert result.document_id is not None
    found = world.engine.documents.get(ACME, result.document_id).attributes
    assert len(found) == 64
    assert {f"told{number}" for number in range(60)} <= found.keys(), (
        "attributes of the caller come before those of the front matter"
    )
    chunk = world.engine.chunks.list(ACME, ALL, document_id=result.document_id).items[0]
    assert chunk.attributes == found


# -- validation -------------------------------------------------------------


def given(world: World, **fields: object) -> IngestInput:
    known = {"collection_id": CollectionId.new(1, 1), "content": b"text", **fields}
    return IngestInput.model_validate(known)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"content": b""}, EmptyContent),
        ({"content": b" \n\t "}, EmptyContent),
        ({"content": b"\xff\xfe\xff"}, UnsupportedMediaType),
        ({"content": b"bin\x00ary"}, UnsupportedMediaType),
        ({"source_type": "application/pdf"}, UnsupportedMediaType),
        ({"source_type": ""}, UnsupportedMediaType),
        ({"source_type": "text/plain; charset=klingon"}, UnsupportedMediaType),
        ({"source_version": "1"}, InvalidArgument),
        ({"metadata": {f"k{number}": "x" * 4096 for number in range(17)}}, InvalidArgument),
        ({"attributes": {"a": ["x" * 1024] * 64, "b": 1}}, InvalidArgument),
    ],
)
def test_an_input_that_can_never_be_ingested_is_refused_before_any_write(
    world: World, fields: dict[str, object], error: type[Exception]
) -> None:
    collection = world.collection()
    before = world.rows()
    with pytest.raises(error):
        world.engine.ingest.ingest(ACME, given(world, collection_id=collection.id, **fields), world.deadline())
    assert world.rows() == before
    assert world.embedder.calls == 0


def test_a_collection_of_another_tenant_is_not_found_before_any_write(world: World) -> None:
    collection = world.collection(tenant=GLOBEX)
    before = world.rows()
    with pytest.raises(CollectionNotFound) as foreign:
        world.ingest(collection, "text", source_key="a")
    with pytest.raises(CollectionNotFound) as missing:
        world.ingest(CollectionId.new(1, 1), "text", source_key="a")
    assert str(foreign.value) == str(missing.value)
    assert world.rows() == before
    assert world.embedder.calls == 0


def test_no_ingest_begins_after_its_deadline(world: World) -> None:
    collection = world.collection()
    before = world.rows()
    with pytest.raises(Unavailable):
        world.engine.ingest.ingest(ACME, given(world, collection_id=collection.id), world.clock.monotonic())
    assert world.rows() == before


def test_the_hooks_of_an_ingest_fire_in_order_with_tenant_and_document(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    result = world.ingest(collection, "one two", source_key="a")
    fired = [(hook, details) for hook, details in recorder.fired if hook.startswith("ingest_")]
    assert [hook for hook, _ in fired] == ["ingest_started", "ingest_chunked", "ingest_embedded", "ingest_completed"]
    assert {(details["tenant"], details["document_id"]) for _, details in fired} == {(ACME, result.document_id)}
    assert fired[-1][1]["result"] == result


def test_a_document_is_pending_at_ingest_started_and_then_processing(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    states = []

    def look() -> None:
        states.append(world.engine.documents.list(ACME, ALL).items[0].state)

    recorder.on = dict.fromkeys(("ingest_started", "ingest_chunked", "ingest_embedded", "ingest_completed"), look)
    world.ingest(collection, "text", source_key="a")
    assert states == ["pending", "processing", "processing", "ready"]


def test_a_hook_that_raises_does_not_change_the_result_of_an_ingest(world: World, recorder: Recorder) -> None:
    def fail() -> None:
        raise RuntimeError("an extension's own trouble")

    recorder.on = dict.fromkeys(("collection_created", "ingest_started", "ingest_chunked", "ingest_completed"), fail)
    collection = world.collection()
    assert world.ingest(collection, "text", source_key="a").state == DocumentState.READY
    assert recorder.on == {}, "every hook was fired"
    check_books(world)


def test_a_version_in_progress_is_not_served_before_its_swap(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    world.ingest(collection, "old words", source_key="a")
    seen: list[list[str]] = []

    def look() -> None:
        chunks = world.engine.chunks.list(ACME, ALL, collection_id=collection.id).items
        seen.append([chunk.text for chunk in chunks])

    recorder.on = {"ingest_embedded": look}
    world.ingest(collection, "new words", source_key="a")
    look()
    assert seen == [["old words"], ["new words"]]


def test_a_long_document_sends_heartbeats_between_its_batches(world: World) -> None:
    collection = world.collection(chunk_size=1, chunk_overlap=0)
    beats: set[object] = set()
    embed = world.embedder.embed

    def slow(texts: list[str]) -> object:
        beats.update(row["heartbeat"]["S"] for row in world.rows() if row["sk"]["S"] == "HEAD")
        world.clock.advance(60)
        return embed(texts)

    world.embedder.embed = slow  # type: ignore[assignment,method-assign]  # the same embedder, with time passing
    world.ingest(collection, " ".join(f"w{number}" for number in range(130)), source_key="a")
    assert len(beats) == 3, "one for each batch but the last is sent while the next one waits"

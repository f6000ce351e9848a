"""Collections are created, read, renamed, listed and counted."""

from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moto import mock_aws

from core.model.collection import CollectionUpdate, NewCollection
from core.model.errors import CollectionAlreadyExists, CollectionNotFound, InvalidArgument
from core.model.ids import CollectionId
from core.model.page import Order, PageRequest
from tests.support.embedder import HashedEmbedder
from tests.support.engines import ACME, GLOBEX, TABLE, World, make_world
from tests.support.meddling import MeddlingVectors, Recorder, Step, at_next_request
from tests.support.memory import memory_world

ALL = PageRequest(limit=100)


# -- create -------------------------------------------------------------------------------------------


def test_a_new_collection_has_the_defaults_of_the_engine(world: World, recorder: Recorder) -> None:
    made = world.engine.collections.create(ACME, NewCollection(name="  notes "))
    assert (made.name, made.description, made.tenant) == ("notes", "", ACME)
    assert (made.embedding_model, made.embedding_dims) == ("hashed-words", 64)
    assert (made.chunk_strategy, made.chunk_size, made.chunk_overlap) == ("recursive", 512, 50)
    assert (made.metadata, made.document_count, made.chunk_count) == ({}, 0, 0)
    assert made.created_at == made.updated_at == world.clock.now()
    assert world.engine.collections.get(ACME, made.id) == made
    assert recorder.fired == [("collection_created", {"tenant": ACME, "collection_id": made.id})]


def test_a_new_collection_keeps_the_settings_of_its_request(world: World) -> None:
    made = world.collection(
        description="About things",
        embedding_model="hashed-words",
        chunk_strategy="markdown",
        chunk_size=100,
        chunk_overlap=0,
        metadata={"team": "red"},
    )
    found = world.engine.collections.get(ACME, made.id)
    assert (found.description, found.chunk_strategy, found.metadata) == ("About things", "markdown", {"team": "red"})
    assert (found.chunk_size, found.chunk_overlap) == (100, 0), (
        "an overlap of 0 is kept and not replaced by the default"
    )


def test_the_default_chunk_size_is_at_most_the_limit_of_the_embedder(
    recorder: Recorder, vectors: MeddlingVectors
) -> None:
    world = memory_world(recorder, vectors, embedder=HashedEmbedder(max_tokens=254))
    assert world.collection().chunk_size == 254
    with pytest.raises(InvalidArgument) as refused:
        world.collection("other", chunk_size=255)
    assert refused.value.extras == {"field": "chunk_size", "limit": 254}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"chunk_size": 10, "chunk_overlap": 10}, "chunk_overlap"),
        ({"chunk_size": 10, "chunk_overlap": 11}, "chunk_overlap"),
        ({"chunk_size": 50}, "chunk_overlap"),
        ({"chunk_overlap": 512}, "chunk_overlap"),
        ({"chunk_size": 513}, "chunk_size"),
        ({"embedding_model": "text-embedding-3"}, "embedding_model"),
        ({"embedding_model": ""}, "embedding_model"),
        ({"chunk_strategy": "semantic"}, "chunk_strategy"),
    ],
)
def test_invalid_settings_of_a_collection_are_refused_before_any_write(
    world: World, recorder: Recorder, fields: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        world.collection(**fields)  # type: ignore[arg-type]
    assert refused.value.extras["field"] == field
    assert world.rows() == []
    assert recorder.fired == []


def test_a_collection_name_is_unique_in_its_tenant_alone(world: World) -> None:
    world.collection("notes")
    before = world.rows()
    with pytest.raises(CollectionAlreadyExists):
        world.collection(" notes ")
    assert world.rows() == before
    assert world.collection("notes", tenant=GLOBEX).name == "notes"
    assert world.collection("Notes").name == "Notes"


@pytest.mark.parametrize("name", ["\U0001f600" * 250, "a#b", "COL#x", "NAME#notes", "%_*", "../x", "é", "e\u0301"])
def test_every_accepted_collection_name_can_be_stored_and_read(name: str) -> None:
    with mock_aws():
        world = make_world()
        made = world.collection(name)
        assert world.engine.collections.get_by_name(ACME, name).id == made.id
        world.engine.collections.update(ACME, made.id, CollectionUpdate(name=f"{name[:200]}!"))
        assert world.engine.collections.get_by_name(ACME, f"{name[:200]}!").id == made.id
        world.vectors.close()


# -- read ---------------------------------------------------------------------------------------------


def test_a_collection_of_another_tenant_reads_like_a_missing_collection(world: World) -> None:
    theirs = world.collection("notes", tenant=GLOBEX)
    seen = []
    for collection_id in (theirs.id, CollectionId.new(1, 1)):
        for call in (
            lambda missing: world.engine.collections.get(ACME, missing),
            lambda missing: world.engine.collections.stats(ACME, missing),
            lambda missing: world.engine.collections.update(ACME, missing, CollectionUpdate(name="mine")),
            lambda missing: world.engine.collections.delete(ACME, missing, world.deadline()),
        ):
            with pytest.raises(CollectionNotFound) as refused:
                call(collection_id)
            seen.append(str(refused.value))
    assert len(set(seen)) == 1
    assert world.engine.collections.get(GLOBEX, theirs.id) == theirs
    with pytest.raises(CollectionNotFound):
        world.engine.collections.get_by_name(ACME, "notes")


@pytest.mark.parametrize("name", ["", "  ", "nope", "x" * 3000, "\ud800"])
def test_a_name_that_no_collection_has_is_not_found(world: World, name: str) -> None:
    world.collection()
    with pytest.raises(CollectionNotFound):
        world.engine.collections.get_by_name(ACME, name)


def test_get_by_name_strips_white_space_as_create_does(world: World) -> None:
    made = world.collection("notes")
    assert world.engine.collections.get_by_name(ACME, " notes\n") == made


# -- update -------------------------------------------------------------------------------------------


def test_an_update_changes_the_named_fields_and_keeps_the_others(world: World) -> None:
    made = world.collection(description="old", metadata={"a": "1", "b": "2"})
    world.clock.advance(1)
    changed = world.engine.collections.update(ACME, made.id, CollectionUpdate(description=""))
    assert changed == made.model_copy(update={"description": "", "updated_at": world.clock.now()})
    changed = world.engine.collections.update(ACME, made.id, CollectionUpdate(metadata={"b": "3"}))
    assert changed.metadata == {"b": "3"}, "metadata is replaced whole"
    assert world.engine.collections.get(ACME, made.id) == changed


def test_an_update_without_changes_writes_nothing(world: World) -> None:
    made = world.collection(description="old")
    before = world.rows()
    world.clock.advance(1)
    assert world.engine.collections.update(ACME, made.id, CollectionUpdate()) == made
    assert world.engine.collections.update(ACME, made.id, CollectionUpdate(name="notes", description="old")) == made
    assert world.rows() == before


def test_a_rename_takes_the_new_name_and_frees_the_old_name(world: World) -> None:
    made = world.collection("old")
    world.engine.collections.update(ACME, made.id, CollectionUpdate(name=" new "))
    assert world.engine.collections.get_by_name(ACME, "new").id == made.id
    with pytest.raises(CollectionNotFound):
        world.engine.collections.get_by_name(ACME, "old")
    other = world.collection("old")
    with pytest.raises(CollectionAlreadyExists):
        world.engine.collections.update(ACME, other.id, CollectionUpdate(name="new", description="lost"))
    assert world.engine.collections.get(ACME, other.id) == other, "nothing of a refused update is written"
    names = {row["sk"]["S"] for row in world.rows() if row["sk"]["S"].startswith("NAME#")}
    assert names == {"NAME#new", "NAME#old"}


def between_read_and_write(world: World, step: Step) -> None:
    """Takes a step once, after the next read of a collection's row."""
    at_next_request(world, "get_item", after=step, naming="COL#")


def test_two_updates_at_the_same_time_keep_the_changes_of_both(world: World) -> None:
    created = world.collection()
    update = world.engine.collections.update
    between_read_and_write(world, lambda: update(ACME, created.id, CollectionUpdate(description="second")))
    update(ACME, created.id, CollectionUpdate(metadata={"first": "1"}))
    stored = world.engine.collections.get(ACME, created.id)
    assert (stored.description, stored.metadata) == ("second", {"first": "1"})


def test_two_renames_at_the_same_time_leave_one_name(world: World) -> None:
    made = world.collection("old")
    update = world.engine.collections.update
    between_read_and_write(world, lambda: update(ACME, made.id, CollectionUpdate(name="theirs")))
    update(ACME, made.id, CollectionUpdate(name="mine"))
    assert world.engine.collections.get(ACME, made.id).name == "mine"
    assert world.engine.collections.get_by_name(ACME, "mine").id == made.id
    names = [row["sk"]["S"] for row in world.rows() if row["sk"]["S"].startswith("NAME#")]
    assert names == ["NAME#mine"]


def test_two_renames_to_the_same_name_at_the_same_time_give_it_to_one_collection(world: World) -> None:
    one, other = world.collection("one"), world.collection("other")
    update = world.engine.collections.update
    between_read_and_write(world, lambda: update(ACME, other.id, CollectionUpdate(name="wanted")))
    with pytest.raises(CollectionAlreadyExists):
        update(ACME, one.id, CollectionUpdate(name="wanted"))
    assert world.engine.collections.get_by_name(ACME, "wanted").id == other.id
    assert world.engine.collections.get_by_name(ACME, "one").id == one.id


def test_an_update_during_a_delete_does_not_bring_the_collection_back(world: World) -> None:
    made = world.collection()
    between_read_and_write(world, lambda: world.engine.collections.delete(ACME, made.id, world.deadline()))
    with pytest.raises(CollectionNotFound):
        world.engine.collections.update(ACME, made.id, CollectionUpdate(name="other"))
    assert world.engine.collections.count(ACME) == 0
    assert not any(row["sk"]["S"].startswith("NAME#") for row in world.rows())


# -- list ---------------------------------------------------------------------------------------------


def names(world: World, **filters: str) -> list[str]:
    found = [collection.name for collection in world.engine.collections.list(ACME, ALL, **filters).items]
    assert world.engine.collections.count(ACME, **filters) == len(found)
    return found


@pytest.mark.parametrize(
    ("contains", "expected"),
    [
        ("note", {"My Notes", "notes", "NOTE_100%"}),
        ("NOTE", {"My Notes", "notes", "NOTE_100%"}),
        ("%", {"NOTE_100%"}),
        ("_", {"NOTE_100%", "a_b"}),
        ("a_b", {"a_b"}),
        ("*", {"star*"}),
        (".", set()),
        ("[a-z]", set()),
        ("STRASSE", {"Straße"}),
        ("", {"My Notes", "notes", "NOTE_100%", "a_b", "axb", "star*", "Straße"}),
    ],
)
def test_a_name_filter_is_literal_and_ignores_case(world: World, contains: str, expected: set[str]) -> None:
    for name in ("My Notes", "notes", "NOTE_100%", "a_b", "axb", "star*", "Straße"):
        world.collection(name)
    assert set(names(world, name_contains=contains)) == expected


def test_a_listing_by_exact_name_returns_that_collection_alone(world: World) -> None:
    for name in ("notes", "Notes", "notes 2"):
        world.collection(name)
    assert names(world, name="notes") == ["notes"]
    assert names(world, name="note") == []
    assert names(world, name="notes", name_contains="x") == []


def test_collections_of_the_tenant_are_listed_newest_first_or_oldest_first(world: World) -> None:
    for name in "abc":
        world.collection(name)
        world.collection(name, tenant=GLOBEX)
        world.clock.advance(1)
    assert names(world) == ["c", "b", "a"]
    oldest = world.engine.collections.list(ACME, PageRequest(order=Order.OLDEST))
    assert [collection.name for collection in oldest.items] == ["a", "b", "c"]
    assert {collection.tenant for collection in oldest.items} == {ACME}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 9), st.integers(1, 4), st.sampled_from(Order), st.booleans())
def test_pages_cover_every_collection_exactly_once(size: int, limit: int, order: Order, filtered: bool) -> None:
    world = memory_world(Recorder(), MeddlingVectors())
    for number in range(size):
        world.collection(f"{'even' if number % 2 == 0 else 'odd'} {number}")
        world.clock.advance(1)
    filters = {"name_contains": "even"} if filtered else {}
    seen, token, pages = [], None, 0
    while True:
        request = PageRequest(limit=limit, order=order, token=token, total=True)
        page = world.engine.collections.list(ACME, request, **filters)
        assert len(page.items) <= limit
        seen += [collection.name for collection in page.items]
        pages += 1
        assert page.total == world.engine.collections.count(ACME, **filters)
        token = page.next_page_token
        if token is None:
            break
    wanted = [f"{'even' if n % 2 == 0 else 'odd'} {n}" for n in range(size) if not filtered or n % 2 == 0]
    assert seen == (wanted if order == Order.OLDEST else wanted[::-1])
    assert pages == max(1, -(-len(wanted) // limit)), "no empty page at the end"
    world.vectors.close()


def test_the_next_page_continues_after_a_collection_that_was_deleted(world: World) -> None:
    made = []
    for name in "abcd":
        made.append(world.collection(name))
        world.clock.advance(1)
    first = world.engine.collections.list(ACME, PageRequest(limit=2))
    assert [collection.name for collection in first.items] == ["d", "c"]
    world.engine.collections.delete(ACME, made[2].id, world.deadline())
    rest = world.engine.collections.list(ACME, PageRequest(limit=2, token=first.next_page_token))
    assert [collection.name for collection in rest.items] == ["b", "a"]


def test_a_listing_shows_each_collections_counts(world: World) -> None:
    full, empty = world.collection("full", chunk_size=2, chunk_overlap=0), world.collection("empty")
    world.ingest(full, "one two three four five", source_key="a")
    counts = {
        collection.id: (collection.document_count, collection.chunk_count)
        for collection in world.engine.collections.list(ACME, ALL).items
    }
    assert counts == {full.id: (1, 3), empty.id: (0, 0)}


def test_a_page_token_of_another_tenant_or_query_is_refused_for_collections(world: World) -> None:
    for name in "abc":
        world.collection(name)
        world.collection(name, tenant=GLOBEX)
    list_collections = world.engine.collections.list
    token = list_collections(ACME, PageRequest(limit=1)).next_page_token
    request = PageRequest(limit=1, token=token)
    assert list_collections(ACME, PageRequest(limit=2, token=token)).items, "another limit is the same query"
    for refused in (
        lambda: list_collections(GLOBEX, request),
        lambda: list_collections(ACME, request.model_copy(update={"order": Order.OLDEST})),
        lambda: list_collections(ACME, request, name="a"),
        lambda: list_collections(ACME, request, name_contains="a"),
        lambda: world.engine.documents.list(ACME, request),
    ):
        with pytest.raises(InvalidArgument):
            refused()


# -- stats --------------------------------------------------------------------------------------------


def test_stats_count_served_documents_and_chunks(world: World) -> None:
    made = world.collection(chunk_size=2, chunk_overlap=0)
    assert world.engine.collections.stats(ACME, made.id).model_dump() == {
        "collection_id": made.id,
        "collection_name": "notes",
        "document_count": 0,
        "chunk_count": 0,
        "embedding_model": "hashed-words",
        "chunk_strategy": "recursive",
    }
    world.ingest(made, "one two three", source_key="a")
    world.ingest(made, "one two three four five", source_key="b")
    world.ingest(made, "six", source_key="a")
    stats = world.engine.collections.stats(ACME, made.id)
    assert (stats.document_count, stats.chunk_count) == (2, 4)


def test_stats_are_one_batch_read_however_large_the_collection_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = world.collection()
    for number in range(20):
        world.ingest(collection, f"content {number}", source_key=str(number))
    batch_get = Mock(side_effect=world.dynamodb.batch_get_item)
    monkeypatch.setattr(world.dynamodb, "batch_get_item", batch_get)
    world.engine.collections.stats(ACME, collection.id)
    [request] = [call.kwargs["RequestItems"][TABLE] for call in batch_get.call_args_list]
    assert (len(request["Keys"]), request["ConsistentRead"]) == (16, True)

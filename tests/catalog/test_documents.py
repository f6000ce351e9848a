"""Documents are read, listed and counted."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.model.document import DocumentState, source_id
from core.model.errors import CollectionNotFound, DocumentNotFound, InvalidArgument, Unavailable
from core.model.ids import CollectionId, DocumentId
from core.model.page import Order, PageRequest
from tests.support.engines import ACME, GLOBEX, World
from tests.support.meddling import MeddlingVectors, Recorder, die
from tests.support.memory import memory_world

ALL = PageRequest(limit=100)


def test_a_document_of_another_tenant_reads_like_a_missing_document(world: World) -> None:
    collection = world.collection(tenant=GLOBEX)
    theirs = world.ingest(collection, "one", tenant=GLOBEX).document_id
    assert theirs is not None
    seen = []
    for document_id in (theirs, DocumentId.new(1, 1)):
        with pytest.raises(DocumentNotFound) as refused:
            world.engine.documents.get(ACME, document_id)
        seen.append((str(refused.value), refused.value.extras))
    assert seen[0] == seen[1]
    assert world.engine.documents.get(GLOBEX, theirs).tenant == GLOBEX


def fill(world: World, recorder: Recorder) -> tuple[CollectionId, CollectionId]:
    """Makes two collections with documents in several states, ingested a second apart."""
    here, there = world.collection("here"), world.collection("there")
    foreign = world.collection("here", tenant=GLOBEX)
    world.ingest(here, "one", source_key="a")
    world.clock.advance(1)
    world.ingest(there, "two", source_key="a")
    world.clock.advance(1)
    world.ingest(here, "three")
    world.clock.advance(1)
    die(world, recorder, here, "four", source_key="a")
    world.clock.advance(1)
    world.embedder.failure = Unavailable("The model does not answer")
    with pytest.raises(Unavailable):
        world.ingest(here, "five", source_key="a")
    world.embedder.failure = None
    world.clock.advance(1)
    world.ingest(foreign, "six", tenant=GLOBEX, source_key="a")
    return here.id, there.id


@pytest.mark.parametrize("order", Order)
def test_documents_are_listed_by_collection_by_source_or_for_the_whole_tenant(
    world: World, recorder: Recorder, order: Order
) -> None:
    here, there = fill(world, recorder)
    request = PageRequest(limit=100, order=order)

    def listed(**filters: object) -> list[tuple[str | None, str]]:
        found = world.engine.documents.list(ACME, request, **filters).items  # type: ignore[arg-type]
        assert world.engine.documents.count(ACME, **filters) == len(found)  # type: ignore[arg-type]
        pairs = [(one.source_key, one.state.value) for one in found]
        return pairs if order == Order.OLDEST else pairs[::-1]

    one, three = ("a", "ready"), (None, "ready")
    four, five = ("a", "processing"), ("a", "failed")
    assert listed() == [one, ("a", "ready"), three, four, five]
    assert listed(collection_id=here) == [one, three, four, five]
    assert listed(collection_id=there) == [("a", "ready")]
    assert listed(state=DocumentState.READY) == [one, ("a", "ready"), three]
    assert listed(collection_id=here, state=DocumentState.FAILED) == [five]
    assert listed(collection_id=here, state=DocumentState.PENDING) == []
    assert listed(collection_id=here, source_key="a") == [one, four, five]
    assert listed(collection_id=here, source_key=source_id("a")) == [one, four, five]
    assert listed(collection_id=here, source_key="a", state=DocumentState.READY) == [one]
    assert listed(collection_id=here, source_key="b") == []


def test_a_listing_by_source_key_needs_a_collection_and_a_valid_key(world: World) -> None:
    collection = world.collection()
    with pytest.raises(InvalidArgument) as refused:
        world.engine.documents.list(ACME, ALL, source_key="a")
    assert refused.value.extras["field"] == "source_key"
    for key in ("", " ", "x" * 1025):
        with pytest.raises(InvalidArgument):
            world.engine.documents.list(ACME, ALL, collection.id, source_key=key)


@pytest.mark.parametrize("tenant", [ACME, GLOBEX])
def test_documents_in_a_collection_of_another_tenant_are_not_listed(world: World, tenant: str) -> None:
    collection = world.collection(tenant=GLOBEX)
    if tenant == GLOBEX:
        assert world.engine.documents.list(GLOBEX, ALL, collection.id).items == []
        return
    for call in (world.engine.documents.list, world.engine.chunks.list):
        with pytest.raises(CollectionNotFound):
            call(ACME, ALL, collection.id)
    for count in (world.engine.documents.count, world.engine.chunks.count):
        with pytest.raises(CollectionNotFound):
            count(ACME, collection.id)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from(["keyed", "unkeyed", "failed", "elsewhere"]), max_size=9),
    st.integers(1, 4),
    st.sampled_from(Order),
    st.sampled_from(["tenant", "collection", "ready", "source"]),
)
def test_pages_cover_every_document_exactly_once(kinds: list[str], limit: int, order: Order, scope: str) -> None:
    world = memory_world(Recorder(), MeddlingVectors())
    here, there = world.collection("here"), world.collection("there")
    for number, kind in enumerate(kinds):
        world.clock.advance(1)
        if kind == "failed":
            world.embedder.failure = Unavailable("The model does not answer")
            with pytest.raises(Unavailable):
                world.ingest(here, f"content {number}", source_key="a")
            world.embedder.failure = None
        else:
            fields = {"source_key": f"key {number}"} if kind == "keyed" else {}
            target = there if kind == "elsewhere" else here
            world.ingest(target, f"content {number}", **fields)  # type: ignore[arg-type]
    scopes: dict[str, dict[str, object]] = {
        "tenant": {},
        "collection": {"collection_id": here.id},
        "ready": {"state": DocumentState.READY},
        "source": {"collection_id": here.id, "source_key": "a"},
    }
    filters = scopes[scope]
    whole = world.engine.documents.list(ACME, PageRequest(limit=100, order=order), **filters).items  # type: ignore[arg-type]
    paged, token = [], None
    while True:
        request = PageRequest(limit=limit, order=order, token=token, total=True)
        page = world.engine.documents.list(ACME, request, **filters)  # type: ignore[arg-type]
        assert page.total == len(whole)
        paged += page.items
        token = page.next_page_token
        if token is None:
            break
        assert len(page.items) == limit
    assert paged == whole
    ids = [document.id for document in whole]
    assert ids == sorted(ids, reverse=order == Order.NEWEST)
    world.vectors.close()


def test_a_page_token_of_another_tenant_or_query_is_refused_for_documents(world: World, recorder: Recorder) -> None:
    here, there = fill(world, recorder)
    token = world.engine.documents.list(ACME, PageRequest(limit=1), here).next_page_token
    request = PageRequest(limit=1, token=token)
    assert world.engine.documents.list(ACME, request, here).items
    others: tuple[dict[str, object], ...] = (
        {},
        {"collection_id": there},
        {"collection_id": here, "state": DocumentState.READY},
        {"collection_id": here, "source_key": "a"},
    )
    for filters in others:
        with pytest.raises(InvalidArgument):
            world.engine.documents.list(ACME, request, **filters)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        world.engine.documents.list(ACME, PageRequest(limit=1, token=token, order=Order.OLDEST), here)
    with pytest.raises(InvalidArgument):
        world.engine.chunks.list(ACME, request, here)
    theirs = world.engine.collections.get_by_name(GLOBEX, "here")
    with pytest.raises(InvalidArgument):
        world.engine.documents.list(GLOBEX, request, theirs.id)

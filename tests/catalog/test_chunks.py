"""Chunks of served documents, and of no others, are read, listed and counted."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.model.errors import ChunkNotFound, DocumentNotFound, InvalidArgument
from core.model.ids import ChunkId, DocumentId
from core.model.page import Order, PageRequest
from tests.support.engines import ACME, GLOBEX, World
from tests.support.meddling import MeddlingVectors, Recorder, die
from tests.support.memory import memory_world

ALL = PageRequest(limit=100)
GUIDE = "# Guide\n\nIntro words here\n\n## Setup\n\nSet it up\n"


def test_a_chunk_has_text_offsets_and_attributes_of_its_document(world: World) -> None:
    collection = world.collection(chunk_size=4, chunk_overlap=0, chunk_strategy="markdown")
    result = world.ingest(
        collection,
        GUIDE,
        source_key="guide",
        source="https://example.org/guide",
        source_type="text/markdown",
        attributes={"year": 2020},
    )
    assert result.document_id is not None
    chunks = world.engine.chunks.list(ACME, ALL, document_id=result.document_id).items
    assert len(chunks) == result.chunk_count > 1
    for index, chunk in enumerate(chunks):
        assert chunk.id == ChunkId.of(result.document_id, 1, index)
        assert (chunk.document_id, chunk.collection_id, chunk.index) == (result.document_id, collection.id, index)
        assert chunk.text == GUIDE[chunk.start_index : chunk.end_index]
        assert chunk.char_count == len(chunk.text)
        assert chunk.token_count == len(chunk.text.split())
        assert (chunk.origin, chunk.attributes) == ("https://example.org/guide", {"year": 2020})
        assert chunk.lineage is not None
        assert chunk.lineage.parent_id == result.document_id
        assert (chunk.lineage.chunk_index, chunk.lineage.total_chunks) == (index, len(chunks))
        assert (chunk.lineage.splitter, chunk.lineage.chunker_chain) == ("markdown", ())
        assert chunk.id is not None
        assert world.engine.chunks.get(ACME, chunk.id) == chunk
    assert chunks[-1].context == "Guide > Setup"


def test_the_origin_of_a_chunk_is_its_source_or_else_its_source_key(world: World) -> None:
    collection = world.collection()
    world.ingest(collection, "one", source_key="a")
    world.ingest(collection, "two", source="https://example.org")
    world.ingest(collection, "three")
    chunks = world.engine.chunks.list(ACME, PageRequest(order=Order.OLDEST), collection.id).items
    assert {chunk.text: chunk.origin for chunk in chunks} == {"one": "a", "two": "https://example.org", "three": None}


def test_the_lineage_walks_up_to_the_document_and_its_source(world: World) -> None:
    collection = world.collection()
    result = world.ingest(collection, "one", source_key="a", title="One", source="https://example.org")
    chunk = world.engine.chunks.list(ACME, ALL, collection.id).items[0]
    assert chunk.id is not None
    chain = world.engine.chunks.lineage(ACME, chunk.id)
    assert chain.chunks == [chunk.id]
    assert (chain.document.id, chain.document.title) == (result.document_id, "One")
    assert (chain.document.source, chain.document.source_key) == ("https://example.org", "a")


def test_a_listing_of_neither_a_collection_nor_a_document_is_refused(world: World) -> None:
    with pytest.raises(InvalidArgument):
        world.engine.chunks.list(ACME, ALL)
    with pytest.raises(InvalidArgument):
        world.engine.chunks.count(ACME)


def test_a_document_of_another_collection_has_no_chunks_in_this_one(world: World) -> None:
    here, there = world.collection("here"), world.collection("there")
    result = world.ingest(here, "one")
    page = world.engine.chunks.list(ACME, ALL, there.id, result.document_id)
    assert page.items == []
    assert world.engine.chunks.count(ACME, there.id, result.document_id) == 0
    assert world.engine.chunks.count(ACME, here.id, result.document_id) == 1


def test_a_chunk_of_another_tenant_reads_like_a_missing_chunk(world: World) -> None:
    collection = world.collection(tenant=GLOBEX)
    theirs = world.ingest(collection, "one", tenant=GLOBEX).document_id
    assert theirs is not None
    for chunk_id in (ChunkId.of(theirs, 1, 0), ChunkId.of(DocumentId.new(1, 1), 1, 0)):
        for call in (world.engine.chunks.get, world.engine.chunks.lineage):
            with pytest.raises(ChunkNotFound, match=r"^No such chunk$"):
                call(ACME, chunk_id)
    with pytest.raises(DocumentNotFound):
        world.engine.chunks.list(ACME, ALL, document_id=theirs)
    with pytest.raises(DocumentNotFound):
        world.engine.chunks.count(ACME, document_id=theirs)


def test_chunks_of_documents_that_are_not_served_are_not_found(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    world.ingest(collection, "current", source_key="a")
    working = die(world, recorder, collection, "coming", source_key="a")
    alone = die(world, recorder, collection, "unkeyed")
    for document_id in (working, alone):
        with pytest.raises(ChunkNotFound):
            world.engine.chunks.get(ACME, ChunkId.of(document_id, 1, 0))
        assert world.engine.chunks.list(ACME, ALL, document_id=document_id).items == []
        assert world.engine.chunks.count(ACME, document_id=document_id) == 0
    assert [chunk.text for chunk in world.engine.chunks.list(ACME, ALL, collection.id).items] == ["current"]
    assert world.engine.chunks.count(ACME, collection.id) == 1


def test_chunks_of_an_abandoned_attempt_and_beyond_the_last_index_are_not_found(
    world: World, recorder: Recorder
) -> None:
    collection = world.collection()
    document_id = die(world, recorder, collection, "one", source_key="a")
    world.clock.advance(15 * 60)
    world.ingest(collection, "one", source_key="a")
    assert world.engine.chunks.get(ACME, ChunkId.of(document_id, 2, 0)).text == "one"
    for chunk_id in (
        ChunkId.of(document_id, 1, 0),
        ChunkId.of(document_id, 3, 0),
        ChunkId.of(document_id, 2, 1),
        ChunkId.from_int(document_id.to_int()),
    ):
        with pytest.raises(ChunkNotFound):
            world.engine.chunks.get(ACME, chunk_id)


def test_chunks_of_a_long_document_are_listed_in_order_over_all_partitions(world: World) -> None:
    collection = world.collection(chunk_size=1, chunk_overlap=0)
    words = [f"w{number}" for number in range(600)]
    result = world.ingest(collection, " ".join(words), source_key="a")
    assert result.chunk_count == 600
    texts: list[str] = []
    token = None
    while True:
        request = PageRequest(limit=100, token=token)
        page = world.engine.chunks.list(ACME, request, document_id=result.document_id)
        texts += [chunk.text for chunk in page.items]
        token = page.next_page_token
        if token is None:
            break
    assert texts == words


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 4), max_size=5), st.integers(1, 4), st.sampled_from(Order))
def test_pages_cover_every_chunk_exactly_once_in_document_order(lengths: list[int], limit: int, order: Order) -> None:
    world = memory_world(Recorder(), MeddlingVectors())
    collection = world.collection(chunk_size=1, chunk_overlap=0)
    documents = []
    for number, length in enumerate(lengths):
        world.clock.advance(1)
        words = [f"d{number}w{index}" for index in range(length)]
        world.ingest(collection, " ".join(words), source_key=str(number))
        documents.append(words)
    wanted = [word for words in (documents if order == Order.OLDEST else documents[::-1]) for word in words]
    seen: list[str] = []
    token = None
    while True:
        request = PageRequest(limit=limit, order=order, token=token, total=True)
        page = world.engine.chunks.list(ACME, request, collection.id)
        assert page.total == len(wanted) == world.engine.chunks.count(ACME, collection.id)
        seen += [chunk.text for chunk in page.items]
        token = page.next_page_token
        if token is None:
            break
        assert len(page.items) == limit
    assert seen == wanted
    world.vectors.close()


def test_the_next_page_of_chunks_continues_after_a_document_was_replaced(world: World) -> None:
    collection = world.collection(chunk_size=1, chunk_overlap=0)
    for number in range(3):
        world.ingest(collection, f"d{number}a d{number}b", source_key=str(number))
        world.clock.advance(1)
    oldest = PageRequest(limit=3, order=Order.OLDEST)
    first = world.engine.chunks.list(ACME, oldest, collection.id)
    assert [chunk.text for chunk in first.items] == ["d0a", "d0b", "d1a"]
    world.ingest(collection, "new", source_key="1")
    request = oldest.model_copy(update={"token": first.next_page_token, "limit": 10})
    rest = world.engine.chunks.list(ACME, request, collection.id)
    assert [chunk.text for chunk in rest.items] == ["d2a", "d2b", "new"]

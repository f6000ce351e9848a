"""Chunking makes the chunks of one document from its loaded text."""

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.loading.markdown import MarkdownLoader
from core.loading.text import TextLoader
from core.loading.types import LoadedText, Loader
from core.model.chunk import Lineage
from core.model.errors import EmptyContent, InvalidArgument, PayloadTooLarge
from core.model.ids import MAX_CHUNKS, ChunkId, CollectionId, DocumentId
from core.splitting.chunking import chunk_document
from core.splitting.counting import CharsPerFour, TokenCounter
from core.splitting.splitters import Splitters
from core.splitting.types import Span

DOCUMENT = DocumentId.new(1_700_000_000_000, 7)
COLLECTION = CollectionId.new(1_700_000_000_000, 8)


chunks_of = partial(
    chunk_document,
    document_id=DOCUMENT,
    attempt=3,
    collection_id=COLLECTION,
    origin="s3://bucket/key",
    attributes={},
    splitter=Splitters().find("markdown"),
    size=8,
    overlap=0,
    counter=CharsPerFour(),
)


def load(text: str) -> LoadedText:
    return MarkdownLoader().load(text.encode(), None)


GUIDE = load("Before all.\n\n# Guide\n\nWelcome to it.\n\n## Setup\n\nDo this and that.\n\n# End\n\nBye for now.")


def test_a_chunk_has_its_offsets_its_ids_and_its_lineage() -> None:
    chunks = chunks_of(GUIDE)
    for index, chunk in enumerate(chunks):
        assert chunk.text == GUIDE.text[chunk.start_index : chunk.end_index]
        assert (chunk.char_count, chunk.token_count) == (len(chunk.text), CharsPerFour().count(chunk.text))
        assert (chunk.index, chunk.id, chunk.document_id) == (index, ChunkId.of(DOCUMENT, 3, index), DOCUMENT)
        assert (chunk.collection_id, chunk.origin) == (COLLECTION, "s3://bucket/key")
        assert chunk.lineage == Lineage.from_split(DOCUMENT, index, len(chunks), "markdown")
    assert chunks_of(GUIDE, origin="")[0].origin is None


def test_the_context_of_a_chunk_is_the_trail_of_headings_at_its_start() -> None:
    levels = load("# A\n\n### A1\n\ntext\n\n## A2\n\ntext\n\n### A2a\n\ntext\n\n# B\n\ntext\n\n## B1\n\ntext")
    trails = ["A", "A > A1", "A > A2", "A > A2 > A2a", "B", "B > B1"]
    assert [chunk.context for chunk in chunks_of(GUIDE)] == [None, "Guide", "Guide > Setup", "End"]
    assert [chunk.context for chunk in chunks_of(levels, size=4)] == trails
    assert [chunk.context for chunk in chunks_of(load("\n\n   # Indented\n\ntext"))] == ["Indented"]


def test_a_chunk_has_the_callers_attributes_and_those_of_the_document_that_fit() -> None:
    (chunk,) = chunks_of(load("---\nlang: de\nyear: 2024\n---\ntext"), attributes={"lang": "en", "team": "a"})
    assert chunk.attributes == {"lang": "en", "team": "a", "year": 2024}

    many = {f"d{number}": number for number in range(64)}
    callers: dict[str, Any] = {f"c{number}": number for number in range(60)}
    (chunk,) = chunks_of(LoadedText(text="text", attributes=many), attributes=callers)
    assert len(chunk.attributes) == 64
    assert callers.items() <= chunk.attributes.items()

    large = {f"d{number}": ["😀" * 250] * 8 for number in range(20)}
    callers = {"team": "x" * 1000}
    (chunk,) = chunks_of(LoadedText(text="text", attributes=large), attributes=callers)
    assert list(chunk.attributes) == [*callers, *list(large)[: len(chunk.attributes) - 1]]
    assert 56 * 1024 < len(json.dumps(chunk.attributes, ensure_ascii=False).encode()) <= 64 * 1024


@pytest.mark.parametrize("loader", [TextLoader(), MarkdownLoader()], ids=lambda loader: loader.name)
def test_a_chunk_has_the_page_on_which_it_starts_where_form_feeds_end_pages(loader: Loader) -> None:
    loaded = loader.load(b"one one one\n\n\ftwo two two\n\n\f\fand four", None)
    pages = [(chunk.text, chunk.page) for chunk in chunks_of(loaded, size=3)]
    assert pages == [("one one one", 1), ("two two two", 2), ("and four", 4)]
    assert chunks_of(loaded)[0].page == 1, "the first chunk reaches into the second page"
    assert {chunk.page for chunk in chunks_of(GUIDE)} == {None}


@pytest.mark.parametrize(("space", "gap"), [("\n\n", "\n\n"), (" " * 1024, " " * 1024), (" " * 1025, None)])
def test_a_chunk_keeps_the_gap_before_it_up_to_1024_characters(space: str, gap: str | None) -> None:
    chunks = chunks_of(LoadedText(text=f" first first{space}second second"), size=4)
    assert [chunk.gap for chunk in chunks] == [None, gap]
    assert "gap" not in chunks[1].model_dump()


class EndlessSplitter:
    """Makes one span more than the ids of a document can number."""

    name = "endless"

    def split(self, loaded: LoadedText, size: int, overlap: int, counter: TokenCounter) -> list[Span]:
        return [Span(0, 1)] * (MAX_CHUNKS + 1)


def test_blank_text_too_large_an_overlap_and_too_many_chunks_are_refused() -> None:
    with pytest.raises(EmptyContent):
        chunks_of(LoadedText(text=" \n "))
    with pytest.raises(InvalidArgument):
        chunks_of(GUIDE, size=5, overlap=5)
    with pytest.raises(PayloadTooLarge) as refused:
        chunks_of(GUIDE, splitter=EndlessSplitter())
    assert refused.value.extras == {"limit": MAX_CHUNKS}


@given(
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=400).filter(str.strip),
    st.integers(1, 40),
    st.sampled_from(["recursive", "markdown"]),
)
def test_chunks_and_their_gaps_join_to_the_whole_text(headed: bool, text: str, size: int, splitter: str) -> None:
    loaded = load("# Heading\n\n" + text) if headed else LoadedText(text=text)
    chunks = chunks_of(loaded, size=size, overlap=size // 4, splitter=Splitters().find(splitter))
    joined, end = "", chunks[0].start_index
    for chunk in chunks:
        assert chunk.text == loaded.text[chunk.start_index : chunk.end_index]
        assert chunk.context is not None or not headed
        joined += (chunk.gap or "") + chunk.text[max(0, end - chunk.start_index) :]
        end = chunk.end_index
    assert joined == loaded.text[chunks[0].start_index : end]
    assert joined.strip() == loaded.text.strip()

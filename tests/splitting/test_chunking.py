"""A loaded text becomes the chunks of one document."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.loading.markdown import MarkdownLoader
from core.loading.text import TextLoader
from core.loading.types import LoadedText
from core.model.chunk import Chunk
from core.model.errors import EmptyContent, InvalidArgument, PayloadTooLarge
from core.model.ids import MAX_CHUNKS, ChunkId, CollectionId, DocumentId
from core.splitting.chunking import chunk_document
from core.splitting.counting import CharsPerFour, TokenCounter
from core.splitting.splitters import Splitters
from core.splitting.types import Span

DOCUMENT = DocumentId.new(1_700_000_000_000, 7)
COLLECTION = CollectionId.new(1_700_000_000_000, 8)


def chunks_of(loaded: LoadedText, **given: Any) -> list[Chunk]:
    settings = {
        "document_id": DOCUMENT,
        "attempt": 3,
        "collection_id": COLLECTION,
        "origin": "s3://bucket/key",
        "attributes": {},
        "splitter": Splitters().find("markdown"),
        "size": 8,
        "overlap": 0,
        "counter": CharsPerFour(),
    }
    return chunk_document(loaded, **{**settings, **given})


def load(text: str) -> LoadedText:
    return MarkdownLoader().load(text.encode(), None)


GUIDE = load("Before all.\n\n# Guide\n\nWelcome to it.\n\n## Setup\n\nDo this and that.\n\n# End\n\nBye for now.")


def test_a_chunk_carries_its_place_its_ids_and_its_lineage() -> None:
    chunks = chunks_of(GUIDE)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    for index, chunk in enumerate(chunks):
        assert chunk.text == GUIDE.text[chunk.start_index : chunk.end_index]
        assert chunk.char_count == len(chunk.text)
        assert chunk.token_count == CharsPerFour().count(chunk.text)
        assert chunk.id == ChunkId.of(DOCUMENT, 3, index)
        assert (chunk.document_id, chunk.collection_id, chunk.origin) == (DOCUMENT, COLLECTION, "s3://bucket/key")
        assert chunk.lineage is not None
        assert chunk.lineage.parent_id == DOCUMENT
        assert (chunk.lineage.chunk_index, chunk.lineage.total_chunks) == (index, len(chunks))
        assert (chunk.lineage.splitter, chunk.lineage.chunker_chain) == ("markdown", ())


def test_the_context_is_the_trail_of_headings_at_a_chunks_start() -> None:
    assert [(chunk.text.split("\n")[0], chunk.context) for chunk in chunks_of(GUIDE)] == [
        ("Before all.", None),
        ("# Guide", "Guide"),
        ("## Setup", "Guide > Setup"),
        ("# End", "End"),
    ]


def test_a_heading_applies_until_one_of_its_level_or_higher() -> None:
    loaded = load("# A\n\n### A1\n\ntext\n\n## A2\n\ntext\n\n### A2a\n\ntext\n\n# B\n\ntext\n\n## B1\n\ntext")
    assert [chunk.context for chunk in chunks_of(loaded, size=4)] == [
        "A",
        "A > A1",
        "A > A2",
        "A > A2 > A2a",
        "B",
        "B > B1",
    ]


def test_a_heading_with_space_before_it_applies_to_the_chunk_that_it_begins() -> None:
    loaded = load("\n\n   # Indented\n\ntext")
    assert [chunk.context for chunk in chunks_of(loaded)] == ["Indented"]


def test_the_callers_attributes_win_over_the_documents() -> None:
    loaded = load("---\nlang: de\nyear: 2024\n---\ntext")
    (chunk,) = chunks_of(loaded, attributes={"lang": "en", "team": "a"})
    assert chunk.attributes == {"lang": "en", "team": "a", "year": 2024}


def test_of_too_many_attributes_the_callers_stay() -> None:
    loaded = LoadedText(text="text", attributes={f"d{number}": number for number in range(64)})
    given = {f"c{number}": number for number in range(60)}
    (chunk,) = chunks_of(loaded, attributes=given)
    assert len(chunk.attributes) == 64
    assert given.items() <= chunk.attributes.items()


def test_of_too_large_attributes_the_callers_and_the_documents_first_stay() -> None:
    found = {f"d{number}": ["😀" * 250] * 8 for number in range(20)}
    given = {"team": "x" * 1000}
    (chunk,) = chunks_of(LoadedText(text="text", attributes=found), attributes=given)
    names = [*given, *list(found)[: len(chunk.attributes) - 1]]
    assert list(chunk.attributes) == names
    assert 56 * 1024 < len(json.dumps(chunk.attributes, ensure_ascii=False).encode()) <= 64 * 1024


def test_a_chunk_knows_the_page_on_which_it_starts_where_form_feeds_end_pages() -> None:
    for loader in (TextLoader(), MarkdownLoader()):
        loaded = loader.load(b"one one one\n\n\ftwo two two\n\n\f\fand four", None)
        assert [(chunk.text, chunk.page) for chunk in chunks_of(loaded, size=3)] == [
            ("one one one", 1),
            ("two two two", 2),
            ("and four", 4),
        ]
    assert {chunk.page for chunk in chunks_of(GUIDE)} == {None}


def test_what_a_split_leaves_out_between_two_chunks_is_kept_with_the_second_up_to_1024_characters() -> None:
    def gaps(space: str, overlap: int = 0) -> list[str | None]:
        loaded = LoadedText(text=f" first first{space}second second")
        return [chunk.gap for chunk in chunks_of(loaded, size=4, overlap=overlap)]

    assert gaps("\n\n") == [None, "\n\n"]
    assert gaps(" " * 1024) == [None, " " * 1024]
    assert gaps(" " * 1025) == [None, None], "not known, rather than wrong"
    assert "gap" not in chunks_of(GUIDE)[1].model_dump()


def test_without_a_source_there_is_no_origin() -> None:
    assert chunks_of(GUIDE, origin="")[0].origin is None


def test_a_blank_text_is_empty_content() -> None:
    with pytest.raises(EmptyContent):
        chunks_of(LoadedText(text=" \n "))


def test_an_overlap_as_large_as_the_size_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        chunks_of(GUIDE, size=5, overlap=5)


class EndlessSplitter:
    """More spans than ids can number."""

    name = "endless"

    def split(self, text: LoadedText, size: int, overlap: int, counter: TokenCounter) -> list[Span]:
        return [Span(0, 1)] * (MAX_CHUNKS + 1)


def test_more_chunks_than_ids_can_number_are_refused() -> None:
    with pytest.raises(PayloadTooLarge) as refused:
        chunks_of(GUIDE, splitter=EndlessSplitter())
    assert refused.value.extras == {"limit": MAX_CHUNKS}


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=400).filter(str.strip),
    st.integers(1, 40),
    st.sampled_from(["recursive", "markdown"]),
)
def test_every_chunk_is_the_text_at_its_offsets(text: str, size: int, name: str) -> None:
    loaded = load("# Heading\n\n" + text)
    for chunk in chunks_of(loaded, size=size, overlap=size // 4, splitter=Splitters().find(name)):
        assert chunk.text == loaded.text[chunk.start_index : chunk.end_index]
        assert chunk.context is not None


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=400).filter(str.strip),
    st.integers(2, 40),
    st.sampled_from(["recursive", "markdown"]),
)
def test_chunks_and_what_is_between_them_join_to_the_text(text: str, size: int, name: str) -> None:
    loaded = LoadedText(text=text)
    first, *others = chunks_of(loaded, size=size, overlap=size // 4, splitter=Splitters().find(name))
    joined, end = first.text, first.end_index
    for chunk in others:
        joined += (chunk.gap or "") + chunk.text[max(0, end - chunk.start_index) :]
        end = chunk.end_index
    assert joined == text[first.start_index : end]
    assert joined.strip() == text.strip()

"""Assemble writes a context of hits within a token budget, with a citation for every marker."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.loading.types import LoadedText
from core.model.chunk import Chunk
from core.model.collection import Collection
from core.model.context import AssembledContext, AssembleOptions, ChunkRef
from core.model.document import DocumentSummary
from core.model.errors import CollectionNotFound, InvalidArgument, StaleRanking
from core.model.hit import Hit
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.query import RetrieveQuery
from core.retrieval.assemble import build_context
from core.splitting.chunking import chunk_document
from core.splitting.counting import CharsPerFour, TokenCounter
from core.splitting.splitters import Splitters
from tests.support.embedder import WordCounter
from tests.support.engines import ACME, GLOBEX, World
from tests.support.meddling import Recorder, die

DOCUMENT = DocumentId.new(1, 1)


def hit(text: str, index: int = 0, *, known: bool = True, **fields: object) -> Hit:
    chunk_id = ChunkId.of(DOCUMENT, 1, index) if known else None
    chunk = Chunk(
        id=chunk_id, text=text, start_index=index, end_index=index + len(text), char_count=len(text), **fields
    )
    document = DocumentSummary(
        id=DOCUMENT, title="Guide", source="https://example.org", source_key="g", source_type="text/plain", metadata={}
    )
    return Hit(rank=index + 1, score=0.5, hydrated=True, chunk=chunk, document=document)


def assemble(hits: list[Hit], max_tokens: int = 0, counter: TokenCounter | None = None) -> AssembledContext:
    return build_context(hits, max_tokens, counter or CharsPerFour())


def tokens(text: str) -> int:
    return -(-len(text) // 4)


def test_a_context_has_a_header_and_numbered_chunks_between_separators() -> None:
    made = assemble([hit("first text", 0), hit("second\n\ntext", 1), hit("", 2)])
    assert made.context == "Relevant context:\n\n[1] first text\n\n---\n\n[2] second\n\ntext\n\n---\n\n[3] "
    assert made.total_tokens == tokens(made.context)
    assert (made.included, made.first_excluded) == ([0, 1, 2], -1)
    assert (made.token_counter, made.max_tokens) == ("chars/4", 4096)


def test_a_context_without_any_chunk_is_empty_and_has_no_tokens() -> None:
    for made in (assemble([]), assemble([hit("x" * 100)], 5)):
        assert (made.context, made.total_tokens, made.included, made.citations) == ("", 0, [], [])
    assert assemble([]).first_excluded == -1
    assert assemble([hit("x" * 100)], 5).first_excluded == 0


@pytest.mark.parametrize("budget", [0, -1, -4096])
def test_a_budget_of_zero_or_less_means_4096_tokens(budget: int) -> None:
    assert assemble([hit("x")], budget).max_tokens == 4096
    room = 4096 * 4 - len("Relevant context:\n\n[1] ")
    assert assemble([hit("x" * room)], budget).first_excluded == -1
    assert assemble([hit("x" * (room + 1))], budget).first_excluded == 0


def test_a_hit_that_does_not_fit_is_left_out_and_later_hits_may_fit() -> None:
    made = assemble([hit("a", 0), hit("b" * 400, 1), hit("c", 2), hit("d" * 400, 3)], 12)
    assert made.context == "Relevant context:\n\n[1] a\n\n---\n\n[2] c"
    assert (made.included, made.first_excluded) == ([0, 2], 1)
    assert [citation.marker for citation in made.citations] == [1, 2]


def test_a_hit_without_a_chunk_is_left_out_and_keeps_its_position() -> None:
    made = assemble([hit("a", 0), hit("b", 1, known=False), hit("c", 2)])
    assert (made.included, made.first_excluded) == ([0, 2], 1)
    assert "[2] c" in made.context


def test_the_budget_holds_for_header_and_markers_to_the_last_token() -> None:
    text = "Relevant context:\n\n[1] abcdef"
    assert assemble([hit("abcdef")], tokens(text)).first_excluded == -1
    assert assemble([hit("abcdef")], tokens(text) - 1).first_excluded == 0


def test_every_marker_has_a_citation_with_the_place_of_its_chunk() -> None:
    made = assemble([hit("x" * 9000, 0), hit("b", 1, context="Guide > Setup", page=3)], 50)
    (citation,) = made.citations
    assert citation.model_dump() == {
        "marker": 1,
        "chunk_id": ChunkId.of(DOCUMENT, 1, 1),
        "chunk_ids": [ChunkId.of(DOCUMENT, 1, 1)],
        "document_id": DOCUMENT,
        "source": "https://example.org",
        "title": "Guide",
        "context": "Guide > Setup",
        "page": 3,
        "start_index": 1,
        "end_index": 2,
    }


def test_a_document_without_a_source_is_cited_by_its_key_and_an_orphan_by_its_chunk() -> None:
    one = hit("a")
    assert one.document is not None
    keyed = one.model_copy(update={"document": one.document.model_copy(update={"source": ""})})
    orphan = hit("b", 1).model_copy(update={"document": None, "orphaned": True})
    assert [citation.source for citation in assemble([keyed, orphan]).citations] == ["g", ""]
    (citation,) = assemble([orphan]).citations
    assert citation.document_id == DOCUMENT
    assert (citation.start_index, citation.end_index) == (None, None), "its offsets count from its own start"


def test_the_token_counter_of_the_request_counts_the_whole_context() -> None:
    made = assemble([hit("one two three", 0), hit("four", 1)], 6, WordCounter())
    assert made.token_counter == "words"
    assert (made.included, made.total_tokens) == ([0], 6)


def recounted(hits: list[Hit], made: AssembledContext) -> str:
    """Writes the context a second time: a header, and the numbered chunks between separators."""
    parts = [f"[{number}] {hits[place].chunk.text}" for number, place in enumerate(made.included, start=1)]
    return "Relevant context:\n\n" + "\n\n---\n\n".join(parts) if parts else ""


@given(
    st.lists(st.tuples(st.text(max_size=40), st.booleans()), max_size=12),
    st.integers(1, 60),
)
def test_the_total_is_within_the_budget_and_equals_a_recount(found: list[tuple[str, bool]], budget: int) -> None:
    hits = [hit(text, index, known=known) for index, (text, known) in enumerate(found)]
    made = assemble(hits, budget)
    assert made.context == recounted(hits, made)
    assert made.total_tokens == tokens(made.context) <= budget
    assert made.included == sorted(set(made.included))
    excluded = [place for place in range(len(hits)) if place not in made.included]
    assert made.first_excluded == (excluded[0] if excluded else -1)
    assert [citation.marker for citation in made.citations] == list(range(1, len(made.included) + 1))
    for place in excluded:  # a hit was left out only when it did not fit behind the hits included before it
        if hits[place].chunk.id is None:
            continue
        before = made.model_copy(
            update={"included": [included for included in made.included if included < place] + [place]}
        )
        assert tokens(recounted(hits, before)) > budget


# -- references -------------------------------------------------------------------------------------


def refs(*ids: ChunkId | None) -> list[ChunkRef]:
    return [ChunkRef(chunk_id=chunk_id) for chunk_id in ids if chunk_id is not None]


def notes(world: World) -> Collection:
    """Returns the collection of these tests, and creates it at its first use."""
    try:
        return world.engine.collections.get_by_name(ACME, "notes")
    except CollectionNotFound:
        return world.collection()


def ready(world: World, content: str, **fields: Any) -> ChunkId:
    document_id = world.ingest(notes(world), content, **fields).document_id
    assert document_id is not None
    return ChunkId.of(document_id, 1, 0)


def test_named_chunks_are_assembled_in_the_order_of_the_request_without_embedding(world: World) -> None:
    one, two = ready(world, "one", source_key="a", title="One"), ready(world, "two")
    calls = world.embedder.calls
    made = world.engine.assemble_refs(ACME, refs(two, one))
    assert made.context.context == "Relevant context:\n\n[1] two\n\n---\n\n[2] one"
    assert [hit.chunk.id for hit in made.hits] == [two, one]
    assert [hit.rank for hit in made.hits] == [1, 2]
    assert all(hit.hydrated for hit in made.hits)
    assert [citation.title for citation in made.context.citations] == ["", "One"]
    assert world.embedder.calls == calls


def test_a_chunk_that_is_named_twice_is_in_the_context_once(world: World) -> None:
    one, two = ready(world, "one"), ready(world, "two")
    made = world.engine.assemble_refs(ACME, refs(two, one, two, one))
    assert made.context.context == "Relevant context:\n\n[1] two\n\n---\n\n[2] one"
    assert (made.context.included, made.context.first_excluded) == ([0, 1], -1)
    assert [hit.chunk.id for hit in made.hits] == [two, one, two, one]


def test_hits_and_references_to_their_chunks_assemble_to_the_same_context(world: World) -> None:
    for number in range(4):
        ready(world, f"red green {number}", source_key=str(number))
    hits = world.engine.retrieve(ACME, RetrieveQuery(query="red")).hits
    options = AssembleOptions(max_tokens=30)
    by_hits = world.engine.assemble(ACME, hits, options)
    by_refs = world.engine.assemble_refs(ACME, refs(*(hit.chunk.id for hit in hits)), options).context
    in_one_call = world.engine.retrieve(ACME, RetrieveQuery(query="red"), options)
    assert by_refs == by_hits == in_one_call.context
    assert in_one_call.hits == hits


@pytest.mark.parametrize("why", ["replaced", "deleted", "in progress", "another tenant's", "unknown"])
def test_a_reference_to_a_chunk_that_is_not_served_is_a_stale_ranking(
    world: World, recorder: Recorder, why: str
) -> None:
    fine = ready(world, "fine", source_key="fine")
    stale = ChunkId.of(DOCUMENT, 1, 0)
    if why == "replaced":
        stale = ready(world, "old", source_key="a")
        ready(world, "new", source_key="a")
    elif why == "deleted":
        stale = ready(world, "old")
        world.engine.documents.delete(ACME, stale.document_id)
    elif why == "in progress":
        stale = ChunkId.of(die(world, recorder, notes(world), "coming", source_key="a"), 1, 0)
    elif why == "another tenant's":
        theirs = world.collection(tenant=GLOBEX)
        document_id = world.ingest(theirs, "theirs", tenant=GLOBEX).document_id
        assert document_id is not None
        stale = ChunkId.of(document_id, 1, 0)
    with pytest.raises(StaleRanking) as raised:
        world.engine.assemble_refs(ACME, refs(fine, stale, ChunkId.of(DOCUMENT, 1, 9)))
    assert raised.value.extras == {"chunk_id": stale}, "the error names the first stale reference"
    assert world.engine.assemble_refs(ACME, refs(fine)).context.included == [0]


@pytest.mark.parametrize("count", [0, 1001, 10_000])
def test_fewer_than_1_or_more_than_1000_references_are_refused(world: World, count: int) -> None:
    with pytest.raises(InvalidArgument) as refused:
        world.engine.assemble_refs(ACME, refs(*[ChunkId.of(DOCUMENT, 1, 0)] * count))
    assert refused.value.extras["field"] == "refs"


def test_an_unknown_token_counter_is_refused_before_any_text_is_embedded(world: World) -> None:
    one = ready(world, "one")
    calls, options = world.embedder.calls, AssembleOptions(token_counter="words/2")
    for ask in (
        lambda: world.engine.assemble_refs(ACME, refs(one), options),
        lambda: world.engine.assemble(ACME, [], options),
        lambda: world.engine.retrieve(ACME, RetrieveQuery(query="one"), options),
    ):
        with pytest.raises(InvalidArgument) as refused:
            ask()
        assert (refused.value.extras["field"], refused.value.extras["known"]) == (
            "token_counter",
            ["chars/4", "words"],
        )
    assert world.embedder.calls == calls
    made = world.engine.assemble_refs(ACME, refs(one), AssembleOptions(token_counter="words", max_tokens=4)).context
    assert (made.token_counter, made.total_tokens) == ("words", 4)


# -- neighbours ----------------------------------------------------------------------------------

WORDS = [f"w{number}" for number in range(10)]
LOADED = "w0\nw1\n\n w2 w3\tw4\n\n\n\nw5 w6 w7 w8 w9"
"""A text whose words become one chunk each. The white space between them differs."""


def of_words(world: World, content: str = LOADED, **fields: Any) -> tuple[Collection, list[ChunkId]]:
    """Ingests a document whose chunks are its words."""
    collection = world.collection("words", chunk_size=1, chunk_overlap=0)
    result = world.ingest(collection, content, **fields)
    assert result.document_id is not None
    return collection, [ChunkId.of(result.document_id, 1, index) for index in range(result.chunk_count)]


def expanded(world: World, ids: list[ChunkId], expand: int, max_tokens: int = 0) -> AssembledContext:
    options = AssembleOptions(expand=expand, max_tokens=max_tokens, token_counter="words")
    return world.engine.assemble_refs(ACME, refs(*ids), options).context


def blocks(made: AssembledContext) -> list[str]:
    texts = made.context.removeprefix("Relevant context:\n\n").split("\n\n---\n\n")
    return [text.removeprefix(f"[{marker}] ") for marker, text in enumerate(texts, start=1)]


def spans(made: AssembledContext, content: str = LOADED) -> list[str]:
    return [content[citation.start_index : citation.end_index] for citation in made.citations]


def test_an_expanded_hit_holds_its_neighbours_as_the_document_has_them(world: World) -> None:
    _, ids = of_words(world)
    made = expanded(world, [ids[3]], 2)
    assert blocks(made) == ["w1\n\n w2 w3\tw4\n\n\n\nw5"] == spans(made)
    (citation,) = made.citations
    assert (citation.chunk_id, citation.chunk_ids) == (ids[3], ids[1:6])


def test_neighbours_end_at_the_ends_of_the_document(world: World) -> None:
    _, ids = of_words(world)
    assert blocks(expanded(world, [ids[0]], 1)) == ["w0\nw1"]
    assert blocks(expanded(world, [ids[9]], 2)) == ["w7 w8 w9"]
    other = ready(world, "alone")
    assert blocks(expanded(world, [other, ids[9]], 10)) == ["alone", LOADED]


def test_hits_whose_neighbours_meet_share_the_marker_of_the_better_hit(world: World) -> None:
    _, ids = of_words(world)
    made = expanded(world, [ids[8], ids[1], ids[4]], 1)
    assert blocks(made) == ["w7 w8 w9", "w0\nw1\n\n w2 w3\tw4\n\n\n\nw5"] == spans(made)
    assert (made.included, made.first_excluded) == ([0, 1], -1)
    assert made.citations[1].chunk_ids == ids[:6]
    bridged = expanded(world, [ids[1], ids[8], ids[4]], 2)
    assert blocks(bridged) == [LOADED]
    assert (bridged.included, bridged.citations[0].chunk_id) == ([0], ids[1])


def test_adjacent_hits_are_joined_only_when_they_are_expanded(world: World) -> None:
    _, ids = of_words(world)
    assert blocks(expanded(world, ids[4:6], 0)) == ["w4", "w5"]
    assert blocks(expanded(world, ids[4:6], 1)) == ["w3\tw4\n\n\n\nw5 w6"]


def test_a_hit_that_does_not_fit_with_its_neighbours_is_included_without_them(world: World) -> None:
    _, ids = of_words(world)
    header_and_marker = 3
    made = expanded(world, [ids[2], ids[7]], 1, header_and_marker + 3 + 1 + 1 + 1)
    assert blocks(made) == ["w1\n\n w2 w3", "w7"] == spans(made)
    none = expanded(world, [ids[2], ids[7]], 1, header_and_marker)
    assert (none.context, none.first_excluded, none.total_tokens) == ("", 0, 0)


def test_the_overlap_of_two_chunks_is_in_the_context_once(world: World) -> None:
    collection = world.collection("shared", chunk_size=4, chunk_overlap=2)
    content = " ".join(f"v{number}" for number in range(12))
    result = world.ingest(collection, content)
    assert result.document_id is not None
    ids = [ChunkId.of(result.document_id, 1, index) for index in range(result.chunk_count)]
    first = world.engine.chunks.get(ACME, ids[0])
    second = world.engine.chunks.get(ACME, ids[1])
    assert first.end_index > second.start_index, "the two chunks overlap"
    made = expanded(world, [ids[1]], 10)
    assert blocks(made) == [content] == spans(made, content)


def test_neighbours_stop_at_a_gap_whose_text_was_not_kept(world: World) -> None:
    _, ids = of_words(world, content := "w0 w1" + " " * 1025 + "w2 w3")
    made = expanded(world, [ids[1], ids[2]], 3)
    assert blocks(made) == ["w0 w1", "w2 w3"] == spans(made, content)


def test_neighbours_come_from_the_version_of_the_hit_and_only_while_it_is_served(world: World) -> None:
    collection, ids = of_words(world, source_key="a")
    hits = world.engine.retrieve(ACME, RetrieveQuery(query="w4", top_k=1)).hits
    assert [hit.chunk.id for hit in hits] == [ids[4]]
    options = AssembleOptions(expand=1)
    assert blocks(world.engine.assemble(ACME, hits, options)) == ["w3\tw4\n\n\n\nw5"]
    world.ingest(collection, LOADED.upper(), source_key="a")
    assert blocks(world.engine.assemble(ACME, hits, options)) == ["w4"]
    assert blocks(world.engine.assemble(GLOBEX, hits, options)) == ["w4"], "another tenant sees no neighbours"


def test_an_orphaned_hit_is_included_without_neighbours(world: World) -> None:
    _, ids = of_words(world)
    world.stores.documents.delete_chunks(ACME, [ids[4]])
    hits = world.engine.retrieve(ACME, RetrieveQuery(query="w4", top_k=1)).hits
    assert [hit.orphaned for hit in hits] == [True]
    made = world.engine.assemble(ACME, hits, AssembleOptions(expand=2))
    assert (blocks(made), made.citations[0].chunk_ids) == (["w4"], [ids[4]])
    around_it = expanded(world, [ids[3], ids[5]], 1)
    assert blocks(around_it) == ["w2 w3", "w5 w6"], "a chunk that is lost joins nothing"


@given(
    st.lists(st.text("ab \n\f\u0301😀", min_size=1, max_size=12).filter(str.strip), min_size=1, max_size=12),
    st.permutations(range(12)),
    st.integers(0, 4),
    st.integers(1, 40),
)
def test_every_block_is_the_documents_text_at_its_span_and_no_chunk_is_there_twice(
    words: list[str], order: list[int], expand: int, budget: int
) -> None:
    loaded = LoadedText(text=" ".join(words))
    splitter = Splitters().find("recursive")
    chunks = chunk_document(
        loaded,
        document_id=DOCUMENT,
        attempt=1,
        collection_id=CollectionId.new(1, 2),
        origin="",
        attributes={},
        splitter=splitter,
        size=3,
        overlap=1,
        counter=CharsPerFour(),
    )
    hits = [
        Hit(rank=1, score=0.0, hydrated=True, chunk=chunks[place], document=None)
        for place in order
        if place < len(chunks)
    ]
    known = {chunk.id: chunk for chunk in chunks if chunk.id is not None}
    made = build_context(hits, budget, CharsPerFour(), expand, known)
    rebuilt = "Relevant context:\n\n" + "\n\n---\n\n".join(
        f"[{citation.marker}] {loaded.text[citation.start_index : citation.end_index]}" for citation in made.citations
    )
    assert made.context == (rebuilt if made.citations else "")
    assert made.total_tokens == tokens(made.context) <= budget
    held = [chunk for citation in made.citations for chunk in citation.chunk_ids]
    assert len(held) == len(set(held))
    assert [hits[place].chunk.id for place in made.included] == [citation.chunk_id for citation in made.citations]
    outside = [place for place, one in enumerate(hits) if one.chunk.id not in held]
    assert made.first_excluded == (outside[0] if outside else -1)


# -- token counters -----------------------------------------------------------------------------------------


class WordsAndSigns:
    """Counts words and signs, so that two texts joined have fewer tokens than both apart, and records how many
    characters it was given."""

    name = "words-and-signs"

    def __init__(self) -> None:
        self.characters = 0

    def count(self, text: str) -> int:
        self.characters += len(text)
        return len(re.findall(r"\w+|[^\w\s]", text))


def test_a_context_of_1000_hits_is_counted_only_a_few_times() -> None:
    counter = WordsAndSigns()
    hits = [hit("some words of a text that goes on and on", index) for index in range(1000)]
    made = assemble(hits, 7000, counter)
    assert made.total_tokens == WordsAndSigns().count(made.context)
    assert 7000 - 14 < made.total_tokens <= 7000
    characters = sum(len(hit.chunk.text) for hit in hits)
    assert counter.characters < 6 * characters, "all hits are counted once, and the whole context a few times"


class SquareOfLength:
    """Counts the square of the length: no sum over the pieces of a text gives the count of the text."""

    name = "square-of-length"

    def count(self, text: str) -> int:
        return len(text) ** 2


def test_the_budget_holds_for_a_counter_that_is_not_additive() -> None:
    made = assemble([hit("a" * 10, index) for index in range(50)], 40_000, SquareOfLength())
    assert made.total_tokens == len(made.context) ** 2 <= 40_000
    assert made.first_excluded == len(made.included) == len(made.citations) > 0

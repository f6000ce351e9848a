"""Assemble: a context of hits within a budget, with a citation for every marker."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.chunk import Chunk
from core.model.context import AssembledContext, ChunkRef
from core.model.document import DocumentSummary
from core.model.errors import InvalidArgument, StaleRanking
from core.model.hit import Hit
from core.model.ids import ChunkId, DocumentId
from core.model.query import RetrieveQuery
from core.retrieval.assemble import assemble
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


def tokens(text: str) -> int:
    return -(-len(text) // 4)


def test_the_format_to_the_letter() -> None:
    made = assemble([hit("first text", 0), hit("second\n\ntext", 1), hit("", 2)])
    assert made.context == "Relevant context:\n\n[1] first text\n\n---\n\n[2] second\n\ntext\n\n---\n\n[3] "
    assert made.total_tokens == tokens(made.context)
    assert (made.included, made.first_excluded) == ([0, 1, 2], -1)
    assert (made.token_counter, made.max_tokens) == ("chars/4", 4096)


def test_nothing_included_is_an_empty_context_of_no_tokens() -> None:
    for made in (assemble([]), assemble([hit("x" * 100)], 5)):
        assert (made.context, made.total_tokens, made.included, made.citations) == ("", 0, [], [])
    assert assemble([]).first_excluded == -1
    assert assemble([hit("x" * 100)], 5).first_excluded == 0


@pytest.mark.parametrize("budget", [0, -1, -4096])
def test_zero_or_less_is_4096_tokens(budget: int) -> None:
    assert assemble([hit("x")], budget).max_tokens == 4096
    room = 4096 * 4 - len("Relevant context:\n\n[1] ")
    assert assemble([hit("x" * room)], budget).first_excluded == -1
    assert assemble([hit("x" * (room + 1))], budget).first_excluded == 0


def test_a_hit_that_does_not_fit_is_passed_over_and_later_ones_may_fit() -> None:
    made = assemble([hit("a", 0), hit("b" * 400, 1), hit("c", 2), hit("d" * 400, 3)], 12)
    assert made.context == "Relevant context:\n\n[1] a\n\n---\n\n[2] c"
    assert (made.included, made.first_excluded) == ([0, 2], 1)
    assert [one.marker for one in made.citations] == [1, 2]


def test_a_hit_without_a_chunk_is_passed_over_and_keeps_its_position() -> None:
    made = assemble([hit("a", 0), hit("b", 1, known=False), hit("c", 2)])
    assert (made.included, made.first_excluded) == ([0, 2], 1)
    assert "[2] c" in made.context


def test_the_budget_holds_for_header_and_markers_to_the_last_token() -> None:
    text = "Relevant context:\n\n[1] abcdef"
    assert assemble([hit("abcdef")], tokens(text)).first_excluded == -1
    assert assemble([hit("abcdef")], tokens(text) - 1).first_excluded == 0


def test_every_marker_has_its_citation() -> None:
    made = assemble([hit("x" * 9000, 0), hit("b", 1, context="Guide > Setup")], 50)
    (citation,) = made.citations
    assert citation.model_dump() == {
        "marker": 1,
        "chunk_id": ChunkId.of(DOCUMENT, 1, 1),
        "document_id": DOCUMENT,
        "source": "https://example.org",
        "title": "Guide",
        "context": "Guide > Setup",
        "start_index": 1,
        "end_index": 2,
    }


def test_a_source_that_is_not_said_is_cited_by_its_key_and_an_orphan_by_its_chunk_alone() -> None:
    one = hit("a")
    assert one.document is not None
    keyed = one.model_copy(update={"document": one.document.model_copy(update={"source": ""})})
    orphan = one.model_copy(update={"document": None})
    assert [citation.source for citation in assemble([keyed, orphan]).citations] == ["g", ""]
    assert assemble([orphan]).citations[0].document_id == DOCUMENT


def test_another_counter_counts_the_whole_context() -> None:
    made = assemble([hit("one two three", 0), hit("four", 1)], 6, WordCounter())
    assert made.token_counter == "words"
    assert (made.included, made.total_tokens) == ([0], 6)


def recounted(hits: list[Hit], made: AssembledContext) -> str:
    """The context as the specification writes it."""
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
    assert [one.marker for one in made.citations] == list(range(1, len(made.included) + 1))
    for place in excluded:  # greedy: what was passed over did not fit when its turn came
        if hits[place].chunk.id is None:
            continue
        before = made.model_copy(update={"included": [one for one in made.included if one < place] + [place]})
        assert tokens(recounted(hits, before)) > budget


# -- by reference -------------------------------------------------------------------------------------


def refs(*ids: ChunkId | None) -> list[ChunkRef]:
    return [ChunkRef(chunk_id=one) for one in ids if one is not None]


def ready(world: World, content: str, **fields: Any) -> ChunkId:
    collection = world.extras.setdefault("collection", None) or world.collection()
    world.extras["collection"] = collection
    document_id = world.ingest(collection, content, **fields).document_id
    assert document_id is not None
    return ChunkId.of(document_id, 1, 0)


def test_chunks_are_assembled_in_the_order_they_are_named_and_nothing_is_embedded(world: World) -> None:
    one, two = ready(world, "one", source_key="a", title="One"), ready(world, "two")
    calls = world.embedder.calls
    made = world.engine.assemble_refs(ACME, refs(two, one, two), 0)
    assert made.context.context == "Relevant context:\n\n[1] two\n\n---\n\n[2] one\n\n---\n\n[3] two"
    assert [hit.chunk.id for hit in made.hits] == [two, one, two]
    assert [hit.rank for hit in made.hits] == [1, 2, 3]
    assert all(hit.hydrated for hit in made.hits)
    assert [one.title for one in made.context.citations] == ["", "One", ""]
    assert world.embedder.calls == calls


def test_what_retrieve_found_assembles_to_the_same_context_by_reference(world: World) -> None:
    for number in range(4):
        ready(world, f"red green {number}", source_key=str(number))
    hits = world.engine.retrieve(ACME, RetrieveQuery(query="red")).hits
    by_hits = world.engine.assemble(hits, 30)
    by_refs = world.engine.assemble_refs(ACME, refs(*(hit.chunk.id for hit in hits)), 30).context
    assert by_refs == by_hits


@pytest.mark.parametrize("why", ["replaced", "deleted", "in progress", "another tenant's", "unknown"])
def test_a_chunk_that_is_not_served_is_a_stale_ranking_that_names_it(
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
        stale = ChunkId.of(die(world, recorder, world.extras["collection"], "coming", source_key="a"), 1, 0)
    elif why == "another tenant's":
        theirs = world.collection(tenant=GLOBEX)
        document_id = world.ingest(theirs, "theirs", tenant=GLOBEX).document_id
        assert document_id is not None
        stale = ChunkId.of(document_id, 1, 0)
    with pytest.raises(StaleRanking) as raised:
        world.engine.assemble_refs(ACME, refs(fine, stale, ChunkId.of(DOCUMENT, 1, 9)), 0)
    assert raised.value.extras == {"chunk_id": stale}, "the first one"
    assert world.engine.assemble_refs(ACME, refs(fine), 0).context.included == [0]


@pytest.mark.parametrize("count", [0, 1001])
def test_refs_are_1_to_1000(world: World, count: int) -> None:
    with pytest.raises(InvalidArgument) as refused:
        world.engine.assemble_refs(ACME, refs(*[ChunkId.of(DOCUMENT, 1, 0)] * count), 0)
    assert refused.value.extras["field"] == "refs"

"""Compare shows the final ranking beside the vector ranking. For the strategy similarity, both are the same search."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.model.comparison import CompareHit, CompareResult, MoveCode
from core.model.errors import Unavailable
from core.model.hit import ReasonCode
from core.model.query import RetrieveQuery, ScoreKind, Strategy
from core.ranking.explain import explain
from core.vectors.types import VectorMatch, VectorQuery
from tests.support.embedder import HashedEmbedder
from tests.support.engines import ACME, World
from tests.support.meddling import MeddlingVectors, RecordedMetrics, Recorder
from tests.support.memory import memory_world
from tests.support.reranker import WordOverlapReranker


def compare(world: World, **fields: object) -> CompareResult:
    return world.engine.compare(ACME, RetrieveQuery.model_validate({"query": "red green blue", **fields}))


def fill(world: World, count: int) -> None:
    collection = world.collection(chunk_size=3, chunk_overlap=0)
    for number in range(count):
        world.ingest(collection, f"red green{number % 7} w{number}", source_key=str(number))


@pytest.mark.parametrize(("top_k", "window"), [(0, 50), (1, 50), (16, 50), (17, 51), (100, 300)])
def test_the_window_is_three_times_top_k_and_at_least_fifty(world: World, top_k: int, window: int) -> None:
    fill(world, 3)
    result = compare(world, top_k=top_k)
    assert result.window == window
    vectors = world.vectors
    assert isinstance(vectors, MeddlingVectors)
    assert vectors.searches[0].limit == window


def test_every_hit_has_its_rank_in_both_rankings(world: World) -> None:
    fill(world, 60)
    result = compare(world, top_k=4)
    assert [hit.rank for hit in result.hits] == [1, 2, 3, 4]
    assert [hit.vector_rank for hit in result.hits] == [1, 2, 3, 4]
    assert [hit.vector_score for hit in result.hits] == [hit.score for hit in result.hits]
    assert (result.vector_matches, result.best_vector_score) == (50, result.hits[0].score)
    assert (result.left_out, result.reordered, result.same_search) == ([], False, True)
    assert (result.score, result.strategy) == (ScoreKind.COSINE, "similarity")
    assert result.retriever_ms == result.vector_ms >= 0
    assert result.reason is None


def test_min_score_cuts_the_hits_but_not_the_vector_ranking(world: World) -> None:
    fill(world, 6)
    whole = compare(world)
    bar = whole.hits[2].score
    result = compare(world, min_score=bar)
    assert all(hit.score >= bar for hit in result.hits)
    assert (result.vector_matches, result.best_vector_score) == (6, whole.best_vector_score)
    assert (result.left_out, result.reordered) == ([], False)
    none = compare(world, min_score=1)
    assert (none.hits, none.left_out, none.reordered) == ([], [], False)
    assert (none.vector_matches, none.best_vector_score) == (6, whole.best_vector_score)
    assert none.reason is not None
    assert (none.reason.code, none.reason.best_score) == (ReasonCode.BELOW_MIN_SCORE, whole.best_vector_score)


def test_a_comparison_without_matches_has_empty_lists_and_no_nulls(world: World) -> None:
    world.collection()
    result = compare(world)
    assert (result.vector_matches, result.best_vector_score) == (0, 0)
    body = json.loads(result.model_dump_json())
    assert (body["hits"], body["left_out"]) == ([], [])
    assert (body["reordered"], body["same_search"]) == (False, True)


def test_both_sides_are_one_embedding_and_one_search_and_one_pair_of_hooks(
    world: World, vectors: MeddlingVectors, recorder: Recorder
) -> None:
    fill(world, 3)
    metrics = RecordedMetrics()
    world.rebuild(metrics=metrics)
    calls = world.embedder.calls
    recorder.fired.clear()
    compare(world)
    assert (world.embedder.calls, len(vectors.searches)) == (calls + 1, 1)
    assert recorder.hooks == ["retrieval_started", "retrieval_completed"]
    assert len(metrics.of("vectors_search")) == 1


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 8), st.integers(1, 10), st.none() | st.floats(-1, 1))
def test_a_comparison_by_similarity_has_the_hits_of_retrieve(count: int, top_k: int, min_score: float | None) -> None:
    world = memory_world(Recorder(), MeddlingVectors())
    fill(world, count)
    query = RetrieveQuery(query="red green3", top_k=top_k, min_score=min_score)
    plain, both = world.engine.retrieve(ACME, query), world.engine.compare(ACME, query)
    assert [(hit.rank, hit.chunk, hit.score) for hit in both.hits] == [
        (hit.rank, hit.chunk, hit.score) for hit in plain.hits
    ]
    assert both.reason == plain.reason
    assert both.vector_matches == count
    world.vectors.close()


# -- strategies ------------------------------------------------------------------------

MOVES = {MoveCode.SAME_RANK, MoveCode.MOVED_UP, MoveCode.MOVED_DOWN, MoveCode.FROM_BEYOND_WINDOW}


def raw_window(world: World, question: str, window: int) -> list[VectorMatch]:
    """Reads the vector ranking from the store itself."""
    ids = [row.id for row in world.stores.collections.all(ACME)]
    query = VectorQuery(world.embedder.embed([question]).vectors[0], ids, window)
    return world.vectors.search(ACME, world.embedder.space, query)


def check(world: World, question: str, result: CompareResult) -> None:
    """Checks the rules of a comparison against the vector ranking that the store itself returns."""
    raw = raw_window(world, question, result.window)
    ranks = {match.chunk_id: rank for rank, match in enumerate(raw, start=1)}
    cosines = {match.chunk_id: match.score for match in raw}
    assert result.window == max(3 * result.top_k, 50)
    assert (result.vector_matches, result.best_vector_score) == (len(raw), raw[0].score if raw else 0)
    for hit in (*result.hits, *result.left_out):
        assert hit.chunk.id is not None
        assert hit.vector_rank == ranks.get(hit.chunk.id, 0)
        assert hit.vector_score == cosines.get(hit.chunk.id, 0)
    hits = {hit.chunk.id for hit in result.hits}
    places = [hit.vector_rank for hit in result.hits]
    skipped = [match.chunk_id for match in raw if match.chunk_id not in hits]
    if not places:
        skipped = []
    elif 0 not in places:
        skipped = [chunk_id for chunk_id in skipped if ranks[chunk_id] < max(places)]
    assert [hit.chunk.id for hit in result.left_out] == skipped[: result.top_k]
    assert {hit.rank for hit in result.left_out} <= {0}
    assert [hit.rank for hit in result.hits] == list(range(1, len(places) + 1))
    assert result.reordered == (any(hit.rank != hit.vector_rank for hit in result.hits) or bool(skipped))
    for hit in result.hits:
        assert hit.move.code == move_of(hit)
    for hit in result.left_out:
        assert hit.move.code not in MOVES
    for hit in (*result.hits, *result.left_out):
        assert hit.signals is not None
        assert hit.move.detail


def move_of(hit: CompareHit) -> MoveCode:
    if not hit.vector_rank:
        return MoveCode.FROM_BEYOND_WINDOW
    if hit.rank == hit.vector_rank:
        return MoveCode.SAME_RANK
    return MoveCode.MOVED_UP if hit.rank < hit.vector_rank else MoveCode.MOVED_DOWN


words = st.sampled_from(["red", "green", "blue", "pale", "the", "grey"])
texts = st.lists(words, min_size=1, max_size=5).map(" ".join)
weights = st.sampled_from([(1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.5, 2.0)])
chosen = st.fixed_dictionaries(
    {
        "mmr_lambda": st.sampled_from([0.0, 0.3, 0.7, 1.0]),
        "rrf_k": st.sampled_from([1, 60]),
        "weights": weights.map(lambda pair: {"vector": pair[0], "bm25": pair[1]}),
        "first_stage": st.sampled_from(["similarity", "mmr", "hybrid"]),
        "fuse": st.booleans(),
    }
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(texts, max_size=12, unique=True),
    texts,
    st.sampled_from(list(Strategy)),
    st.integers(1, 6),
    st.none() | st.floats(0, 1),
    chosen,
)
def test_the_rules_of_compare_hold_for_every_strategy_with_the_hits_of_retrieve(
    corpus: list[str], question: str, strategy: Strategy, top_k: int, share: float | None, options: dict[str, Any]
) -> None:
    world = memory_world(Recorder(), MeddlingVectors())
    world.rebuild(reranker=WordOverlapReranker(world.clock))
    collection = world.collection()
    for number, text in enumerate(corpus):
        world.ingest(collection, text, source_key=str(number))
    asked: dict[str, Any] = {"query": question, "strategy": strategy, "top_k": top_k, "options": options}
    if share is not None:
        best = world.engine.retrieve(ACME, RetrieveQuery.model_validate(asked)).hits
        asked["min_score"] = max(0.0, best[0].score * share) if best else 0.0
    query = RetrieveQuery.model_validate(asked)
    result = world.engine.compare(ACME, query)
    check(world, question, result)
    plain = world.engine.retrieve(ACME, query)
    assert [(hit.rank, hit.chunk, hit.score) for hit in result.hits] == [
        (hit.rank, hit.chunk, hit.score) for hit in plain.hits
    ]
    assert (result.reason, result.score, result.strategy) == (plain.reason, plain.score, plain.strategy)
    assert result.same_search == (strategy is Strategy.SIMILARITY)
    assert result.retriever_ms >= result.vector_ms >= 0
    order = explain(CompareResult.model_validate_json(result.model_dump_json()))
    assert order[: len(result.hits)] == [hit.chunk.id for hit in result.hits]
    world.vectors.close()


def with_rare(world: World, count: int = 1) -> None:
    """Ingests sixty texts that are like the question by stop words alone, and some that have its rare word."""
    collection = world.collection()
    for number in range(count):
        others = " ".join(f"w{number}.{other}" for other in range(80))
        world.ingest(collection, f"zebra {others}", source_key=f"rare {number}")
    for number in range(60):
        world.ingest(collection, f"the of {number}", source_key=str(number))


def ask(world: World, question: str, **fields: Any) -> CompareResult:
    return world.engine.compare(ACME, RetrieveQuery.model_validate({"query": question, **fields}))


def moves(hits: list[CompareHit]) -> list[MoveCode]:
    return [hit.move.code for hit in hits]


def test_a_hit_beyond_the_window_has_vector_rank_0_and_all_better_vectors_are_left_out(world: World) -> None:
    with_rare(world)
    result = ask(world, "the of zebra", strategy="hybrid", top_k=3)
    check(world, "the of zebra", result)
    [beyond] = [hit for hit in result.hits if not hit.vector_rank]
    assert beyond.chunk.text.startswith("zebra")
    assert (beyond.vector_score, beyond.move.code) == (0, MoveCode.FROM_BEYOND_WINDOW)
    assert "BM25 1" in beyond.move.detail
    assert [hit.vector_rank for hit in result.left_out] == [3, 4, 5], "in vector order, at most top_k"
    assert moves(result.left_out) == [MoveCode.BEYOND_TOP_K] * 3
    assert result.reordered


def test_a_chunk_that_the_reranker_did_not_get_is_not_a_candidate(world: World) -> None:
    world.rebuild(reranker=WordOverlapReranker(world.clock))
    with_rare(world, 25)
    result = ask(world, "the of zebra", strategy="rerank", top_k=2, options={"weights": {"bm25": 100}})
    check(world, "the of zebra", result)
    assert moves(result.hits) == [MoveCode.FROM_BEYOND_WINDOW] * 2
    assert moves(result.left_out) == [MoveCode.NOT_A_CANDIDATE] * 2
    assert [hit.vector_rank for hit in result.left_out] == [1, 2]
    assert result.left_out[0].move.detail.startswith(
        "Number 26 of the first stage, of which 20 go to the reranker; vector 1 ("
    )


def test_mmr_leaves_out_only_candidates_beyond_top_k(world: World) -> None:
    fill(world, 60)
    result = ask(world, "red green1 w8", strategy="mmr", top_k=3, options={"mmr_lambda": 0.0})
    check(world, "red green1 w8", result)
    assert moves(result.left_out) == [MoveCode.BEYOND_TOP_K] * 3
    assert "and 3 were asked for" in result.left_out[0].move.detail


def test_the_best_vectors_are_not_candidates_when_vectors_have_no_weight(world: World) -> None:
    with_rare(world)
    result = ask(world, "the of zebra", strategy="hybrid", top_k=2, options={"weights": {"vector": 0}})
    check(world, "the of zebra", result)
    assert moves(result.hits) == [MoveCode.FROM_BEYOND_WINDOW]
    assert moves(result.left_out) == [MoveCode.NOT_A_CANDIDATE] * 2
    assert "no weight" in result.left_out[0].move.detail
    assert [hit.score for hit in result.left_out] == [hit.vector_score for hit in result.left_out]


def test_a_chunk_that_min_score_removed_is_left_out_with_that_reason(world: World) -> None:
    collection = world.collection()
    # The rankings by terms and by vectors differ: a text with the question's words among many other words has a lower
    # cosine.
    for number, text in enumerate(["red of the the", "red red green", "the of and", "green blue red pale grey of it"]):
        world.ingest(collection, text, source_key=str(number))
    question = "the of and red green blue"
    whole = ask(world, question, strategy="hybrid", options={"weights": {"vector": 0.5, "bm25": 3}})
    check(world, question, whole)
    bar = whole.hits[1].score
    result = ask(world, question, strategy="hybrid", min_score=bar, options={"weights": {"vector": 0.5, "bm25": 3}})
    check(world, question, result)
    assert len(result.hits) == 2
    assert result.left_out, "the vector ranking has a better chunk that was left out"
    assert set(moves(result.left_out)) == {MoveCode.BELOW_MIN_SCORE}
    assert f"{bar:g}" in result.left_out[0].move.detail


def test_a_move_up_or_down_names_both_ranks(world: World) -> None:
    fill(world, 20)
    result = ask(world, "red green1 w8", strategy="mmr", top_k=10, options={"mmr_lambda": 0.2})
    check(world, "red green1 w8", result)
    by_code = {hit.move.code: hit for hit in result.hits}
    assert by_code.keys() >= {MoveCode.SAME_RANK, MoveCode.MOVED_UP, MoveCode.MOVED_DOWN}
    for code in (MoveCode.MOVED_UP, MoveCode.MOVED_DOWN):
        hit = by_code[code]
        assert hit.move.detail.startswith(f"From {hit.vector_rank} to {hit.rank}; ")
        assert "penalty" in hit.move.detail


def test_the_vector_ranking_and_the_final_ranking_are_timed_separately(
    world: World, vectors: MeddlingVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world, 3)
    for name, seconds in (("search", 2), ("search_text", 3)):
        found = getattr(vectors, name)

        def slow(*arguments: Any, found: Any = found, seconds: int = seconds) -> Any:
            world.clock.advance(seconds)
            return found(*arguments)

        monkeypatch.setattr(vectors, name, slow)
    result = ask(world, "red", strategy="hybrid")
    assert (result.vector_ms, result.retriever_ms) == (2000, 5000)
    assert not result.same_search
    result = ask(world, "red")
    assert (result.vector_ms, result.retriever_ms, result.same_search) == (2000, 2000, True)


def test_a_comparison_searches_once_by_vector_and_embeds_once_whatever_the_strategy(
    world: World, vectors: MeddlingVectors
) -> None:
    world.rebuild(reranker=WordOverlapReranker(world.clock))
    fill(world, 3)
    for strategy in Strategy:
        calls, searches = world.embedder.calls, len(vectors.searches)
        ask(world, "red", strategy=strategy)
        assert (world.embedder.calls, len(vectors.searches)) == (calls + 1, searches + 1)


def test_a_comparison_reports_a_reranker_that_failed(world: World) -> None:
    reranker = WordOverlapReranker(world.clock)
    world.rebuild(reranker=reranker)
    fill(world, 30)
    reranker.failure = Unavailable("The model does not answer")
    for first in ("similarity", "mmr", "hybrid"):
        options = {"fallback": True, "first_stage": first}
        result = ask(world, "red green1 w8", strategy="rerank", top_k=4, options=options, min_score=0.03)
        assert result.fallback is not None
        check(world, "red green1 w8", result)
        assert [hit.signals and hit.signals.rerank for hit in result.hits] == [None] * 4
        assert result.min_score is None, "min_score applies only to scores of the reranker"
        assert explain(result)[:4] == [hit.chunk.id for hit in result.hits]


def test_the_vector_ranking_of_several_models_is_fused_by_rank(world: World) -> None:
    world.rebuild(embedders=[HashedEmbedder(name, dimensions) for name, dimensions in (("a", 48), ("b", 64))])
    for name in "ab":
        collection = world.collection(name, embedding_model=name)
        for number in range(30):
            world.ingest(collection, f"red green{number % 7} {name}{number}", source_key=str(number))
    result = ask(world, "red green3", top_k=6)
    assert (result.models, result.score, result.same_search) == (["a", "b"], ScoreKind.RRF, True)
    assert (result.reordered, result.left_out, result.vector_matches) == (False, [], 50)
    assert [hit.vector_rank for hit in result.hits] == [1, 2, 3, 4, 5, 6]
    assert all(hit.vector_score != hit.score for hit in result.hits), (
        "the vector score is the cosine in the hit's own model"
    )
    hybrid = ask(world, "red green3", top_k=6, strategy="hybrid")
    assert explain(hybrid)[:6] == [hit.chunk.id for hit in hybrid.hits]
    assert {hit.move.code for hit in hybrid.left_out} <= {MoveCode.BEYOND_TOP_K, MoveCode.NOT_A_CANDIDATE}


def test_explain_refuses_a_comparison_with_a_changed_figure(world: World) -> None:
    fill(world, 10)
    result = ask(world, "red green1", strategy="mmr", top_k=3)
    changed = result.model_copy(update={"hits": [hit.model_copy(update={"score": 0.5}) for hit in result.hits]})
    with pytest.raises(ValueError, match="its parts give"):
        explain(changed)

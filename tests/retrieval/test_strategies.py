"""Each strategy ranks as documented, in one collection or several, and names the kind of its scores."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analysis.terms import query_terms
from core.metadata.documents import Documents
from core.model.collection import Collection
from core.model.comparison import CompareResult
from core.model.errors import CollectionNotFound, InvalidArgument, NotConfigured, Unavailable
from core.model.hit import ReasonCode, RetrieveResult
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.page import PageRequest
from core.model.query import RetrieveQuery, ScoreKind, Strategy
from core.vectors.types import TextQuery, VectorQuery
from tests.support.embedder import HashedEmbedder
from tests.support.engines import ACME, World
from tests.support.meddling import MeddlingVectors, Recorder, die
from tests.support.memory import memory_world
from tests.support.reranker import WordOverlapReranker, word_overlap

QUESTION = "red green blue"
FIRST_STAGES = [Strategy.SIMILARITY, Strategy.MMR, Strategy.HYBRID]
KINDS = {
    Strategy.SIMILARITY: ScoreKind.COSINE,
    Strategy.MMR: ScoreKind.MMR_RELEVANCE,
    Strategy.HYBRID: ScoreKind.RRF,
    Strategy.RERANK: ScoreKind.RRF,
}
COLOURS = ["red green blue", "red green", "blue pale red", "green pale", "pale grey", "red red red", "blue of green"]


def ask(world: World, query: str = QUESTION, **fields: Any) -> RetrieveResult:
    return world.engine.retrieve(ACME, RetrieveQuery.model_validate({"query": query, **fields}))


def texts(result: RetrieveResult | CompareResult) -> list[str]:
    return [hit.chunk.text for hit in result.hits]


def places(result: RetrieveResult | CompareResult) -> list[tuple[ChunkId | None, float]]:
    return [(hit.chunk.id, hit.score) for hit in result.hits]


def fill(world: World, *contents: str, name: str = "notes", **fields: Any) -> Collection:
    collection = world.collection(name, **fields)
    for number, content in enumerate(contents):
        world.ingest(collection, content, source_key=str(number))
    return collection


def with_reranker(world: World) -> WordOverlapReranker:
    reranker = WordOverlapReranker(world.clock)
    world.rebuild(reranker=reranker)
    return reranker


def with_models(world: World, *names: str) -> dict[str, HashedEmbedder]:
    """Makes embedders of several vector spaces, so that a text has a different vector in each."""
    embedders = {name: HashedEmbedder(name, dimensions=48 + 8 * place) for place, name in enumerate(names)}
    world.rebuild(embedders=embedders.values())
    return embedders


# -- which strategy, and what its scores mean ----------------------------------------------------------


@pytest.mark.parametrize("strategy", Strategy)
def test_every_strategy_can_be_asked_for(world: World, strategy: Strategy) -> None:
    with_reranker(world)
    fill(world, *COLOURS)
    result = ask(world, strategy=strategy, top_k=4)
    assert (result.strategy, result.score) == (strategy, KINDS[strategy])
    assert len(result.hits) == 4
    assert result.models == ["hashed-words"]
    assert (result.reason, result.fallback) == (None, None)


@pytest.mark.parametrize("strategy", Strategy)
def test_every_strategy_can_be_a_collections_default(world: World, strategy: Strategy) -> None:
    with_reranker(world)
    collection = fill(world, *COLOURS, retrieval_strategy=strategy)
    assert ask(world, collections=[collection.id]).strategy == strategy
    assert ask(world).strategy == strategy, "all collections of the tenant have this default"
    assert ask(world, strategy="hybrid").strategy == Strategy.HYBRID, (
        "the strategy of the request comes before the default"
    )
    assert world.engine.compare(ACME, RetrieveQuery(query="red")).strategy == strategy


def test_collections_that_disagree_are_asked_by_similarity(world: World) -> None:
    one = fill(world, "red", name="one", retrieval_strategy="hybrid")
    other = fill(world, "red", name="other", retrieval_strategy="mmr")
    assert ask(world).strategy == Strategy.SIMILARITY
    assert ask(world, collections=[one.id, other.id]).strategy == Strategy.SIMILARITY
    assert ask(world, collections=[other.id]).strategy == Strategy.MMR


@pytest.mark.parametrize("strategy", [*Strategy])
def test_without_any_collection_there_is_no_hit_and_still_a_kind(world: World, strategy: Strategy) -> None:
    with_reranker(world)
    result = ask(world, strategy=strategy)
    assert (result.hits, result.score, result.models) == ([], KINDS[strategy], [])
    assert result.reason is not None
    assert result.reason.code == ReasonCode.NO_DOCUMENTS
    assert world.embedder.calls == 0


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("fuse", [True, False])
def test_a_later_hit_never_scores_higher_but_for_mmr(world: World, strategy: Strategy, fuse: bool) -> None:
    with_reranker(world)
    fill(world, *(f"{text} {number}" for number, text in enumerate(COLOURS * 5)))
    options = {"fuse": fuse, "explain": True, "mmr_lambda": 0.3}
    hits = ask(world, strategy=strategy, top_k=30, options=options).hits
    assert len(hits) == 30
    values = [hit.signals.mmr.value if hit.signals and hit.signals.mmr else hit.score for hit in hits]
    assert all(first >= second for first, second in pairwise(values))
    if strategy is Strategy.MMR:
        scores = [hit.score for hit in hits]
        assert scores != sorted(scores, reverse=True), "the score stays the cosine, and the order is another"


# -- hybrid -------------------------------------------------------------------------------------------


def test_hybrid_finds_what_only_terms_find_and_what_only_vectors_find(world: World) -> None:
    fill(world, "zebra " + " ".join(f"w{number}" for number in range(80)), *(f"the of {n}" for n in range(60)))
    question = "the of zebra"
    assert query_terms(question) == ["zebra"], "stop words are no terms"
    first, second = ask(world, question, strategy="hybrid", top_k=2, options={"explain": True}).hits
    found = {hit.chunk.text[:3]: hit.signals for hit in (first, second)}
    by_terms, by_vector = found["zeb"], found["the"]
    assert by_terms is not None
    assert by_vector is not None
    assert (by_terms.vector, by_terms.bm25 and by_terms.bm25.rank) == (None, 1)
    assert (by_vector.vector and by_vector.vector.rank, by_vector.bm25) == (1, None)
    assert not any(text.startswith("zebra") for text in texts(ask(world, question, top_k=50)))


@pytest.mark.parametrize("question", ["the of and", "…!?", "\x00\x07\x1b[31m"], ids=["stop words", "signs", "controls"])
def test_a_question_without_any_term_is_answered_by_vectors(world: World, question: str) -> None:
    fill(world, *COLOURS)
    assert query_terms(question)[:1] in ([], ["31m"])
    result = ask(world, question, strategy="hybrid", options={"explain": True})
    assert len(result.hits) == len(COLOURS)
    plain = ask(world, question)
    assert [hit.chunk.id for hit in result.hits] == [hit.chunk.id for hit in plain.hits]


@pytest.mark.parametrize(("ignored", "kept"), [("bm25", "vector"), ("vector", "bm25")])
def test_a_ranking_without_weight_brings_nothing_in(world: World, ignored: str, kept: str) -> None:
    fill(world, *COLOURS)
    options = {"weights": {ignored: 0}, "explain": True}
    hits = ask(world, strategy="hybrid", options=options).hits
    ranks = [getattr(hit.signals, kept).rank for hit in hits]
    assert ranks == list(range(1, len(hits) + 1))
    assert len(hits) == (len(COLOURS) if ignored == "bm25" else 6)
    assert [hit.score for hit in hits] == [1 / (60 + rank) for rank in ranks]


def test_where_vectors_have_no_weight_the_reason_says_that_words_are_missing(world: World) -> None:
    fill(world, *COLOURS)
    result = ask(world, "grey", strategy="hybrid", options={"weights": {"vector": 0}})
    assert texts(result) == ["pale grey"]
    assert result.reason is not None
    assert result.reason.code == ReasonCode.FEWER_THAN_TOP_K
    assert "word of the question" in result.reason.detail


words = st.sampled_from(["red", "green", "blue", "pale", "the", "grey"])
contents = st.lists(st.lists(words, min_size=1, max_size=5).map(" ".join), max_size=8, unique=True)
weight = st.sampled_from([0.0, 0.5, 1.0, 2.0])


@settings(max_examples=40, deadline=None)
@given(
    contents,
    st.lists(words, min_size=1, max_size=3).map(" ".join),
    st.integers(1, 9),
    st.tuples(weight, weight).filter(any),
    st.sampled_from([1, 60]),
    st.none() | st.sampled_from([0.0, 0.01, 0.5]),
)
def test_hybrid_is_the_fusion_of_what_the_store_finds_both_ways(
    corpus: list[str], question: str, top_k: int, weights: tuple[float, float], k: int, least: float | None
) -> None:
    world = memory_world(Recorder(), MeddlingVectors())
    collection = fill(world, *corpus)
    query = VectorQuery(world.embedder.embed([question]).vectors[0], [collection.id], 100)
    found = (
        world.vectors.search(ACME, world.embedder.space, query),
        world.vectors.search_text(
            ACME, world.embedder.space, TextQuery(query_terms(question), [collection.id], limit=100)
        ),
    )
    scores = dict[ChunkId, float]()
    for each, matches in zip(weights, found, strict=True):
        for rank, match in enumerate(matches, start=1):
            if each:
                scores[match.chunk_id] = scores.get(match.chunk_id, 0) + each / (k + rank)
    bar = least if least is None else min(least, sum(weights) / (k + 1))
    expected = sorted(
        ((one, score) for one, score in scores.items() if bar is None or score >= bar),
        key=lambda place: (-place[1], place[0]),
    )
    options = {"weights": {"vector": weights[0], "bm25": weights[1]}, "rrf_k": k}
    result = ask(world, question, strategy="hybrid", top_k=top_k, min_score=bar, options=options)
    assert places(result) == expected[:top_k]
    world.vectors.close()


# -- maximal marginal relevance ------------------------------------------------------------------------


def test_mmr_takes_what_differs_before_what_says_the_same_again(world: World) -> None:
    fill(world, "red green blue", "blue green red", "red")
    assert texts(ask(world, strategy="mmr", top_k=2, options={"mmr_lambda": 0.5}))[1] == "red"
    assert set(texts(ask(world, strategy="mmr", top_k=2, options={"mmr_lambda": 1}))) == {
        "red green blue",
        "blue green red",
    }


def test_lambda_1_is_the_order_of_similarity(world: World) -> None:
    fill(world, *COLOURS)
    assert places(ask(world, strategy="mmr", options={"mmr_lambda": 1})) == places(ask(world))


def test_mmr_chooses_among_three_times_top_k_and_at_least_twenty(world: World, vectors: MeddlingVectors) -> None:
    fill(world, *(f"red {number}" for number in range(30)))
    for top_k, pool in ((1, 20), (6, 20), (7, 21), (100, 300)):
        ask(world, strategy="mmr", top_k=top_k)
        assert vectors.searches[-1].limit == pool


def test_what_min_score_cuts_stands_in_nobodys_way(world: World) -> None:
    fill(world, *COLOURS)
    whole = ask(world)
    bar = whole.hits[3].score
    result = ask(world, strategy="mmr", min_score=bar, options={"mmr_lambda": 0.1, "explain": True})
    assert {hit.chunk.id for hit in result.hits} == {hit.chunk.id for hit in whole.hits[:4]}
    assert result.reason is not None
    assert (result.reason.code, result.reason.best_score) == (ReasonCode.BELOW_MIN_SCORE, whole.hits[4].score)


# -- rerank -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", FIRST_STAGES)
@pytest.mark.parametrize("fuse", [True, False])
def test_a_reranker_judges_the_best_of_each_first_stage(world: World, first: Strategy, fuse: bool) -> None:
    reranker = with_reranker(world)
    # How many MMR takes depends on top_k, so that there it is asked about all there is.
    fill(world, *(f"{text} {number}" for number, text in enumerate((COLOURS * 4)[: 20 if first == "mmr" else 28])))
    options = {"first_stage": first, "fuse": fuse, "explain": True, "rrf_k": 5}
    result = ask(world, strategy="rerank", top_k=5, options=options)
    [(question, judged)] = reranker.calls
    found = ask(world, strategy=first, top_k=20, options={"mmr_lambda": 0.7, "rrf_k": 5})
    assert (question, judged) == (QUESTION, texts(found)), (
        "the reranker gets the best 20 in the order of the first stage"
    )
    ids = {hit.chunk.text: hit.chunk.id for hit in found.hits}
    scores = {text: word_overlap(QUESTION, text) for text in judged}
    by_score = sorted(judged, key=lambda text: (-scores[text], ids[text]))
    if fuse:
        scores = {text: 1 / (6 + judged.index(text)) + 1 / (6 + by_score.index(text)) for text in judged}
    expected = sorted(judged, key=lambda text: (-scores[text], ids[text]))[:5]
    assert [(hit.chunk.text, hit.score) for hit in result.hits] == [(text, scores[text]) for text in expected]
    assert result.score == (ScoreKind.RRF if fuse else ScoreKind.RERANK)


@pytest.mark.parametrize("first", FIRST_STAGES)
@pytest.mark.parametrize("function", ["retrieve", "compare"])
def test_a_reranker_that_fails_is_an_error_unless_the_question_allows_for_it(
    world: World, recorder: Recorder, first: Strategy, function: str
) -> None:
    reranker = with_reranker(world)
    fill(world, *COLOURS)
    call = getattr(world.engine, function)
    for failure in (Unavailable("The model does not answer"), NotConfigured("The model refuses the account")):
        reranker.failure = failure
        asked = {"query": QUESTION, "strategy": "rerank", "top_k": 5, "min_score": 0.03}
        with pytest.raises(type(failure)):
            call(ACME, RetrieveQuery.model_validate(asked | {"options": {"first_stage": first}}))
        assert recorder.hooks[-2:] == ["retrieval_started", "retrieval_failed"]
        result = call(ACME, RetrieveQuery.model_validate(asked | {"options": {"first_stage": first, "fallback": True}}))
        assert result.fallback is not None
        assert (result.fallback.stage, result.fallback.code) == (Strategy.RERANK, failure.code)
        assert result.fallback.detail == failure.detail
        assert (result.strategy, result.score) == (Strategy.RERANK, KINDS[first])
        assert len(result.hits) == 5, "min_score applies only to scores of the reranker"
        assert result.reason is None
        pool = ask(world, strategy=first, top_k=20).hits
        assert places(result) == [(hit.chunk.id, hit.score) for hit in pool[:5]]


def test_a_slow_reranker_is_one_that_fails(world: World) -> None:
    slow = WordOverlapReranker(world.clock, seconds=0.0)
    world.rebuild(reranker=slow)
    fill(world, *COLOURS)
    with pytest.raises(Unavailable):
        ask(world, strategy="rerank")
    result = ask(world, strategy="rerank", options={"fallback": True})
    assert result.fallback is not None
    assert places(result) == places(ask(world, strategy="hybrid"))


def test_a_reranker_that_answers_is_no_fallback(world: World) -> None:
    with_reranker(world)
    fill(world, *COLOURS)
    assert ask(world, strategy="rerank", options={"fallback": True}).fallback is None


@pytest.mark.parametrize("function", ["retrieve", "compare"])
@pytest.mark.parametrize("fallback", [True, False])
def test_without_a_reranker_nothing_is_embedded(world: World, function: str, fallback: bool) -> None:
    fill(world, "red")
    calls = world.embedder.calls
    query = RetrieveQuery.model_validate({"query": "red", "strategy": "rerank", "options": {"fallback": fallback}})
    with pytest.raises(NotConfigured, match="reranker"):
        getattr(world.engine, function)(ACME, query)
    assert world.embedder.calls == calls


def test_a_reranker_is_not_asked_about_nothing(world: World) -> None:
    reranker = with_reranker(world)
    world.collection()
    result = ask(world, strategy="rerank")
    assert (result.hits, reranker.calls) == ([], [])


# -- several collections -------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", Strategy)
def test_several_collections_of_one_model_are_embedded_once_and_merged_by_score(
    world: World, vectors: MeddlingVectors, strategy: Strategy
) -> None:
    with_reranker(world)
    ids = [fill(world, f"red {name}", "green", name=name).id for name in ("one", "two", "three")]
    calls, searches = world.embedder.calls, len(vectors.searches)
    result = ask(world, "red", strategy=strategy, collections=[*ids, ids[0]])
    assert world.embedder.calls == calls + 1
    assert len(vectors.searches) == searches + 1
    assert {hit.chunk.collection_id for hit in result.hits[:3]} == set(ids)
    assert len(result.hits) == 6, "a collection that is named twice is searched once"


@pytest.mark.parametrize("function", ["retrieve", "compare"])
def test_a_missing_collection_among_several_is_not_found_before_anything_is_embedded(
    world: World, function: str
) -> None:
    embedders = with_models(world, "a", "b")
    there = [fill(world, "red", name=name, embedding_model=name).id for name in ("a", "b")]
    calls = {name: one.calls for name, one in embedders.items()}
    query = RetrieveQuery(query="red", collections=[*there, CollectionId.new(1, 1)])
    with pytest.raises(CollectionNotFound):
        getattr(world.engine, function)(ACME, query)
    assert {name: one.calls for name, one in embedders.items()} == calls


@pytest.fixture
def models(world: World) -> dict[str, HashedEmbedder]:
    """Two embedding models, with two collections each."""
    embedders = with_models(world, "a", "b")
    for name in ("a 1", "b 1", "a 2", "b 2"):
        fill(world, f"red green {name}", f"red {name}", f"pale {name}", name=name, embedding_model=name[0])
    return embedders


@pytest.mark.parametrize("strategy", [Strategy.SIMILARITY, Strategy.HYBRID, Strategy.RERANK])
def test_several_models_are_each_embedded_once_and_fused_by_rank(
    world: World, models: dict[str, HashedEmbedder], strategy: Strategy
) -> None:
    with_reranker(world)
    calls = {name: one.calls for name, one in models.items()}
    result = ask(world, "red green", strategy=strategy, options={"explain": True})
    assert {name: one.calls for name, one in models.items()} == {name: count + 1 for name, count in calls.items()}
    assert (result.models, result.score) == (["a", "b"], ScoreKind.RRF)
    assert len(result.hits) == 10
    if strategy is Strategy.SIMILARITY:
        assert [hit.score for hit in result.hits] == [1 / (60 + rank) for rank in range(1, 6) for _ in "ab"]
        ranks = [hit.signals and hit.signals.vector and hit.signals.vector.rank for hit in result.hits]
        assert ranks == [rank for rank in range(1, 6) for _ in "ab"], (
            "each hit has its rank in the ranking of its own model"
        )


def test_the_order_in_which_collections_are_named_changes_nothing(
    world: World, models: dict[str, HashedEmbedder]
) -> None:
    ids = [collection.id for collection in world.engine.collections.list(ACME, PageRequest()).items]
    for strategy in (Strategy.SIMILARITY, Strategy.HYBRID):
        answers = {str(places(ask(world, strategy=strategy, collections=some))) for some in (ids, ids[::-1])}
        assert len(answers) == 1


@pytest.mark.parametrize("options", [{"strategy": "mmr"}, {"strategy": "rerank", "options": {"first_stage": "mmr"}}])
def test_vectors_of_several_models_cannot_be_told_apart_so_mmr_is_refused(
    world: World, models: dict[str, HashedEmbedder], options: dict[str, Any]
) -> None:
    with_reranker(world)
    calls = {name: one.calls for name, one in models.items()}
    with pytest.raises(InvalidArgument) as refused:
        ask(world, **options)
    assert refused.value.extras["field"] == "strategy"
    assert {name: one.calls for name, one in models.items()} == calls
    one = world.engine.collections.get_by_name(ACME, "a 1")
    assert ask(world, collections=[one.id], **options).hits


# -- min_score ----------------------------------------------------------------------------------------

RANGES = [
    ({"strategy": "similarity"}, -1.0, 1.0),
    ({"strategy": "mmr"}, -1.0, 1.0),
    ({"strategy": "hybrid"}, 0.0, 2 / 61),
    ({"strategy": "hybrid", "options": {"rrf_k": 1, "weights": {"vector": 3, "bm25": 0.5}}}, 0.0, 3 / 2 + 0.5 / 2),
    ({"strategy": "rerank"}, 0.0, 2 / 61),
    ({"strategy": "rerank", "options": {"rrf_k": 9, "weights": {"vector": 5}}}, 0.0, 2 / 10),
    ({"strategy": "rerank", "options": {"fuse": False}}, 0.0, 1.0),
]


@pytest.mark.parametrize(("asked", "low", "high"), RANGES)
def test_min_score_is_within_the_range_of_the_kind(
    world: World, asked: dict[str, Any], low: float, high: float
) -> None:
    with_reranker(world)
    fill(world, *COLOURS)
    everything = ask(world, min_score=low, **asked)
    assert all(low <= hit.score <= high for hit in everything.hits)
    ask(world, min_score=high, **asked)
    calls = world.embedder.calls
    for least in (low - 0.001, high + 0.001, -1e300, 1e300):
        with pytest.raises(InvalidArgument) as refused:
            ask(world, min_score=least, **asked)
        assert refused.value.extras == {"field": "min_score", "lowest": low, "highest": high}
    assert world.embedder.calls == calls


def test_the_range_of_several_models_fused_by_rank_is_of_one_rank(
    world: World, models: dict[str, HashedEmbedder]
) -> None:
    assert len(ask(world, min_score=1 / 61).hits) == 2
    with pytest.raises(InvalidArgument):
        ask(world, min_score=1.01 / 61)


@pytest.mark.parametrize(("asked", "low", "high"), RANGES)
def test_min_score_keeps_what_reaches_it_and_names_the_best_that_does_not(
    world: World, asked: dict[str, Any], low: float, high: float
) -> None:
    with_reranker(world)
    fill(world, *COLOURS)
    scores = sorted((hit.score for hit in ask(world, **asked).hits), reverse=True)
    bar = max(scores[2], low)
    result = ask(world, min_score=bar, **asked)
    assert sorted((hit.score for hit in result.hits), reverse=True) == [score for score in scores if score >= bar]
    assert result.reason is not None
    assert result.reason.code == ReasonCode.BELOW_MIN_SCORE
    assert result.reason.best_score == max(score for score in scores if score < bar)


# -- what is not served --------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", Strategy)
def test_orphans_are_kept_and_marked_by_every_strategy(world: World, strategy: Strategy) -> None:
    with_reranker(world)
    collection = fill(world, "red green", "pale")
    orphan = world.ingest(collection, "red green blue stray").document_id
    assert orphan is not None
    rows = [row for row in world.rows() if orphan in str(row["pk"]) + str(row["sk"])]
    for row in rows:
        world.dynamodb.delete_item(TableName="weft-test", Key={"pk": row["pk"], "sk": row["sk"]})
    hits = ask(world, strategy=strategy).hits
    assert [(hit.chunk.text, hit.document) for hit in hits if hit.orphaned] == [("red green blue stray", None)]
    assert sum(hit.hydrated for hit in hits) == 2


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("top_k", [1, 2, 10])
def test_a_source_that_is_replaced_between_the_searches_and_the_reads_is_of_one_version(
    world: World, vectors: MeddlingVectors, strategy: Strategy, top_k: int
) -> None:
    with_reranker(world)
    collection = world.collection(chunk_size=3, chunk_overlap=0)
    world.ingest(collection, "red green old1 red green old2", source_key="a")
    vectors.after_search = [lambda: world.ingest(collection, "red green new1 red green new2", source_key="a")]
    seen = texts(ask(world, strategy=strategy, top_k=top_k))
    assert len(seen) == min(2, top_k)
    assert len({text[-4:-1] for text in seen}) == 1, f"the answer holds one version alone: {seen}"


@pytest.mark.parametrize("when", ["before the search by terms", "after it", "after the state", "after the rows"])
@pytest.mark.parametrize("function", ["retrieve", "compare"])
def test_whenever_a_source_is_replaced_a_hybrid_answer_is_of_one_version(
    world: World, vectors: MeddlingVectors, monkeypatch: pytest.MonkeyPatch, when: str, function: str
) -> None:
    collection = world.collection(chunk_size=3, chunk_overlap=0)
    world.ingest(collection, "red green old1 red green old2", source_key="a")
    steps = [lambda: world.ingest(collection, "red green new1 red green new2", source_key="a")]

    def after(owner: object, name: str) -> None:
        real = getattr(owner, name)

        def once(*arguments: Any, **named: Any) -> Any:
            answer = real(*arguments, **named)
            if steps:
                steps.pop()()
            return answer

        monkeypatch.setattr(owner, name, once)

    owner, name = {
        "before the search by terms": (vectors, "search"),
        "after it": (vectors, "search_text"),
        "after the state": (Documents, "serving"),
        "after the rows": (Documents, "chunks_and_infos"),
    }[when]
    after(owner, name)
    query = RetrieveQuery(query=QUESTION, strategy=Strategy.HYBRID)
    seen = texts(getattr(world.engine, function)(ACME, query))
    assert not steps, "the source was replaced during the search"
    assert len(seen) == 2
    assert len({text[-4:-1] for text in seen}) == 1, f"the answer holds one version alone: {seen}"


def test_what_is_on_its_way_takes_no_rank_from_what_is_served(world: World, recorder: Recorder) -> None:
    collection = fill(world, *COLOURS)
    before = ask(world, strategy="hybrid", options={"explain": True, "weights": {"bm25": 0}})
    for number in range(6):
        die(world, recorder, collection, "red green blue", source_key=f"coming {number}")
    after = ask(world, strategy="hybrid", options={"explain": True, "weights": {"bm25": 0}})
    assert [(hit.chunk.id, hit.score) for hit in after.hits] == [(hit.chunk.id, hit.score) for hit in before.hits]


@pytest.mark.parametrize("strategy", Strategy)
def test_a_lost_row_of_a_source_is_refilled(world: World, strategy: Strategy) -> None:
    with_reranker(world)
    collection = fill(world, "red green pale", "red")
    lost = world.ingest(collection, QUESTION, source_key="lost").document_id
    assert isinstance(lost, DocumentId)
    world.stores.documents.delete_chunks(ACME, [ChunkId.of(lost, 1, 0)])
    result = ask(world, strategy=strategy, top_k=2)
    assert set(texts(result)) == {"red green pale", "red"}
    assert [hit.rank for hit in result.hits] == [1, 2]


@pytest.mark.parametrize("strategy", Strategy)
def test_signals_are_there_when_they_are_asked_for(world: World, strategy: Strategy) -> None:
    with_reranker(world)
    fill(world, *COLOURS)
    assert all(hit.signals is None for hit in ask(world, strategy=strategy).hits)
    assert "signals" not in ask(world, strategy=strategy).model_dump_json()
    hits = ask(world, strategy=strategy, options={"explain": True}).hits
    for hit in hits:
        assert hit.signals is not None
        assert hit.signals.final is not None
        assert (hit.signals.final.rank, hit.signals.final.score) == (hit.rank, hit.score)


def test_no_search_begins_after_the_deadline(world: World) -> None:
    world.ingest(world.collection(), "red", source_key="a")
    question = RetrieveQuery(query="red", strategy=Strategy.HYBRID)
    later = world.clock.monotonic() + 10
    assert world.engine.retrieve(ACME, question, deadline=later).hits
    with pytest.raises(Unavailable, match="longer than one call"):
        world.engine.retrieve(ACME, question, deadline=world.clock.monotonic())
    with pytest.raises(Unavailable, match="longer than one call"):
        world.engine.compare(ACME, question, deadline=world.clock.monotonic())


def test_an_embedder_that_has_other_dimensions_now_is_said_so(world: World) -> None:
    collection = world.collection()
    world.ingest(collection, "red", source_key="a")
    model = collection.embedding_model
    world.rebuild(embedders=[HashedEmbedder(model, dimensions=32)])
    with pytest.raises(NotConfigured, match="32 dimensions"):
        world.engine.retrieve(ACME, RetrieveQuery(query="red"))
    with pytest.raises(NotConfigured, match="32 dimensions"):
        world.ingest(collection, "green", source_key="b")

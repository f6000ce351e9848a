"""Floors that a wrong score, analyser or fusion falls through.

They are a little below what was measured. The project's own collections are measured always, public ones where they are
found; `python -m tests.benchmarks.quality` measures those whole.
"""

import statistics
from collections.abc import Callable

import pytest

from core.model.query import Strategy
from core.vectors.types import VectorStore
from tests.quality import own
from tests.quality.baseline import Baseline
from tests.quality.corpora import Corpus
from tests.quality.indexed import Indexed
from tests.quality.kept import KeptEmbedder
from tests.quality.measures import ndcg
from tests.quality.public import public
from tests.quality.searched import Searched
from tests.support.opensearch import ON_OPENSEARCH

TOLERANCE = 0.005
"""How far BM25 may be below another library's, in nDCG@10."""
SAME = 30
"""Questions that a second store has to answer as the first does."""


def mean_ndcg(corpus: Corpus, ask: Callable[[str, int], list[str]]) -> float:
    return statistics.fmean(ndcg(ask(text, 10), corpus.judgments[name]) for name, text in corpus.questions.items())


def by_strategy(corpus: Corpus, store: VectorStore, embedder: KeptEmbedder) -> dict[str, float]:
    searched = Searched(corpus, store, embedder)

    def asking(strategy: Strategy) -> Callable[[str, int], list[str]]:
        return lambda question, top_k: searched.ranking(question, strategy, top_k)

    asks = {one.value: asking(one) for one in Strategy if one is not Strategy.RERANK}
    return {name: mean_ndcg(corpus, ask) for name, ask in {**asks, "bm25": searched.by_terms}.items()}


def test_every_strategy_answers_the_handbook_as_well_as_ever_and_hybrid_better_than_its_parts(
    store: VectorStore, embedder: KeptEmbedder
) -> None:
    found = by_strategy(own.handbook(), store, embedder)
    assert found["bm25"] >= 0.915, found
    assert found["similarity"] >= 0.940, found
    assert found["mmr"] >= 0.940, found
    assert found["hybrid"] >= 0.975, found
    assert found["hybrid"] > max(found["similarity"], found["bm25"]), found


def test_terms_are_found_in_many_languages_and_scripts(store: VectorStore) -> None:
    tongues = own.tongues()
    assert mean_ndcg(tongues, Indexed(tongues, store).ranking) >= 0.975


def test_bm25_answers_the_handbook_no_worse_than_another_library(store: VectorStore) -> None:
    handbook = own.handbook()
    assert mean_ndcg(handbook, Indexed(handbook, store).ranking) >= mean_ndcg(handbook, Baseline(handbook).ranking)


@pytest.mark.parametrize("name", ["scifact_mini", "xquad_en", "xquad_es", "xquad_zh"])
def test_bm25_is_no_worse_than_another_library_on_a_public_collection(name: str, embedded: VectorStore) -> None:
    corpus = public(name)
    ours = mean_ndcg(corpus, Indexed(corpus, embedded).ranking)
    assert ours >= mean_ndcg(corpus, Baseline(corpus).ranking) - TOLERANCE


@ON_OPENSEARCH
@pytest.mark.parametrize("name", ["scifact_mini", "xquad_zh"])
def test_OpenSearch_ranks_a_public_collection_as_the_embedded_store_does(
    name: str, embedded: VectorStore, served: VectorStore
) -> None:
    corpus = public(name).asking(SAME)
    first, second = Indexed(corpus, embedded), Indexed(corpus, served)
    for question in corpus.questions.values():
        assert second.ranking(question, 100) == first.ranking(question, 100), question


def test_hybrid_is_no_worse_than_its_parts_on_a_public_collection(
    embedded: VectorStore, embedder: KeptEmbedder
) -> None:
    found = by_strategy(public("xquad_en").of(60).asking(100), embedded, embedder)
    # Both parts are nearly perfect here: where a question falls is decided by the order of equal fused scores.
    assert found["hybrid"] >= max(found["similarity"], found["bm25"]) - TOLERANCE, found

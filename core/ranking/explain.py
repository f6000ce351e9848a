"""The final order again, from the figures in an answer alone."""

from collections.abc import Iterator

from core.model.comparison import CompareHit, CompareResult
from core.model.hit import MmrSignal, Signal, Signals
from core.model.ids import ChunkId
from core.model.query import Strategy
from core.ranking.fusion import in_order, share
from core.ranking.mmr import Marginal, order, value


def explain(answer: CompareResult) -> list[ChunkId]:
    """The order of all chunks in a comparison that could become hits: first the hits, then what was left out.

    Every score and every value is computed anew, from ranks, cosines, BM25 scores, penalties and the reranker's
    scores; no order in the answer is used.

    Raises:
        ValueError: a figure in the answer is not what its parts give.
    """
    ranked = {_id(hit): hit for hit in (*answer.hits, *answer.left_out) if _signals(hit).final is not None}
    for chunk_id, hit in ranked.items():
        for said, computed in _figures(answer, hit):
            if said != computed:
                raise ValueError(f"{chunk_id} has {said!r} in the answer, and its parts give {computed!r}")
    scores = {chunk_id: _score(answer, _strategy(answer), _signals(hit)) for chunk_id, hit in ranked.items()}
    if _strategy(answer) is Strategy.MMR:
        return _differing(answer, {one: _signals(hit).mmr for one, hit in ranked.items()}, scores)
    ordered = [chunk_id for chunk_id, _ in in_order(scores.items())]
    least = answer.min_score
    hits = [one for one in ordered if least is None or scores[one] >= least][: len(answer.hits)]
    return hits + [one for one in ordered if one not in set(hits)]


def _strategy(answer: CompareResult) -> Strategy:
    """The strategy whose order the final one is."""
    return answer.strategy if answer.fallback is None else answer.options.first_stage


def _figures(answer: CompareResult, hit: CompareHit) -> Iterator[tuple[float, float]]:
    """What the answer says, and what the parts of it give."""
    signals = _signals(hit)
    yield hit.score, _score(answer, _strategy(answer), signals)
    yield _number(signals.final), hit.score
    finder = answer.options.first_stage if answer.strategy is Strategy.RERANK else answer.strategy
    for found in (signals.fused, signals.first_stage):
        if found is not None:
            yield found.score, _score(answer, finder, signals)
    if signals.mmr is not None:
        yield signals.mmr.value, _worth(answer, _number(signals.vector), signals.mmr)


def _score(answer: CompareResult, strategy: Strategy, signals: Signals) -> float:
    """By one strategy. Scores of several models' vectors do not compare: their ranks are fused."""
    match strategy:
        case Strategy.HYBRID:
            return _fused(answer, signals)
        case Strategy.RERANK if answer.options.fuse:
            first, judged = _rank(signals.first_stage), _rank(signals.rerank)
            return share(first, 1.0, answer.options.rrf_k) + share(judged, 1.0, answer.options.rrf_k)
        case Strategy.RERANK:
            return _number(signals.rerank)
        case Strategy.SIMILARITY if len(answer.models) > 1:
            return share(_rank(signals.vector), 1.0, answer.options.rrf_k)
        case _:
            return _number(signals.vector)


def _fused(answer: CompareResult, signals: Signals) -> float:
    """By reciprocal rank fusion, added in the order vector, BM25. A place that took no part adds nothing."""
    weights = answer.options.weights
    total = 0.0
    for place, weight in ((signals.vector, weights.vector), (signals.bm25, weights.bm25)):
        if place is not None and place.rank <= answer.candidates and weight > 0:
            total += share(place.rank, weight, answer.options.rrf_k)
    return total


def _worth(answer: CompareResult, score: float, mmr: MmrSignal) -> float:
    return value(score, mmr.penalty, answer.options.mmr_lambda)


def _differing(
    answer: CompareResult, signals: dict[ChunkId, MmrSignal | None], scores: dict[ChunkId, float]
) -> list[ChunkId]:
    """By maximal marginal relevance; what min_score cuts took no part, and comes last."""
    marginal = [
        Marginal(one, scores[one], _worth(answer, scores[one], mmr)) for one, mmr in signals.items() if mmr is not None
    ]
    low = in_order((one, scores[one]) for one, mmr in signals.items() if mmr is None)
    return [one.chunk_id for one in sorted(marginal, key=order)] + [chunk_id for chunk_id, _ in low]


def _signals(hit: CompareHit) -> Signals:
    return hit.signals or Signals()


def _id(hit: CompareHit) -> ChunkId:
    if hit.chunk.id is None:
        raise ValueError("A hit without a chunk's ID cannot be explained")
    return hit.chunk.id


def _rank(place: Signal | None) -> int:
    if place is None:
        raise ValueError("A place that the order needs is not in the answer")
    return place.rank


def _number(place: Signal | None) -> float:
    if place is None:
        raise ValueError("A score that the order needs is not in the answer")
    return place.score

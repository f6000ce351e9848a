"""The final order again, from the figures in an answer alone."""

from collections.abc import Sequence

from core.model.hit import CompareHit, CompareResult, Signal, Signals
from core.model.ids import ChunkId
from core.model.query import ScoreKind, Strategy
from core.ranking.fusion import in_order, share
from core.ranking.mmr import Marginal, order, value


def explain(answer: CompareResult) -> list[ChunkId]:
    """The order of all chunks in a comparison that could become hits: first the hits, then what was left out.

    Every score and every value is computed anew, from ranks, cosines, BM25 scores, penalties and the reranker's
    scores; no order in the answer is used.

    Raises:
        ValueError: a figure in the answer is not what its parts give.
    """
    ranked = [hit for hit in (*answer.hits, *answer.left_out) if _signals(hit).final is not None]
    scores = [(_id(hit), _score(answer, _signals(hit))) for hit in ranked]
    for hit, (_, score) in zip(ranked, scores, strict=True):
        if hit.score != score:
            raise ValueError(f"{_id(hit)} has the score {hit.score!r}, and its parts give {score!r}")
    if _strategy(answer) is Strategy.MMR:
        return _differing(answer, ranked)
    ordered = [chunk_id for chunk_id, _ in in_order(scores)]
    least = answer.min_score if answer.fallback is None else None
    known = dict(scores)
    hits = [one for one in ordered if least is None or known[one] >= least][: len(answer.hits)]
    return hits + [one for one in ordered if one not in set(hits)]


def _strategy(answer: CompareResult) -> Strategy:
    """The strategy whose order the final one is."""
    return answer.strategy if answer.fallback is None else answer.options.first_stage


def _score(answer: CompareResult, signals: Signals) -> float:
    match _strategy(answer):
        case Strategy.HYBRID:
            return _fused(answer, signals)
        case Strategy.RERANK if answer.options.fuse:
            first, judged = _rank(signals.first_stage), _rank(signals.rerank)
            return share(first, 1.0, answer.options.rrf_k) + share(judged, 1.0, answer.options.rrf_k)
        case Strategy.RERANK:
            return _number(signals.rerank)
        case Strategy.SIMILARITY if answer.score is ScoreKind.RRF:
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


def _differing(answer: CompareResult, ranked: Sequence[CompareHit]) -> list[ChunkId]:
    """By maximal marginal relevance; what min_score cuts took no part, and comes last."""
    marginal = []
    for hit in ranked:
        mmr = _signals(hit).mmr
        if mmr is None:
            continue
        worth = value(hit.score, mmr.penalty, answer.options.mmr_lambda)
        if mmr.value != worth:
            raise ValueError(f"{_id(hit)} is worth {mmr.value!r}, and its parts give {worth!r}")
        marginal.append(Marginal(_id(hit), hit.score, worth))
    low = in_order((_id(hit), hit.score) for hit in ranked if _signals(hit).mmr is None)
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

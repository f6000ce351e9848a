"""The ranking of an answer, computed again from the figures in the answer alone."""

from collections.abc import Iterator

from core.model.comparison import CompareHit, CompareResult
from core.model.hit import MmrSignal, Signal, Signals
from core.model.ids import ChunkId
from core.model.query import Strategy
from core.ranking.fusion import best_first, rank_share
from core.ranking.mmr import MmrResult, marginal_relevance, ranking_key


def explain(answer: CompareResult) -> list[ChunkId]:
    """Ranks the chunks of a comparison again: first its hits, then the chunks that were left out but had a final rank.

    Every score is computed from ranks, cosines, BM25 scores, penalties and the reranker's scores. The order in which
    the answer lists its chunks is not used.

    Raises:
        ValueError: a score in the answer is not the one that follows from its other figures, or a figure is missing.
            The answer was changed, or ranked by another formula.
    """
    ranked = {_chunk_id(hit): hit for hit in (*answer.hits, *answer.left_out) if _signals(hit).final is not None}
    for chunk_id, hit in ranked.items():
        for stated, computed in _figures(answer, hit):
            if stated != computed:
                raise ValueError(f"{chunk_id} has {stated!r} in the answer, and its parts give {computed!r}")
    scores = {chunk_id: _score(answer, _strategy(answer), _signals(hit)) for chunk_id, hit in ranked.items()}
    if _strategy(answer) is Strategy.MMR:
        return _by_mmr(answer, {chunk_id: _signals(hit).mmr for chunk_id, hit in ranked.items()}, scores)
    order = [chunk_id for chunk_id, _ in best_first(scores.items())]
    min_score = answer.min_score
    passing = [chunk_id for chunk_id in order if min_score is None or scores[chunk_id] >= min_score]
    hits = passing[: len(answer.hits)]
    return hits + [chunk_id for chunk_id in order if chunk_id not in set(hits)]


def _strategy(answer: CompareResult) -> Strategy:
    """Returns the strategy that made the final ranking: after a fallback, the first stage's."""
    return answer.strategy if answer.fallback is None else answer.options.first_stage


def _figures(answer: CompareResult, hit: CompareHit) -> Iterator[tuple[float, float]]:
    """Yields each score that the answer states for a chunk, with the score that follows from the other figures."""
    signals = _signals(hit)
    yield hit.score, _score(answer, _strategy(answer), signals)
    yield _score_of(signals.final), hit.score
    first_stage = answer.options.first_stage if answer.strategy is Strategy.RERANK else answer.strategy
    for signal in (signals.fused, signals.first_stage):
        if signal is not None:
            yield signal.score, _score(answer, first_stage, signals)
    if signals.mmr is not None:
        yield signals.mmr.value, _marginal_relevance(answer, _score_of(signals.vector), signals.mmr)


def _score(answer: CompareResult, strategy: Strategy, signals: Signals) -> float:
    """Computes a chunk's score by a strategy."""
    match strategy:
        case Strategy.HYBRID:
            return _hybrid_score(answer, signals)
        case Strategy.RERANK if answer.options.fuse:
            ranks = (_rank_of(signals.first_stage), _rank_of(signals.rerank))
            return rank_share(ranks[0], 1.0, answer.options.rrf_k) + rank_share(ranks[1], 1.0, answer.options.rrf_k)
        case Strategy.RERANK:
            return _score_of(signals.rerank)
        case Strategy.SIMILARITY if len(answer.models) > 1:
            # Cosines of different models cannot be compared. The ranks are fused instead.
            return rank_share(_rank_of(signals.vector), 1.0, answer.options.rrf_k)
        case _:
            return _score_of(signals.vector)


def _hybrid_score(answer: CompareResult, signals: Signals) -> float:
    """Fuses the ranks by vector and by BM25, in this order. A rank beyond the candidates of the fusion adds nothing."""
    weights = answer.options.weights
    total = 0.0
    for signal, weight in ((signals.vector, weights.vector), (signals.bm25, weights.bm25)):
        if signal is not None and signal.rank <= answer.candidates and weight > 0:
            total += rank_share(signal.rank, weight, answer.options.rrf_k)
    return total


def _marginal_relevance(answer: CompareResult, score: float, mmr: MmrSignal) -> float:
    return marginal_relevance(score, mmr.penalty, answer.options.mmr_lambda)


def _by_mmr(
    answer: CompareResult, signals: dict[ChunkId, MmrSignal | None], scores: dict[ChunkId, float]
) -> list[ChunkId]:
    """Orders chunks by marginal relevance. Chunks below min_score have none: they were not ranked, and come last."""
    results = [
        MmrResult(chunk_id, scores[chunk_id], _marginal_relevance(answer, scores[chunk_id], mmr))
        for chunk_id, mmr in signals.items()
        if mmr is not None
    ]
    below = best_first((chunk_id, scores[chunk_id]) for chunk_id, mmr in signals.items() if mmr is None)
    return [result.chunk_id for result in sorted(results, key=ranking_key)] + [chunk_id for chunk_id, _ in below]


# -- parts of a hit --------------------------------------------------------------------------------


def _signals(hit: CompareHit) -> Signals:
    return hit.signals or Signals()


def _chunk_id(hit: CompareHit) -> ChunkId:
    if hit.chunk.id is None:
        raise ValueError("A hit without a chunk's ID cannot be explained")
    return hit.chunk.id


def _rank_of(signal: Signal | None) -> int:
    if signal is None:
        raise ValueError("A rank that the ranking needs is not in the answer")
    return signal.rank


def _score_of(signal: Signal | None) -> float:
    if signal is None:
        raise ValueError("A score that the ranking needs is not in the answer")
    return signal.score

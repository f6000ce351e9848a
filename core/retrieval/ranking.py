"""The strategies: what was found becomes one order, and every figure that made it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from core.model.errors import NotConfigured, Unavailable
from core.model.hit import Fallback, MmrSignal, Signal, Signals
from core.model.ids import ChunkId
from core.model.query import ScoreKind, Strategy
from core.ranking.fusion import Ranking, fuse, in_order
from core.ranking.mmr import Candidate, maximal_marginal_relevance
from core.retrieval.scope import Scope
from core.vectors.types import VectorMatch

Judge = Callable[[Sequence[str]], list[float]]
"""A reranker that knows the question: texts in, a score for each out."""
Scored = list[tuple[ChunkId, float]]


@dataclass(frozen=True)
class Matches:
    """What was found in one space, best first. ``by_terms`` is empty where no terms were searched for."""

    by_vector: list[VectorMatch]
    by_terms: list[VectorMatch]


@dataclass(frozen=True)
class Order:
    """All that could become hits, best first, with their scores.

    Attributes:
        signals: of every chunk that was found, also of those that took no part.
        kind: what the scores mean.
        least: hits have at least this score; None: any. After a fallback: any, for min_score is meant for
            the scores of the stage that failed.
    """

    scored: Scored
    kind: ScoreKind
    least: float | None
    signals: dict[ChunkId, Signals]
    fallback: Fallback | None = None


def rank(scope: Scope, found: Sequence[Matches], judge: Judge) -> Order:
    """The strategy's order of what was found.

    Raises:
        NotConfigured, Unavailable: the reranker, and the question does not allow to go on without it.
    """
    return _Ranker(scope, found).order(judge)


class _Ranker:
    def __init__(self, scope: Scope, found: Sequence[Matches]) -> None:
        self._scope = scope
        self._options = scope.options
        self._all = found
        self._vectors = [matches.by_vector[: scope.depth] for matches in found]
        self._terms = [matches.by_terms[: scope.depth] for matches in found]
        self._figures: defaultdict[ChunkId, dict[str, Any]] = defaultdict(dict)

    def order(self, judge: Judge) -> Order:
        for matches in self._all:
            self._note("vector", _scored(matches.by_vector))
            self._note("bm25", _scored(matches.by_terms))
        scope, fallback = self._scope, None
        least = scope.query.min_score
        scored, kind = self._found(), scope.kind(scope.strategy)
        if scope.strategy is Strategy.RERANK:
            scored = scored[: scope.pool]
            self._note("first_stage", scored)
            try:
                scored = self._judged(scored, judge)
            except (NotConfigured, Unavailable) as error:
                if not self._options.fallback:
                    raise
                kind, least = scope.kind(scope.finder), None
                fallback = Fallback(stage=scope.strategy, code=error.code, detail=error.detail)
        self._note("final", scored)
        signals = {chunk_id: Signals.model_construct(**figures) for chunk_id, figures in self._figures.items()}
        return Order(scored, kind, least, signals, fallback)

    def _found(self) -> Scored:
        match self._scope.finder:
            case Strategy.MMR:
                return self._differing()
            case Strategy.HYBRID:
                weights = self._options.weights
                pairs = zip(self._vectors, self._terms, strict=True)
                lists = [one for vector, bm25 in pairs for one in ((vector, weights.vector), (bm25, weights.bm25))]
                return self._fused(lists)
            case _ if len(self._vectors) == 1:
                return _scored(self._vectors[0])
            case _:
                return self._fused([(matches, 1.0) for matches in self._vectors])

    def _fused(self, lists: Iterable[tuple[Sequence[VectorMatch], float]]) -> Scored:
        rankings = [Ranking([match.chunk_id for match in matches], weight) for matches, weight in lists]
        fused = fuse(rankings, self._options.rrf_k)
        self._note("fused", fused)
        return fused

    def _differing(self) -> Scored:
        """What min_score cuts shall take no place, nor stand in another's way: it comes after all else."""
        [matches] = self._vectors or [[]]
        least = self._scope.query.min_score if self._scope.strategy is Strategy.MMR else None
        enough = [match for match in matches if least is None or match.score >= least]
        low = matches[len(enough) :]
        candidates = [
            Candidate(match.chunk_id, match.score, match.vector) for match in enough if match.vector is not None
        ]
        count = self._scope.top_k if self._scope.strategy is Strategy.MMR else self._scope.pool
        taken = maximal_marginal_relevance(candidates, self._options.mmr_lambda, count)
        for place, one in enumerate(taken, start=1):
            self._figures[one.chunk_id]["mmr"] = MmrSignal(
                rank=place, value=one.value, penalty=one.penalty, against=one.against
            )
        return [(one.chunk_id, one.score) for one in taken] + _scored(low)

    def _judged(self, scored: Scored, judge: Judge) -> Scored:
        texts = {match.chunk_id: match.text for matches in (*self._vectors, *self._terms) for match in matches}
        ids = [chunk_id for chunk_id, _ in scored]
        judged = in_order(zip(ids, judge([texts[one] for one in ids]) if ids else [], strict=True))
        self._note("rerank", judged)
        if not self._options.fuse:
            return judged
        return fuse([Ranking(ids), Ranking([chunk_id for chunk_id, _ in judged])], self._options.rrf_k)

    def _note(self, name: str, scored: Scored) -> None:
        for place, (chunk_id, score) in enumerate(scored, start=1):
            self._figures[chunk_id][name] = Signal.model_construct(rank=place, score=score)


def _scored(matches: Iterable[VectorMatch]) -> Scored:
    return [(match.chunk_id, match.score) for match in matches]

"""The strategies: they rank the matches of all searches and note every figure that made the ranking."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from core.model.errors import NotConfigured, Unavailable
from core.model.hit import Fallback, MmrSignal, Signal, Signals
from core.model.ids import ChunkId
from core.model.query import ScoreKind, Strategy
from core.ranking.fusion import Ranking, best_first, fuse
from core.ranking.mmr import MmrCandidate, maximal_marginal_relevance
from core.retrieval.scope import Scope
from core.vectors.types import VectorMatch

Judge = Callable[[Sequence[str]], list[float]]
"""A reranker that knows the query: it takes texts and returns a score for each."""
Scored = list[tuple[ChunkId, float]]


@dataclass(frozen=True)
class Matches:
    """The matches of one vector space, best first. ``by_terms`` is empty for strategies that do not search by terms."""

    by_vector: list[VectorMatch]
    by_terms: list[VectorMatch]


@dataclass(frozen=True)
class RankedMatches:
    """The matches that may become hits, ranked by a strategy.

    Attributes:
        scored: the chunks and their scores, best first.
        kind: what the scores mean.
        min_score: the least score of a hit; None: any. None after a fallback as well, because the query's min_score is
            meant for the scores of the stage that failed.
        signals: of every match, also of matches that took no part in the ranking.
        fallback: the reranker's failure, when the first stage's ranking stands in for it.
    """

    scored: Scored
    kind: ScoreKind
    min_score: float | None
    signals: dict[ChunkId, Signals]
    fallback: Fallback | None = None


def rank(scope: Scope, matches: Sequence[Matches], judge: Judge) -> RankedMatches:
    """Ranks matches by the scope's strategy.

    Raises:
        NotConfigured, Unavailable: the reranker fails, and the query does not allow a fallback.
    """
    return _Ranker(scope, matches).rank(judge)


class _Ranker:
    def __init__(self, scope: Scope, spaces: Sequence[Matches]) -> None:
        self._scope = scope
        self._options = scope.options
        self._spaces = spaces
        self._vectors = [matches.by_vector[: scope.depth] for matches in spaces]
        self._terms = [matches.by_terms[: scope.depth] for matches in spaces]
        self._figures: defaultdict[ChunkId, dict[str, Any]] = defaultdict(dict)

    def rank(self, judge: Judge) -> RankedMatches:
        for matches in self._spaces:
            self._record("vector", _scored(matches.by_vector))
            self._record("bm25", _scored(matches.by_terms))
        scope, fallback = self._scope, None
        min_score = scope.query.min_score
        scored, kind = self._first_stage(), scope.kind(scope.strategy)
        if scope.strategy is Strategy.RERANK:
            scored = scored[: scope.pool]
            self._record("first_stage", scored)
            try:
                scored = self._rerank(scored, judge)
            except (NotConfigured, Unavailable) as error:
                if not self._options.fallback:
                    raise
                kind, min_score = scope.kind(scope.finder), None
                fallback = Fallback(stage=scope.strategy, code=error.code, detail=error.detail)
        self._record("final", scored)
        signals = {chunk_id: Signals.model_construct(**figures) for chunk_id, figures in self._figures.items()}
        return RankedMatches(scored, kind, min_score, signals, fallback)

    def _first_stage(self) -> Scored:
        match self._scope.finder:
            case Strategy.MMR:
                return self._by_mmr()
            case Strategy.HYBRID:
                weights = self._options.weights
                pairs = zip(self._vectors, self._terms, strict=True)
                lists = [
                    weighted for vector, bm25 in pairs for weighted in ((vector, weights.vector), (bm25, weights.bm25))
                ]
                return self._fuse(lists)
            case _ if len(self._vectors) == 1:
                return _scored(self._vectors[0])
            case _:
                return self._fuse([(matches, 1.0) for matches in self._vectors])

    def _fuse(self, lists: Iterable[tuple[Sequence[VectorMatch], float]]) -> Scored:
        rankings = [Ranking([match.chunk_id for match in matches], weight) for matches, weight in lists]
        fused = fuse(rankings, self._options.rrf_k)
        self._record("fused", fused)
        return fused

    def _by_mmr(self) -> Scored:
        """Ranks by maximal marginal relevance.

        Matches below min_score are ranked last, so that they cannot push out a match that passes, nor lower its worth
        by resembling it.
        """
        [matches] = self._vectors or [[]]
        least = self._scope.query.min_score if self._scope.strategy is Strategy.MMR else None
        passing = [match for match in matches if least is None or match.score >= least]
        below = matches[len(passing) :]
        candidates = [
            MmrCandidate(match.chunk_id, match.score, match.vector) for match in passing if match.vector is not None
        ]
        count = self._scope.top_k if self._scope.strategy is Strategy.MMR else self._scope.pool
        chosen = maximal_marginal_relevance(candidates, self._options.mmr_lambda, count)
        for place, marginal in enumerate(chosen, start=1):
            self._figures[marginal.chunk_id]["mmr"] = MmrSignal(
                rank=place, value=marginal.value, penalty=marginal.penalty, against=marginal.against
            )
        return [(marginal.chunk_id, marginal.score) for marginal in chosen] + _scored(below)

    def _rerank(self, scored: Scored, judge: Judge) -> Scored:
        texts = {match.chunk_id: match.text for matches in (*self._vectors, *self._terms) for match in matches}
        chunk_ids = [chunk_id for chunk_id, _ in scored]
        scores = judge([texts[chunk_id] for chunk_id in chunk_ids]) if chunk_ids else []
        judged = best_first(zip(chunk_ids, scores, strict=True))
        self._record("rerank", judged)
        if not self._options.fuse:
            return judged
        return fuse([Ranking(chunk_ids), Ranking([chunk_id for chunk_id, _ in judged])], self._options.rrf_k)

    def _record(self, name: str, scored: Scored) -> None:
        for place, (chunk_id, score) in enumerate(scored, start=1):
            self._figures[chunk_id][name] = Signal.model_construct(rank=place, score=score)


def _scored(matches: Iterable[VectorMatch]) -> Scored:
    return [(match.chunk_id, match.score) for match in matches]

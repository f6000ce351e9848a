"""Compare: returns the final ranking beside the raw vector ranking, and says how every chunk moved between the two."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.clock import Clock
from core.model.comparison import CompareHit, CompareResult, Move, MoveCode
from core.model.hit import Reason, Signals
from core.model.ids import ChunkId
from core.model.query import RetrieveQuery, Strategy
from core.model.tenant import Tenant
from core.observe import Observer
from core.ranking.fusion import Ranking, fuse
from core.retrieval.ranking import Matches, Scored
from core.retrieval.reasons import Reasons
from core.retrieval.retrieve import RankedSearch, TopMatches, retrieval_hooks
from core.retrieval.scope import Scope, ScopeResolver
from core.retrieval.search import SearchResult, hit
from core.vectors.types import VectorMatch

MIN_WINDOW = 50


@dataclass(frozen=True)
class _Comparison:
    """Both rankings of the same matches.

    Attributes:
        raw: the window of the vector ranking, best first.
        left_out: chunks that the final ranking skipped over, in the order of the vector ranking.
    """

    final: TopMatches
    raw: Scored
    left_out: list[ChunkId]

    @property
    def candidates(self) -> list[VectorMatch]:
        return [self.final.by_id[chunk_id] for chunk_id in (*self.final.chunk_ids, *self.left_out)]


class CompareService:
    """Answers queries with a comparison of two rankings."""

    def __init__(
        self,
        scopes: ScopeResolver,
        ranked_search: RankedSearch,
        reasons: Reasons,
        observer: Observer,
        clock: Clock,
    ) -> None:
        self._scopes = scopes
        self._ranked_search = ranked_search
        self._reasons = reasons
        self._observer = observer
        self._clock = clock

    def compare(self, tenant: Tenant, query: RetrieveQuery, deadline: float | None = None) -> CompareResult:
        """Returns the final ranking beside the raw vector ranking of a wider window, max(3 · top_k, 50).

        The raw search takes the query's filter, and ignores its min_score.

        Raises:
            The errors of `core.retrieval.retrieve.RetrieveService.retrieve`.
        """
        with self._observer.timed("compare"), retrieval_hooks(self._observer, tenant, query):
            scope = self._scopes.resolve(tenant, query, deadline)
            window = max(3 * scope.top_k, MIN_WINDOW)
            start = self._clock.monotonic()
            result = self._ranked_search.search(
                tenant, scope, max(window, scope.depth), lambda matches: self._rank_both(scope, matches, window)
            )
            total_ms = (self._clock.monotonic() - start) * 1000
            answer = _Answer(scope, result)
            ranked = result.selected.final.ranked
            reason = self._reasons.reason(tenant, scope, ranked, answer.hits, bounded=result.bounded)
            return answer.compare_result(window, total_ms, reason)

    def _rank_both(self, scope: Scope, matches: list[Matches], window: int) -> _Comparison:
        raw = _raw(scope, matches)[:window]
        final = self._ranked_search.top_matches(scope, matches)
        left_out = _left_out(final.chunk_ids, [chunk_id for chunk_id, _ in raw])
        return _Comparison(final, raw, left_out[: scope.top_k])


def _raw(scope: Scope, spaces: Sequence[Matches]) -> Scored:
    """Returns the vector ranking. Rankings of several models are fused by rank; each score stays its model's cosine."""
    cosines = {match.chunk_id: match.score for matches in spaces for match in matches.by_vector}
    rankings = [Ranking([match.chunk_id for match in matches.by_vector]) for matches in spaces]
    return [(chunk_id, cosines[chunk_id]) for chunk_id, _ in fuse(rankings, scope.options.rrf_k)]


def _left_out(hits: Sequence[ChunkId], raw: Sequence[ChunkId]) -> list[ChunkId]:
    """Returns the raw chunks that are no hits and rank before the worst hit.

    When a hit is not in the raw ranking, every raw chunk that is no hit counts as left out.
    """
    if not hits:
        return []
    ranks = {chunk_id: rank for rank, chunk_id in enumerate(raw)}
    worst = max(ranks.get(chunk_id, len(raw)) for chunk_id in hits)
    return [chunk_id for chunk_id in raw[:worst] if chunk_id not in set(hits)]


class _Answer:
    """The hits of a comparison with their moves."""

    def __init__(self, scope: Scope, result: SearchResult[_Comparison]) -> None:
        self._scope = scope
        self._result = result
        self._ranked = result.selected.final.ranked
        self._scores = dict(self._ranked.scored)
        self._raw = {chunk_id: (rank, score) for rank, (chunk_id, score) in enumerate(result.selected.raw, start=1)}
        readable = [chunk_id for chunk_id in result.selected.final.chunk_ids if chunk_id in result.rows]
        self.hits = [self._hit(rank, chunk_id) for rank, chunk_id in enumerate(readable, start=1)]
        self.left_out = [self._hit(0, chunk_id) for chunk_id in result.selected.left_out if chunk_id in result.rows]

    def compare_result(self, window: int, total_ms: float, reason: Reason | None) -> CompareResult:
        """Returns the comparison."""
        scope, ranked, raw = self._scope, self._ranked, self._result.selected.raw
        same_search = scope.strategy is Strategy.SIMILARITY
        return CompareResult(
            hits=self.hits,
            left_out=self.left_out,
            window=window,
            vector_matches=len(raw),
            best_vector_score=raw[0][1] if raw else 0.0,
            reordered=any(hit.rank != hit.vector_rank for hit in self.hits) or bool(self.left_out),
            same_search=same_search,
            score=ranked.kind,
            strategy=scope.strategy,
            options=scope.options,
            models=scope.models,
            candidates=scope.depth,
            top_k=scope.top_k,
            min_score=ranked.min_score,
            retriever_ms=total_ms,
            vector_ms=total_ms if same_search else self._result.vector_seconds * 1000,
            reason=reason,
            fallback=ranked.fallback,
        )

    def _hit(self, rank: int, chunk_id: ChunkId) -> CompareHit:
        match = self._result.selected.final.by_id[chunk_id]
        signals = self._ranked.signals[chunk_id]
        vector_rank, vector_score = self._raw.get(chunk_id, (0, 0.0))
        score = self._scores.get(chunk_id, vector_score)
        made = hit(rank, score, match, self._result.rows[chunk_id], signals)
        move = self._moved(rank, vector_rank, signals) if rank else self._dropped(vector_rank, signals)
        return CompareHit(**dict(made), vector_rank=vector_rank, vector_score=vector_score, move=move)

    def _moved(self, rank: int, vector_rank: int, signals: Signals) -> Move:
        if not vector_rank:
            return Move(code=MoveCode.FROM_BEYOND_WINDOW, detail=f"Not in the vector window; {_figures(signals)}")
        if rank == vector_rank:
            return Move(code=MoveCode.SAME_RANK, detail=f"Rank {rank} in both; {_figures(signals)}")
        code = MoveCode.MOVED_UP if rank < vector_rank else MoveCode.MOVED_DOWN
        return Move(code=code, detail=f"From {vector_rank} to {rank}; {_figures(signals)}")

    def _dropped(self, vector_rank: int, signals: Signals) -> Move:
        final, least = signals.final, self._ranked.min_score
        if final is None:
            detail = f"{self._unranked(vector_rank, signals)}; {_figures(signals)}"
            return Move(code=MoveCode.NOT_A_CANDIDATE, detail=detail)
        if least is not None and final.score < least:
            detail = f"Its score {final.score:.4g} is below min_score {least:g}; {_figures(signals)}"
            return Move(code=MoveCode.BELOW_MIN_SCORE, detail=detail)
        detail = f"It would be number {final.rank}, and {self._scope.top_k} were asked for; {_figures(signals)}"
        return Move(code=MoveCode.BEYOND_TOP_K, detail=detail)

    def _unranked(self, vector_rank: int, signals: Signals) -> str:
        """Says why a match took no part in the final ranking."""
        if signals.fused is not None:
            return f"Number {signals.fused.rank} of the first stage, of which {self._scope.pool} go to the reranker"
        if self._scope.finder is Strategy.HYBRID:
            return "It has no word of the question, and vectors have no weight"
        return f"Vector rank {vector_rank} is beyond the {self._scope.depth} that are ranked"


def _figures(signals: Signals) -> str:
    """Writes the signals in one line, for a person."""
    figures = [
        f"{name} {place.rank} ({place.score:.4g})"
        for name, place in (
            ("vector", signals.vector),
            ("BM25", signals.bm25),
            ("fused", signals.fused),
            ("reranker", signals.rerank),
        )
        if place is not None
    ]
    if signals.mmr is not None:
        figures.append(f"MMR {signals.mmr.rank} ({signals.mmr.value:.4g}, penalty {signals.mmr.penalty:.4g})")
    return ", ".join(figures) or "no signal"

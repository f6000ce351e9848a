"""Compare: the final ranking beside the raw vector ranking, and what became of every chunk between the two."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.model.hit import CompareHit, CompareResult, Move, MoveCode, Signals
from core.model.ids import ChunkId
from core.model.query import RetrieveQuery, Strategy
from core.model.tenant import Tenant
from core.parts import Parts
from core.ranking.fusion import Ranking, fuse
from core.retrieval.ranking import Matches, Scored
from core.retrieval.reasons import reason_of
from core.retrieval.retrieve import Hits, asked, choose, find
from core.retrieval.scope import Scope, settle_scope
from core.retrieval.search import Found, hit
from core.vectors.types import VectorMatch

MIN_WINDOW = 50


@dataclass(frozen=True)
class _Comparison:
    """Both rankings.

    Attributes:
        raw: the vector ranking's window.
        left_out: what the final ranking skipped over, in vector order.
    """

    final: Hits
    raw: Scored
    left_out: list[ChunkId]

    @property
    def wanted(self) -> list[VectorMatch]:
        return [self.final.matches[one] for one in (*self.final.ids, *self.left_out)]


def compare(parts: Parts, tenant: Tenant, query: RetrieveQuery, deadline: float | None = None) -> CompareResult:
    """The final ranking beside the raw vector ranking of a wider window, max(3 · top_k, 50).

    The raw search takes the filter, and not min_score.

    Raises:
        As `core.retrieval.retrieve.retrieve`.
    """
    with parts.timed("compare"), asked(parts, tenant, query):
        scope = settle_scope(parts, tenant, query, deadline)
        window = max(3 * scope.top_k, MIN_WINDOW)
        start = parts.clock.monotonic()
        found = find(parts, tenant, scope, max(window, scope.depth), lambda one: _compared(parts, scope, one, window))
        total_ms = (parts.clock.monotonic() - start) * 1000
        same_search = scope.strategy is Strategy.SIMILARITY
        answer = _Answer(scope, found)
        hits, left_out = answer.hits(), answer.left_out()
        order, raw = found.chosen.final.order, found.chosen.raw
        return CompareResult(
            hits=hits,
            left_out=left_out,
            window=window,
            vector_matches=len(raw),
            best_vector_score=raw[0][1] if raw else 0.0,
            reordered=any(one.rank != one.vector_rank for one in hits) or bool(left_out),
            same_search=same_search,
            score=order.kind,
            strategy=scope.strategy,
            options=scope.options,
            models=scope.models,
            candidates=scope.depth,
            top_k=scope.top_k,
            min_score=order.least,
            retriever_ms=total_ms,
            vector_ms=total_ms if same_search else found.vector_seconds * 1000,
            reason=reason_of(parts, tenant, scope, order, hits, bounded=found.bounded),
            fallback=order.fallback,
        )


def _compared(parts: Parts, scope: Scope, found: list[Matches], window: int) -> _Comparison:
    raw = _raw(scope, found)[:window]
    final = choose(parts, scope, found)
    return _Comparison(final, raw, _left_out(final.ids, [chunk_id for chunk_id, _ in raw])[: scope.top_k])


def _raw(scope: Scope, found: Sequence[Matches]) -> Scored:
    """The vector ranking. Several models' are fused by rank; each score stays the cosine of its own model."""
    cosines = {match.chunk_id: match.score for one in found for match in one.by_vector}
    rankings = [Ranking([match.chunk_id for match in one.by_vector]) for one in found]
    return [(chunk_id, cosines[chunk_id]) for chunk_id, _ in fuse(rankings, scope.options.rrf_k)]


def _left_out(hits: Sequence[ChunkId], raw: Sequence[ChunkId]) -> list[ChunkId]:
    """Raw hits that are no hits and rank before the worst hit; all that are no hits when a hit is not raw."""
    if not hits:
        return []
    ranks = {chunk_id: rank for rank, chunk_id in enumerate(raw)}
    worst = max(ranks.get(one, len(raw)) for one in hits)
    return [one for one in raw[:worst] if one not in set(hits)]


class _Answer:
    """Hits with what became of them."""

    def __init__(self, scope: Scope, found: Found[_Comparison]) -> None:
        self._scope = scope
        self._found = found
        self._scores = dict(found.chosen.final.order.scored)
        self._raw = {one: (rank, score) for rank, (one, score) in enumerate(found.chosen.raw, start=1)}

    def hits(self) -> list[CompareHit]:
        read = [one for one in self._found.chosen.final.ids if one in self._found.bodies]
        return [self._hit(rank, one) for rank, one in enumerate(read, start=1)]

    def left_out(self) -> list[CompareHit]:
        return [self._hit(0, one) for one in self._found.chosen.left_out if one in self._found.bodies]

    def _hit(self, rank: int, chunk_id: ChunkId) -> CompareHit:
        match = self._found.chosen.final.matches[chunk_id]
        signals = self._found.chosen.final.order.signals[chunk_id]
        vector_rank, vector_score = self._raw.get(chunk_id, (0, 0.0))
        score = self._scores.get(chunk_id, vector_score)
        made = hit(rank, score, match, self._found.bodies[chunk_id], signals)
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
        final, least = signals.final, self._found.chosen.final.order.least
        if final is None:
            detail = f"{self._unranked(vector_rank, signals)}; {_figures(signals)}"
            return Move(code=MoveCode.NOT_A_CANDIDATE, detail=detail)
        if least is not None and final.score < least:
            detail = f"Its score {final.score:.4g} is below min_score {least:g}; {_figures(signals)}"
            return Move(code=MoveCode.BELOW_MIN_SCORE, detail=detail)
        detail = f"It would be number {final.rank}, and {self._scope.top_k} were asked for; {_figures(signals)}"
        return Move(code=MoveCode.BEYOND_TOP_K, detail=detail)

    def _unranked(self, vector_rank: int, signals: Signals) -> str:
        """Why something that was found took no part in the final ranking."""
        if signals.fused is not None:
            return f"Number {signals.fused.rank} of the first stage, of which {self._scope.pool} go to the reranker"
        if self._scope.finder is Strategy.HYBRID:
            return "It has no word of the question, and vectors have no weight"
        return f"Vector rank {vector_rank} is beyond the {self._scope.depth} that are ranked"


def _figures(signals: Signals) -> str:
    """The signals in one line, for a person."""
    told = [
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
        told.append(f"MMR {signals.mmr.rank} ({signals.mmr.value:.4g}, penalty {signals.mmr.penalty:.4g})")
    return ", ".join(told) or "no signal"

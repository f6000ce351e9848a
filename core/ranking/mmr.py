"""Maximal marginal relevance.

Source: Carbonell and Goldstein, The Use of MMR, Diversity-Based Reranking for Reordering Documents and Producing
Summaries (SIGIR 1998).
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.model.ids import ChunkId

if sys.version_info >= (3, 12):
    from math import sumprod as dot  # four times as quick, and the functions run on such a version
else:
    from operator import mul

    def dot(one: Sequence[float], other: Sequence[float], /) -> float:
        """The dot product: of unit vectors, their cosine."""
        product: float = sum(map(mul, one, other))
        return product


@dataclass(frozen=True, slots=True)
class Candidate:
    """What could be taken. ``score``: its cosine with the question. ``vector``: of unit length."""

    chunk_id: ChunkId
    score: float
    vector: Sequence[float]


@dataclass(frozen=True, slots=True)
class Marginal:
    """A candidate with its marginal relevance.

    Attributes:
        penalty: the greatest cosine with what was taken before it, at least 0.
        against: what that was; None where nothing came before, or nothing is at all like it.
    """

    chunk_id: ChunkId
    score: float
    value: float
    penalty: float = 0.0
    against: ChunkId | None = None


def value(score: float, penalty: float, weight: float) -> float:
    """Marginal relevance: ``weight`` is lambda, 0 to 1."""
    return weight * score - (1.0 - weight) * penalty


def maximal_marginal_relevance(candidates: Sequence[Candidate], weight: float, count: int) -> list[Marginal]:
    """All candidates: the first ``count`` as they were taken one by one, the others by what they were worth then.

    A penalty never falls below 0, so values fall from one to the next, and sorting by (value, cosine, chunk ID) gives
    this order again.
    """
    vectors = {one.chunk_id: one.vector for one in candidates}
    left = [Marginal(one.chunk_id, one.score, value(one.score, 0.0, weight)) for one in candidates]
    taken: list[Marginal] = []
    while left and len(taken) < count:
        best = min(left, key=order)
        taken.append(best)
        left = [_after(one, best, vectors, weight) for one in left if one is not best]
    return [*taken, *sorted(left, key=order)]


def order(one: Marginal) -> tuple[float, float, ChunkId]:
    """Where a candidate comes: the greatest value first."""
    return -one.value, -one.score, one.chunk_id


def _after(one: Marginal, taken: Marginal, vectors: dict[ChunkId, Sequence[float]], weight: float) -> Marginal:
    likeness = dot(vectors[one.chunk_id], vectors[taken.chunk_id])
    if likeness <= one.penalty:
        return one
    return replace(one, value=value(one.score, likeness, weight), penalty=likeness, against=taken.chunk_id)

"""Reciprocal rank fusion.

Source: Cormack, Clarke and Büttcher, Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank Learning Methods
(SIGIR 2009), with weights.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

from core.model.ids import ChunkId


class Ranking(NamedTuple):
    """Chunks in order, best first, and how much their ranks count."""

    chunk_ids: Sequence[ChunkId]
    weight: float = 1.0


def share(rank: int, weight: float, k: int) -> float:
    """What a rank, from 1, adds to the fused score."""
    return weight / (k + rank)


def fuse(rankings: Sequence[Ranking], k: int) -> list[tuple[ChunkId, float]]:
    """All chunks of the rankings and their scores, best first, equal ones in order of chunk ID.

    A chunk's score is the sum of its shares, added in the order of the rankings; a ranking without weight adds no
    chunk.
    """
    scores: dict[ChunkId, float] = {}
    for ranking in rankings:
        if ranking.weight > 0:
            for rank, chunk_id in enumerate(ranking.chunk_ids, start=1):
                scores[chunk_id] = scores.get(chunk_id, 0.0) + share(rank, ranking.weight, k)
    return in_order(scores.items())


def in_order(scored: Iterable[tuple[ChunkId, float]]) -> list[tuple[ChunkId, float]]:
    """Best first, equal ones in order of chunk ID: the order of every ranking here."""
    return sorted(scored, key=lambda one: (-one[1], one[0]))


def highest(weights: Sequence[float], k: int) -> float:
    """The greatest score that a fusion can give."""
    # Added one after the other as `fuse` does: since Python 3.12 `sum` rounds less often, and gives other digits.
    return reduce(add, (share(1, weight, k) for weight in weights), 0.0)

"""Reciprocal rank fusion: one ranking made of several, from the ranks alone.

A chunk's score is the sum of weight / (k + rank) over the rankings that contain the chunk. The constant k is the option
``rrf_k`` of a query; its default stands in `core.model.query.RetrieveOptions`.

Source: Cormack, Clarke and Büttcher, Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank Learning Methods
(SIGIR 2009). The paper has no weights.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

from core.model.ids import ChunkId


class Ranking(NamedTuple):
    """A ranking that takes part in a fusion.

    Attributes:
        chunk_ids: the chunks, best first, each of them once.
        weight: how much a rank counts, 0 or more.
    """

    chunk_ids: Sequence[ChunkId]
    weight: float = 1.0


def rank_share(rank: int, weight: float, k: int) -> float:
    """Returns how much a rank adds to a chunk's score.

    Args:
        rank: the chunk's place in a ranking, from 1.
        weight: the weight of the ranking.
        k: the constant of the fusion. The larger it is, the less the first ranks stand out.
    """
    return weight / (k + rank)


def fuse(rankings: Sequence[Ranking], k: int) -> list[tuple[ChunkId, float]]:
    """Returns all chunks of the rankings with their scores, in the order of `best_first`.

    A chunk's shares are added in the order of the rankings. A ranking whose weight is 0 adds no chunk.

    Args:
        k: the constant of the fusion.
    """
    scores: dict[ChunkId, float] = {}
    for ranking in rankings:
        if ranking.weight > 0:
            for rank, chunk_id in enumerate(ranking.chunk_ids, start=1):
                scores[chunk_id] = scores.get(chunk_id, 0.0) + rank_share(rank, ranking.weight, k)
    return best_first(scores.items())


def best_first(scored: Iterable[tuple[ChunkId, float]]) -> list[tuple[ChunkId, float]]:
    """Sorts chunks by score, the highest first. Chunks of equal scores are in the order of their IDs."""
    return sorted(scored, key=lambda chunk: (-chunk[1], chunk[0]))


def highest_fused_score(weights: Sequence[float], k: int) -> float:
    """Returns the score of a chunk that is first in every ranking: no fusion gives a higher score.

    Args:
        weights: the weight of each ranking.
        k: the constant of the fusion.
    """
    # The shares are added one by one, as `fuse` does. Since Python 3.12, `sum` rounds less often: other digits result.
    return reduce(add, (rank_share(1, weight, k) for weight in weights), 0.0)

"""Maximal marginal relevance: a ranking in which chunks are relevant, and unlike the chunks before them.

The chunk that comes next has the greatest marginal relevance: lambda · (its cosine with the query) − (1 − lambda) ·
(its penalty). The penalty is its greatest cosine with a chunk that was chosen before.

Source: Carbonell and Goldstein, The Use of MMR, Diversity-Based Reranking for Reordering Documents and Producing
Summaries (SIGIR 1998).
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.model.ids import ChunkId

if sys.version_info >= (3, 12):
    # Four times as quick as the function below. The deployed functions run on such a version.
    from math import sumprod as dot_product
else:
    from operator import mul

    def dot_product(first: Sequence[float], second: Sequence[float], /) -> float:
        """Returns the dot product of two vectors, which is their cosine when both have length 1."""
        product: float = sum(map(mul, first, second))
        return product


@dataclass(frozen=True, slots=True)
class MmrCandidate:
    """A chunk that is to be ranked.

    Attributes:
        chunk_id: the chunk's ID.
        score: the cosine of the chunk's vector and the query's.
        vector: the chunk's vector, of length 1.
    """

    chunk_id: ChunkId
    score: float
    vector: Sequence[float]


@dataclass(frozen=True, slots=True)
class MmrResult:
    """A chunk with its marginal relevance when it was chosen. Of a chunk that was not chosen: after the last choice.

    Attributes:
        chunk_id: the chunk's ID.
        score: the cosine of the chunk's vector and the query's.
        value: the marginal relevance.
        penalty: the greatest cosine with a chunk that was chosen before, at least 0.
        against: the chunk with which the penalty is the cosine; None when the penalty is 0.
    """

    chunk_id: ChunkId
    score: float
    value: float
    penalty: float = 0.0
    against: ChunkId | None = None


def marginal_relevance(score: float, penalty: float, mmr_lambda: float) -> float:
    """Returns the marginal relevance of a chunk.

    Args:
        score: the cosine of the chunk's vector and the query's.
        penalty: the greatest cosine with a chunk that was chosen before, at least 0.
        mmr_lambda: 0 to 1. At 1 the score alone counts, at 0 the penalty alone.
    """
    return mmr_lambda * score - (1.0 - mmr_lambda) * penalty


def maximal_marginal_relevance(candidates: Sequence[MmrCandidate], mmr_lambda: float, count: int) -> list[MmrResult]:
    """Ranks all candidates: the chosen ones in the order of their choice, then the rest by marginal relevance.

    A penalty is never below 0, and it never falls while chunks are chosen. Therefore no chunk has a greater marginal
    relevance than a chunk before it, and sorting the results by `ranking_key` gives the same order again.

    Args:
        mmr_lambda: 0 to 1. At 1 the score alone counts, at 0 the penalty alone.
        count: how many candidates are chosen. Candidates that are not chosen have no part in any penalty.
    """
    vectors = {candidate.chunk_id: candidate.vector for candidate in candidates}
    remaining = [
        MmrResult(candidate.chunk_id, candidate.score, marginal_relevance(candidate.score, 0.0, mmr_lambda))
        for candidate in candidates
    ]
    chosen: list[MmrResult] = []
    while remaining and len(chosen) < count:
        best = min(remaining, key=ranking_key)
        chosen.append(best)
        remaining = [_penalised(chunk, best, vectors, mmr_lambda) for chunk in remaining if chunk is not best]
    return [*chosen, *sorted(remaining, key=ranking_key)]


def ranking_key(chunk: MmrResult) -> tuple[float, float, ChunkId]:
    """Returns the key by which chunks are sorted: by marginal relevance and then by score, the greatest first, and then
    by ID."""
    return -chunk.value, -chunk.score, chunk.chunk_id


def _penalised(
    chunk: MmrResult, chosen: MmrResult, vectors: dict[ChunkId, Sequence[float]], mmr_lambda: float
) -> MmrResult:
    """Returns a chunk with the penalty that it has after another chunk was chosen."""
    cosine = dot_product(vectors[chunk.chunk_id], vectors[chosen.chunk_id])
    if cosine <= chunk.penalty:
        return chunk
    return replace(
        chunk,
        value=marginal_relevance(chunk.score, cosine, mmr_lambda),
        penalty=cosine,
        against=chosen.chunk_id,
    )

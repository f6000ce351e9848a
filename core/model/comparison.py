"""Comparisons: the final ranking of a question beside the raw vector ranking."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from core.model.base import Model, with_example
from core.model.chunk import EXAMPLE_CHUNK
from core.model.hit import EXAMPLE_EXPLAINED_HIT, EXAMPLE_HIT, EXAMPLE_REASON, Fallback, Hit, Reason
from core.model.query import EXAMPLE_OPTIONS, RetrieveOptions, ScoreKind, Strategy


class MoveCode(StrEnum):
    """The difference between a chunk's place in the raw vector ranking and its place in the final ranking.

    Codes of hits: ``same_rank``, ``moved_up``, ``moved_down``; ``from_beyond_window``: the raw ranking, as far as it
    was read, does not hold the chunk. Codes of chunks that were left out: ``below_min_score``; ``beyond_top_k``: enough
    other chunks rank before it; ``not_a_candidate``: the strategy did not rank that far down, or vectors had no weight.
    """

    SAME_RANK = "same_rank"
    MOVED_UP = "moved_up"
    MOVED_DOWN = "moved_down"
    FROM_BEYOND_WINDOW = "from_beyond_window"
    BELOW_MIN_SCORE = "below_min_score"
    BEYOND_TOP_K = "beyond_top_k"
    NOT_A_CANDIDATE = "not_a_candidate"


class Move(Model):
    """Why a chunk moved: a code, and a sentence with the figures behind it."""

    code: MoveCode
    detail: str


class CompareHit(Hit):
    """A hit with its place in the final ranking and in the raw vector ranking.

    Attributes:
        score: The score in the final ranking; for a chunk that was no candidate there, the same as ``vector_score``.
        vector_rank: The rank in the raw vector ranking, from 1; 0 when the raw window does not hold the chunk.
        vector_score: The score in the raw vector ranking.
        move: Why the two ranks differ.
    """

    vector_rank: int = Field(ge=0)
    vector_score: float
    move: Move


_MOVED_UP: dict[str, Any] = {
    **EXAMPLE_EXPLAINED_HIT,
    "vector_rank": 2,
    "vector_score": 0.6911,
    "move": {"code": "moved_up", "detail": "From 2 to 1; vector 2 (0.6911), BM25 1 (4.21), fused 1 (0.03252)"},
}
_LEFT_OUT: dict[str, Any] = {
    **EXAMPLE_HIT,
    "rank": 0,
    "score": 1 / 61,
    "chunk": {
        **EXAMPLE_CHUNK,
        "text": "The weft is woven in with a shuttle.",
        "start_index": 55,
        "end_index": 91,
        "char_count": 36,
        "id": "chk_01ksr49200e0080c1s00010004",
        "index": 4,
        "token_count": 9,
        "lineage": {**EXAMPLE_CHUNK["lineage"], "chunk_index": 4},
    },
    "signals": {
        "vector": {"rank": 1, "score": 0.7014},
        "bm25": None,
        "fused": {"rank": 2, "score": 1 / 61},
        "mmr": None,
        "first_stage": None,
        "rerank": None,
        "final": {"rank": 2, "score": 1 / 61},
    },
    "vector_rank": 1,
    "vector_score": 0.7014,
    "move": {
        "code": "below_min_score",
        "detail": "Its score 0.01639 is below min_score 0.02; vector 1 (0.7014), fused 2 (0.01639)",
    },
}


class CompareResult(Model):
    """The final ranking beside the raw vector ranking. Members that are not described mean what they do in a retrieve.

    Attributes:
        hits: The hits of the final ranking, best first.
        left_out: The raw hits that the final ranking skipped over, in vector order, at most ``top_k``.
        window: How many raw hits were asked for.
        vector_matches: How many raw hits were found, before ``min_score`` was applied.
        best_vector_score: The best raw score; 0 when there were no raw hits.
        reordered: True when some hit's rank is not its ``vector_rank``, or ``left_out`` is not empty.
        same_search: True when both rankings come from the same vector search and therefore cannot differ.
        candidates: How many chunks of each ranking took part. A vector or BM25 rank beyond it had no effect.
        top_k: The bound on the number of hits that was used.
        min_score: The lowest score that was used; null when there was none.
        retriever_ms: The time of everything that the final ranking needed, in milliseconds.
        vector_ms: The time of the raw vector search, in milliseconds.
    """

    model_config = with_example(
        {
            "hits": [_MOVED_UP],
            "left_out": [_LEFT_OUT],
            "window": 50,
            "vector_matches": 2,
            "best_vector_score": 0.7014,
            "reordered": True,
            "same_search": False,
            "score": "rrf",
            "strategy": "hybrid",
            "options": EXAMPLE_OPTIONS,
            "models": ["amazon.titan-embed-text-v2:0"],
            "candidates": 50,
            "top_k": 5,
            "min_score": 0.02,
            "retriever_ms": 11.8,
            "vector_ms": 4.2,
            "reason": EXAMPLE_REASON,
            "fallback": None,
        }
    )

    hits: list[CompareHit]
    left_out: list[CompareHit]
    window: int
    vector_matches: int
    best_vector_score: float
    reordered: bool
    same_search: bool
    score: ScoreKind
    strategy: Strategy
    options: RetrieveOptions
    models: list[str]
    candidates: int
    top_k: int
    min_score: float | None
    retriever_ms: float
    vector_ms: float
    reason: Reason | None = None
    fallback: Fallback | None = None

"""Hits and the answers that hold them."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from core.model.base import Model, with_example
from core.model.chunk import EXAMPLE_CHUNK, Chunk
from core.model.context import EXAMPLE_CONTEXT, AssembledContext
from core.model.document import EXAMPLE_SUMMARY, DocumentSummary
from core.model.ids import ChunkId
from core.model.query import EXAMPLE_OPTIONS, RetrieveOptions, ScoreKind, Strategy


class ReasonCode(StrEnum):
    """Why an answer has fewer than top_k hits."""

    NO_DOCUMENTS = "no_documents"
    STILL_INGESTING = "still_ingesting"
    BELOW_MIN_SCORE = "below_min_score"
    FILTERED_OUT = "filtered_out"
    UNKNOWN_ATTRIBUTE_VALUE = "unknown_attribute_value"
    FEWER_THAN_TOP_K = "fewer_than_top_k"
    REFILL_BOUND = "refill_bound"
    ANSWER_TOO_LARGE = "answer_too_large"


class Reason(Model):
    """Why an answer is empty or short.

    Attributes:
        in_progress: documents still being ingested (``still_ingesting``).
        best_score: the best score that min_score cut (``below_min_score``).
        filtered: how many chunks the filter leaves out (``filtered_out``).
        attribute: whose value, as it was asked for, no chunk has (``unknown_attribute_value``).
        found: how many hits there were before the answer was cut (``answer_too_large``).
    """

    code: ReasonCode
    detail: str
    in_progress: int | None = None
    best_score: float | None = None
    filtered: int | None = None
    attribute: str | None = None
    found: int | None = None


class Signal(Model):
    """A place in one ranking, from 1, and the score there."""

    rank: int = Field(ge=1)
    score: float


class MmrSignal(Model):
    """A place in an order by maximal marginal relevance: ``value`` is λ · cosine − (1 − λ) · penalty.

    Attributes:
        rank: from 1.
        penalty: the greatest cosine with a chunk that was taken before, at least 0.
        against: that chunk; None where nothing came before, or nothing is at all like it.
    """

    rank: int = Field(ge=1)
    value: float
    penalty: float
    against: ChunkId | None


class Signals(Model):
    """Every figure that a chunk's place follows from. What took no part, or did not find the chunk, is null.

    Attributes:
        vector: the vector ranking, by cosine; of the chunk's own embedding model where several are searched.
        bm25: the ranking by BM25, likewise.
        fused: reciprocal rank fusion of these.
        mmr: maximal marginal relevance.
        first_stage: what the reranker was given: the rank, and the score in its own kind.
        rerank: the reranker's ranking.
        final: the place among all that could have become hits, before min_score and top_k.
    """

    vector: Signal | None = None
    bm25: Signal | None = None
    fused: Signal | None = None
    mmr: MmrSignal | None = None
    first_stage: Signal | None = None
    rerank: Signal | None = None
    final: Signal | None = None


class Fallback(Model):
    """A stage that failed, so that the answer is in the order of the stage before it, whose score kind it has.

    ``min_score``, which is meant for the scores of the stage that failed, was not applied.
    """

    stage: Strategy
    code: str
    detail: str


class Hit(Model):
    """A chunk with a score.

    Attributes:
        rank: from 1; 0 in ``left_out``.
        hydrated: the chunk was read back by its ID, so every field is real.
        orphaned: the vector store knows the chunk and the metadata store does not. Text and place in the
            document are the vector store's; offsets then count from the chunk's own start.
        document: absent when orphaned.
        signals: when they are asked for.
    """

    rank: int = Field(ge=0)
    score: float
    hydrated: bool
    orphaned: bool = False
    chunk: Chunk
    document: DocumentSummary | None
    signals: Signals | None = Field(default=None, exclude_if=lambda signals: signals is None)


EXAMPLE_HIT: dict[str, Any] = {
    "rank": 1,
    "score": 0.8123,
    "hydrated": True,
    "orphaned": False,
    "chunk": EXAMPLE_CHUNK,
    "document": EXAMPLE_SUMMARY,
}
_EXPLAINED_HIT: dict[str, Any] = {
    **EXAMPLE_HIT,
    "score": 1 / 62 + 1 / 61,
    "signals": {
        "vector": {"rank": 2, "score": 0.6911},
        "bm25": {"rank": 1, "score": 4.2105},
        "fused": {"rank": 1, "score": 1 / 62 + 1 / 61},
        "mmr": None,
        "first_stage": None,
        "rerank": None,
        "final": {"rank": 1, "score": 1 / 62 + 1 / 61},
    },
}
_REASON: dict[str, Any] = {
    "code": "below_min_score",
    "detail": "The best score that was cut is 0.01639; lower min_score to see more",
    "in_progress": None,
    "best_score": 1 / 61,
    "filtered": None,
    "attribute": None,
    "found": None,
}


class RetrieveResult(Model):
    """The answer of a retrieve.

    Attributes:
        strategy, options: as they were used.
        models: the embedding models that were searched. Scores of two models do not compare, so more than one are
            fused by rank, and the score kind is ``rrf``.
        reason: why there are fewer than top_k hits; null when there are not.
        fallback: null unless a stage failed.
        context: of the hits, when it is asked for. Its positions count all hits that were found, where an answer that
            grows too large leaves some out.
    """

    model_config = with_example(
        {
            "hits": [_EXPLAINED_HIT],
            "score": "rrf",
            "strategy": "hybrid",
            "options": EXAMPLE_OPTIONS,
            "models": ["amazon.titan-embed-text-v2:0"],
            "reason": _REASON,
            "fallback": None,
            "context": EXAMPLE_CONTEXT,
        }
    )

    hits: list[Hit]
    score: ScoreKind
    strategy: Strategy
    options: RetrieveOptions
    models: list[str]
    reason: Reason | None = None
    fallback: Fallback | None = None
    context: AssembledContext | None = Field(default=None, exclude_if=lambda context: context is None)


class AssembledRefs(Model):
    """A context and the hits it was built from."""

    model_config = with_example({"context": EXAMPLE_CONTEXT, "hits": [EXAMPLE_HIT]})

    context: AssembledContext
    hits: list[Hit]


class MoveCode(StrEnum):
    """What became of a chunk between the raw vector ranking and the final one.

    Of hits: ``same_rank``, ``moved_up``, ``moved_down``; ``from_beyond_window``: the raw window does not hold it.
    Of what is left out: ``below_min_score``; ``beyond_top_k``: others came before it; ``not_a_candidate``: it was
    beyond what the strategy ranked, or vectors had no weight.
    """

    SAME_RANK = "same_rank"
    MOVED_UP = "moved_up"
    MOVED_DOWN = "moved_down"
    FROM_BEYOND_WINDOW = "from_beyond_window"
    BELOW_MIN_SCORE = "below_min_score"
    BEYOND_TOP_K = "beyond_top_k"
    NOT_A_CANDIDATE = "not_a_candidate"


class Move(Model):
    """A code, and in words which figures made it so."""

    code: MoveCode
    detail: str


class CompareHit(Hit):
    """A hit with its place in both rankings.

    Attributes:
        score: as of any hit; of what took no part in the final ranking (``not_a_candidate``), its vector_score.
        vector_rank: from 1; 0: not in the raw window.
    """

    vector_rank: int = Field(ge=0)
    vector_score: float
    move: Move


_MOVED_UP: dict[str, Any] = {
    **_EXPLAINED_HIT,
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
    """The final ranking beside the raw vector ranking.

    Attributes:
        left_out: raw hits that the final ranking skipped over, in vector order, at most top_k.
        window: how many raw hits were asked for.
        vector_matches: how many came back, before min_score.
        best_vector_score: the top raw score, or 0 with no matches.
        reordered: some hit's rank is not its vector_rank, or left_out is not empty.
        same_search: both sides come from one vector search and cannot disagree.
        vector_ms: milliseconds of the vector search; retriever_ms: of everything that the final ranking needed.
        candidates: how many of each ranking took part: a signal's vector or BM25 rank beyond it counted for nothing.
        top_k, min_score: as they were used; min_score is null where it was not.
        strategy, options, models, reason, fallback: as a `RetrieveResult` has them.
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
            "reason": _REASON,
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

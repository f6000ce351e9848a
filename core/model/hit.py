"""Hits, the signals that explain them, and the answer of a retrieve."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from core.model.base import Model, with_example
from core.model.chunk import EXAMPLE_CHUNK, Chunk
from core.model.context import EXAMPLE_CONTEXT, AssembledContext
from core.model.document import EXAMPLE_SUMMARY, DocumentSummary
from core.model.ids import ChunkId
from core.model.query import EXAMPLE_OPTIONS, RetrieveOptions, ScoreKind, Strategy

# -- why an answer is short --------------------------------------------------------------------------------------------


class ReasonCode(StrEnum):
    """The reason why an answer has fewer than ``top_k`` hits.

    ``no_documents``: the collections hold no ready document. ``still_ingesting``: documents are being ingested.
    ``below_min_score``: ``min_score`` left hits out. ``filtered_out``: the filter left chunks out.
    ``unknown_attribute_value``: no chunk has a value that the filter asks for. ``fewer_than_top_k``: the collections
    hold fewer chunks than ``top_k``. ``refill_bound``: the search was repeated as often as it may be, and documents
    changed each time. ``answer_too_large``: hits were cut so that the answer fits its limit.
    """

    NO_DOCUMENTS = "no_documents"
    STILL_INGESTING = "still_ingesting"
    BELOW_MIN_SCORE = "below_min_score"
    FILTERED_OUT = "filtered_out"
    UNKNOWN_ATTRIBUTE_VALUE = "unknown_attribute_value"
    FEWER_THAN_TOP_K = "fewer_than_top_k"
    REFILL_BOUND = "refill_bound"
    ANSWER_TOO_LARGE = "answer_too_large"


class Reason(Model):
    """The reason why an answer is empty or short, with the figures of its code.

    Attributes:
        detail: The reason in a sentence.
        in_progress: For ``still_ingesting``: how many documents are being ingested.
        best_score: For ``below_min_score``: the best score that was left out.
        filtered: For ``filtered_out``: how many chunks the filter leaves out.
        attribute: For ``unknown_attribute_value``: the attribute whose value no chunk has.
        found: For ``answer_too_large``: how many hits there were before hits were cut.
    """

    code: ReasonCode
    detail: str
    in_progress: int | None = None
    best_score: float | None = None
    filtered: int | None = None
    attribute: str | None = None
    found: int | None = None


# -- signals -----------------------------------------------------------------------------------------------------------


class Signal(Model):
    """A chunk's rank in one ranking, from 1, and its score there."""

    rank: int = Field(ge=1)
    score: float


class MmrSignal(Model):
    """A chunk's place in an order by maximal marginal relevance.

    Attributes:
        rank: The place, from 1.
        value: λ · cosine − (1 − λ) · penalty, where λ is the option ``mmr_lambda``.
        penalty: The greatest cosine of the chunk with a chunk of a better rank, at least 0.
        against: The chunk of that greatest cosine; null when no better chunk has a cosine above 0.
    """

    rank: int = Field(ge=1)
    value: float
    penalty: float
    against: ChunkId | None


class Signals(Model):
    """Every rank and score that a chunk's place follows from. A ranking that did not hold the chunk is null.

    Attributes:
        vector: The chunk in the vector ranking, by cosine; where several embedding models are searched, in the ranking
            of the chunk's own model.
        bm25: The chunk in the ranking by BM25; where several embedding models are searched, in the ranking of the
            chunk's own model.
        fused: The chunk in the reciprocal rank fusion of these rankings.
        mmr: The chunk in the order by maximal marginal relevance.
        first_stage: The chunk in the order that the reranker was given, with the score of that order's kind.
        rerank: The chunk in the reranker's own ranking.
        final: The chunk among all candidates, before ``min_score`` and ``top_k`` are applied.
    """

    vector: Signal | None = None
    bm25: Signal | None = None
    fused: Signal | None = None
    mmr: MmrSignal | None = None
    first_stage: Signal | None = None
    rerank: Signal | None = None
    final: Signal | None = None


class Fallback(Model):
    """The stage that failed, so that the answer has the order and the kind of score of the stage before it.

    ``min_score`` was not applied, because it is meant for the scores of the stage that failed.
    """

    stage: Strategy
    code: str
    detail: str


# -- hits and answers --------------------------------------------------------------------------------------------------


class Hit(Model):
    """A chunk with its rank and score.

    Attributes:
        rank: The place in the answer, from 1; 0 in ``left_out``.
        score: The score, of the answer's kind of score.
        hydrated: True when the chunk was read back by its ID from the metadata store, which has all of its fields.
        orphaned: True when the vector store holds the chunk and the metadata store does not. The text is then the
            vector store's, and the offsets count from the start of the chunk itself.
        document: The document of the chunk; null for an orphaned hit.
        signals: The ranks and scores of the chunk in every ranking, if the question asked to explain hits.
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
EXAMPLE_EXPLAINED_HIT: dict[str, Any] = {
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
EXAMPLE_REASON: dict[str, Any] = {
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
        hits: The hits, best first.
        score: The kind of score that the hits have.
        strategy: The strategy that ranked the hits.
        options: The options that were used, with every default.
        models: The embedding models that were searched. Scores of two models cannot be compared, so the rankings of
            several models are fused by rank, and the kind of score is then ``rrf``.
        reason: Why there are fewer than ``top_k`` hits; null when there are ``top_k``.
        fallback: The stage that failed and was left out; null unless one failed.
        context: The context of the hits, if the question asked for one. Its positions count all hits, also those that
            were cut because the answer grew too large.
    """

    model_config = with_example(
        {
            "hits": [EXAMPLE_EXPLAINED_HIT],
            "score": "rrf",
            "strategy": "hybrid",
            "options": EXAMPLE_OPTIONS,
            "models": ["amazon.titan-embed-text-v2:0"],
            "reason": EXAMPLE_REASON,
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
    """A context and the hits that it was built from."""

    model_config = with_example({"context": EXAMPLE_CONTEXT, "hits": [EXAMPLE_HIT]})

    context: AssembledContext
    hits: list[Hit]

"""Hits and the answers that hold them."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from core.model.base import Model
from core.model.chunk import Chunk
from core.model.document import DocumentSummary
from core.model.ids import CollectionId


class ScoreKind(StrEnum):
    """What a score means. ``cosine``: −1 to 1, of the query's and the chunk's embedding."""

    COSINE = "cosine"


class Strategy(StrEnum):
    """How hits are ranked."""

    SIMILARITY = "similarity"


class RetrieveQuery(Model):
    """A question.

    Attributes:
        collections: at most one for now; None: all of the tenant's.
        top_k: zero or less: 10; at most 100.
        min_score: hits below it are left out; None: none are.
        filter: only chunks whose attributes fulfil it, as `core.model.filter` has it; None: all.
    """

    query: str
    collections: list[CollectionId] | None = Field(default=None, min_length=1, max_length=1)
    top_k: int = 0
    min_score: float | None = Field(default=None, allow_inf_nan=False)
    strategy: Strategy = Strategy.SIMILARITY
    filter: dict[str, Any] | None = None


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


class Hit(Model):
    """A chunk with a score.

    Attributes:
        rank: from 1; 0 in ``left_out``.
        hydrated: the chunk was read back by its ID, so every field is real.
        orphaned: the vector store knows the chunk and the metadata store does not. Text and place in the
            document are the vector store's; offsets then count from the chunk's own start.
        document: absent when orphaned.
    """

    rank: int = Field(ge=0)
    score: float
    hydrated: bool
    orphaned: bool = False
    chunk: Chunk
    document: DocumentSummary | None


class RetrieveResult(Model):
    """The answer of a retrieve. ``reason`` is null when top_k hits were found."""

    hits: list[Hit]
    score: ScoreKind
    strategy: Strategy
    reason: Reason | None = None


class CompareHit(Hit):
    """A hit with its place in both rankings. ``vector_rank`` is from 1; 0: not in the raw window."""

    vector_rank: int = Field(ge=0)
    vector_score: float


class CompareResult(Model):
    """The final ranking beside the raw vector ranking.

    Attributes:
        left_out: raw hits that the final ranking skipped over, in vector order, at most top_k.
        window: how many raw hits were asked for.
        vector_matches: how many came back, before min_score.
        best_vector_score: the top raw score, or 0 with no matches.
        reordered: some hit's rank is not its vector_rank, or left_out is not empty.
        same_search: both sides come from one vector search and cannot disagree.
    """

    hits: list[CompareHit]
    left_out: list[CompareHit]
    window: int
    vector_matches: int
    best_vector_score: float
    reordered: bool
    same_search: bool
    score: ScoreKind
    strategy: Strategy
    retriever_ms: float
    vector_ms: float
    reason: Reason | None = None

"""A question, and how its answer is to be ranked."""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictFloat, model_validator
from pydantic_core import PydanticCustomError

from core.model.base import Model
from core.model.ids import CollectionId

MAX_QUERY_COLLECTIONS = 100
Number = Annotated[StrictFloat, Field(allow_inf_nan=False)]


class ScoreKind(StrEnum):
    """What a score means.

    ``cosine``: −1 to 1, of the query's and the chunk's embedding. ``mmr_relevance``: the same, where the order is by
    maximal marginal relevance. ``rrf``: reciprocal rank fusion, above 0 and at most the sum of the weights divided by
    k + 1. ``rerank``: 0 to 1, the reranker's.
    """

    COSINE = "cosine"
    MMR_RELEVANCE = "mmr_relevance"
    RRF = "rrf"
    RERANK = "rerank"


class Strategy(StrEnum):
    """How hits are ranked.

    ``similarity``: by cosine. ``mmr``: by maximal marginal relevance, so that hits differ from one another.
    ``hybrid``: by reciprocal rank fusion of the vector ranking and the BM25 ranking. ``rerank``: a reranker judges the
    best of another strategy.
    """

    SIMILARITY = "similarity"
    MMR = "mmr"
    HYBRID = "hybrid"
    RERANK = "rerank"


class Weights(Model):
    """How much each ranking counts in a fusion: 0 or more, and not all 0."""

    vector: Number = Field(default=1.0, ge=0, le=1000)
    bm25: Number = Field(default=1.0, ge=0, le=1000)

    @model_validator(mode="after")
    def _some_weight(self) -> Self:
        if not self.vector + self.bm25 > 0:
            raise PydanticCustomError("weights", "one of the weights must be above 0")
        return self


EXAMPLE_OPTIONS: dict[str, Any] = {
    "mmr_lambda": 0.7,
    "rrf_k": 60,
    "weights": {"vector": 1.0, "bm25": 1.0},
    "first_stage": "hybrid",
    "fuse": True,
    "fallback": False,
    "explain": True,
}


class RetrieveOptions(Model):
    """What a strategy can be told. Each counts only where its strategy takes part.

    Attributes:
        mmr_lambda: of ``mmr``: 1 is relevance alone, 0 is difference alone.
        rrf_k: of fusions: how little the first ranks stand out.
        weights: of the rankings in ``hybrid``.
        first_stage: of ``rerank``: which strategy finds what is judged.
        fuse: of ``rerank``: the order is a fusion of the first stage's rank and the reranker's; else the reranker's.
        fallback: of ``rerank``: a reranker that fails or is slow leaves the first stage's order; else it is an error.
        explain: hits carry their signals.
    """

    mmr_lambda: Number = Field(default=0.7, ge=0, le=1)
    rrf_k: int = Field(default=60, ge=1, le=10_000, strict=True)
    weights: Weights = Weights()
    first_stage: Literal[Strategy.SIMILARITY, Strategy.MMR, Strategy.HYBRID] = Strategy.HYBRID
    fuse: bool = Field(default=True, strict=True)
    fallback: bool = Field(default=False, strict=True)
    explain: bool = Field(default=False, strict=True)


class RetrieveQuery(Model):
    """A question.

    Attributes:
        collections: None: all of the tenant's.
        top_k: zero or less: 10; at most 100.
        min_score: hits whose score, of the answer's kind, is below it are left out; None: none are.
        strategy: None: the collections' own where they agree, else similarity.
        filter: only chunks whose attributes fulfil it, as `core.model.filter` has it; None: all.
    """

    query: str
    collections: list[CollectionId] | None = Field(default=None, min_length=1, max_length=MAX_QUERY_COLLECTIONS)
    top_k: int = 0
    min_score: float | None = Field(default=None, allow_inf_nan=False)
    strategy: Strategy | None = None
    options: RetrieveOptions = RetrieveOptions()
    filter: dict[str, Any] | None = None

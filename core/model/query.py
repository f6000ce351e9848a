"""Questions: what a retrieve or a comparison is asked, and every option with its default and bounds.

The defaults: ``top_k`` 10, ``mmr_lambda`` 0.7, ``rrf_k`` 60, both ``weights`` 1, ``first_stage`` hybrid.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictFloat, model_validator
from pydantic_core import PydanticCustomError

from core.model.base import Model
from core.model.ids import CollectionId

MAX_QUERY_COLLECTIONS = 100

DEFAULT_RRF_K = 60
"""The constant k of reciprocal rank fusion, where a rank adds weight / (k + rank). The larger k is, the less the first
ranks stand out. 60 is the value of the paper that describes the method (Cormack, Clarke and Büttcher, SIGIR 2009)."""
DEFAULT_MMR_LAMBDA = 0.7

Number = Annotated[StrictFloat, Field(allow_inf_nan=False)]


class ScoreKind(StrEnum):
    """The meaning of a score.

    ``cosine``: the cosine of the embeddings of the query and the chunk, −1 to 1. ``mmr_relevance``: the same cosine, in
    an order by maximal marginal relevance. ``rrf``: the score of reciprocal rank fusion, above 0 and at most the sum of
    the weights divided by k + 1. ``rerank``: the reranker's own score, 0 to 1.
    """

    COSINE = "cosine"
    MMR_RELEVANCE = "mmr_relevance"
    RRF = "rrf"
    RERANK = "rerank"


class Strategy(StrEnum):
    """The way in which hits are ranked.

    ``similarity``: by the cosine of embeddings. ``mmr``: by maximal marginal relevance, so that hits differ from one
    another. ``hybrid``: by reciprocal rank fusion of the vector ranking and the BM25 ranking. ``rerank``: a reranker
    judges the best candidates of another strategy.
    """

    SIMILARITY = "similarity"
    MMR = "mmr"
    HYBRID = "hybrid"
    RERANK = "rerank"


class Weights(Model):
    """The weight of each ranking in a fusion. At least one weight is above 0."""

    vector: Number = Field(default=1.0, ge=0, le=1000)
    bm25: Number = Field(default=1.0, ge=0, le=1000)

    @model_validator(mode="after")
    def _validate_sum(self) -> Self:
        if not self.vector + self.bm25 > 0:
            raise PydanticCustomError("weights", "at least one weight must be above 0")
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
    """Options of the strategies. An option has no effect unless its strategy takes part.

    Attributes:
        mmr_lambda: For ``mmr``: 1 ranks by relevance alone, 0 by difference from better hits alone.
        rrf_k: For every fusion: the constant k of reciprocal rank fusion. The larger it is, the less the first ranks
            stand out.
        weights: For ``hybrid``: the weights of the vector ranking and the BM25 ranking.
        first_stage: For ``rerank``: the strategy that finds the candidates which the reranker judges.
        fuse: For ``rerank``: true orders by a fusion of the first stage's rank and the reranker's rank, false by the
            reranker's score alone.
        fallback: For ``rerank``: true answers in the first stage's order when the reranker fails or is too slow, false
            answers with an error.
        explain: Whether each hit carries its rank and score in every ranking.
    """

    mmr_lambda: Number = Field(default=DEFAULT_MMR_LAMBDA, ge=0, le=1)
    rrf_k: int = Field(default=DEFAULT_RRF_K, ge=1, le=10_000, strict=True)
    weights: Weights = Weights()
    first_stage: Literal[Strategy.SIMILARITY, Strategy.MMR, Strategy.HYBRID] = Strategy.HYBRID
    fuse: bool = Field(default=True, strict=True)
    fallback: bool = Field(default=False, strict=True)
    explain: bool = Field(default=False, strict=True)


class RetrieveQuery(Model):
    """A question, as the engine takes it.

    Attributes:
        collections: The collections that are searched; None: all of the tenant's.
        top_k: The most hits of the answer, at most 100; zero or less: 10.
        min_score: The lowest score, of the answer's kind of score, that a hit may have; None: no bound.
        strategy: The ranking; None: the strategy of the collections where they agree, otherwise similarity.
        filter: A filter that the chunks' attributes must fulfil, in the form of `core.model.filter`; None: no filter.
    """

    query: str
    collections: list[CollectionId] | None = Field(default=None, min_length=1, max_length=MAX_QUERY_COLLECTIONS)
    top_k: int = 0
    min_score: float | None = Field(default=None, allow_inf_nan=False)
    strategy: Strategy | None = None
    options: RetrieveOptions = RetrieveOptions()
    filter: dict[str, Any] | None = None

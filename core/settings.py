"""The environment as one model: read once, and refused with a clear message when it is wrong."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from core.model.base import Model
from core.model.errors import ConfigurationError

PREFIX = "WEFT_"
KIB = 1024
MIB = 1024 * KIB
DAY_S = 24 * 3600

HEARTBEAT_INTERVAL_S = 30
"""Seconds after which a long ingest writes its next heartbeat, between two batches of embeddings.

A heartbeat is a write to DynamoDB, so an ingest does not write one after every batch. The interval is short beside
``stalled_after_s``, so that one late heartbeat does not make a working ingest look stalled.
"""
MIN_STALLED_AFTER_S = 4 * HEARTBEAT_INTERVAL_S
"""The least ``stalled_after_s`` that is accepted: a few heartbeats. Below it, one slow request would make a working
ingest look stalled, and its document would be taken from it.
"""


class Settings(Model):
    """Every setting, with its default. Each is read from ``WEFT_`` and its name in capitals.

    Attributes:
        table: the DynamoDB table.
        metadata: where the metadata table is: ``dynamodb``, or ``embedded``, an SQLite file in this process.
        metadata_path: the file of the embedded table; empty: in memory.
        bucket: the S3 bucket of uploads; empty: uploads are not configured.
        queue_url: the queue of the bucket's events, and of documents to be finished; empty: whoever hands messages
            over brings them back, and what Serverless does not show in time fails.
        embedder: ``embedded``: an ONNX model in this process; ``bedrock``; ``none``.
        embedded_model: a folder with model.onnx and tokenizer.json; empty: the one in the installed package.
        bedrock_model: the model's identifier at Amazon Bedrock.
        bedrock_dimensions: how many dimensions are asked of it.
        reranker: ``embedded``: a cross-encoder in this process; ``bedrock``; ``none``.
        reranker_model: a folder with model.onnx and tokenizer.json; empty: the one in the installed package.
        bedrock_reranker_model: the reranking model's identifier at Amazon Bedrock.
        rerank_seconds: how long one reranking may take; what takes longer is unavailable.
        vectors: ``embedded``: SQLite and numpy in this process; ``opensearch``; ``none``.
        vectors_path: the file of the embedded store; empty: in memory.
        opensearch_url: of the domain, the collection or a node.
        opensearch_auth: how AWS signs requests: ``es`` for a domain, ``aoss`` for Serverless; ``none``.
        opensearch_dialect: ``domain``, or ``serverless`` for a NextGen collection.
        opensearch_index: how the names of indexes begin.
        opensearch_engine: ``faiss``: exact; ``lucene``: a graph, quicker for tenants of many chunks. Of a new index.
        opensearch_hnsw_m: a graph's edges a node. Of a new index.
        opensearch_hnsw_ef_construction: candidates when a node is added to a graph. Of a new index.
        opensearch_hnsw_ef_search: candidates when a graph is searched.
        opensearch_refresh_ms: milliseconds until writes are searchable; each waits for it. Of a new index.
        tenant_claim: the token's claim that names the tenant.
        inline_bytes: largest content in a request's body.
        object_bytes: largest uploaded object.
        answer_bytes: answers stop at this size.
        call_seconds: how long one HTTP call works.
        stalled_after_s: how long a document may go without a heartbeat, at least 120 s; zero or less: the default.
        writer_life_s: how long a writer may live; above the longest function's time-out.
        batch_size: documents in one sweep.
        recovery_interval_s: for a long-running host: seconds between sweeps; 0: no loop.
        reconcile_interval_h: hours between two comparisons of a collection's rows and vectors.
        ingest_concurrency: documents of one batch at once.
        upload_seconds: how long an upload's URL is valid.
    """

    table: str = Field(default="weft", min_length=3, max_length=255)
    metadata: Literal["dynamodb", "embedded"] = "dynamodb"
    metadata_path: Path | None = None
    bucket: str = ""
    queue_url: str = ""
    embedder: Literal["embedded", "bedrock", "none"] = "bedrock"
    embedded_model: Path | None = None
    bedrock_model: str = "amazon.titan-embed-text-v2:0"
    bedrock_dimensions: int = Field(default=1024, ge=1, le=16_000)
    reranker: Literal["embedded", "bedrock", "none"] = "none"
    reranker_model: Path | None = None
    bedrock_reranker_model: str = Field(default="cohere.rerank-v3-5:0", pattern=r"^[a-z0-9.-]+(:[0-9]+)?$")
    rerank_seconds: int = Field(default=10, ge=1, le=29)
    vectors: Literal["embedded", "opensearch", "none"] = "none"
    vectors_path: Path | None = None
    opensearch_url: str = ""
    opensearch_auth: Literal["none", "es", "aoss"] = "none"
    opensearch_dialect: Literal["domain", "serverless"] = "domain"
    opensearch_index: str = Field(default="weft", pattern=r"^[a-z][a-z0-9-]{0,31}$")
    opensearch_engine: Literal["faiss", "lucene"] = "faiss"
    opensearch_hnsw_m: int = Field(default=16, ge=2, le=100)
    opensearch_hnsw_ef_construction: int = Field(default=128, ge=2, le=4096)
    opensearch_hnsw_ef_search: int = Field(default=128, ge=1, le=10_000)
    opensearch_refresh_ms: int = Field(default=200, ge=1, le=60_000)
    tenant_claim: str = "tenant"
    inline_bytes: int = Field(default=256 * KIB, ge=1, le=4 * MIB)
    object_bytes: int = Field(default=10 * MIB, ge=1)
    answer_bytes: int = Field(default=5 * MIB, ge=64 * KIB, le=5 * MIB)
    call_seconds: int = Field(default=25, ge=1, le=29)
    stalled_after_s: int = Field(default=15 * 60, le=30 * DAY_S)
    writer_life_s: int = Field(default=20 * 60, ge=60, le=30 * DAY_S)
    batch_size: int = Field(default=100)
    recovery_interval_s: int = Field(default=0)
    reconcile_interval_h: int = Field(default=24, ge=1)
    ingest_concurrency: int = Field(default=4, ge=1, le=32)
    upload_seconds: int = Field(default=15 * 60, ge=1, le=12 * 3600)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_absent(cls, values: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in values.items() if value != "" or name not in cls.model_fields}

    @field_validator("stalled_after_s")
    @classmethod
    def _stalled_after_is_several_heartbeats(cls, seconds: int) -> int:
        if 0 < seconds < MIN_STALLED_AFTER_S:
            raise ValueError(f"at least {MIN_STALLED_AFTER_S} seconds, or 0 for the default")
        return seconds

    @model_validator(mode="after")
    def _opensearch_is_whole(self) -> Self:
        if self.vectors == "opensearch" and not self.opensearch_url:
            raise ValueError("WEFT_VECTORS=opensearch needs WEFT_OPENSEARCH_URL")
        if self.opensearch_auth == "aoss" and self.opensearch_dialect != "serverless":
            raise ValueError("WEFT_OPENSEARCH_AUTH=aoss goes with WEFT_OPENSEARCH_DIALECT=serverless")
        return self

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """The settings of an environment.

        Raises:
            ConfigurationError: a value is wrong, or a ``WEFT_`` variable is none of ours.
        """
        values = {
            name.removeprefix(PREFIX).lower(): value for name, value in environ.items() if name.startswith(PREFIX)
        }
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problems = "; ".join(
                f"{PREFIX}{'_'.join(str(part) for part in item['loc']).upper()}: {item['msg']}"
                for item in error.errors(include_input=False, include_url=False)
            )
            raise ConfigurationError(problems) from error

    @property
    def stalled_after(self) -> timedelta:
        """Zero or less in the configuration means the default."""
        seconds = self.stalled_after_s if self.stalled_after_s > 0 else 15 * 60
        return timedelta(seconds=seconds)

    @property
    def sweep_size(self) -> int:
        """Zero or less means the default."""
        return self.batch_size if self.batch_size > 0 else 100

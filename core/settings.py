"""The settings of the product, read once from the environment, and refused at start when one of them is wrong.

A new setting is a field of `Settings` with a default and bounds, a line of its docstring, and a row of the table in
README.md. Where the deployed stack sets it, it is also a variable in ``template.yaml``.
"""

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
    """Every setting, with its default. Each is read from the variable ``WEFT_`` and the setting's name in capitals.

    Settings that say "for new indexes" have no effect on an OpenSearch index that exists already.

    Attributes:
        table: the name of the DynamoDB table.
        metadata: where the metadata table is: ``dynamodb``, or ``embedded``, an SQLite file in this process.
        metadata_path: the file of the embedded table; empty: the table is in memory.
        bucket: the name of the S3 bucket of uploads; empty: uploads are not configured.
        queue_url: the URL of the queue of the bucket's events and of documents to be finished. Empty: the host that
            hands messages over delivers failed messages again by itself, and a document fails whose vectors OpenSearch
            Serverless does not show in time.
        embedder: ``embedded``: an ONNX model in this process; ``bedrock``; ``none``.
        embedded_model: a folder with model.onnx and tokenizer.json; empty: the one in the installed package.
        bedrock_model: the model's identifier at Amazon Bedrock.
        bedrock_dimensions: how many dimensions the model at Amazon Bedrock is asked for.
        reranker: ``embedded``: a cross-encoder in this process; ``bedrock``; ``none``.
        reranker_model: a folder with model.onnx and tokenizer.json; empty: the one in the installed package.
        bedrock_reranker_model: the reranking model's identifier at Amazon Bedrock.
        rerank_seconds: how long a reranking may take, in seconds; a longer one is unavailable.
        vectors: ``embedded``: SQLite and numpy in this process; ``opensearch``; ``none``.
        vectors_path: the file of the embedded vector store; empty: the store is in memory.
        opensearch_url: the URL of the OpenSearch domain, collection or node.
        opensearch_auth: how requests are signed for AWS: ``es`` for a domain, ``aoss`` for Serverless; ``none``.
        opensearch_dialect: ``domain``, or ``serverless`` for a NextGen collection.
        opensearch_index: how the names of indexes begin.
        opensearch_engine: how vectors are searched, for new indexes. ``faiss``: exactly; ``lucene``: by a graph, which
            is quicker for tenants of many chunks.
        opensearch_hnsw_m: the number of edges of a graph's node, for new indexes.
        opensearch_hnsw_ef_construction: the number of candidates when a node is added to a graph, for new indexes.
        opensearch_hnsw_ef_search: the number of candidates when a graph is searched.
        opensearch_refresh_ms: milliseconds until a write is searchable, for new indexes. Each write waits for it.
        tenant_claim: the claim of the token that names the tenant.
        inline_bytes: the largest content in the body of a request, in bytes.
        object_bytes: the largest uploaded object, in bytes.
        answer_bytes: the largest answer, in bytes.
        call_seconds: how long an HTTP call works, in seconds.
        stalled_after_s: how long a document may go without a heartbeat, in seconds, at least 120; zero or less: the
            default.
        writer_life_s: how long a writer may live, in seconds. It must be above the longest time-out of a function.
        batch_size: how many documents one sweep handles; zero or less: the default.
        recovery_interval_s: seconds between the sweeps of a long-running host; 0: the host runs no sweeps.
        reconcile_interval_h: hours between two comparisons of a collection's rows with its vectors.
        ingest_concurrency: how many documents of a batch are ingested at once.
        upload_seconds: how long the URL of an upload is valid, in seconds.
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
    def _drop_empty_values(cls, values: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in values.items() if value != "" or name not in cls.model_fields}

    @field_validator("stalled_after_s")
    @classmethod
    def _validate_stalled_after(cls, seconds: int) -> int:
        if 0 < seconds < MIN_STALLED_AFTER_S:
            raise ValueError(f"at least {MIN_STALLED_AFTER_S} seconds, or 0 for the default")
        return seconds

    @model_validator(mode="after")
    def _validate_opensearch(self) -> Self:
        if self.vectors == "opensearch" and not self.opensearch_url:
            raise ValueError("WEFT_VECTORS=opensearch needs WEFT_OPENSEARCH_URL")
        if self.opensearch_auth == "aoss" and self.opensearch_dialect != "serverless":
            raise ValueError("WEFT_OPENSEARCH_AUTH=aoss goes with WEFT_OPENSEARCH_DIALECT=serverless")
        return self

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """Reads the settings of an environment.

        Raises:
            ConfigurationError: a value is wrong, or a variable that begins with ``WEFT_`` names no setting.
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
        """How long a document may go without a heartbeat."""
        seconds = self.stalled_after_s if self.stalled_after_s > 0 else 15 * 60
        return timedelta(seconds=seconds)

    @property
    def sweep_size(self) -> int:
        """How many documents one sweep handles."""
        return self.batch_size if self.batch_size > 0 else 100

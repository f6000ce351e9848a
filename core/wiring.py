"""Builds an engine from settings. The only place that knows every implementation."""

import atexit
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from core.clock import Clock, SystemClock
from core.embedding.types import Embedder
from core.engine import Engine
from core.ingest.finish import FinishQueue
from core.loading.loaders import Loaders
from core.metadata.dynamo import Table, dynamodb_client
from core.model.errors import Unavailable
from core.observe import Extension, Metrics
from core.parts import Finishing, Parts
from core.reranking.types import Reranker
from core.settings import Settings
from core.splitting.splitters import Splitters
from core.vectors.types import VectorStore

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient

_SQS = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard"})
# Signature version 4 alone covers an upload's headers, and only a virtual host is the region's own: the global one
# redirects uploads to a new bucket, where the signature is not valid.
_S3 = Config(
    signature_version="s3v4",
    s3={"addressing_style": "virtual"},
    connect_timeout=2,
    read_timeout=20,
    retries={"mode": "standard"},
)
_building = Lock()


def build_engine(
    settings: Settings,
    *,
    clock: Clock | None = None,
    extensions: Sequence[Extension] = (),
    metrics: Metrics | None = None,
) -> Engine:
    """An engine with the parts that the settings name.

    Raises:
        ConfigurationError: a part cannot be made as the settings say.
    """
    clock = clock or SystemClock()
    embedders = {embedder.space.model: embedder for embedder in _embedders(settings, clock)}
    parts = Parts(
        settings=settings,
        clock=clock,
        table=Table(dynamodb_client(), settings.table, clock),
        loaders=Loaders(),
        splitters=Splitters(),
        embedders=embedders,
        vectors=_vectors(settings, clock, embedders.values()),
        finishing=_finishing(settings),
        reranker=_reranker(settings, clock),
        extensions=extensions,
        metrics=metrics,
    )
    return Engine(parts, s3_client() if settings.bucket else None)


def s3_client() -> "S3Client":
    """A client that signs uploads and reads objects."""
    return boto3.client("s3", config=_S3)


def sqs_client() -> "SQSClient":
    """A client for the queue of the bucket's events."""
    return boto3.client("sqs", config=_SQS)


def engine_from_environment() -> Engine:
    """The one engine of this process, with Powertools' metrics."""
    with _building:
        return _engine_of_process()


@cache
def _engine_of_process() -> Engine:
    from core.powertools import PowertoolsMetrics

    engine = build_engine(Settings.read(os.environ), metrics=PowertoolsMetrics())
    # A process that ends in order fires the shutdown hook; Lambda may also end one without a word.
    atexit.register(engine.stop)
    return engine


def _finishing(settings: Settings) -> Finishing | None:
    # A domain shows what it has taken before it answers.
    if settings.queue_url and settings.opensearch_dialect == "serverless":
        return FinishQueue(sqs_client(), settings.queue_url)
    return None


def _embedders(settings: Settings, clock: Clock) -> list[Embedder]:
    # Imported where it is chosen: numpy and onnxruntime are not in a deployed function.
    if settings.embedder == "embedded":
        from core.embedding.models import find_model
        from core.embedding.onnx import OnnxEmbedder

        return [OnnxEmbedder(find_model(settings.embedded_model))]
    if settings.embedder == "bedrock":
        from core.embedding.bedrock import BedrockEmbedder, bedrock_client

        return [
            BedrockEmbedder(
                bedrock_client(), clock, model=settings.bedrock_model, dimensions=settings.bedrock_dimensions
            )
        ]
    return []


def _reranker(settings: Settings, clock: Clock) -> Reranker | None:
    if settings.reranker == "embedded":
        from core.reranking.models import find_model
        from core.reranking.onnx import OnnxReranker

        return OnnxReranker(find_model(settings.reranker_model), clock, seconds=settings.rerank_seconds)
    if settings.reranker == "bedrock":
        from core.reranking.bedrock import BedrockReranker, bedrock_client

        client = bedrock_client(settings.rerank_seconds)
        return BedrockReranker(client, clock, model=settings.bedrock_reranker_model, seconds=settings.rerank_seconds)
    return None


def _vectors(settings: Settings, clock: Clock, embedders: Iterable[Embedder]) -> VectorStore | None:
    if settings.vectors == "none":
        return None
    store = _embedded(settings) if settings.vectors == "embedded" else _opensearch(settings, clock)
    for embedder in embedders:
        # A store that sleeps must not keep a function from starting: its first use proves it then.
        with suppress(Unavailable):
            store.prepare(embedder.space)
    return store


def _embedded(settings: Settings) -> VectorStore:
    from core.vectors.embedded import EmbeddedVectorStore

    return EmbeddedVectorStore(settings.vectors_path)


def _opensearch(settings: Settings, clock: Clock) -> VectorStore:
    from core.vectors.opensearch.client import Client, connect
    from core.vectors.opensearch.index import Dialect, Engine, IndexOptions
    from core.vectors.opensearch.store import OpenSearchVectorStore

    options = IndexOptions(
        prefix=settings.opensearch_index,
        dialect=Dialect(settings.opensearch_dialect),
        engine=Engine(settings.opensearch_engine),
        m=settings.opensearch_hnsw_m,
        ef_construction=settings.opensearch_hnsw_ef_construction,
        ef_search=settings.opensearch_hnsw_ef_search,
        refresh_ms=settings.opensearch_refresh_ms,
    )
    client = Client(connect(settings.opensearch_url, settings.opensearch_auth), clock)
    return OpenSearchVectorStore(client, options, clock)

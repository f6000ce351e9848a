"""Builds an engine from settings. This is the only module that knows every implementation of a stage or a store."""

import atexit
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

import boto3
from botocore.config import Config

from core.clock import Clock, SystemClock
from core.embedding.types import Embedder
from core.engine import Engine
from core.ingest.finish import FinishQueue, SqsFinishQueue
from core.loading.loaders import Loaders
from core.metadata.dynamo import Table, dynamodb_client
from core.model.errors import Unavailable
from core.observe import Extension, Metrics
from core.reranking.types import Reranker
from core.settings import Settings
from core.splitting.splitters import Splitters
from core.vectors.types import VectorStore

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient

_SQS = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard"})
# Only signature version 4 covers an upload's headers. Only the virtual host is in the bucket's own region: the global
# host redirects uploads to a new bucket to another host, for which the signature is not valid.
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
    """Builds an engine with the implementations that the settings name.

    Raises:
        ConfigurationError: an implementation cannot be built as the settings say. Correct the settings.
    """
    clock = clock or SystemClock()
    embedders = _embedders(settings, clock)
    return Engine(
        settings=settings,
        clock=clock,
        table=Table(_metadata_client(settings), settings.table, clock),
        loaders=Loaders(),
        splitters=Splitters(),
        embedders=embedders,
        vectors=_vectors(settings, clock, embedders),
        finish_queue=_finish_queue(settings),
        reranker=_reranker(settings, clock),
        extensions=extensions,
        metrics=metrics,
        s3=s3_client() if settings.bucket else None,
    )


def open_engine(
    folder: Path, *, extensions: Sequence[Extension] = (), metrics: Metrics | None = None, **settings: Any
) -> Engine:
    """Opens an engine that runs whole in this process and keeps everything in two files of a folder.

    It needs no server and no AWS account: the metadata, the vectors and the embedding model are all embedded. The extra
    ``embedded`` and a model must be installed. Close the engine with `Engine.stop`.

    Args:
        folder: made when it does not exist.
        settings: further members of `core.settings.Settings`, such as ``embedded_model``.

    Raises:
        ConfigurationError: a file cannot be opened, a setting is wrong, or no model is installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {"metadata_path": folder / "metadata.db", "vectors_path": folder / "vectors.db"}
    embedded = {"metadata": "embedded", "vectors": "embedded", "embedder": "embedded"}
    return build_engine(Settings(**{**embedded, **files, **settings}), extensions=extensions, metrics=metrics)


def s3_client() -> "S3Client":
    """Returns a client that signs uploads and reads objects."""
    return boto3.client("s3", config=_S3)


def sqs_client() -> "SQSClient":
    """Returns a client for the queue of the bucket's events."""
    return boto3.client("sqs", config=_SQS)


def engine_from_environment() -> Engine:
    """Returns the one engine of this process, with Powertools' metrics."""
    with _building:
        return _engine_of_process()


@cache
def _engine_of_process() -> Engine:
    from core.powertools import PowertoolsMetrics

    engine = build_engine(Settings.read(os.environ), metrics=PowertoolsMetrics())
    # A process that exits normally calls the shutdown hook. Lambda may also end a process without a warning.
    atexit.register(engine.stop)
    return engine


def _metadata_client(settings: Settings) -> "DynamoDBClient":
    if settings.metadata == "dynamodb":
        return dynamodb_client()
    from core.metadata.embedded import EmbeddedDynamoDB

    return cast("DynamoDBClient", EmbeddedDynamoDB(settings.metadata_path))


def _finish_queue(settings: Settings) -> FinishQueue | None:
    # A domain makes a write searchable before it answers. Only Serverless may need longer than a call has.
    if settings.queue_url and settings.opensearch_dialect == "serverless":
        return SqsFinishQueue(sqs_client(), settings.queue_url)
    return None


def _embedders(settings: Settings, clock: Clock) -> list[Embedder]:
    # Imported only where it is chosen: a deployed function has no numpy and no onnxruntime.
    if settings.embedder == "embedded":
        from core.embedding.models import find_embedding_model
        from core.embedding.onnx import OnnxEmbedder

        return [OnnxEmbedder(find_embedding_model(settings.embedded_model))]
    if settings.embedder == "bedrock":
        from core.embedding.bedrock import BedrockEmbedder, embedding_client

        return [
            BedrockEmbedder(
                embedding_client(), clock, model=settings.bedrock_model, dimensions=settings.bedrock_dimensions
            )
        ]
    return []


def _reranker(settings: Settings, clock: Clock) -> Reranker | None:
    if settings.reranker == "embedded":
        from core.reranking.models import find_reranking_model
        from core.reranking.onnx import OnnxReranker

        return OnnxReranker(find_reranking_model(settings.reranker_model), clock, seconds=settings.rerank_seconds)
    if settings.reranker == "bedrock":
        from core.reranking.bedrock import BedrockReranker, reranking_client

        client = reranking_client(settings.rerank_seconds)
        return BedrockReranker(client, clock, model=settings.bedrock_reranker_model, seconds=settings.rerank_seconds)
    return None


def _vectors(settings: Settings, clock: Clock, embedders: Iterable[Embedder]) -> VectorStore | None:
    if settings.vectors == "none":
        return None
    store = _embedded(settings) if settings.vectors == "embedded" else _opensearch(settings, clock)
    for embedder in embedders:
        # A store that does not answer must not keep a function from starting. Its first use proves the tenant filter.
        with suppress(Unavailable):
            store.prepare(embedder.space)
    return store


def _embedded(settings: Settings) -> VectorStore:
    from core.vectors.embedded import EmbeddedVectorStore

    return EmbeddedVectorStore(settings.vectors_path)


def _opensearch(settings: Settings, clock: Clock) -> VectorStore:
    from core.vectors.opensearch.client import Client, connect
    from core.vectors.opensearch.index import Dialect, IndexOptions, KnnEngine
    from core.vectors.opensearch.store import OpenSearchVectorStore

    options = IndexOptions(
        prefix=settings.opensearch_index,
        dialect=Dialect(settings.opensearch_dialect),
        engine=KnnEngine(settings.opensearch_engine),
        m=settings.opensearch_hnsw_m,
        ef_construction=settings.opensearch_hnsw_ef_construction,
        ef_search=settings.opensearch_hnsw_ef_search,
        refresh_ms=settings.opensearch_refresh_ms,
    )
    client = Client(connect(settings.opensearch_url, settings.opensearch_auth), clock)
    return OpenSearchVectorStore(client, options, clock)

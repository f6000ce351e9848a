"""An engine on a DynamoDB in another process, with a probe at every store, and real text ingested into it."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from core.clock import Clock, SystemClock
from core.embedding.models import find_embedding_model
from core.embedding.onnx import OnnxEmbedder
from core.embedding.types import Embedder
from core.engine import Engine
from core.model.collection import Collection, NewCollection
from core.model.ingest import IngestInput, IngestResult
from core.model.tenant import Tenant
from core.settings import Settings
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.opensearch.client import Client, connect
from core.vectors.opensearch.index import IndexOptions, KnnEngine
from core.vectors.opensearch.store import OpenSearchVectorStore
from core.vectors.types import VectorStore
from infra.opensearch.server import running_server
from infra.template import create_table
from tests.benchmarks.probe import Probe, ProbedEmbedder, ProbedTransport, ProbedVectors, dynamodb_client
from tests.benchmarks.texts import Text, texts
from tests.benchmarks.units import Meter
from tests.support.command import progress
from tests.support.double import ministack_process
from tests.support.embedder import HashedEmbedder
from tests.support.engines import TABLE, make_engine
from tests.support.reranker import WordOverlapReranker

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")

TENANT = Tenant("acme")
DIMENSIONS = 384
"""As the embedded model has."""
CHUNK_SIZE = 64
CHUNK_OVERLAP = 8
SECONDS_AN_INGEST = 600


@dataclass
class Workbench:
    """An engine and its probes.

    Attributes:
        embedder: the engine's, with its probe.
        client: the engine's.
        plain: another client, which nothing counts.
        opensearch: the connection of the vector store, where that is OpenSearch, and the server's URL.
    """

    engine: Engine
    embedder: Embedder
    probe: Probe
    vectors: ProbedVectors
    client: "DynamoDBClient"
    plain: "DynamoDBClient"
    opensearch: tuple[ProbedTransport, str] | None = None

    def collection(self, name: str) -> Collection:
        return self.engine.collections.create(
            TENANT, NewCollection(name=name, chunk_size=CHUNK_SIZE, chunk_overlap=CHUNK_OVERLAP)
        )

    def ingest(self, collection: Collection, text: Text) -> IngestResult:
        given = IngestInput(
            collection_id=collection.id,
            content=text.content.encode(),
            source_key=text.key,
            source_type=text.media_type,
        )
        return self.engine.ingest.ingest(TENANT, given, self.engine.clock.monotonic() + SECONDS_AN_INGEST)

    def metered(self, step: Callable[[], T]) -> tuple[T, dict[str, Any]]:
        """What a step answers, and what DynamoDB would charge for it."""
        meter = Meter(self.plain, TABLE)
        with meter.watching(self.client):
            answer = step()
        return answer, meter.answer()

    def fill(self, collection: Collection, chunks: int) -> list[IngestResult]:
        """Ingests real text until there are at least so many chunks.

        Raises:
            ValueError: there is not that much text.
        """
        results: list[IngestResult] = []
        count = 0
        for text in progress(texts(), "Ingesting"):
            result = self.ingest(collection, text)
            results.append(result)
            count += result.chunk_count
            if count >= chunks:
                return results
        raise ValueError(f"There is text for {count} chunks and no more")


def embedder_of(name: str) -> Embedder:
    """``hashed``: deterministic and quick; ``minilm``: the packaged model."""
    return OnnxEmbedder(find_embedding_model(None)) if name == "minilm" else HashedEmbedder(dimensions=DIMENSIONS)


@contextmanager
def workbench(embedder: Embedder, vectors: str = "embedded", index: KnnEngine = KnnEngine.FAISS) -> Iterator[Workbench]:
    """A workbench with an empty table and an empty vector store: on disk, or in a server of its own.

    Args:
        index: what OpenSearch searches vectors with.
    """
    os.environ.update(AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing", POWERTOOLS_METRICS_DISABLED="true")
    with ExitStack() as stack:
        url = stack.enter_context(ministack_process())
        probe = Probe()
        client = dynamodb_client(url, probe)
        plain = dynamodb_client(url)
        create_table(plain, TABLE)
        clock = SystemClock()
        opensearch = None
        if vectors == "opensearch":
            server = stack.enter_context(running_server())
            opensearch = ProbedTransport(connect(server.url, "none"), probe), server.url
            store: VectorStore = opensearch_store(opensearch[0], index, clock)
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            store = EmbeddedVectorStore(Path(folder) / "vectors.sqlite")
        stack.callback(store.close)
        probed = ProbedVectors(store, probe)
        stage: Embedder = ProbedEmbedder(embedder, probe)
        settings = Settings(table=TABLE, embedder="none", vectors="none")
        reranker = WordOverlapReranker(clock)
        engine = make_engine(client, cast(VectorStore, probed), [stage], clock, settings, reranker=reranker)
        yield Workbench(engine, stage, probe, probed, client, plain, opensearch)


def opensearch_store(transport: Any, index: KnnEngine, clock: Clock) -> OpenSearchVectorStore:
    """The store as it is deployed."""
    return OpenSearchVectorStore(Client(transport, clock), IndexOptions(prefix="benchmark", engine=index), clock)

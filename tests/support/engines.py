"""Whole engines for tests: moto's DynamoDB in this process, the embedded vector store, a hashing embedder."""

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from core.clock import Clock
from core.embedding.types import Embedder
from core.engine import Engine
from core.ingest.finish import FinishQueue
from core.loading.loaders import Loaders
from core.metadata.dynamo import Table, dynamodb_client
from core.metadata.store import MetadataStore
from core.model.collection import Collection, NewCollection
from core.model.ids import ChunkId, CollectionId
from core.model.ingest import IngestInput, IngestResult
from core.model.tenant import Tenant
from core.observe import Extension, Metrics
from core.protocol.transitions import Transitions
from core.reranking.types import Reranker
from core.settings import Settings
from core.splitting.splitters import Splitters
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.types import VectorStore
from infra.template import create_table
from tests.support.clock import ManualClock, MovableClock
from tests.support.dynamodb import Items
from tests.support.embedder import HashedEmbedder
from tests.support.validator import Validator

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

ACME = Tenant("acme")
GLOBEX = Tenant("globex")
TABLE = "weft-test"
REGION = "eu-central-1"
EVERY_CHUNK = 100_000
"""More chunks than a collection of a unit test has."""


class OneAtATime:
    """A client whose requests never overlap: moto, in this process, copies its tables while other threads write."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = threading.RLock()  # a test may act in the middle of a request

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = getattr(self._client, name)

        def call(**arguments: Any) -> Any:
            with self._lock:
                return operation(**arguments)

        return call


class Stores(MetadataStore):
    """The rows of a table and the transitions on them, for a test to look at and to damage.

    Every member belongs to the test: the engine holds other objects of the same classes on the same client.
    """

    def __init__(self, client: Any, clock: Clock, settings: Settings) -> None:
        super().__init__(Table(client, settings.table, clock))
        self.transitions = Transitions(self.table, clock, timedelta(seconds=settings.writer_life_s))


def make_engine(
    client: Any,
    vectors: VectorStore | None,
    embedders: Sequence[Embedder],
    clock: Clock,
    settings: Settings,
    *,
    reranker: Reranker | None = None,
    finish_queue: FinishQueue | None = None,
    extensions: Sequence[Extension] = (),
    metrics: Metrics | None = None,
    s3: "S3Client | None" = None,
) -> Engine:
    """An engine on a client of DynamoDB and a vector store; the settings name the table. Every engine of the tests and
    the benchmarks is built here, but for those of `core.wiring`.

    Args:
        embedders: the first is the default of a new collection.
    """
    return Engine(
        settings=settings,
        clock=clock,
        table=Table(client, settings.table, clock),
        loaders=Loaders(),
        splitters=Splitters(),
        embedders=embedders,
        vectors=vectors,
        reranker=reranker,
        finish_queue=finish_queue,
        extensions=extensions,
        metrics=metrics,
        s3=s3,
    )


class World:
    """An engine and the stores that it stands on, for a test to look at and to meddle with.

    Attributes:
        stores: the rows of the table.
        dynamodb: the client of DynamoDB, or the table in memory, whose requests nothing checks.
        broken: promises that were seen broken while the world was used; the book-keeper of the proofs tells them.
    """

    def __init__(
        self,
        client: Any,
        vectors: VectorStore,
        embedder: HashedEmbedder,
        clock: MovableClock,
        settings: Settings,
        **others: Any,
    ) -> None:
        self.dynamodb = client
        self.vectors = vectors
        self.embedder = embedder
        self.clock = clock
        self.validator = Validator()
        self.validator.watch(client)
        checked = OneAtATime(client)
        self.stores = Stores(checked, clock, settings)
        self.broken: list[str] = []
        self._made_of: dict[str, Any] = {
            "client": checked,
            "vectors": vectors,
            "embedders": [embedder],
            "clock": clock,
            "settings": settings,
            **others,
        }
        self._engine = make_engine(**self._made_of)

    @property
    def engine(self) -> Engine:
        """The engine of the world."""
        return self._engine

    def rebuild(self, **changes: Any) -> Engine:
        """Replaces the engine by one that differs in some arguments of `make_engine`; the stores stay."""
        self._made_of |= changes
        self._engine = make_engine(**self._made_of)
        return self._engine

    def close(self) -> None:
        """Closes the vector store. Fails for each request that AWS would have refused: code under test may have
        swallowed the refusal."""
        self.vectors.close()
        assert not self.validator.refused, f"AWS would have refused: {self.validator.refused}"

    def collection(self, name: str = "notes", tenant: Tenant = ACME, **fields: Any) -> Collection:
        return self.engine.collections.create(tenant, NewCollection(name=name, **fields))

    def ingest(
        self, collection: Collection | CollectionId, content: str, tenant: Tenant = ACME, **fields: Any
    ) -> IngestResult:
        collection_id = collection.id if isinstance(collection, Collection) else collection
        request = IngestInput(collection_id=collection_id, content=content.encode(), **fields)
        return self.engine.ingest.ingest(tenant, request, self.deadline())

    def deadline(self, seconds: float = 1000.0) -> float:
        return self.clock.monotonic() + seconds

    @property
    def items(self) -> Items:
        """Every row of the table, by its key."""
        table = self._made_of["settings"].table
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        return {(item["pk"]["S"], item["sk"]["S"]): item for page in pages for item in page["Items"]}

    def rows(self) -> list[dict[str, Any]]:
        """Every row of the table, in order of key."""
        return [item for _, item in sorted(self.items.items(), key=itemgetter(0))]

    def keys(self) -> list[tuple[str, str]]:
        """The key of every row, in order."""
        return sorted(self.items)

    def vector_count(self, tenant: Tenant = ACME) -> int:
        return self.vectors.count(tenant, self.embedder.space)

    def vector_texts(self) -> dict[ChunkId, str]:
        """Every chunk that has a vector in a collection of the table. The texts of the vectors are left empty: the
        interface of a vector store does not tell them."""
        collections = [key for key in self.keys() if key[1].startswith("COL#")]
        return {chunk_id: "" for partition, sort in collections for chunk_id in self._scanned(partition, sort)}

    def _scanned(self, partition: str, sort: str) -> list[ChunkId]:
        tenant, collection_id = Tenant(partition.removeprefix("T#")), CollectionId(sort.removeprefix("COL#"))
        return self.vectors.scan(tenant, self.embedder.space, collection_id, None, EVERY_CHUNK)

    def store_problems(self) -> list[str]:
        """Vectors that are in no collection of the table."""
        counted = sum(self.vector_count(tenant) for tenant in (ACME, GLOBEX))
        scanned = len(self.vector_texts())
        return [] if counted == scanned else [f"{counted} vectors are stored, {scanned} of them in a collection"]


def make_world(
    *,
    settings: Settings | None = None,
    embedder: HashedEmbedder | None = None,
    vectors: VectorStore | None = None,
    clock: MovableClock | None = None,
    dynamodb: Any = None,
    create: bool = True,
    **others: Any,
) -> World:
    """A world on a new table. Runs inside moto's `mock_aws`, or against the client that it is given.

    Every request of the engine is held to what AWS takes (`tests.support.validator`).

    Args:
        create: whether the table is made.
        others: further arguments of `make_engine`.
    """
    client = dynamodb or dynamodb_client(region=REGION)
    if create:
        create_table(client, TABLE)
    return World(
        client,
        vectors or EmbeddedVectorStore(None),
        embedder or HashedEmbedder(),
        clock or ManualClock(),
        settings or Settings(table=TABLE, embedder="none", vectors="none"),
        **others,
    )

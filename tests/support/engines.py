"""Whole engines for tests: moto's DynamoDB in this process, the embedded vector store, a hashing embedder."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.clock import Clock
from core.embedding.types import Embedder
from core.engine import Engine
from core.loading.loaders import Loaders
from core.metadata.dynamo import Table, dynamodb_client
from core.model.collection import Collection, NewCollection
from core.model.ids import CollectionId
from core.model.ingest import IngestInput, IngestResult
from core.model.tenant import Tenant
from core.observe import Extension
from core.parts import Parts
from core.reranking.types import Reranker
from core.settings import Settings
from core.splitting.splitters import Splitters
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.types import VectorStore
from infra.template import create_table
from tests.support.clock import ManualClock
from tests.support.embedder import HashedEmbedder
from tests.support.validator import Validator

ACME = Tenant("acme")
GLOBEX = Tenant("globex")
TABLE = "weft-test"
REGION = "eu-central-1"


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


@dataclass
class World:
    """An engine and what it stands on, for a test to look at and to meddle with."""

    engine: Engine
    parts: Parts
    clock: ManualClock
    embedder: HashedEmbedder
    dynamodb: Any
    vectors: VectorStore
    validator: Validator
    extras: dict[str, Any] = field(default_factory=dict)

    def close(self) -> None:
        """Lets go of the vector store, and says which requests AWS would have refused: code may have swallowed it."""
        self.vectors.close()
        assert not self.validator.refused, f"AWS would have refused: {self.validator.refused}"

    def collection(self, name: str = "notes", tenant: Tenant = ACME, **fields: Any) -> Collection:
        return self.engine.collections.create(tenant, NewCollection(name=name, **fields))

    def ingest(
        self, collection: Collection | CollectionId, content: str, tenant: Tenant = ACME, **fields: Any
    ) -> IngestResult:
        collection_id = collection.id if isinstance(collection, Collection) else collection
        given = IngestInput(collection_id=collection_id, content=content.encode(), **fields)
        return self.engine.ingest.ingest(tenant, given, self.deadline())

    def deadline(self, seconds: float = 1000.0) -> float:
        return self.clock.monotonic() + seconds

    def rows(self) -> list[dict[str, Any]]:
        """Every row of the table, in order of key."""
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=TABLE)
        items = [item for page in pages for item in page["Items"]]
        return sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["S"]))

    def keys(self) -> list[tuple[str, str]]:
        return [(row["pk"]["S"], row["sk"]["S"]) for row in self.rows()]

    def vector_count(self, tenant: Tenant = ACME) -> int:
        return self.vectors.count(tenant, self.embedder.space)


def parts_on(
    client: Any,
    vectors: VectorStore,
    embedder: Embedder,
    clock: Clock,
    settings: Settings,
    *,
    reranker: Reranker | None = None,
    extensions: Sequence[Extension] = (),
) -> Parts:
    """An engine's parts on a client of DynamoDB and a vector store; the table is the one that the settings name."""
    return Parts(
        settings=settings,
        clock=clock,
        table=Table(client, settings.table, clock),
        loaders=Loaders(),
        splitters=Splitters(),
        embedders={embedder.space.model: embedder},
        vectors=vectors,
        reranker=reranker,
        extensions=extensions,
    )


def make_world(
    *,
    settings: Settings | None = None,
    embedder: HashedEmbedder | None = None,
    vectors: VectorStore | None = None,
    reranker: Reranker | None = None,
    clock: ManualClock | None = None,
    dynamodb: Any = None,
    extensions: Sequence[Extension] = (),
    create: bool = True,
) -> World:
    """An engine on a new table. Runs inside moto's `mock_aws`, or against the client it is given.

    Every request of the engine is held to what AWS takes (`tests.support.validator`).
    """
    client = dynamodb or dynamodb_client(region=REGION)
    if create:
        create_table(client, TABLE)
    validator = Validator()
    clock = clock or ManualClock()
    embedder = embedder or HashedEmbedder()
    vectors = vectors or EmbeddedVectorStore(None)
    parts = parts_on(
        OneAtATime(validator.watching(client)),
        vectors,
        embedder,
        clock,
        settings or Settings(table=TABLE, embedder="none", vectors="none"),
        reranker=reranker,
        extensions=extensions,
    )
    return World(Engine(parts), parts, clock, embedder, client, vectors, validator)

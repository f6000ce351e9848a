"""The parts that the rooms work with: the stores, the stages and what watches them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Protocol

from core.clock import Clock
from core.embedding.types import Embedder, Vector
from core.loading.loaders import Loaders
from core.metadata.candidates import Candidates
from core.metadata.collections import Collections
from core.metadata.documents import Documents
from core.metadata.dynamo import Table
from core.metadata.fields import Fields
from core.metadata.jobs import Jobs
from core.metadata.paging import PageTokens
from core.metadata.rows import CollectionRow
from core.metadata.transitions import Transitions
from core.metadata.uploads import Uploads
from core.model.collection import CollectionState, VectorSpace
from core.model.errors import CollectionNotFound, NotConfigured
from core.model.ids import CollectionId, DocumentId
from core.model.tenant import Tenant
from core.observe import Extension, Extensions, Metrics, NoMetrics, timed
from core.reranking.types import Reranker
from core.settings import Settings
from core.splitting.splitters import Splitters
from core.vectors.types import VectorStore


class Finishing(Protocol):
    """A queue of documents that are written whole. What is sent comes back to `IngestService.finish` until that is
    done."""

    def send(self, tenant: Tenant, document_id: DocumentId, attempt: int) -> None:
        """Sends one.

        Raises:
            Unavailable: the queue does not take it.
        """
        ...


class Parts:
    """One engine's parts.

    Args:
        embedders: by the name that collections record; the first is the default of a new collection.
        vectors: None where no vector store is configured.
        finishing: None where no queue brings documents back that searches do not see yet.
        reranker: None where none is configured.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        clock: Clock,
        table: Table,
        loaders: Loaders,
        splitters: Splitters,
        embedders: Mapping[str, Embedder],
        vectors: VectorStore | None,
        reranker: Reranker | None = None,
        finishing: Finishing | None = None,
        extensions: Sequence[Extension] = (),
        metrics: Metrics | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.loaders = loaders
        self.splitters = splitters
        self.embedders = embedders
        self.vectors = vectors
        self.finishing = finishing
        self.reranker = reranker
        self.extensions = Extensions(extensions)
        self.metrics: Metrics = metrics or NoMetrics()
        self.table = table
        self.collections = Collections(table)
        self.documents = Documents(table)
        self.candidates = Candidates(table)
        self.page_tokens = PageTokens(table)
        self.uploads = Uploads(table)
        self.jobs = Jobs(table)
        self.fields = Fields(table)
        self.transitions = Transitions(table, clock, self.writer_life)

    @property
    def writer_life(self) -> timedelta:
        """How long a writer may live after it began."""
        return timedelta(seconds=self.settings.writer_life_s)

    def collection(self, tenant: Tenant, collection_id: CollectionId) -> CollectionRow:
        """An active collection of the tenant.

        Raises:
            CollectionNotFound: missing, another tenant's, or being deleted.
        """
        row = self.collections.get(tenant, collection_id)
        if row is None or row.state != CollectionState.ACTIVE:
            raise CollectionNotFound
        return row

    def is_active(self, tenant: Tenant, collection_id: CollectionId) -> bool:
        """Whether the tenant has that collection, and it is not being deleted."""
        row = self.collections.get(tenant, collection_id)
        return row is not None and row.state == CollectionState.ACTIVE

    def vector_store(self) -> VectorStore:
        """The vector store.

        Raises:
            NotConfigured: there is none.
        """
        if self.vectors is None:
            raise NotConfigured("No vector store is configured")
        return self.vectors

    def embedder(self, model: str) -> Embedder:
        """The embedder of a model.

        Raises:
            NotConfigured: none of that name is configured.
        """
        try:
            return self.embedders[model]
        except KeyError as error:
            raise NotConfigured(f"No embedder for the model {model!r} is configured") from error

    def embedder_of(self, space: VectorSpace) -> Embedder:
        """The embedder whose vectors are of a space.

        Raises:
            NotConfigured: none of that model is configured, or it has other dimensions now.
        """
        embedder = self.embedder(space.model)
        if embedder.space.dimensions != space.dimensions:
            raise NotConfigured(
                f"The embedder {space.model!r} has {embedder.space.dimensions} dimensions, and the collection "
                f"{space.dimensions}: configure that many, or ingest into a new collection"
            )
        return embedder

    def timed(self, name: str) -> AbstractContextManager[None]:
        """Records how long the block takes."""
        return timed(self.metrics, self.clock, name)

    def embed(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        """Vectors of texts. Recorded under the OpenTelemetry names for generative AI clients."""
        model = embedder.space.model
        with self._asked(model):
            answer = embedder.embed(texts)
        self.metrics.record("gen_ai.client.token.usage", answer.input_tokens, "Count", model=model)
        return answer.vectors

    def rerank(self, query: str, texts: Sequence[str], deadline: float | None = None) -> list[float]:
        """The relevance of texts to a query, as `core.reranking.types.Reranker`. Recorded as embedding is.

        Raises:
            NotConfigured: there is no reranker.
        """
        reranker = self.need_reranker()
        with self._asked(reranker.name):
            return reranker.rerank(query, texts, deadline)

    @contextmanager
    def _asked(self, model: str) -> Iterator[None]:
        """Records how long a model took to answer, or to fail."""
        start = self.clock.monotonic()
        try:
            yield
        finally:
            seconds = self.clock.monotonic() - start
            self.metrics.record("gen_ai.client.operation.duration", seconds, "Seconds", model=model)

    def need_reranker(self) -> Reranker:
        """The reranker.

        Raises:
            NotConfigured: there is none.
        """
        if self.reranker is None:
            raise NotConfigured("No reranker is configured: set WEFT_RERANKER, or ask for another strategy")
        return self.reranker

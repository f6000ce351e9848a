"""Creates, reads, changes, counts and deletes collections."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from math import inf

from pydantic import TypeAdapter, ValidationError

from core.clock import Clock, new_id
from core.deletion.collections import CollectionDeletion
from core.embedding.embedders import Embedders
from core.embedding.types import Embedder
from core.metadata.collections import Collections
from core.metadata.dynamo import retry_on_conflict
from core.metadata.jobs import Jobs
from core.metadata.paging import Listings
from core.metadata.rows import CollectionRow
from core.model.collection import (
    Collection,
    CollectionName,
    CollectionState,
    CollectionStats,
    CollectionUpdate,
    NewCollection,
)
from core.model.errors import CollectionNotFound, InvalidArgument
from core.model.ids import CollectionId
from core.model.ingest import Deletion
from core.model.page import Order, Page, PageRequest
from core.model.query import Strategy
from core.model.tenant import Tenant
from core.observe import Observer
from core.recovery.reconcile import new_reconcile
from core.reranking.measured import require_reranker
from core.reranking.types import Reranker
from core.splitting.splitters import Splitters
from core.vectors.types import VectorStore
from core.vectors.unconfigured import require_vector_store

_NAME = TypeAdapter(CollectionName)
DEFAULT_CHUNK_SIZE = 512
DEFAULT_CHUNK_OVERLAP = 50


class CollectionService:
    """The collections of a tenant.

    A collection of another tenant, or one that is being deleted, is not found.

    Args:
        first_reconcile_after: how long after its creation a collection is reconciled for the first time.
    """

    def __init__(
        self,
        *,
        collections: Collections,
        jobs: Jobs,
        listings: Listings,
        deletion: CollectionDeletion,
        embedders: Embedders,
        splitters: Splitters,
        vectors: VectorStore,
        reranker: Reranker | None,
        observer: Observer,
        clock: Clock,
        first_reconcile_after: timedelta,
    ) -> None:
        self._collections = collections
        self._jobs = jobs
        self._listings = listings
        self._deletion = deletion
        self._embedders = embedders
        self._splitters = splitters
        self._vectors = vectors
        self._reranker = reranker
        self._observer = observer
        self._clock = clock
        self._first_reconcile_after = first_reconcile_after

    def create(self, tenant: Tenant, new: NewCollection) -> Collection:
        """Creates a collection. Its dimensions are the embedder's; what the request leaves out is the engine's default.

        Raises:
            InvalidArgument: the model or the strategy is unknown, or the overlap is not smaller than the size.
            CollectionAlreadyExists: the name is taken in the tenant.
            NotConfigured: no embedder, no vector store, or no reranker for a strategy that needs one is configured.
        """
        require_vector_store(self._vectors)
        embedder = self._embedder(new.embedding_model)
        size, overlap = _sizes(new, embedder.max_tokens)
        self._vectors.prepare(embedder.space)
        now = self._clock.now()
        row = CollectionRow(
            id=new_id(CollectionId, self._clock),
            tenant=tenant,
            name=new.name,
            description=new.description,
            embedding_model=embedder.space.model,
            embedding_dims=embedder.space.dimensions,
            chunk_strategy=self._splitters.find(new.chunk_strategy).name,
            chunk_size=size,
            chunk_overlap=overlap,
            retrieval_strategy=self._available(new.retrieval_strategy),
            metadata=new.metadata,
            state=CollectionState.ACTIVE,
            created_at=now,
            updated_at=now,
        )
        reconcile = self._jobs.put(new_reconcile(tenant, row.id, now, revision=1), now + self._first_reconcile_after)
        retry_on_conflict(self._clock, partial(self._collections.create, row, reconcile))
        self._observer.fire("collection_created", tenant=tenant, collection_id=row.id)
        return row.collection()

    def _embedder(self, model: str | None) -> Embedder:
        """Returns the embedder of a model that a request names; the default where it names none."""
        self._embedders.require_any()
        model = self._embedders.models[0] if model is None else model
        if model not in self._embedders.models:
            known = ", ".join(self._embedders.models)
            raise InvalidArgument(f"Unknown embedding model; there is {known}", field="embedding_model")
        return self._embedders.of_model(model)

    def get(self, tenant: Tenant, collection_id: CollectionId) -> Collection:
        """Returns a collection with its counts.

        Raises:
            CollectionNotFound: the tenant has no such collection.
        """
        return self._counted(tenant, [self._collections.active(tenant, collection_id)])[0]

    def get_by_name(self, tenant: Tenant, name: str) -> Collection:
        """Returns the collection that has a name.

        Raises:
            CollectionNotFound: the tenant has no such collection.
        """
        try:
            known = _NAME.validate_python(name)
        except ValidationError as error:  # no collection can have this name
            raise CollectionNotFound from error
        collection_id = self._collections.id_of(tenant, known)
        if collection_id is None:
            raise CollectionNotFound
        return self.get(tenant, collection_id)

    def list(
        self,
        tenant: Tenant,
        page: PageRequest,
        name: str | None = None,
        name_contains: str | None = None,
    ) -> Page[Collection]:
        """Lists collections by time of creation: all, or those whose name matches.

        Args:
            name: only the collection of exactly this name.
            name_contains: only collections whose name contains this text, in upper or lower case.

        Raises:
            InvalidArgument: the page token belongs to another listing.
        """
        rows = self._listings.page(
            tenant,
            page,
            {"list": "collections", "name": name, "contains": name_contains},
            entries=lambda after: self._matching(
                tenant, name, name_contains, None if after is None else CollectionId(after), page.order
            ),
            position=lambda row: row.id,
            count=lambda: self.count(tenant, name, name_contains),
        )
        return Page(
            items=list(self._counted(tenant, rows.items)), next_page_token=rows.next_page_token, total=rows.total
        )

    def count(self, tenant: Tenant, name: str | None = None, name_contains: str | None = None) -> int:
        """Counts the collections of the same listing."""
        return sum(1 for _ in self._matching(tenant, name, name_contains, None, Order.OLDEST))

    def _matching(
        self,
        tenant: Tenant,
        name: str | None,
        name_contains: str | None,
        after: CollectionId | None,
        order: Order,
    ) -> Iterator[CollectionRow]:
        rows = self._collections.all(tenant, after=after, descending=order == Order.NEWEST)
        for row in rows:
            if row.state != CollectionState.ACTIVE or name not in (None, row.name):
                continue
            if name_contains is None or name_contains.casefold() in row.name.casefold():
                yield row

    def _available(self, strategy: Strategy) -> Strategy:
        """Returns a strategy after checking that this engine has what the strategy needs."""
        if strategy is Strategy.RERANK:
            require_reranker(self._reranker)
        return strategy

    def _counted(self, tenant: Tenant, rows: Sequence[CollectionRow]) -> Sequence[Collection]:
        counts = self._collections.counts(tenant, [row.id for row in rows])
        return [row.collection(counts[row.id].documents, counts[row.id].chunks) for row in rows]

    def update(self, tenant: Tenant, collection_id: CollectionId, update: CollectionUpdate) -> Collection:
        """Changes name, description, retrieval strategy or metadata. What the update leaves out stays as it is.

        Raises:
            CollectionNotFound: the tenant has no such collection.
            CollectionAlreadyExists: the new name is taken.
            NotConfigured: the strategy needs a reranker, and none is configured.
        """
        self._available(update.retrieval_strategy or Strategy.SIMILARITY)
        retry_on_conflict(self._clock, partial(self._update, tenant, collection_id, update))
        return self.get(tenant, collection_id)

    def _update(self, tenant: Tenant, collection_id: CollectionId, update: CollectionUpdate) -> None:
        row = self._collections.active(tenant, collection_id)
        given = {name: value for name, value in dict(update).items() if value is not None}
        changed = row.model_copy(update=given)
        if changed != row:
            # A write is conditional on the time of the last write, so no two writes may have the same time.
            moment = max(self._clock.now(), row.updated_at + timedelta(milliseconds=1))
            self._collections.update(row, changed.model_copy(update={"updated_at": moment}))

    def stats(self, tenant: Tenant, collection_id: CollectionId) -> CollectionStats:
        """Returns exact counts of what is served. The time does not depend on the size of the collection.

        Raises:
            CollectionNotFound: the tenant has no such collection.
        """
        row = self._collections.active(tenant, collection_id)
        counts = self._collections.counts(tenant, [row.id])[row.id]
        return CollectionStats(
            collection_id=row.id,
            collection_name=row.name,
            document_count=counts.documents,
            chunk_count=counts.chunks,
            embedding_model=row.embedding_model,
            chunk_strategy=row.chunk_strategy,
        )

    def delete(self, tenant: Tenant, collection_id: CollectionId, deadline: float = inf) -> Deletion:
        """Removes a collection with its documents, chunks and vectors.

        The collection is closed at once. What the deadline leaves is removed by the next call, or by the sweep.

        Args:
            deadline: monotonic seconds of the engine's clock.

        Raises:
            CollectionNotFound: the tenant has no such collection.
        """
        require_vector_store(self._vectors)
        return self._deletion.delete(tenant, collection_id, deadline)


def _sizes(new: NewCollection, longest: int) -> tuple[int, int]:
    """Returns chunk size and overlap in tokens, with defaults filled in."""
    size = new.chunk_size if new.chunk_size is not None else min(DEFAULT_CHUNK_SIZE, longest)
    if size > longest:
        raise InvalidArgument(f"The embedding model takes at most {longest} tokens", field="chunk_size", limit=longest)
    overlap = new.chunk_overlap if new.chunk_overlap is not None else DEFAULT_CHUNK_OVERLAP
    if overlap >= size:
        raise InvalidArgument(
            f"chunk_overlap ({overlap}) must be smaller than chunk_size ({size})", field="chunk_overlap"
        )
    return size, overlap

"""Collections: created, read, changed, counted and deleted."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial

from pydantic import TypeAdapter, ValidationError

from core.clock import new_id
from core.ingest.delete import delete_collection
from core.metadata.dynamo import retry_on_conflict
from core.metadata.rows import CollectionRow
from core.model.collection import (
    Collection,
    CollectionName,
    CollectionState,
    CollectionStats,
    CollectionUpdate,
    NewCollection,
)
from core.model.errors import CollectionNotFound, InvalidArgument, NotConfigured
from core.model.ids import CollectionId
from core.model.ingest import Deletion
from core.model.page import Order, Page, PageRequest
from core.model.query import Strategy
from core.model.tenant import Tenant
from core.parts import Parts
from core.recovery.reconcile import new_reconcile

_NAME = TypeAdapter(CollectionName)
DEFAULT_CHUNK_SIZE = 512
DEFAULT_CHUNK_OVERLAP = 50


class CollectionService:
    """The collections of a tenant. Another tenant's reads as not found, and so does one that is being deleted."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def create(self, tenant: Tenant, new: NewCollection) -> Collection:
        """A new collection. Its dimensions are the embedder's, its defaults the engine's.

        Raises:
            InvalidArgument: an unknown model or strategy, or sizes that do not go together.
            CollectionAlreadyExists: the name is taken in the tenant.
            NotConfigured: there is no embedder, no vector store, or no reranker where the strategy needs one.
        """
        parts = self._parts
        store = parts.vector_store()
        if not parts.embedders:
            raise NotConfigured("No embedder is configured")
        model = next(iter(parts.embedders)) if new.embedding_model is None else new.embedding_model
        if model not in parts.embedders:
            known = ", ".join(parts.embedders)
            raise InvalidArgument(f"Unknown embedding model; there is {known}", field="embedding_model")
        embedder = parts.embedders[model]
        size, overlap = _sizes(new, embedder.max_tokens)
        store.prepare(embedder.space)
        now = parts.clock.now()
        row = CollectionRow(
            id=new_id(CollectionId, parts.clock),
            tenant=tenant,
            name=new.name,
            description=new.description,
            embedding_model=model,
            embedding_dims=embedder.space.dimensions,
            chunk_strategy=parts.splitters.find(new.chunk_strategy).name,
            chunk_size=size,
            chunk_overlap=overlap,
            retrieval_strategy=self._strategy(new.retrieval_strategy),
            metadata=new.metadata,
            state=CollectionState.ACTIVE,
            created_at=now,
            updated_at=now,
        )
        reconcile = new_reconcile(tenant, row.id, now, revision=1)
        due = now + timedelta(hours=parts.settings.reconcile_interval_h)
        retry_on_conflict(parts.clock, partial(parts.collections.create, row, parts.jobs.put(reconcile, due)))
        parts.extensions.fire("collection_created", tenant=tenant, collection_id=row.id)
        return row.collection()

    def get(self, tenant: Tenant, collection_id: CollectionId) -> Collection:
        """A collection with its counts.

        Raises:
            CollectionNotFound: no such collection in the tenant.
        """
        return self._counted(tenant, [self._parts.collection(tenant, collection_id)])[0]

    def get_by_name(self, tenant: Tenant, name: str) -> Collection:
        """The collection of that name.

        Raises:
            CollectionNotFound: no such collection in the tenant.
        """
        try:
            known = _NAME.validate_python(name)
        except ValidationError as error:  # no collection can have it
            raise CollectionNotFound from error
        collection_id = self._parts.collections.id_of(tenant, known)
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
        """Collections by time of creation, all or those with a name.

        Args:
            name: just this name.
            name_contains: literally, in any case.

        Raises:
            InvalidArgument: the page token is not of this listing.
        """
        query = {"list": "collections", "name": name, "contains": name_contains, "order": page.order}
        after = None
        if page.token is not None:
            after = CollectionId(self._parts.page_tokens.read(tenant, query, page.token))
        found = []
        for row in self._matching(tenant, name, name_contains, after, page.order):
            found.append(row)
            if len(found) > page.limit:
                break
        shown, token = found[: page.limit], None
        if len(found) > page.limit:
            token = self._parts.page_tokens.write(tenant, query, shown[-1].id)
        total = self.count(tenant, name, name_contains) if page.total else None
        return Page(items=list(self._counted(tenant, shown)), next_page_token=token, total=total)

    def count(self, tenant: Tenant, name: str | None = None, name_contains: str | None = None) -> int:
        """How many the same listing has in all its pages."""
        return sum(1 for _ in self._matching(tenant, name, name_contains, None, Order.OLDEST))

    def _matching(
        self,
        tenant: Tenant,
        name: str | None,
        name_contains: str | None,
        after: CollectionId | None,
        order: Order,
    ) -> Iterator[CollectionRow]:
        rows = self._parts.collections.all(tenant, after=after, descending=order == Order.NEWEST)
        for row in rows:
            if row.state != CollectionState.ACTIVE or name not in (None, row.name):
                continue
            if name_contains is None or name_contains.casefold() in row.name.casefold():
                yield row

    def _strategy(self, strategy: Strategy) -> Strategy:
        """A strategy that this engine has."""
        if strategy is Strategy.RERANK:
            self._parts.need_reranker()
        return strategy

    def _counted(self, tenant: Tenant, rows: Sequence[CollectionRow]) -> Sequence[Collection]:
        counts = self._parts.collections.counts(tenant, [row.id for row in rows])
        return [row.collection(counts[row.id].documents, counts[row.id].chunks) for row in rows]

    def update(self, tenant: Tenant, collection_id: CollectionId, update: CollectionUpdate) -> Collection:
        """Changes name, description, retrieval strategy or metadata; what is not given, or null, is left alone.

        Raises:
            CollectionNotFound: no such collection in the tenant.
            CollectionAlreadyExists: the new name is taken.
            NotConfigured: the strategy needs a reranker, and there is none.
        """
        self._strategy(update.retrieval_strategy or Strategy.SIMILARITY)
        retry_on_conflict(self._parts.clock, partial(self._update, tenant, collection_id, update))
        return self.get(tenant, collection_id)

    def _update(self, tenant: Tenant, collection_id: CollectionId, update: CollectionUpdate) -> None:
        row = self._parts.collection(tenant, collection_id)
        given = {name: value for name, value in dict(update).items() if value is not None}
        changed = row.model_copy(update=given)
        if changed != row:
            # A write is conditional on the time of the last one, so no two have the same.
            moment = max(self._parts.clock.now(), row.updated_at + timedelta(milliseconds=1))
            self._parts.collections.update(row, changed.model_copy(update={"updated_at": moment}))

    def stats(self, tenant: Tenant, collection_id: CollectionId) -> CollectionStats:
        """Exact counts of what is served, in constant time.

        Raises:
            CollectionNotFound: no such collection in the tenant.
        """
        row = self._parts.collection(tenant, collection_id)
        counts = self._parts.collections.counts(tenant, [row.id])[row.id]
        return CollectionStats(
            collection_id=row.id,
            collection_name=row.name,
            document_count=counts.documents,
            chunk_count=counts.chunks,
            embedding_model=row.embedding_model,
            chunk_strategy=row.chunk_strategy,
        )

    def delete(self, tenant: Tenant, collection_id: CollectionId, deadline: float) -> Deletion:
        """Removes a collection with its documents, chunks and vectors.

        It is closed at once. What is not removed by the deadline is removed by the next call, or by the sweep.

        Args:
            deadline: monotonic seconds of the engine's clock.

        Raises:
            CollectionNotFound: no such collection in the tenant.
        """
        self._parts.vector_store()
        return delete_collection(self._parts, tenant, collection_id, deadline)


def _sizes(new: NewCollection, longest: int) -> tuple[int, int]:
    """Chunk size and overlap in tokens, after defaults."""
    size = new.chunk_size if new.chunk_size is not None else min(DEFAULT_CHUNK_SIZE, longest)
    if size > longest:
        raise InvalidArgument(f"The embedding model takes at most {longest} tokens", field="chunk_size", limit=longest)
    overlap = new.chunk_overlap if new.chunk_overlap is not None else DEFAULT_CHUNK_OVERLAP
    if overlap >= size:
        raise InvalidArgument(
            f"chunk_overlap ({overlap}) must be smaller than chunk_size ({size})", field="chunk_overlap"
        )
    return size, overlap

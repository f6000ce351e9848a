"""Reads, lists and counts the chunks that are served."""

from collections.abc import Iterator, Sequence

from core.catalog.documents import READ_AT_ONCE, DocumentService
from core.metadata.collections import Collections
from core.metadata.documents import Documents
from core.metadata.paging import Listings, batches
from core.metadata.rows import Head
from core.model.chunk import Chunk
from core.model.document import LineageChain
from core.model.errors import ChunkNotFound, InvalidArgument
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.page import Order, Page, PageRequest
from core.model.tenant import Tenant
from core.protocol.served import Served


class ChunkService:
    """The served chunks of a tenant: those of ready documents, and of sources their current versions.

    A chunk of another tenant is not found.
    """

    def __init__(
        self,
        documents: Documents,
        collections: Collections,
        served: Served,
        listings: Listings,
        document_service: DocumentService,
    ) -> None:
        self._documents = documents
        self._collections = collections
        self._served = served
        self._listings = listings
        self._document_service = document_service

    def get(self, tenant: Tenant, chunk_id: ChunkId) -> Chunk:
        """Returns a served chunk.

        Raises:
            ChunkNotFound: the tenant has no such chunk, or the chunk's version is not served.
        """
        if not self._served.chunk_ids(tenant, [chunk_id]):
            raise ChunkNotFound
        chunks = self._documents.chunks(tenant, [chunk_id])
        if chunk_id not in chunks:
            raise ChunkNotFound
        return chunks[chunk_id]

    def list(
        self,
        tenant: Tenant,
        page: PageRequest,
        collection_id: CollectionId | None = None,
        document_id: DocumentId | None = None,
    ) -> Page[Chunk]:
        """Lists chunks in document order; the documents of a collection by time of creation.

        Raises:
            InvalidArgument: neither a collection nor a document is named, or the page token belongs to another listing.
            CollectionNotFound, DocumentNotFound: the tenant has no such collection or document.
        """
        ids = self._listings.page(
            tenant,
            page,
            {"list": "chunks", "collection": collection_id, "document": document_id},
            entries=lambda after: self._chunk_ids(
                tenant, collection_id, document_id, None if after is None else ChunkId(after), page.order
            ),
            position=str,
            count=lambda: self.count(tenant, collection_id, document_id),
        )
        chunks = self._documents.chunks(tenant, ids.items)
        items = [chunks[chunk_id] for chunk_id in ids.items if chunk_id in chunks]
        return Page(items=items, next_page_token=ids.next_page_token, total=ids.total)

    def count(
        self,
        tenant: Tenant,
        collection_id: CollectionId | None = None,
        document_id: DocumentId | None = None,
    ) -> int:
        """Counts the chunks of the same listing."""
        heads = self._served_documents(tenant, collection_id, document_id, None, Order.OLDEST)
        return sum(head.chunk_count for head in heads)

    def lineage(self, tenant: Tenant, chunk_id: ChunkId) -> LineageChain:
        """Returns the chain from a chunk up to its document and the document's source.

        Raises:
            ChunkNotFound: as `get` says.
        """
        chunk = self.get(tenant, chunk_id)
        chain = [chunk_id]
        while chunk.lineage is not None and isinstance(chunk.lineage.parent_id, ChunkId):
            parent_id = chunk.lineage.parent_id
            chain.append(parent_id)
            parents = self._documents.chunks(tenant, [parent_id])
            if parent_id not in parents:  # a chunk that was split again need not be stored: its ID names the document
                break
            chunk = parents[parent_id]
        _, info = self._document_service.rows(tenant, chunk_id.document_id)
        return LineageChain(chunks=chain, document=info.summary())

    def _chunk_ids(
        self,
        tenant: Tenant,
        collection_id: CollectionId | None,
        document_id: DocumentId | None,
        after: ChunkId | None,
        order: Order,
    ) -> Iterator[ChunkId]:
        for head in self._served_documents(tenant, collection_id, document_id, after, order):
            first = 0
            if after is not None and after.document_id == head.document_id:
                first = after.chunk_index + 1
            for index in range(first, head.chunk_count):
                yield ChunkId.of(head.document_id, head.attempt, index)

    def _served_documents(
        self,
        tenant: Tenant,
        collection_id: CollectionId | None,
        document_id: DocumentId | None,
        after: ChunkId | None,
        order: Order,
    ) -> Iterator[Head]:
        """Yields served documents, beginning with the document of the chunk `after`."""
        if collection_id is not None:
            self._collections.active(tenant, collection_id)
        if document_id is not None:
            head, _ = self._document_service.rows(tenant, document_id)
            if collection_id in (None, head.collection_id):
                yield from self._served.heads(tenant, [head])
            return
        if collection_id is None:
            raise InvalidArgument("Name a collection_id or a document_id", field="collection_id")
        if after is not None:
            yield from self._served_of(tenant, [after.document_id])
        listed = self._documents.listed(
            tenant,
            collection_id,
            after=after.document_id if after else None,
            descending=order == Order.NEWEST,
        )
        for batch in batches(listed, READ_AT_ONCE):
            yield from self._served_of(tenant, batch)

    def _served_of(self, tenant: Tenant, document_ids: Sequence[DocumentId]) -> Iterator[Head]:
        heads = self._documents.heads(tenant, document_ids)
        return self._served.heads(tenant, [heads[document_id] for document_id in document_ids if document_id in heads])

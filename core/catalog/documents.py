"""Documents and chunks: read, listed, counted and deleted."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from core.ingest.decide import Version
from core.ingest.delete import delete_document, delete_source
from core.metadata.rows import Head, Info, Source, document
from core.model.chunk import Chunk
from core.model.collection import CollectionState
from core.model.document import (
    Document,
    DocumentState,
    LineageChain,
    check_source_key,
    source_id,
)
from core.model.errors import ChunkNotFound, DocumentNotFound, InvalidArgument
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.ingest import Deletion
from core.model.page import Order, Page, PageRequest
from core.model.tenant import Tenant
from core.parts import Parts
from core.retrieval.visibility import served_heads, served_ids

_SOURCE_ID = re.compile("[0-9a-f]{64}")
READ_AT_ONCE = 50


class DocumentService:
    """The documents and chunks of a tenant. Another tenant's read as not found.

    Chunks are those that are served: of ready documents, of a source's current version.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    # -- documents ---------------------------------------------------------------------------------

    def get(self, tenant: Tenant, document_id: DocumentId) -> Document:
        """A document in its state.

        Raises:
            DocumentNotFound: no such document in the tenant.
        """
        return document(*self._rows(tenant, document_id))

    def _rows(self, tenant: Tenant, document_id: DocumentId) -> tuple[Head, Info]:
        found = self._parts.documents.rows(tenant, [document_id])
        if not found:
            raise DocumentNotFound
        collection = self._parts.collections.get(tenant, found[0][0].collection_id)
        if collection is None or collection.state != CollectionState.ACTIVE:
            raise DocumentNotFound
        return found[0]

    def list(
        self,
        tenant: Tenant,
        page: PageRequest,
        collection_id: CollectionId | None = None,
        state: DocumentState | None = None,
        source_key: str | None = None,
    ) -> Page[Document]:
        """Documents of a collection, of one source of it, or of the tenant, by time of creation.

        Raises:
            CollectionNotFound: no such collection in the tenant.
            InvalidArgument: a source key without a collection, or a page token of another listing.
        """
        query = {
            "list": "documents",
            "collection": collection_id,
            "state": state,
            "source": source_key,
            "order": page.order,
        }
        after = self._position(tenant, query, page.token)
        start = None if after is None else DocumentId(after)
        matching = self._matching(tenant, collection_id, state, source_key, start, page.order)
        found = list(islice(matching, page.limit + 1))
        shown, token = found[: page.limit], None
        if len(found) > page.limit:
            token = self._parts.page_tokens.write(tenant, query, shown[-1].id)
        total = self.count(tenant, collection_id, state, source_key) if page.total else None
        return Page(items=shown, next_page_token=token, total=total)

    def count(
        self,
        tenant: Tenant,
        collection_id: CollectionId | None = None,
        state: DocumentState | None = None,
        source_key: str | None = None,
    ) -> int:
        """How many the same listing has in all its pages."""
        return sum(1 for _ in self._matching(tenant, collection_id, state, source_key, None, Order.OLDEST))

    def _matching(
        self,
        tenant: Tenant,
        collection_id: CollectionId | None,
        state: DocumentState | None,
        source_key: str | None,
        after: DocumentId | None,
        order: Order,
    ) -> Iterator[Document]:
        descending = order == Order.NEWEST
        if collection_id is not None:
            self._parts.collection(tenant, collection_id)
            active = {collection_id}
        else:
            rows = self._parts.collections.all(tenant)
            active = {row.id for row in rows if row.state == CollectionState.ACTIVE}
        if source_key is None:
            listed = self._parts.documents.listed(tenant, collection_id, after=after, descending=descending)
        elif collection_id is None:
            raise InvalidArgument("A source_key needs a collection_id", field="source_key")
        else:
            listed = self._versions(tenant, collection_id, source_key, after, descending)
        while batch := list(islice(listed, READ_AT_ONCE)):
            for head, info in self._parts.documents.rows(tenant, batch):
                if head.collection_id in active and state in (None, head.state):
                    yield document(head, info)

    def _versions(
        self,
        tenant: Tenant,
        collection_id: CollectionId,
        source_key: str,
        after: DocumentId | None,
        descending: bool,
    ) -> Iterator[DocumentId]:
        source = self._source(tenant, collection_id, source_key)
        versions = self._parts.documents.versions(tenant, collection_id, source.source_id)
        ordered = sorted(versions, reverse=descending)
        if after is None:
            return iter(ordered)
        return (one for one in ordered if (one < after if descending else one > after))

    def _source(self, tenant: Tenant, collection_id: CollectionId, key: str) -> Source:
        """The source of a key, or of a source ID, which stands for its key wherever one is asked for."""
        check_source_key(key)
        if _SOURCE_ID.fullmatch(key):
            found = self._parts.documents.source(tenant, collection_id, key)
            if found is not None:
                return found
        found = self._parts.documents.source(tenant, collection_id, source_id(key))
        return found or Source(key=key, collection_id=collection_id)

    def delete(self, tenant: Tenant, document_id: DocumentId) -> Deletion:
        """Removes a document with its chunks and vectors, whatever its state.

        Raises:
            DocumentNotFound: no such document in the tenant; nothing is deleted.
            Unavailable: its data could not be deleted; it is served no more, and the sweep goes on with it.
        """
        self._parts.vector_store()
        head, _ = self._rows(tenant, document_id)
        deletion = delete_document(self._parts, head)
        self._deleted(tenant, deletion)
        return deletion

    def delete_source(
        self,
        tenant: Tenant,
        collection_id: CollectionId,
        source_key: str,
        deadline: float,
        source_version: str | None = None,
        version_sequence: str = "",
    ) -> Deletion:
        """Removes every version of a source, with chunks and vectors. Nothing to delete is no error.

        A version in flight loses its row, so its ingest is interrupted; one that begins later is kept.

        Args:
            source_key: the key, or its source ID.
            deadline: monotonic seconds of the engine's clock.
            source_version: a removal counts as a version: contents with a lower one can no longer come to serve.

        Raises:
            CollectionNotFound: no such collection in the tenant.
            InvalidArgument: the key's form.
            VersionConflict: the version is known as a content's.
            Unavailable: data could not be deleted; it is served no more, and the sweep goes on with it.
        """
        self._parts.vector_store()
        check_source_key(source_key)
        self._parts.collection(tenant, collection_id)
        source = self._source(tenant, collection_id, source_key)
        version = Version.of(source_version, version_sequence)
        deletion = delete_source(self._parts, tenant, source, version, deadline)
        self._deleted(tenant, deletion)
        return deletion

    def _deleted(self, tenant: Tenant, deletion: Deletion) -> None:
        for document_id in deletion.documents:
            self._parts.extensions.fire("document_deleted", tenant=tenant, document_id=document_id)

    # -- chunks ------------------------------------------------------------------------------------

    def get_chunk(self, tenant: Tenant, chunk_id: ChunkId) -> Chunk:
        """A chunk that is served.

        Raises:
            ChunkNotFound: no such chunk in the tenant, or not of a version that is served.
        """
        if not served_ids(self._parts, tenant, [chunk_id]):
            raise ChunkNotFound
        found = self._parts.documents.chunks(tenant, [chunk_id])
        if chunk_id not in found:
            raise ChunkNotFound
        return found[chunk_id]

    def list_chunks(
        self,
        tenant: Tenant,
        page: PageRequest,
        collection_id: CollectionId | None = None,
        document_id: DocumentId | None = None,
    ) -> Page[Chunk]:
        """Chunks in document order; of a collection, its documents by time of creation.

        Raises:
            InvalidArgument: neither a collection nor a document is named, or a page token of another listing.
            CollectionNotFound, DocumentNotFound: no such thing in the tenant.
        """
        query = {
            "list": "chunks",
            "collection": collection_id,
            "document": document_id,
            "order": page.order,
        }
        after = self._position(tenant, query, page.token)
        start = None if after is None else ChunkId(after)
        ids = list(islice(self._chunk_ids(tenant, collection_id, document_id, start, page.order), page.limit + 1))
        shown, token = ids[: page.limit], None
        if len(ids) > page.limit:
            token = self._parts.page_tokens.write(tenant, query, shown[-1])
        chunks = self._parts.documents.chunks(tenant, shown)
        total = self.count_chunks(tenant, collection_id, document_id) if page.total else None
        items = [chunks[one] for one in shown if one in chunks]
        return Page(items=items, next_page_token=token, total=total)

    def count_chunks(
        self,
        tenant: Tenant,
        collection_id: CollectionId | None = None,
        document_id: DocumentId | None = None,
    ) -> int:
        """How many the same listing has in all its pages."""
        return sum(head.chunk_count for head in self._served(tenant, collection_id, document_id, None, Order.OLDEST))

    def _chunk_ids(
        self,
        tenant: Tenant,
        collection_id: CollectionId | None,
        document_id: DocumentId | None,
        after: ChunkId | None,
        order: Order,
    ) -> Iterator[ChunkId]:
        for head in self._served(tenant, collection_id, document_id, after, order):
            first = 0
            if after is not None and after.document_id == head.document_id:
                first = after.chunk_index + 1
            for index in range(first, head.chunk_count):
                yield ChunkId.of(head.document_id, head.attempt, index)

    def _served(
        self,
        tenant: Tenant,
        collection_id: CollectionId | None,
        document_id: DocumentId | None,
        after: ChunkId | None,
        order: Order,
    ) -> Iterator[Head]:
        """Served documents, from the one that the position is in."""
        if collection_id is not None:
            self._parts.collection(tenant, collection_id)
        if document_id is not None:
            head, _ = self._rows(tenant, document_id)
            if collection_id in (None, head.collection_id):
                yield from served_heads(self._parts, tenant, [head])
            return
        if collection_id is None:
            raise InvalidArgument("Name a collection_id or a document_id", field="collection_id")
        if after is not None:
            yield from self._served_of(tenant, [after.document_id])
        listed = self._parts.documents.listed(
            tenant,
            collection_id,
            after=after.document_id if after else None,
            descending=order == Order.NEWEST,
        )
        while batch := list(islice(listed, READ_AT_ONCE)):
            yield from self._served_of(tenant, batch)

    def _served_of(self, tenant: Tenant, document_ids: Sequence[DocumentId]) -> Iterator[Head]:
        heads = self._parts.documents.heads(tenant, document_ids)
        return served_heads(self._parts, tenant, [heads[one] for one in document_ids if one in heads])

    def lineage(self, tenant: Tenant, chunk_id: ChunkId) -> LineageChain:
        """The chain from a chunk up to its document and the document's source.

        Raises:
            ChunkNotFound: as of `get_chunk`.
        """
        chunk = self.get_chunk(tenant, chunk_id)
        chain = [chunk_id]
        while chunk.lineage is not None and isinstance(chunk.lineage.parent_id, ChunkId):
            parent = chunk.lineage.parent_id
            chain.append(parent)
            found = self._parts.documents.chunks(tenant, [parent])
            if parent not in found:  # a parent that was split again need not be stored: its ID says the rest
                break
            chunk = found[parent]
        _, info = self._rows(tenant, chunk_id.document_id)
        return LineageChain(chunks=chain, document=info.summary())

    def _position(self, tenant: Tenant, query: dict[str, Any], token: str | None) -> str | None:
        if token is None:
            return None
        position = self._parts.page_tokens.read(tenant, query, token)
        return str(position)

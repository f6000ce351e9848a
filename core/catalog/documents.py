"""Reads, lists, counts and deletes documents and sources."""

import re
from collections.abc import Iterator
from math import inf

from core.deletion.documents import DocumentDeletion
from core.deletion.sources import SourceDeletion
from core.metadata.collections import Collections
from core.metadata.documents import Documents
from core.metadata.paging import Listings, batches
from core.metadata.rows import Head, Info, Source, document
from core.model.collection import CollectionState
from core.model.document import Document, DocumentState, validate_source_key
from core.model.errors import DocumentNotFound, InvalidArgument
from core.model.ids import CollectionId, DocumentId
from core.model.ingest import Deletion
from core.model.page import Order, Page, PageRequest
from core.model.tenant import Tenant
from core.observe import Observer
from core.protocol.decide import CallerVersion
from core.vectors.types import VectorStore
from core.vectors.unconfigured import require_vector_store

_SOURCE_ID = re.compile("[0-9a-f]{64}")
READ_AT_ONCE = 50


class DocumentService:
    """The documents of a tenant. A document of another tenant is not found."""

    def __init__(
        self,
        *,
        documents: Documents,
        collections: Collections,
        listings: Listings,
        document_deletion: DocumentDeletion,
        source_deletion: SourceDeletion,
        vectors: VectorStore,
        observer: Observer,
    ) -> None:
        self._documents = documents
        self._collections = collections
        self._listings = listings
        self._document_deletion = document_deletion
        self._source_deletion = source_deletion
        self._vectors = vectors
        self._observer = observer

    # -- reading -------------------------------------------------------------------------------------

    def get(self, tenant: Tenant, document_id: DocumentId) -> Document:
        """Returns a document in its state.

        Raises:
            DocumentNotFound: the tenant has no such document.
        """
        return document(*self.rows(tenant, document_id))

    def rows(self, tenant: Tenant, document_id: DocumentId) -> tuple[Head, Info]:
        """Reads the rows of a document whose collection is not being deleted.

        Raises:
            DocumentNotFound: the tenant has no such document.
        """
        rows = self._documents.rows(tenant, [document_id])
        if not rows or not self._collections.is_active(tenant, rows[0][0].collection_id):
            raise DocumentNotFound
        return rows[0]

    def list(
        self,
        tenant: Tenant,
        page: PageRequest,
        collection_id: CollectionId | None = None,
        state: DocumentState | None = None,
        source_key: str | None = None,
    ) -> Page[Document]:
        """Lists the documents of a source, of a collection, or of the tenant, by time of creation.

        Raises:
            CollectionNotFound: the tenant has no such collection.
            InvalidArgument: a source key without a collection, or a page token of another listing.
        """
        return self._listings.page(
            tenant,
            page,
            {"list": "documents", "collection": collection_id, "state": state, "source": source_key},
            entries=lambda after: self._matching(
                tenant, collection_id, state, source_key, None if after is None else DocumentId(after), page.order
            ),
            position=lambda listed: listed.id,
            count=lambda: self.count(tenant, collection_id, state, source_key),
        )

    def count(
        self,
        tenant: Tenant,
        collection_id: CollectionId | None = None,
        state: DocumentState | None = None,
        source_key: str | None = None,
    ) -> int:
        """Counts the documents of the same listing."""
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
        active = self._active_ids(tenant, collection_id)
        if source_key is None:
            listed = self._documents.listed(tenant, collection_id, after=after, descending=descending)
        elif collection_id is None:
            raise InvalidArgument("A source_key needs a collection_id", field="source_key")
        else:
            listed = self._versions(tenant, collection_id, source_key, after, descending)
        for batch in batches(listed, READ_AT_ONCE):
            for head, info in self._documents.rows(tenant, batch):
                if head.collection_id in active and state in (None, head.state):
                    yield document(head, info)

    def _active_ids(self, tenant: Tenant, collection_id: CollectionId | None) -> set[CollectionId]:
        """Returns the collection that a listing names, or every collection of the tenant that is not being deleted."""
        if collection_id is not None:
            return {self._collections.active(tenant, collection_id).id}
        return {row.id for row in self._collections.all(tenant) if row.state == CollectionState.ACTIVE}

    def _versions(
        self,
        tenant: Tenant,
        collection_id: CollectionId,
        source_key: str,
        after: DocumentId | None,
        descending: bool,
    ) -> Iterator[DocumentId]:
        """Lists the versions of a source by time of creation, beginning behind the document `after`."""
        source = self._source(tenant, collection_id, source_key)
        versions = sorted(self._documents.versions(tenant, collection_id, source.source_id), reverse=descending)
        if after is None:
            return iter(versions)
        return (version for version in versions if (version < after if descending else version > after))

    def _source(self, tenant: Tenant, collection_id: CollectionId, key: str) -> Source:
        """Reads the source of a source key, or of a source ID, which may stand wherever a source key does."""
        validate_source_key(key)
        if _SOURCE_ID.fullmatch(key):
            source = self._documents.source(tenant, collection_id, key)
            if source is not None:
                return source
        return self._documents.source_or_new(tenant, collection_id, key)

    # -- deleting ------------------------------------------------------------------------------------

    def delete(self, tenant: Tenant, document_id: DocumentId) -> Deletion:
        """Removes a document with its chunks and vectors, whatever its state.

        Raises:
            DocumentNotFound: the tenant has no such document. Nothing is deleted.
            Unavailable: the data could not be deleted. The document is no longer served, and the sweep removes it.
        """
        require_vector_store(self._vectors)
        head, _ = self.rows(tenant, document_id)
        deletion = self._document_deletion.delete(head)
        self._fire_deleted(tenant, deletion)
        return deletion

    def delete_source(
        self,
        tenant: Tenant,
        collection_id: CollectionId,
        source_key: str,
        deadline: float = inf,
        source_version: str | None = None,
        version_sequence: str = "",
    ) -> Deletion:
        """Removes every version of a source, with chunks and vectors. Deleting a source without versions is no error.

        A version in progress loses its rows, so that its ingest is interrupted. A version that begins later is kept.

        Args:
            source_key: the source key, or the source ID.
            deadline: monotonic seconds of the engine's clock. No removal of a version begins after it.
            source_version: the removal counts as a version. Contents with a lower version can no longer be served.

        Raises:
            CollectionNotFound: the tenant has no such collection.
            InvalidArgument: the source key is blank or too long.
            VersionConflict: the version came with a content before.
            Unavailable: data could not be deleted. It is no longer served, and the sweep removes it.
        """
        require_vector_store(self._vectors)
        validate_source_key(source_key)
        self._collections.active(tenant, collection_id)
        source = self._source(tenant, collection_id, source_key)
        version = CallerVersion.of(source_version, version_sequence)
        deletion = self._source_deletion.delete(tenant, source, version, deadline)
        self._fire_deleted(tenant, deletion)
        return deletion

    def _fire_deleted(self, tenant: Tenant, deletion: Deletion) -> None:
        for document_id in deletion.documents:
            self._observer.fire("document_deleted", tenant=tenant, document_id=document_id)

"""Deletes a collection with its documents and sources."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from core.clock import Clock
from core.deletion.documents import DeletionCount, DocumentDeletion
from core.metadata import table
from core.metadata.collections import Collections
from core.metadata.documents import Documents
from core.metadata.dynamo import retry_on_conflict
from core.metadata.paging import batches
from core.metadata.rows import CollectionRow, Head
from core.model.collection import CollectionState
from core.model.errors import CollectionNotFound
from core.model.ids import CollectionId
from core.model.ingest import Deletion
from core.model.tenant import Tenant
from core.observe import Observer

ROWS_AT_ONCE = 100
LISTING_LAG_S = 0.5
"""How long to wait for the eventually consistent listing, in seconds."""


class CollectionDeletion:
    """Deletes collections."""

    def __init__(
        self,
        collections: Collections,
        documents: Documents,
        document_deletion: DocumentDeletion,
        observer: Observer,
        clock: Clock,
        writer_life: timedelta,
    ) -> None:
        self._collections = collections
        self._documents = documents
        self._document_deletion = document_deletion
        self._observer = observer
        self._clock = clock
        self._writer_life = writer_life

    def delete(self, tenant: Tenant, collection_id: CollectionId, deadline: float) -> Deletion:
        """Closes a collection, then removes its documents and its sources.

        The collection's own row goes a writer's life later, when no writer can add anything any more. A call that the
        deadline cuts short is continued by the next call, or by the sweep.

        Args:
            deadline: monotonic seconds. No removal of a document begins after it.

        Raises:
            CollectionNotFound: the collection does not exist, belongs to another tenant, or is deleted already.
        """
        row = retry_on_conflict(self._clock, partial(self._start, tenant, collection_id))
        retry_on_conflict(self._clock, partial(self._collections.close_gates, tenant, collection_id))
        count = DeletionCount()
        if not self._remove_documents(row, count, deadline):
            return count.deletion(complete=False)
        self.remove_entries(row)
        if retry_on_conflict(self._clock, partial(self._finish, row)):
            self._observer.fire("collection_deleted", tenant=tenant, collection_id=collection_id)
        return count.deletion()

    def _start(self, tenant: Tenant, collection_id: CollectionId) -> CollectionRow:
        row = self._collections.get(tenant, collection_id)
        if row is None or row.state == CollectionState.EMPTIED:
            raise CollectionNotFound
        if row.state == CollectionState.ACTIVE:
            self._collections.start_deleting(row)
        return row

    def _finish(self, row: CollectionRow) -> bool:
        """Makes the collection emptied, and tells whether this call and no other has done so."""
        now = self._collections.get(row.tenant, row.id)
        if now is None or now.state != CollectionState.DELETING:
            return False
        self._collections.finish_emptying(now, table.due_at(self._clock.now() + self._writer_life))
        return True

    def _remove_documents(self, row: CollectionRow, count: DeletionCount, deadline: float) -> bool:
        """Removes documents until the gates count none; returns False when the deadline comes first."""
        while self._collections.counts(row.tenant, [row.id])[row.id].rows:
            listed = False
            for head in self._listed(row):
                listed = True
                if self._clock.monotonic() >= deadline:
                    return False
                self._document_deletion.remove(head, count)
            if not listed:  # the listing lags behind the gates, so an empty page does not prove that nothing is left
                if self._clock.monotonic() >= deadline:
                    return False
                self._clock.sleep(LISTING_LAG_S)
        return True

    def _listed(self, row: CollectionRow) -> Iterator[Head]:
        """Yields the documents that the collection's eventually consistent listing knows, as they are now."""
        for batch in batches(self._documents.listed(row.tenant, row.id), ROWS_AT_ONCE):
            yield from self._documents.heads(row.tenant, batch).values()

    def remove_entries(self, row: CollectionRow) -> None:
        """Removes the source and content rows that the collection's listing knows."""
        for batch in batches(self._collections.entries(row.tenant, row.id), ROWS_AT_ONCE):
            self._collections.remove_rows(batch)

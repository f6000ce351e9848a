"""Deletes one document, whatever its state."""

from functools import partial

from core.clock import Clock
from core.deletion.purge import Purger
from core.metadata.documents import Documents
from core.metadata.dynamo import retry_on_conflict
from core.metadata.rows import Head
from core.model.document import DocumentState
from core.model.ids import DocumentId
from core.model.ingest import Deletion
from core.protocol.transitions import Transitions


class DeletionCount:
    """Counts what a delete has removed."""

    def __init__(self) -> None:
        self.documents: list[DocumentId] = []
        self.chunks = 0
        self.vectors = 0

    def add(self, head: Head, vectors: int) -> None:
        """Counts one removed document.

        Args:
            vectors: how many vectors of the document were deleted.
        """
        self.documents.append(head.document_id)
        self.chunks += head.chunk_count
        self.vectors += vectors

    def deletion(self, *, complete: bool = True) -> Deletion:
        """Returns the counts as callers see them."""
        return Deletion(documents=self.documents, chunks=self.chunks, vectors=self.vectors, complete=complete)


class DocumentDeletion:
    """Deletes documents."""

    def __init__(self, documents: Documents, transitions: Transitions, purger: Purger, clock: Clock) -> None:
        self._documents = documents
        self._transitions = transitions
        self._purger = purger
        self._clock = clock

    def delete(self, head: Head) -> Deletion:
        """Stops serving a document, then removes its vectors, chunk rows and rows.

        Raises:
            Unavailable: the data could not be deleted. The document is no longer served, and the sweep removes it.
        """
        count = DeletionCount()
        removed = False
        while not removed:  # at most twice, since a document becomes ready only once
            now = retry_on_conflict(self._clock, partial(self._stop_serving, head))
            removed = now is None or self.remove(now, count)
        return count.deletion()

    def _stop_serving(self, head: Head) -> Head | None:
        """Makes a ready document superseded by nothing, and returns the document as it is then."""
        now, source = self._documents.head_and_source(head)
        if now is None or now.state != DocumentState.READY:
            return now
        if source is not None:
            released = self._transitions.forget(now, source)
        else:
            released = self._transitions.release(now, None, self._documents.content_holder_of(now))
        self._transitions.retire(now, released)
        return now.model_copy(update={"state": DocumentState.SUPERSEDED})

    def remove(self, head: Head, count: DeletionCount, below: int | None = None) -> bool:
        """Removes a document's data and rows, and counts them.

        Args:
            below: a document in progress is removed only if its version number is lower.

        Returns:
            False when the document has become ready in the meantime and is still there.
        """
        if head.state.in_progress:
            interrupted = self._purger.interrupt(head, below)
            if interrupted is not None:
                chunk_ids = interrupted.chunk_ids()
                count.add(interrupted, self._purger.remove_data(interrupted.tenant, interrupted.space, chunk_ids))
                return True
            now = self._documents.head(head.tenant, head.document_id)
            if now is None:
                return True
            if now.state == DocumentState.READY:
                return False
            head = now
        purged = self._purger.purge(head)
        if purged.rows_removed:
            count.add(head, purged.vectors)
        return True

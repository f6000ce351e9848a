"""Removes the data of a document (its vectors and its chunk rows), and then the document's rows."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from core.clock import Clock
from core.metadata.documents import Documents
from core.metadata.dynamo import ConditionFailed, retry_on_conflict
from core.metadata.rows import Head
from core.model.ids import ChunkId
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.protocol.transitions import Transitions
from core.vectors.types import VectorStore


class Purged(NamedTuple):
    """What a purge has removed.

    Attributes:
        rows_removed: whether this call, and no other, has removed the document's rows.
        vectors: how many vectors were deleted.
    """

    rows_removed: bool
    vectors: int


class Purger:
    """Removes the data and the rows of documents that are not served."""

    def __init__(self, documents: Documents, transitions: Transitions, vectors: VectorStore, clock: Clock) -> None:
        self._documents = documents
        self._transitions = transitions
        self._vectors = vectors
        self._clock = clock

    def remove_data(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> int:
        """Deletes the vectors and then the rows of chunks, whether or not they exist.

        The caller knows every chunk that may exist: an attempt records how many chunks it may write before it writes
        the first.

        Returns:
            How many vectors existed.
        """
        if not chunk_ids:
            return 0
        vectors = self._vectors.delete(tenant, space, chunk_ids)
        self._documents.delete_chunks(tenant, chunk_ids)
        return vectors

    def purge(self, head: Head) -> Purged:
        """Removes a document that is superseded or failed, or ready in a collection that is being deleted."""
        vectors = self.remove_data(head.tenant, head.space, head.chunk_ids())
        return Purged(retry_on_conflict(self._clock, partial(self._remove_rows, head)), vectors)

    def _remove_rows(self, head: Head) -> bool:
        try:
            self._transitions.remove(head)
        except ConditionFailed:
            now = self._documents.head(head.tenant, head.document_id)
            if now is not None and (now.state, now.attempt, now.reserved) == (head.state, head.attempt, head.reserved):
                raise  # the guard of another row in the transaction failed: try again
            return False
        return True

    def interrupt(self, head: Head, below: int | None = None) -> Head | None:
        """Removes the rows of a document in progress, so that its ingest is interrupted.

        The caller removes the document's data next.

        Args:
            below: only if the document's version number is lower.

        Returns:
            The document as it was when its rows were removed; None when it is no longer in progress, has no rows any
            more, or has taken a higher version number.
        """
        return retry_on_conflict(self._clock, partial(self._interrupt, head, below))

    def _interrupt(self, head: Head, below: int | None) -> Head | None:
        now, source = self._documents.head_and_source(head)
        if now is None or not now.state.in_progress or (below is not None and now.number >= below):
            return None
        released = self._transitions.release(now, source, self._documents.content_holder_of(now))
        self._transitions.remove(now, released)
        return now

"""Marks a document in progress as failed, with the reason that the document then shows."""

from datetime import datetime

from core.metadata.documents import DocumentAndOwner, Documents
from core.metadata.rows import Head
from core.model.document import Failure
from core.model.errors import WeftError
from core.observe import Observer
from core.protocol.served import may_be_written
from core.protocol.transitions import Transitions


def failure_of(stage: str, error: Exception) -> Failure:
    """Returns what a document says about an error. The text never holds a part of the document's content."""
    if isinstance(error, WeftError):
        return Failure(stage=stage, code=error.code, detail=error.detail)
    return Failure(stage=stage, code="internal_error", detail=f"Internal error ({type(error).__name__})")


class Failing:
    """Marks documents failed."""

    def __init__(self, documents: Documents, transitions: Transitions) -> None:
        self._documents = documents
        self._transitions = transitions

    def mark(
        self,
        head: Head,
        failure: Failure,
        cutoff: datetime | None = None,
        as_read: DocumentAndOwner | None = None,
    ) -> Head | None:
        """Marks a document failed while it is still in progress under the attempt that `head` names.

        This is one step of `core.metadata.dynamo.retry_on_conflict`.

        Args:
            cutoff: the document must have sent no heartbeat since; None: whenever its last heartbeat was.
            as_read: the document's rows, read a short while ago; None: they are read now.

        Returns:
            The document as this call has failed it; None when this call has not failed it.

        Raises:
            ConditionFailed, Conflict: a row has changed since it was read. Read it again.
        """
        now, source, holder = as_read or self._documents.with_owners([head])[head.document_id]
        if now is None or not may_be_written(now, head.attempt):
            return None
        if cutoff is not None and now.heartbeat > cutoff:
            return None
        released = self._transitions.release(now, source, holder)
        self._transitions.fail(now, failure, cutoff=cutoff, released=released)
        return now


def fire_ingest_failed(observer: Observer, head: Head, failure: Failure) -> None:
    """Calls the hook ``ingest_failed`` for a document."""
    observer.fire(
        "ingest_failed",
        tenant=head.tenant,
        collection_id=head.collection_id,
        document_id=head.document_id,
        failure=failure,
    )

"""Removing what a document wrote, and then its rows. Order: vectors, chunk rows, rows."""

from collections.abc import Sequence
from functools import partial

from core.metadata.dynamo import ConditionFailed, retry_on_conflict
from core.metadata.rows import Head
from core.model.collection import VectorSpace
from core.model.ids import ChunkId
from core.model.tenant import Tenant
from core.parts import Parts


def remove_data(parts: Parts, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> int:
    """Deletes vectors and chunk rows, whether they are there or not; answers how many vectors were.

    Nothing has to be found first: an attempt records how many chunks it may write before the first.
    """
    if not chunk_ids:
        return 0
    vectors = parts.vector_store().delete(tenant, space, chunk_ids)
    parts.documents.delete_chunks(tenant, chunk_ids)
    return vectors


def purge(parts: Parts, head: Head) -> tuple[bool, int]:
    """Removes a document that is superseded, failed, or ready in a collection that is being deleted.

    Returns:
        Whether this call took the rows away, and how many vectors went.
    """
    vectors = remove_data(parts, head.tenant, head.space, head.chunk_ids())
    return retry_on_conflict(parts.clock, partial(_remove_rows, parts, head)), vectors


def _remove_rows(parts: Parts, head: Head) -> bool:
    try:
        parts.transitions.remove(head)
    except ConditionFailed:
        now = parts.documents.head(head.tenant, head.document_id)
        if now is not None and (now.state, now.attempt, now.reserved) == (head.state, head.attempt, head.reserved):
            raise  # something else of the transaction: try again
        return False
    return True


def take(parts: Parts, head: Head, below: int | None = None) -> Head | None:
    """Takes the rows of a document in progress away, so that its ingest is interrupted.

    Its data is the caller's to remove next.

    Args:
        below: only while its number is lower.

    Returns:
        The document as it was then; None when it is gone, settled, or has a higher number by now.
    """
    return retry_on_conflict(parts.clock, partial(_take_rows, parts, head, below))


def _take_rows(parts: Parts, head: Head, below: int | None) -> Head | None:
    now, source = parts.documents.head_and_source(head)
    if now is None or not now.state.in_progress or (below is not None and now.number >= below):
        return None
    released = parts.transitions.release(now, source, parts.documents.content_holder_of(now))
    parts.transitions.remove(now, released)
    return now

"""Deletes: of one document, of a source, of a collection. Each can be run again after a crash, and finishes."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TypeVar

from core.ingest.decide import Version, removal_number
from core.ingest.purge import purge, remove_data, take
from core.metadata import table
from core.metadata.dynamo import ConditionFailed, retry_on_conflict
from core.metadata.rows import CollectionRow, Head, Source
from core.model.collection import CollectionState
from core.model.document import DocumentState
from core.model.errors import CollectionNotFound
from core.model.ids import CollectionId, DocumentId
from core.model.ingest import Deletion
from core.model.tenant import Tenant
from core.parts import Parts

T = TypeVar("T")

AT_ONCE = 100
EVERY_NUMBER = 1 << 62
LISTING_LAG_S = 0.5


class Removed:
    """What was removed, counted as it was removed."""

    def __init__(self) -> None:
        self.documents: list[DocumentId] = []
        self.chunks = 0
        self.vectors = 0

    def add(self, head: Head, vectors: int) -> None:
        self.documents.append(head.document_id)
        self.chunks += head.chunk_count
        self.vectors += vectors

    def deletion(self, *, complete: bool = True) -> Deletion:
        return Deletion(documents=self.documents, chunks=self.chunks, vectors=self.vectors, complete=complete)


# -- one document ----------------------------------------------------------------------------------


def delete_document(parts: Parts, head: Head) -> Deletion:
    """Removes a document, whatever its state: served no longer, then its vectors, chunks and rows.

    Raises:
        Unavailable: its data could not be deleted; it is served no more, and the sweep goes on with it.
    """
    removed = Removed()
    settled = False
    while not settled:  # at most twice: a document turns ready once
        now = retry_on_conflict(parts.clock, partial(_stop_serving, parts, head))
        settled = now is None or _remove(parts, now, removed)
    return removed.deletion()


def _stop_serving(parts: Parts, head: Head) -> Head | None:
    """One step: a ready document is superseded by nothing. Answers the document as it is then."""
    now, source = parts.documents.head_and_source(head)
    if now is None or now.state != DocumentState.READY:
        return now
    if source is not None:
        released = parts.transitions.forget(now, source)
    else:
        released = parts.transitions.release(now, None, parts.documents.content_holder_of(now))
    parts.transitions.retire(now, released)
    return now.model_copy(update={"state": DocumentState.SUPERSEDED})


def _remove(parts: Parts, head: Head, removed: Removed, below: int | None = None) -> bool:
    """Removes a document; false when it has turned ready meanwhile, and is still there.

    Args:
        below: one in progress only while its number is lower.
    """
    if head.state.in_progress:
        taken = take(parts, head, below)
        if taken is not None:
            vectors = remove_data(parts, taken.tenant, taken.space, taken.chunk_ids())
            removed.add(taken, vectors)
            return True
        settled = parts.documents.head(head.tenant, head.document_id)
        if settled is None:
            return True
        if settled.state == DocumentState.READY:
            return False
        head = settled
    mine, vectors = purge(parts, head)
    if mine:
        removed.add(head, vectors)
    return True


# -- a source --------------------------------------------------------------------------------------


def delete_source(parts: Parts, tenant: Tenant, source: Source, version: Version | None, deadline: float) -> Deletion:
    """Removes every version of a source that began before; one that begins after is kept.

    The removal takes a number like any version, so nothing in flight below it can come to serve. Nothing to
    delete is success.

    Raises:
        CollectionNotFound: it is being deleted.
        VersionConflict: the version is known as a content's.
        Unavailable: data could not be deleted; it is served no more, and the sweep goes on with it.
    """
    removed = Removed()
    number = retry_on_conflict(parts.clock, partial(_remove_current, parts, tenant, source, version))
    if number is None:
        return removed.deletion()
    versions = parts.documents.versions(tenant, source.collection_id, source.source_id)
    for batch in _batches(versions):
        for head in parts.documents.heads(tenant, batch).values():
            if parts.clock.monotonic() >= deadline:
                return removed.deletion(complete=False)
            if head.number < number and head.state != DocumentState.READY:
                _remove(parts, head, removed, below=number)
    return removed.deletion()


def _remove_current(parts: Parts, tenant: Tenant, source: Source, version: Version | None) -> int | None:
    """One step: below which number versions go; None: the removal comes too late."""
    found = parts.documents.source(tenant, source.collection_id, source.source_id)
    read = found or Source(key=source.key, collection_id=source.collection_id)
    number = removal_number(read, version)
    if number is None or number < read.next_number:
        return number
    if read.revision == 0 and version is None:
        return EVERY_NUMBER  # failed versions may have outlived the source's row
    after = read.model_copy(update={"current": None, "current_number": number, "next_number": number + 1, "work": {}})
    if version is not None:
        after = after.model_copy(update={"seen": version.seen(number, None)})
    try:
        parts.transitions.remove_source(tenant, read, after)
    except ConditionFailed:
        # In a collection that is being deleted, the current version's row can go before the source's.
        parts.collection(tenant, source.collection_id)
        raise
    return number if read.revision else EVERY_NUMBER


# -- a collection ----------------------------------------------------------------------------------


def delete_collection(parts: Parts, tenant: Tenant, collection_id: CollectionId, deadline: float) -> Deletion:
    """Closes a collection, then removes its documents, its sources and, a writer's life later, its row.

    A call that is cut short is taken up by the next one, or by the sweep.

    Raises:
        CollectionNotFound: missing, another tenant's, or deleted already.
    """
    row = retry_on_conflict(parts.clock, partial(_close, parts, tenant, collection_id))
    retry_on_conflict(parts.clock, partial(parts.collections.close_gates, tenant, collection_id))
    removed = Removed()
    if not _empty(parts, row, removed, deadline):
        return removed.deletion(complete=False)
    remove_entries(parts, row)
    if retry_on_conflict(parts.clock, partial(_finish, parts, row)):
        parts.extensions.fire("collection_deleted", tenant=tenant, collection_id=collection_id)
    return removed.deletion()


def _finish(parts: Parts, row: CollectionRow) -> bool:
    """One step; whether this call finished it, and no other."""
    now = parts.collections.get(row.tenant, row.id)
    if now is None or now.state != CollectionState.DELETING:
        return False
    parts.collections.finish_emptying(now, table.due_at(parts.clock.now() + parts.writer_life))
    return True


def _close(parts: Parts, tenant: Tenant, collection_id: CollectionId) -> CollectionRow:
    row = parts.collections.get(tenant, collection_id)
    if row is None or row.state == CollectionState.EMPTIED:
        raise CollectionNotFound
    if row.state == CollectionState.ACTIVE:
        parts.collections.start_deleting(row)
    return row


def _empty(parts: Parts, row: CollectionRow, removed: Removed, deadline: float) -> bool:
    """Removes documents until the gates count none; false when the time is over first."""
    while parts.collections.counts(row.tenant, [row.id])[row.id].rows:
        found = False
        for batch in _batches(parts.documents.listed(row.tenant, row.id)):
            for head in parts.documents.heads(row.tenant, batch).values():
                found = True
                if parts.clock.monotonic() >= deadline:
                    return False
                _remove(parts, head, removed)
        if not found:  # the listing is behind: an empty page proves nothing
            if parts.clock.monotonic() >= deadline:
                return False
            parts.clock.sleep(LISTING_LAG_S)
    return True


def remove_entries(parts: Parts, row: CollectionRow) -> None:
    """Removes the source and content rows that the listing knows."""
    for batch in _batches(parts.collections.entries(row.tenant, row.id)):
        parts.collections.remove_rows(batch)


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    left = iter(items)
    while batch := list(islice(left, AT_ONCE)):
        yield batch

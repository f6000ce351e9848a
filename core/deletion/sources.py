"""Deletes a source: every version that began before the delete."""

from functools import partial

from core.clock import Clock
from core.deletion.documents import DeletionCount, DocumentDeletion
from core.metadata.collections import Collections
from core.metadata.documents import Documents
from core.metadata.dynamo import ConditionFailed, retry_on_conflict
from core.metadata.rows import Source
from core.model.document import DocumentState
from core.model.ingest import Deletion
from core.model.tenant import Tenant
from core.protocol.decide import CallerVersion, removal_number
from core.protocol.transitions import Transitions

VERSIONS_AT_ONCE = 100
EVERY_NUMBER = 1 << 62
"""A number above every version's."""


class SourceDeletion:
    """Deletes sources."""

    def __init__(
        self,
        documents: Documents,
        collections: Collections,
        transitions: Transitions,
        document_deletion: DocumentDeletion,
        clock: Clock,
    ) -> None:
        self._documents = documents
        self._collections = collections
        self._transitions = transitions
        self._document_deletion = document_deletion
        self._clock = clock

    def delete(self, tenant: Tenant, source: Source, version: CallerVersion | None, deadline: float) -> Deletion:
        """Removes every version of a source that began before this call. A version that begins later is kept.

        The removal takes a version number as a content does, so no version in progress with a lower number can come
        to be served. Deleting a source that does not exist is a success.

        Args:
            deadline: monotonic seconds. No removal of a version begins after it.

        Raises:
            CollectionNotFound: the collection is being deleted.
            VersionConflict: the version came with a content before.
            Unavailable: data could not be deleted. It is no longer served, and the sweep removes it.
        """
        count = DeletionCount()
        number = retry_on_conflict(self._clock, partial(self._remove_current, tenant, source, version))
        if number is None:
            return count.deletion()
        versions = self._documents.versions(tenant, source.collection_id, source.source_id)
        for start in range(0, len(versions), VERSIONS_AT_ONCE):
            for head in self._documents.heads(tenant, versions[start : start + VERSIONS_AT_ONCE]).values():
                if self._clock.monotonic() >= deadline:
                    return count.deletion(complete=False)
                if head.number < number and head.state != DocumentState.READY:
                    self._document_deletion.remove(head, count, below=number)
        return count.deletion()

    def _remove_current(self, tenant: Tenant, source: Source, version: CallerVersion | None) -> int | None:
        """Makes the source serve nothing.

        Returns:
            The number below which versions are to be removed; None when the removal comes too late.
        """
        stored = self._documents.source(tenant, source.collection_id, source.source_id)
        as_read = stored or Source(key=source.key, collection_id=source.collection_id)
        number = removal_number(as_read, version)
        if number is None or number < as_read.next_number:
            return number
        if as_read.revision == 0 and version is None:
            return EVERY_NUMBER  # failed versions may have outlived the source's row
        changes: dict[str, object] = {
            "current": None,
            "current_number": number,
            "next_number": number + 1,
            "in_progress": {},
        }
        if version is not None:
            changes["seen"] = version.seen(number, None)
        try:
            self._transitions.remove_source(tenant, as_read, as_read.model_copy(update=changes))
        except ConditionFailed:
            # In a collection that is being deleted, the current version's row may be removed before its source's.
            self._collections.active(tenant, source.collection_id)
            raise
        return number if as_read.revision else EVERY_NUMBER

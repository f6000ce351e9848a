"""Handles the rows that are due: each kind of row has one method that does what the row is due for."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from core.clock import Clock
from core.deletion.collections import CollectionDeletion
from core.deletion.purge import Purger
from core.metadata import table
from core.metadata.collections import Collections
from core.metadata.documents import DocumentAndOwner, Documents
from core.metadata.dynamo import ConditionFailed, Conflict, retry_on_conflict
from core.metadata.jobs import JobKind, Jobs
from core.metadata.rows import Head
from core.metadata.sweep_index import SweepCandidate, SweepIndex
from core.metadata.table import Key
from core.model.collection import CollectionState
from core.model.document import DocumentState, Failure
from core.model.errors import IngestInterrupted, Unavailable
from core.model.ids import CollectionId
from core.model.recovery import RecoveryResult
from core.model.tenant import Tenant
from core.observe import Observer
from core.protocol.failing import Failing, fire_ingest_failed
from core.recovery.reconcile import ReconcileService
from core.recovery.reindex import ReindexService

TURN_S = 20.0
"""How long the work on one collection may take before the sweep goes on with other rows, in seconds."""

FAILED = RecoveryResult(failed=1)
PURGED = RecoveryResult(purged=1)
CLEANED = RecoveryResult(cleaned=1)
ADVANCED = RecoveryResult(advanced=1)
NOTHING = RecoveryResult()

_NO_DOCUMENT = (table.COLLECTION_PREFIX, table.LATE_WRITER_MARK_PREFIX, table.JOB_PREFIX)


def is_document(key: Key) -> bool:
    """Tells whether a row that may be due is a document's."""
    return not key.sk.startswith(_NO_DOCUMENT)


class DueRows:
    """Handles due rows."""

    def __init__(
        self,
        *,
        sweep_index: SweepIndex,
        documents: Documents,
        collections: Collections,
        jobs: Jobs,
        failing: Failing,
        purger: Purger,
        collection_deletion: CollectionDeletion,
        reindex: ReindexService,
        reconcile: ReconcileService,
        observer: Observer,
        clock: Clock,
    ) -> None:
        self._sweep_index = sweep_index
        self._documents = documents
        self._collections = collections
        self._jobs = jobs
        self._failing = failing
        self._purger = purger
        self._collection_deletion = collection_deletion
        self._reindex = reindex
        self._reconcile = reconcile
        self._observer = observer
        self._clock = clock

    def handle(
        self, candidate: SweepCandidate, as_read: DocumentAndOwner | None, cutoff: datetime, deadline: float
    ) -> Iterator[RecoveryResult]:
        """Does what a row is due for, and yields each result as soon as it is reached.

        Args:
            as_read: for a document, its rows as they were read a short while ago; None: they are read now.
            cutoff: a document in progress without a heartbeat since is failed.
            deadline: monotonic seconds. No new piece of work begins after it.

        Raises:
            Exception: any error of a store. The row is then left to a later sweep.
        """
        key = candidate.key
        tenant = table.tenant_of(key)
        turn = min(deadline, self._clock.monotonic() + TURN_S)
        if tenant is None:
            yield RecoveryResult(skipped_no_tenant=1)
        elif key.sk.startswith(table.COLLECTION_PREFIX):
            yield self._collection(tenant, CollectionId(key.sk.removeprefix(table.COLLECTION_PREFIX)), turn)
        elif key.sk.startswith(table.LATE_WRITER_MARK_PREFIX):
            yield self._late_writer_mark(tenant, key)
        elif key.sk.startswith(table.JOB_PREFIX):
            yield self._job(tenant, key, turn)
        else:
            yield from self._document(tenant, candidate, as_read, cutoff)

    # -- documents -----------------------------------------------------------------------------------

    def _document(
        self, tenant: Tenant, candidate: SweepCandidate, as_read: DocumentAndOwner | None, cutoff: datetime
    ) -> Iterator[RecoveryResult]:
        head = as_read.head if as_read else self._documents.head(tenant, table.document_of(candidate.key))
        if head is None:
            return
        if head.state.in_progress:
            yield from self._fail(head, as_read, cutoff)
        elif head.state == DocumentState.SUPERSEDED:
            yield PURGED if self._purger.purge(head).rows_removed else NOTHING
        elif head.state == DocumentState.FAILED:
            self._remove_data(head)
            yield CLEANED if self._sweep_index.remove(candidate, self._clock.now()) else NOTHING

    def _fail(self, head: Head, as_read: DocumentAndOwner | None, cutoff: datetime) -> Iterator[RecoveryResult]:
        """Marks a stalled document failed, and only then removes its data."""
        failure = Failure(stage="recovery", code=IngestInterrupted.code, detail=IngestInterrupted().detail)
        mark = partial(self._failing.mark, head, failure, cutoff)
        try:
            failed = mark(as_read)
        except (ConditionFailed, Conflict, Unavailable):
            failed = retry_on_conflict(self._clock, mark)
        if failed is None:
            return
        yield FAILED
        fire_ingest_failed(self._observer, head, failure)
        self._remove_data(failed)

    def _remove_data(self, head: Head) -> None:
        self._purger.remove_data(head.tenant, head.space, head.chunk_ids())

    def _late_writer_mark(self, tenant: Tenant, key: Key) -> RecoveryResult:
        """Removes everything that a late writer may have written, once the writer's life is over."""
        mark = self._documents.late_writer_mark(key)
        if mark is None or mark.due > self._clock.now():
            return NOTHING
        self._purger.remove_data(tenant, mark.space, mark.chunk_ids())
        self._documents.remove_late_writer_mark(key)
        return CLEANED

    # -- collections ---------------------------------------------------------------------------------

    def _job(self, tenant: Tenant, key: Key, turn: float) -> RecoveryResult:
        """Goes on with a collection's job for one turn, no longer than other rows can wait for theirs."""
        job = self._jobs.get(tenant, table.collection_of(key), JobKind(key.sk.removeprefix(table.JOB_PREFIX)))
        if job is None or not self._collections.is_active(tenant, job.collection_id):
            return NOTHING
        if job.kind == JobKind.REINDEX:
            self._reindex.resume(job, turn)
        else:
            self._reconcile.resume(job, turn)
        return ADVANCED

    def _collection(self, tenant: Tenant, collection_id: CollectionId, turn: float) -> RecoveryResult:
        """Goes on with the delete of a collection for one turn."""
        row = self._collections.get(tenant, collection_id)
        if row is None or row.state == CollectionState.ACTIVE:
            return NOTHING
        if row.state == CollectionState.DELETING:
            deletion = self._collection_deletion.delete(tenant, collection_id, turn)
            return CLEANED if deletion.complete else ADVANCED
        self._collection_deletion.remove_entries(row)
        self._collections.remove(row)
        return CLEANED

"""Recovery: what a dead ingest left behind is failed, cleaned or purged, over every tenant."""

import logging
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from core.ingest.attempt import mark_failed
from core.ingest.delete import delete_collection, remove_entries
from core.ingest.purge import purge, remove_data
from core.metadata import table
from core.metadata.candidates import Candidate
from core.metadata.documents import Standing
from core.metadata.dynamo import ConditionFailed, Conflict, retry_on_conflict
from core.metadata.jobs import JobKind
from core.metadata.rows import Head
from core.metadata.table import Key
from core.model.collection import CollectionState
from core.model.document import DocumentState, Failure
from core.model.errors import IngestInterrupted, Unavailable, WeftError
from core.model.ids import CollectionId
from core.model.recovery import RecoveryResult
from core.model.tenant import Tenant
from core.parts import Parts
from core.recovery.reconcile import ReconcileService
from core.recovery.reindex import ReindexService

logger = logging.getLogger(__name__)

BACK_OFF = timedelta(minutes=5)
LISTED_AT_ONCE = 1000
TURN_S = 20.0

FAILED = RecoveryResult(failed=1)
PURGED = RecoveryResult(purged=1)
CLEANED = RecoveryResult(cleaned=1)
ADVANCED = RecoveryResult(advanced=1)
NOTHING = RecoveryResult()

_NO_DOCUMENT = (table.COLLECTION_PREFIX, table.GONE_PREFIX, table.JOB_PREFIX)


class RecoveryService:
    """Sweeps. Safe to run on every replica at once."""

    def __init__(self, parts: Parts, reindex: ReindexService, reconcile: ReconcileService) -> None:
        self._parts = parts
        self._reindex = reindex
        self._reconcile = reconcile
        self._stop = threading.Event()
        self._loop: threading.Thread | None = None

    def sweep(self, stalled_after: timedelta | None = None) -> RecoveryResult:
        """One sweep over every tenant: at most ``batch_size`` rows, oldest first.

        A pending or processing document without a heartbeat since the cutoff is marked failed, and only then its
        data goes. A superseded one loses its data, then its rows. Failed and removed documents are cleaned once
        more when no writer of theirs can live any longer.

        Args:
            stalled_after: the cutoff is that long ago; zero or less: now; None: as configured.

        Raises:
            Exception: the first failure, to delete for example, after the rest of the batch is done. What failed
                is due again after a back-off.
        """
        cutoff = self._cutoff(stalled_after)
        listed = self._listed(cutoff, self._parts.settings.sweep_size, frozenset())
        result, error, _ = self._sweep(listed, cutoff, self._far())
        if error is not None:
            raise error
        return result

    def drain(self, deadline: float) -> RecoveryResult:
        """Sweeps until nothing is left or the time is up; nothing is taken twice.

        Args:
            deadline: monotonic seconds of the engine's clock.

        Raises:
            Exception: the first failure, after the rest is done.
        """
        total, first, taken = NOTHING, None, frozenset[Key]()
        cutoff = self._cutoff(None)
        while (listed := self._listed(cutoff, LISTED_AT_ONCE, taken)) and self._parts.clock.monotonic() < deadline:
            result, error, keys = self._sweep(listed, cutoff, deadline)
            total, first, taken = _add(total, result), first or error, taken | keys
            cutoff = self._cutoff(None)
        total = total.model_copy(update={"left": len(listed)})
        if first is not None:
            logger.warning("A drain failed in part: %s", total)
            raise first
        return total

    def start(self) -> None:
        """Starts the loop of a long-running host, when an interval is set; again while it runs does nothing."""
        interval = self._parts.settings.recovery_interval_s
        if interval <= 0 or self._loop is not None:
            return
        self._stop.clear()
        self._loop = threading.Thread(target=self._run, args=(interval,), name="recovery", daemon=True)
        self._loop.start()

    def stop(self) -> None:
        """Ends the loop, and waits for a sweep in progress."""
        if self._loop is None:
            return
        self._stop.set()
        self._loop.join()
        self._loop = None

    def _run(self, interval: float) -> None:
        while not self._stop.wait(interval):
            try:
                self.sweep()
            except Exception as error:  # noqa: BLE001 - the loop outlives whatever one sweep meets
                logger.warning("A sweep left something to the next one: %s", type(error).__name__)

    # -- one sweep ---------------------------------------------------------------------------------

    def _cutoff(self, stalled_after: timedelta | None) -> datetime:
        if stalled_after is None:
            stalled_after = self._parts.settings.stalled_after
        return self._parts.clock.now() - max(stalled_after, timedelta(0))

    def _far(self) -> float:
        return self._parts.clock.monotonic() + self._parts.writer_life.total_seconds()

    def _listed(self, cutoff: datetime, limit: int, taken: frozenset[Key]) -> list[Candidate]:
        return self._parts.candidates.oldest(cutoff, self._parts.clock.now(), limit, taken)

    def _sweep(
        self, candidates: Sequence[Candidate], cutoff: datetime, deadline: float
    ) -> tuple[RecoveryResult, Exception | None, frozenset[Key]]:
        result, first = NOTHING, None
        done = set()
        for candidate, known in self._known(candidates):
            if self._parts.clock.monotonic() >= deadline:
                break
            done.add(candidate.key)
            try:
                for one in self._handle(candidate, known, cutoff, deadline):
                    result = _add(result, one)
                    if one.advanced:  # long work has one turn after another
                        done.discard(candidate.key)
            except Exception as error:  # noqa: BLE001 - raised when the rest is done: one row stops no other
                logger.warning("%s %s is left to a later sweep: %s", *candidate.key, type(error).__name__)
                first = first or error
                self._postpone(candidate)
        return result, first, frozenset(done)

    def _known(self, candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, Standing | None]]:
        """Candidates, documents with their rows: read a batch at a time, shortly before their turn."""
        left = iter(candidates)
        while batch := list(islice(left, self._parts.settings.sweep_size)):
            standings = self._read([one.key for one in batch if not one.key.sk.startswith(_NO_DOCUMENT)])
            for candidate in batch:
                yield candidate, standings.get(candidate.key)

    def _read(self, keys: Sequence[Key]) -> dict[Key, Standing]:
        """Documents by key; none when they cannot be read at once: then each is read by itself, and fails by itself."""
        try:
            heads = self._parts.documents.heads_at(keys)
            standings = self._parts.documents.standings(list(heads.values()))
        except Exception as error:  # noqa: BLE001 - met again, and raised, where its row has its turn
            logger.warning("Rows could not be read at once: %s", type(error).__name__)
            return {}
        return {key: standings[head.document_id] for key, head in heads.items()}

    def _postpone(self, candidate: Candidate) -> None:
        try:
            self._parts.candidates.postpone(candidate, self._parts.clock.now() + BACK_OFF)
        except WeftError as error:
            logger.warning("A row could not be postponed: %s", error.code)

    def _handle(
        self, candidate: Candidate, known: Standing | None, cutoff: datetime, deadline: float
    ) -> Iterator[RecoveryResult]:
        """Does what one row is due for, and yields what is done as soon as it is."""
        key = candidate.key
        tenant = table.tenant_of(key)
        turn = min(deadline, self._parts.clock.monotonic() + TURN_S)
        if tenant is None:
            yield RecoveryResult(skipped_no_tenant=1)
        elif key.sk.startswith(table.COLLECTION_PREFIX):
            yield self._collection(tenant, CollectionId(key.sk.removeprefix(table.COLLECTION_PREFIX)), turn)
        elif key.sk.startswith(table.GONE_PREFIX):
            yield self._mark(tenant, key)
        elif key.sk.startswith(table.JOB_PREFIX):
            yield self._job(tenant, key, turn)
        else:
            yield from self._document(tenant, candidate, known, cutoff)

    def _document(
        self, tenant: Tenant, candidate: Candidate, known: Standing | None, cutoff: datetime
    ) -> Iterator[RecoveryResult]:
        head = known.head if known else self._parts.documents.head(tenant, table.document_of(candidate.key))
        if head is None:
            return
        if head.state.in_progress:
            yield from self._fail(head, known, cutoff)
        elif head.state == DocumentState.SUPERSEDED:
            mine, _ = purge(self._parts, head)
            yield PURGED if mine else NOTHING
        elif head.state == DocumentState.FAILED:
            self._clean(head)
            settled = self._parts.candidates.remove(candidate, self._parts.clock.now())
            yield CLEANED if settled else NOTHING

    def _fail(self, head: Head, known: Standing | None, cutoff: datetime) -> Iterator[RecoveryResult]:
        failure = Failure(stage="recovery", code=IngestInterrupted.code, detail=IngestInterrupted().detail)
        step = partial(mark_failed, self._parts, head, failure, cutoff)
        try:
            failed = step(known)
        except (ConditionFailed, Conflict, Unavailable):
            failed = retry_on_conflict(self._parts.clock, step)
        if failed is None:
            return
        yield FAILED
        self._parts.extensions.fire(
            "ingest_failed",
            tenant=head.tenant,
            collection_id=head.collection_id,
            document_id=head.document_id,
            failure=failure,
        )
        self._clean(failed)

    def _clean(self, head: Head) -> None:
        remove_data(self._parts, head.tenant, head.space, head.chunk_ids())

    def _mark(self, tenant: Tenant, key: Key) -> RecoveryResult:
        gone = self._parts.documents.mark(key)
        if gone is None or gone.due > self._parts.clock.now():
            return NOTHING
        remove_data(self._parts, tenant, gone.space, gone.chunk_ids())
        self._parts.documents.remove_mark(key)
        return CLEANED

    def _job(self, tenant: Tenant, key: Key, turn: float) -> RecoveryResult:
        """One turn of the work on a whole collection: no longer than others can wait for theirs."""
        job = self._parts.jobs.get(tenant, table.collection_of(key), JobKind(key.sk.removeprefix(table.JOB_PREFIX)))
        if job is None or not self._parts.is_active(tenant, job.collection_id):
            return NOTHING
        if job.kind == JobKind.REINDEX:
            self._reindex.resume(job, turn)
        else:
            self._reconcile.resume(job, turn)
        return ADVANCED

    def _collection(self, tenant: Tenant, collection_id: CollectionId, turn: float) -> RecoveryResult:
        row = self._parts.collections.get(tenant, collection_id)
        if row is None or row.state == CollectionState.ACTIVE:
            return NOTHING
        if row.state == CollectionState.DELETING:
            done = delete_collection(self._parts, tenant, collection_id, turn)
            return CLEANED if done.complete else ADVANCED
        remove_entries(self._parts, row)
        self._parts.collections.remove(row)
        return CLEANED


def _add(one: RecoveryResult, other: RecoveryResult) -> RecoveryResult:
    return RecoveryResult(**{name: value + getattr(other, name) for name, value in one})

"""Recovery: one sweep takes up the rows of every tenant that are stalled or due, oldest first."""

import logging
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from core.clock import Clock
from core.metadata.documents import DocumentAndOwner, Documents
from core.metadata.paging import batches
from core.metadata.sweep_index import SweepCandidate, SweepIndex
from core.metadata.table import Key
from core.model.errors import WeftError
from core.model.recovery import RecoveryResult
from core.recovery.due_rows import NOTHING, DueRows, is_document
from core.settings import Settings

logger = logging.getLogger(__name__)

BACK_OFF = timedelta(minutes=5)
"""When a row is due again whose handling has failed."""
LISTED_AT_ONCE = 1000


class _Swept(NamedTuple):
    """The outcome of one pass over listed rows.

    Attributes:
        error: the first error; None when every row could be handled.
        done: the keys of rows that need no further turn in this drain.
    """

    result: RecoveryResult
    error: Exception | None
    done: frozenset[Key]


class RecoveryService:
    """Runs sweeps. Several processes may sweep at the same time."""

    def __init__(
        self, sweep_index: SweepIndex, documents: Documents, due_rows: DueRows, clock: Clock, settings: Settings
    ) -> None:
        self._sweep_index = sweep_index
        self._documents = documents
        self._due_rows = due_rows
        self._clock = clock
        self._settings = settings
        self._stop = threading.Event()
        self._loop: threading.Thread | None = None

    # -- sweep and drain -----------------------------------------------------------------------------

    def sweep(self, stalled_after: timedelta | None = None) -> RecoveryResult:
        """Runs one sweep over every tenant, of at most ``batch_size`` rows, oldest first.

        A pending or processing document without a heartbeat since the cutoff is marked failed, and only then its data
        is removed. A superseded document loses its data and then its rows. Failed and removed documents are cleaned
        once more when no writer of theirs can be alive any longer.

        Args:
            stalled_after: the cutoff lies this long ago; zero or less: now; None: as the settings say.

        Raises:
            Exception: the first error of a row, after the other rows of the batch are done. The row is due again five
                minutes later.
        """
        cutoff = self._cutoff(stalled_after)
        listed = self._listed(cutoff, self._settings.sweep_size, frozenset())
        swept = self._sweep(listed, cutoff, self._clock.monotonic() + self._settings.writer_life_s)
        if swept.error is not None:
            raise swept.error
        return swept.result

    def drain(self, deadline: float) -> RecoveryResult:
        """Sweeps until no row is left or the time is up. No row is handled twice, except for long work in turns.

        Args:
            deadline: monotonic seconds of the engine's clock. No row is taken up after it.

        Returns:
            The results of all sweeps; ``left`` counts the rows that are still listed.

        Raises:
            Exception: the first error of a row, after the other rows are done.
        """
        result, error, done = NOTHING, None, frozenset[Key]()
        cutoff = self._cutoff(None)
        while (listed := self._listed(cutoff, LISTED_AT_ONCE, done)) and self._clock.monotonic() < deadline:
            swept = self._sweep(listed, cutoff, deadline)
            result, error, done = _add(result, swept.result), error or swept.error, done | swept.done
            cutoff = self._cutoff(None)
        result = result.model_copy(update={"left": len(listed)})
        if error is not None:
            logger.warning("A drain failed in part: %s", result)
            raise error
        return result

    def _cutoff(self, stalled_after: timedelta | None) -> datetime:
        if stalled_after is None:
            stalled_after = self._settings.stalled_after
        return self._clock.now() - max(stalled_after, timedelta(0))

    def _listed(self, cutoff: datetime, limit: int, done: frozenset[Key]) -> list[SweepCandidate]:
        return self._sweep_index.oldest(cutoff, self._clock.now(), limit, done)

    def _sweep(self, candidates: Sequence[SweepCandidate], cutoff: datetime, deadline: float) -> _Swept:
        result, first_error = NOTHING, None
        done = set()
        for candidate, as_read in self._with_rows(candidates):
            if self._clock.monotonic() >= deadline:
                break
            done.add(candidate.key)
            try:
                for handled in self._due_rows.handle(candidate, as_read, cutoff, deadline):
                    result = _add(result, handled)
                    if handled.advanced:  # long work has one turn after another
                        done.discard(candidate.key)
            except Exception as error:  # noqa: BLE001 - raised after the other rows are done: one row stops no other
                logger.warning("%s %s is left to a later sweep: %s", *candidate.key, type(error).__name__)
                first_error = first_error or error
                self._postpone(candidate)
        return _Swept(result, first_error, frozenset(done))

    def _with_rows(
        self, candidates: Sequence[SweepCandidate]
    ) -> Iterator[tuple[SweepCandidate, DocumentAndOwner | None]]:
        """Yields candidates, documents with their rows. Rows are read a batch at a time, shortly before their turn."""
        for batch in batches(candidates, self._settings.sweep_size):
            rows = self._read([candidate.key for candidate in batch if is_document(candidate.key)])
            for candidate in batch:
                yield candidate, rows.get(candidate.key)

    def _read(self, keys: Sequence[Key]) -> dict[Key, DocumentAndOwner]:
        """Reads documents in one batch. When the batch cannot be read, each is read by itself, and fails by itself."""
        try:
            heads = self._documents.heads_at(keys)
            rows = self._documents.with_owners(list(heads.values()))
        except Exception as error:  # noqa: BLE001 - the same error is met again and raised at the row that has it
            logger.warning("Rows could not be read at once: %s", type(error).__name__)
            return {}
        return {key: rows[head.document_id] for key, head in heads.items()}

    def _postpone(self, candidate: SweepCandidate) -> None:
        try:
            self._sweep_index.postpone(candidate, self._clock.now() + BACK_OFF)
        except WeftError as error:
            logger.warning("A row could not be postponed: %s", error.code)

    # -- loop ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the loop of a long-running host, when an interval is set. A second call does nothing."""
        interval = self._settings.recovery_interval_s
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
            except Exception as error:  # noqa: BLE001 - the loop outlives every error of a sweep
                logger.warning("A sweep left something to the next sweep: %s", type(error).__name__)


def _add(result: RecoveryResult, other: RecoveryResult) -> RecoveryResult:
    return RecoveryResult(**{name: count + getattr(other, name) for name, count in result})

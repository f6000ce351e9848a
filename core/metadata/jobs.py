"""The rows of jobs. A job is work on a whole collection that goes on over many calls, a page at a time."""

from datetime import datetime
from enum import StrEnum
from functools import partial

from core.metadata import table
from core.metadata.dynamo import Action, ConditionFailed, Table, retry_on_conflict
from core.metadata.rows import Counts, Row
from core.model.base import Timestamp
from core.model.ids import CollectionId
from core.model.tenant import Tenant


class JobKind(StrEnum):
    """The kinds of jobs.

    ``reindex`` embeds the chunks of every ready document again. ``reconcile`` compares chunk rows with vectors.
    """

    REINDEX = "reindex"
    RECONCILE = "reconcile"


class Recount(Row):
    """A recount of a collection's documents that is under way.

    Attributes:
        gates: the gates as they were before the recount began.
        counts: the counts so far.
        again: whether this is the second recount.
    """

    gates: list[Counts]
    counts: Counts = Counts()
    again: bool = False


class Job(Row):
    """The row ``T#tenant#C#col#J`` / ``JOB#kind``: the progress of a job.

    Attributes:
        revision: rises with every write. A worker whose write fails because of it has lost the job to another worker.
        worker: the random name of the worker that holds the lease; empty: no worker.
        lease_until: until then no other worker takes the job.
        phase, position: where the next page begins; no position: at the phase's start.
        counts: what the job has done since it began.
        recount: the recount of a reconcile, while one is under way.
        finished: whether the job has come to its end.
    """

    tenant: Tenant
    collection_id: CollectionId
    kind: JobKind
    revision: int = 0
    worker: str = ""
    lease_until: Timestamp
    phase: str
    position: str | None = None
    counts: dict[str, int] = {}
    recount: Recount | None = None
    finished: bool = False
    started_at: Timestamp
    updated_at: Timestamp

    def plus(self, **changes: int) -> "Job":
        """Returns the job with higher counts."""
        counts = dict(self.counts)
        for name, change in changes.items():
            counts[name] = counts.get(name, 0) + change
        return self.model_copy(update={"counts": counts})

    def at(self, phase: str, position: str | None = None) -> "Job":
        """Returns the job at another position."""
        return self.model_copy(update={"phase": phase, "position": position})


class TakenOverError(Exception):
    """Another worker has taken the job over and goes on with it."""


class Jobs:
    """The jobs of the table."""

    def __init__(self, rows: Table) -> None:
        self._table = rows

    def get(self, tenant: Tenant, collection_id: CollectionId, kind: JobKind) -> Job | None:
        """Reads a job; None when the collection has never had one of this kind."""
        item = self._table.get(table.job(tenant, collection_id, kind))
        return None if item is None else Job.read(item)

    def save(self, job: Job, due: datetime | None) -> Job:
        """Writes a job, on condition that its row still has the revision at which it was read.

        Args:
            due: when the sweep takes the job up; None: never.

        Raises:
            TakenOverError: another worker has written the row since.
        """
        return retry_on_conflict(self._table.clock, partial(self._save, job, due))

    def _save(self, job: Job, due: datetime | None) -> Job:
        revised = job.model_copy(update={"revision": job.revision + 1, "updated_at": self._table.clock.now()})
        try:
            self._table.write(self.put(revised, due))
        except ConditionFailed:
            now = self.get(job.tenant, job.collection_id, job.kind)
            if now is None or (now.revision, now.worker) != (revised.revision, revised.worker):
                raise TakenOverError from None
        return revised

    @staticmethod
    def put(job: Job, due: datetime | None) -> Action:
        """Returns the write of a job whose revision has risen by one since it was read."""
        item = job.item()
        if due is not None:
            item |= {"sweep_pk": table.sweep_shard(job.collection_id), "sweep_sk": table.due_at(due)}
        return Action(
            table.job(job.tenant, job.collection_id, job.kind),
            put=item,
            condition="revision = :read" if job.revision > 1 else "attribute_not_exists(pk)",
            values={"read": job.revision - 1} if job.revision > 1 else {},
        )

"""Rows of jobs: work on a whole collection that goes on over many calls, a slice at a time."""

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
    """``reindex``: embeds every ready document's chunks again. ``reconcile``: compares rows and vectors."""

    REINDEX = "reindex"
    RECONCILE = "reconcile"


class Recount(Row):
    """A count of a collection's documents that is under way.

    Attributes:
        gates: as they were before it began.
        counts: what it has come to so far.
        again: whether it is the second one.
    """

    gates: list[Counts]
    counts: Counts = Counts()
    again: bool = False


class Job(Row):
    """``T#tenant#C#col#J`` / ``JOB#kind``.

    Attributes:
        revision: rises with every write; a worker whose write fails by it has been taken over.
        worker: the random name of whoever works on it; empty: nobody.
        lease_until: until then nobody else takes it.
        phase, position: where the next slice goes on; no position: at the phase's start.
        counts: what has been done since it began.
        recount: of a reconcile, while it counts.
        finished: whether it has come to its end.
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
        """The job with more done."""
        counts = dict(self.counts)
        for name, change in changes.items():
            counts[name] = counts.get(name, 0) + change
        return self.model_copy(update={"counts": counts})

    def at(self, phase: str, position: str | None = None) -> "Job":
        """The job further on."""
        return self.model_copy(update={"phase": phase, "position": position})


class TakenOverError(Exception):
    """Another worker goes on with the job."""


class Jobs:
    """Jobs of the table."""

    def __init__(self, rows: Table) -> None:
        self._table = rows

    def get(self, tenant: Tenant, collection_id: CollectionId, kind: JobKind) -> Job | None:
        item = self._table.get(table.job(tenant, collection_id, kind))
        return None if item is None else Job.read(item)

    def save(self, job: Job, due: datetime | None) -> Job:
        """Writes a job over the revision it was read at.

        Args:
            due: when the sweep takes it up; None: never.

        Raises:
            TakenOverError: another worker has written it since.
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
        """The write of a job whose revision has risen by one."""
        item = job.item()
        if due is not None:
            item |= {"sweep_pk": table.sweep_shard(job.collection_id), "sweep_sk": table.due_at(due)}
        return Action(
            table.job(job.tenant, job.collection_id, job.kind),
            put=item,
            condition="revision = :read" if job.revision > 1 else "attribute_not_exists(pk)",
            values={"read": job.revision - 1} if job.revision > 1 else {},
        )

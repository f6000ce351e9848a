"""Runs jobs: work on a whole collection, done in pages by one worker at a time.

A worker holds a lease on its job and saves the job's progress after every page. A worker that dies leaves its lease to
expire; the sweep then goes on from the last saved page.
"""

from collections.abc import Callable
from datetime import timedelta

from core.clock import Clock
from core.metadata.jobs import Job, Jobs, TakenOverError

LEASE = timedelta(minutes=2)

Step = Callable[[Job], Job]
"""Works on one page and returns the job as it is then; the job is ``finished`` when there is no further page."""


class JobRunner:
    """Runs jobs."""

    def __init__(self, jobs: Jobs, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock

    def run(
        self,
        job: Job,
        step: Step,
        deadline: float,
        *,
        next_run: timedelta | None = None,
        on_finished: Callable[[], None] = lambda: None,
    ) -> Job:
        """Works on a job until it is finished or the time is up. An unfinished job is due for the sweep at once.

        Args:
            job: as it was read, or a new job with revision 0.
            deadline: monotonic seconds. No page begins after it.
            next_run: when a finished job is due again; None: never.
            on_finished: called by the worker that has finished the job, and by no other.

        Returns:
            The job as it is then, also when another worker has taken it over.
        """
        worker = f"{self._clock.random.getrandbits(64):016x}"
        try:
            job = self._save(job.model_copy(update={"worker": worker}), leased=True, next_run=next_run)
            while not job.finished and self._clock.monotonic() < deadline:
                job = self._save(step(job), leased=True, next_run=next_run)
            if job.finished:
                on_finished()
            released = job.model_copy(update={"worker": "", "lease_until": self._clock.now()})
            return self._save(released, leased=False, next_run=next_run)
        except TakenOverError:
            return self._jobs.get(job.tenant, job.collection_id, job.kind) or job

    def is_leased(self, job: Job) -> bool:
        """Tells whether a worker that may still be alive holds the job's lease."""
        return job.worker != "" and job.lease_until > self._clock.now()

    def _save(self, job: Job, *, leased: bool, next_run: timedelta | None) -> Job:
        now = self._clock.now()
        if leased:
            job = job.model_copy(update={"lease_until": now + LEASE})
        if job.finished:
            return self._jobs.save(job, None if next_run is None else now + next_run)
        return self._jobs.save(job, now + LEASE if leased else now)

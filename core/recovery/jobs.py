"""How a job is worked on: one worker at a time, a page a step, its progress saved after each."""

from collections.abc import Callable
from datetime import timedelta

from core.metadata.jobs import Job, TakenOverError
from core.parts import Parts

LEASE = timedelta(minutes=2)

Step = Callable[[Job], Job]
"""Works on one page and answers the job as it is then; ``finished`` when there is no more."""


def work(
    parts: Parts,
    job: Job,
    step: Step,
    deadline: float,
    *,
    next_run: timedelta | None = None,
    on_finished: Callable[[], None] = lambda: None,
) -> Job:
    """Works on a job until it is finished or the time is up; what is left is due for the sweep at once.

    Args:
        job: as read, or new with revision 0.
        deadline: monotonic seconds.
        next_run: when a finished job is due again; None: never.
        on_finished: called by the worker that has finished it, and by no other.
    """
    worker = f"{parts.clock.random.getrandbits(64):016x}"
    try:
        job = _save(parts, job.model_copy(update={"worker": worker}), leased=True, next_run=next_run)
        while not job.finished and parts.clock.monotonic() < deadline:
            job = _save(parts, step(job), leased=True, next_run=next_run)
        if job.finished:
            on_finished()
        released = job.model_copy(update={"worker": "", "lease_until": parts.clock.now()})
        return _save(parts, released, leased=False, next_run=next_run)
    except TakenOverError:
        return parts.jobs.get(job.tenant, job.collection_id, job.kind) or job


def is_leased(parts: Parts, job: Job) -> bool:
    """Whether a living worker has it."""
    return job.worker != "" and job.lease_until > parts.clock.now()


def _save(parts: Parts, job: Job, *, leased: bool, next_run: timedelta | None) -> Job:
    now = parts.clock.now()
    if leased:
        job = job.model_copy(update={"lease_until": now + LEASE})
    if job.finished:
        return parts.jobs.save(job, None if next_run is None else now + next_run)
    return parts.jobs.save(job, now + LEASE if leased else now)

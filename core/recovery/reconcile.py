"""Reconcile: rows and vectors of a collection are compared in both directions, and what disagrees is repaired.

From the rows: chunks of served documents without a vector are embedded again. From the vectors: those without a row
that is served, or that an ingest is working on, are removed. Then the counters: they are corrected when two recounts,
with a pause between for the listing to catch up, agree and no gate has moved meanwhile.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice

from core.clock import Lifetime
from core.metadata.collections import total
from core.metadata.dynamo import ConditionFailed, Conflict
from core.metadata.jobs import Job, JobKind
from core.metadata.rows import Counts, Head
from core.model.collection import VectorSpace
from core.model.document import DocumentState
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.recovery import ReconcileReport
from core.model.tenant import Tenant
from core.parts import Parts
from core.recovery.jobs import is_leased, work
from core.recovery.revector import write_again

DOCUMENTS_AT_ONCE = 50
VECTORS_AT_ONCE = 500
LISTING_LAG_S = 5.0


class ReconcileService:
    """Reconciles collections, a slice at a time."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @property
    def interval(self) -> timedelta:
        """How long after its end a reconcile begins anew."""
        return timedelta(hours=self._parts.settings.reconcile_interval_h)

    def run(self, tenant: Tenant, collection_id: CollectionId, deadline: float) -> ReconcileReport:
        """Begins a reconcile of one collection, or goes on with the one that is under way.

        Raises:
            CollectionNotFound: no such collection in the tenant.
        """
        self._parts.collection(tenant, collection_id)
        job = self._parts.jobs.get(tenant, collection_id, JobKind.RECONCILE)
        if job is None or job.finished:
            now = self._parts.clock.now()
            job = new_reconcile(tenant, collection_id, now, revision=job.revision if job else 0)
        elif is_leased(self._parts, job):
            return _report(job)
        return _report(work(self._parts, job, self._page, deadline, next_run=self.interval))

    def resume(self, job: Job, deadline: float) -> None:
        """Begins, or goes on with, a reconcile that is due; for the sweep."""
        if not is_leased(self._parts, job) and self._parts.is_active(job.tenant, job.collection_id):
            self.run(job.tenant, job.collection_id, deadline)

    def _page(self, job: Job) -> Job:
        return {"rows": self._rows, "vectors": self._vectors, "counters": self._counters}[job.phase](job)

    # -- from the rows -----------------------------------------------------------------------------

    def _rows(self, job: Job) -> Job:
        parts = self._parts
        after = None if job.position is None else DocumentId(job.position)
        listed = parts.documents.listed(job.tenant, job.collection_id, after=after)
        batch = list(islice(listed, DOCUMENTS_AT_ONCE))
        life = Lifetime(parts.clock, parts.writer_life)
        ready = [pair for pair in parts.documents.rows(job.tenant, batch) if pair[0].state == DocumentState.READY]
        ids = [one for head, _ in ready for one in head.served_chunk_ids()]
        there = parts.vector_store().present(job.tenant, self._space(job), ids)
        rows = parts.documents.chunks_there(job.tenant, ids)
        for head, info in ready:
            expected = head.served_chunk_ids()
            missing = [one for one in expected if one in rows and one not in there]
            lost = [one for one in expected if one not in rows]
            if missing:
                job = job.plus(embedded_again=self._embed_again(head, info.source_key, missing, life))
            if lost and self._still_ready(head):
                job = job.plus(lost=len(lost))
        job = job.plus(chunks=len(rows))
        return job.at("rows", batch[-1]) if len(batch) == DOCUMENTS_AT_ONCE else job.at("vectors")

    def _embed_again(self, head: Head, source_key: str | None, missing: Sequence[ChunkId], life: Lifetime) -> int:
        found = self._parts.documents.chunks(head.tenant, missing)
        chunks = [found[one] for one in missing if one in found]
        return len(chunks) if write_again(self._parts, head, source_key, chunks, life) else 0

    def _still_ready(self, head: Head) -> bool:
        now = self._parts.documents.head(head.tenant, head.document_id)
        return now is not None and now.state == DocumentState.READY and now.attempt == head.attempt

    # -- from the vectors --------------------------------------------------------------------------

    def _vectors(self, job: Job) -> Job:
        parts = self._parts
        space = self._space(job)
        after = None if job.position is None else ChunkId(job.position)
        store = parts.vector_store()
        ids = store.scan(job.tenant, space, job.collection_id, after, VECTORS_AT_ONCE)
        removed = self._without_row(job.tenant, ids)
        if removed:
            store.delete(job.tenant, space, removed)
        job = job.plus(vectors=len(ids), removed=len(removed))
        return job.at("vectors", ids[-1]) if len(ids) == VECTORS_AT_ONCE else job.at("counters")

    def _space(self, job: Job) -> VectorSpace:
        row = self._parts.collection(job.tenant, job.collection_id)
        return VectorSpace(model=row.embedding_model, dimensions=row.embedding_dims)

    def _without_row(self, tenant: Tenant, ids: Sequence[ChunkId]) -> list[ChunkId]:
        """Vectors that nothing serves and nobody works on. The document is read after the vector was seen, so a
        vector of a version on its way in has its row by then."""
        heads = self._parts.documents.heads(tenant, list({one.document_id for one in ids}))
        ready = [one for one in ids if _has_place(heads.get(one.document_id), one, DocumentState.READY)]
        rows = self._parts.documents.chunks_there(tenant, ready)
        return [one for one in ids if one not in rows and not _is_in_progress(heads.get(one.document_id), one)]

    # -- the counters ------------------------------------------------------------------------------

    def _counters(self, job: Job) -> Job:
        corrected = self._correct(job)
        return job.plus(counters_corrected=corrected).model_copy(update={"finished": True})

    def _correct(self, job: Job) -> int:
        parts = self._parts
        gates = parts.collections.gates(job.tenant, job.collection_id)
        if self._recount(job) == total(gates):
            return 0
        parts.clock.sleep(LISTING_LAG_S)
        again = parts.collections.gates(job.tenant, job.collection_id)
        counted = self._recount(job)
        if again != gates or counted == total(gates):
            return 0  # something moved: the next run looks again
        try:
            parts.collections.correct(job.tenant, job.collection_id, again, counted)
        except (ConditionFailed, Conflict):
            return 0
        return 1

    def _recount(self, job: Job) -> Counts:
        parts = self._parts
        listed = parts.documents.listed(job.tenant, job.collection_id)
        counts = Counts()
        while batch := list(islice(listed, DOCUMENTS_AT_ONCE)):
            counts = _plus(counts, parts.documents.heads(job.tenant, batch).values())
        return counts


def new_reconcile(tenant: Tenant, collection_id: CollectionId, now: datetime, revision: int = 0) -> Job:
    """A reconcile that has not begun."""
    return Job(
        tenant=tenant,
        collection_id=collection_id,
        kind=JobKind.RECONCILE,
        revision=revision,
        lease_until=now,
        phase="rows",
        started_at=now,
        updated_at=now,
    )


def _has_place(head: Head | None, chunk_id: ChunkId, state: DocumentState) -> bool:
    return (
        head is not None
        and head.state == state
        and head.attempt == chunk_id.attempt
        and chunk_id.chunk_index < head.chunk_count
    )


def _is_in_progress(head: Head | None, chunk_id: ChunkId) -> bool:
    return head is not None and head.state.in_progress and head.attempt == chunk_id.attempt


def _plus(counts: Counts, heads: Iterable[Head]) -> Counts:
    documents, chunks, working, rows = counts.documents, counts.chunks, counts.working, counts.rows
    for head in heads:
        rows += 1
        working += int(head.state.in_progress)
        if head.state == DocumentState.READY:
            documents, chunks = documents + 1, chunks + head.chunk_count
    return Counts(documents=documents, chunks=chunks, working=working, rows=rows)


def _report(job: Job) -> ReconcileReport:
    names = ("chunks", "vectors", "embedded_again", "removed", "lost", "counters_corrected")
    return ReconcileReport(
        collection_id=job.collection_id,
        finished=job.finished,
        started_at=job.started_at,
        updated_at=job.updated_at,
        **{name: job.counts.get(name, 0) for name in names},
    )

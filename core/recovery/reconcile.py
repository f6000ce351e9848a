"""Reconcile: rows and vectors of a collection are compared in both directions, and what disagrees is repaired.

From the rows: chunks of ready documents without a vector are embedded again; those that are lost themselves lose their
vector. From the vectors: those that no document serves and no ingest works on are removed. Then the counters: they are
corrected when a second recount, after a pause for the listing to catch up, still disagrees and no gate has moved since
before the first.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from core.clock import Lifetime
from core.metadata.collections import total
from core.metadata.dynamo import ConditionFailed, Conflict
from core.metadata.jobs import Job, JobKind, Recount
from core.metadata.rows import Counts, Head
from core.model.collection import VectorSpace
from core.model.document import DocumentState
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.recovery import ReconcileReport
from core.model.tenant import Tenant
from core.parts import Parts
from core.recovery.jobs import is_leased, work
from core.recovery.pieces import Piece, next_pieces
from core.recovery.revector import write_again

CHUNKS_AT_ONCE = 500
DOCUMENTS_AT_ONCE = 500
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
        life = Lifetime(parts.clock, parts.writer_life)
        pieces, position = next_pieces(parts, job, CHUNKS_AT_ONCE)
        ids = [one for piece in pieces for one in piece.chunk_ids]
        there = parts.vector_store().present(job.tenant, self._space(job), ids)
        rows = parts.documents.chunks_there(job.tenant, ids)
        for piece in pieces:
            missing = [one for one in piece.chunk_ids if one in rows and one not in there]
            lost = [one for one in piece.chunk_ids if one not in rows]
            if missing:
                job = job.plus(embedded_again=self._embed_again(piece, missing, life))
            if lost and self._still_ready(piece.head):
                job = job.plus(lost=len(lost), removed=self._remove(job, [one for one in lost if one in there]))
        job = job.plus(chunks=len(rows))
        return job.at("vectors") if position is None else job.at("rows", position)

    def _embed_again(self, piece: Piece, missing: Sequence[ChunkId], life: Lifetime) -> int:
        found = self._parts.documents.chunks(piece.head.tenant, missing)
        chunks = [found[one] for one in missing if one in found]
        return len(chunks) if write_again(self._parts, piece.head, piece.info.source_key, chunks, life) else 0

    def _still_ready(self, head: Head) -> bool:
        now = self._parts.documents.head(head.tenant, head.document_id)
        return now is not None and now.state == DocumentState.READY and now.attempt == head.attempt

    # -- from the vectors --------------------------------------------------------------------------

    def _vectors(self, job: Job) -> Job:
        parts = self._parts
        space = self._space(job)
        after = None if job.position is None else ChunkId(job.position)
        store = parts.vector_store()
        ids = store.scan(job.tenant, space, job.collection_id, after, CHUNKS_AT_ONCE)
        removed = self._remove(job, self._without_document(job.tenant, ids))
        job = job.plus(vectors=len(ids), removed=removed)
        return job.at("vectors", ids[-1]) if len(ids) == CHUNKS_AT_ONCE else job.at("counters")

    def _remove(self, job: Job, ids: Sequence[ChunkId]) -> int:
        return self._parts.vector_store().delete(job.tenant, self._space(job), ids) if ids else 0

    def _space(self, job: Job) -> VectorSpace:
        row = self._parts.collection(job.tenant, job.collection_id)
        return VectorSpace(model=row.embedding_model, dimensions=row.embedding_dims)

    def _without_document(self, tenant: Tenant, ids: Sequence[ChunkId]) -> list[ChunkId]:
        """Vectors that no document serves and no ingest works on. The document is read after the vector was seen, so
        a vector of a version on its way in has its row by then."""
        heads = self._parts.documents.heads(tenant, list({one.document_id for one in ids}))
        pairs = ((heads.get(one.document_id), one) for one in ids)
        return [one for head, one in pairs if not _is_served(head, one) and not _is_in_progress(head, one)]

    # -- the counters ------------------------------------------------------------------------------

    def _counters(self, job: Job) -> Job:
        parts = self._parts
        recount = job.recount or Recount(gates=parts.collections.gates(job.tenant, job.collection_id))
        after = None if job.position is None else DocumentId(job.position)
        listed = list(parts.documents.listed(job.tenant, job.collection_id, after=after, limit=DOCUMENTS_AT_ONCE))
        counts = _plus(recount.counts, parts.documents.heads(job.tenant, listed).values())
        recount = recount.model_copy(update={"counts": counts})
        if len(listed) == DOCUMENTS_AT_ONCE:
            return job.at("counters", listed[-1]).model_copy(update={"recount": recount})
        return self._compare(job, recount)

    def _compare(self, job: Job, recount: Recount) -> Job:
        """A count has come to its end. When gates have moved since the first began, the next run looks again."""
        gates = self._parts.collections.gates(job.tenant, job.collection_id)
        ended = job.model_copy(update={"recount": None, "finished": True})
        if recount.counts == total(gates) or recount.gates != gates:
            return ended
        if not recount.again:
            self._parts.clock.sleep(LISTING_LAG_S)
            again = Recount(gates=gates, again=True)
            return job.at("counters").model_copy(update={"recount": again})
        try:
            self._parts.collections.correct(job.tenant, job.collection_id, gates, recount.counts)
        except (ConditionFailed, Conflict):
            return ended
        return ended.plus(counters_corrected=1)


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


def _is_served(head: Head | None, chunk_id: ChunkId) -> bool:
    return (
        head is not None
        and head.state == DocumentState.READY
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

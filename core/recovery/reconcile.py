"""Reconcile: compares the chunk rows and the vectors of a collection in both directions, and repairs differences.

1. Rows: chunks of ready documents that have a row and no vector are embedded again. Vectors of chunks that have no row
   are deleted.
2. Vectors: vectors that no document serves and no ingest is writing are deleted.
3. Counters: the gates are corrected when a second recount, after a pause in which the listing catches up, still
   disagrees with them and no gate has changed since before the first recount.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from core.clock import Clock, Lifetime
from core.metadata.collections import Collections, total
from core.metadata.documents import Documents
from core.metadata.dynamo import ConditionFailed, Conflict
from core.metadata.jobs import Job, JobKind, Jobs, Recount
from core.metadata.rows import Counts, Head
from core.model.document import DocumentState
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.recovery import ReconcileReport
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.protocol.served import Served, has_ready_chunk, may_be_written
from core.recovery.jobs import JobRunner
from core.recovery.ready_chunks import ReadyChunks, next_ready_chunks
from core.recovery.reembedding import Reembedding
from core.vectors.types import VectorStore

CHUNKS_AT_ONCE = 500
DOCUMENTS_AT_ONCE = 500
LISTING_LAG_S = 5.0
"""How long to wait for the eventually consistent listing before the second recount, in seconds."""


class ReconcileService:
    """Reconciles collections.

    Args:
        interval: how long after its end a reconcile begins again.
    """

    def __init__(
        self,
        collections: Collections,
        documents: Documents,
        jobs: Jobs,
        runner: JobRunner,
        served: Served,
        reembedding: Reembedding,
        vectors: VectorStore,
        clock: Clock,
        writer_life: timedelta,
        interval: timedelta,
    ) -> None:
        self._collections = collections
        self._documents = documents
        self._jobs = jobs
        self._runner = runner
        self._served = served
        self._reembedding = reembedding
        self._vector_store = vectors
        self._clock = clock
        self._writer_life = writer_life
        self._interval = interval

    def run(self, tenant: Tenant, collection_id: CollectionId, deadline: float) -> ReconcileReport:
        """Begins a reconcile of one collection, or goes on with the reconcile that is under way.

        Args:
            deadline: monotonic seconds of the engine's clock. No page begins after it.

        Raises:
            CollectionNotFound: the tenant has no such collection.
        """
        self._collections.active(tenant, collection_id)
        job = self._jobs.get(tenant, collection_id, JobKind.RECONCILE)
        if job is None or job.finished:
            now = self._clock.now()
            job = new_reconcile(tenant, collection_id, now, revision=job.revision if job else 0)
        elif self._runner.is_leased(job):
            return _report(job)
        return _report(self._runner.run(job, self._page, deadline, next_run=self._interval))

    def resume(self, job: Job, deadline: float) -> None:
        """Begins a reconcile that is due, or goes on with it. The sweep calls this."""
        if not self._runner.is_leased(job) and self._collections.is_active(job.tenant, job.collection_id):
            self.run(job.tenant, job.collection_id, deadline)

    def _page(self, job: Job) -> Job:
        return {"rows": self._check_rows, "vectors": self._check_vectors, "counters": self._check_counters}[job.phase](
            job
        )

    # -- rows: chunks without a vector ---------------------------------------------------------------

    def _check_rows(self, job: Job) -> Job:
        """Embeds chunks again that have a row and no vector, and deletes the vectors of chunks that have no row."""
        lifetime = Lifetime(self._clock, self._writer_life)
        page, position = next_ready_chunks(self._documents, job, CHUNKS_AT_ONCE)
        chunk_ids = [chunk_id for ready in page for chunk_id in ready.chunk_ids]
        with_vector = self._vector_store.present(job.tenant, self._space(job), chunk_ids)
        with_row = self._documents.existing_chunks(job.tenant, chunk_ids)
        for ready in page:
            missing = [chunk_id for chunk_id in ready.chunk_ids if chunk_id in with_row and chunk_id not in with_vector]
            lost = [chunk_id for chunk_id in ready.chunk_ids if chunk_id not in with_row]
            if missing:
                job = job.plus(embedded_again=self._embed_again(ready, missing, lifetime))
            if lost and self._served.is_still_ready(ready.head):
                removed = self._delete(job, [chunk_id for chunk_id in lost if chunk_id in with_vector])
                job = job.plus(lost=len(lost), removed=removed)
        job = job.plus(chunks=len(with_row))
        return job.at("vectors") if position is None else job.at("rows", position)

    def _embed_again(self, ready: ReadyChunks, missing: Sequence[ChunkId], lifetime: Lifetime) -> int:
        """Returns how many chunks were embedded again."""
        chunks = list(self._documents.chunks(ready.head.tenant, missing).values())
        is_ready = self._reembedding.reembed(ready.head, ready.info.source_key, chunks, lifetime)
        return len(chunks) if is_ready else 0

    # -- vectors: vectors without a document ---------------------------------------------------------

    def _check_vectors(self, job: Job) -> Job:
        """Deletes vectors that no document serves and no ingest is writing."""
        after = None if job.position is None else ChunkId(job.position)
        chunk_ids = self._vector_store.scan(job.tenant, self._space(job), job.collection_id, after, CHUNKS_AT_ONCE)
        removed = self._delete(job, self._without_document(job.tenant, chunk_ids))
        job = job.plus(vectors=len(chunk_ids), removed=removed)
        return job.at("vectors", chunk_ids[-1]) if len(chunk_ids) == CHUNKS_AT_ONCE else job.at("counters")

    def _delete(self, job: Job, chunk_ids: Sequence[ChunkId]) -> int:
        return self._vector_store.delete(job.tenant, self._space(job), chunk_ids) if chunk_ids else 0

    def _space(self, job: Job) -> VectorSpace:
        return self._collections.active(job.tenant, job.collection_id).space

    def _without_document(self, tenant: Tenant, chunk_ids: Sequence[ChunkId]) -> list[ChunkId]:
        """Returns the chunks that no document serves and no ingest is writing.

        The documents are read after their vectors were listed. A version that is being ingested has its row by then.
        """
        heads = self._documents.heads(tenant, list({chunk_id.document_id for chunk_id in chunk_ids}))
        return [
            chunk_id
            for chunk_id in chunk_ids
            if not has_ready_chunk(heads.get(chunk_id.document_id), chunk_id)
            and not may_be_written(heads.get(chunk_id.document_id), chunk_id.attempt)
        ]

    # -- counters ------------------------------------------------------------------------------------

    def _check_counters(self, job: Job) -> Job:
        """Counts the next documents, and compares the gates with the recount at the listing's end."""
        recount = job.recount or Recount(gates=self._collections.gates(job.tenant, job.collection_id))
        after = None if job.position is None else DocumentId(job.position)
        listed = list(self._documents.listed(job.tenant, job.collection_id, after=after, limit=DOCUMENTS_AT_ONCE))
        counts = _plus(recount.counts, self._documents.heads(job.tenant, listed).values())
        recount = recount.model_copy(update={"counts": counts})
        if len(listed) == DOCUMENTS_AT_ONCE:
            return job.at("counters", listed[-1]).model_copy(update={"recount": recount})
        return self._compare_counters(job, recount)

    def _compare_counters(self, job: Job, recount: Recount) -> Job:
        """Compares the gates with a complete recount. When gates have changed meanwhile, the next run looks again."""
        gates = self._collections.gates(job.tenant, job.collection_id)
        ended = job.model_copy(update={"recount": None, "finished": True})
        if recount.counts == total(gates) or recount.gates != gates:
            return ended
        if not recount.again:
            self._clock.sleep(LISTING_LAG_S)
            second = Recount(gates=gates, again=True)
            return job.at("counters").model_copy(update={"recount": second})
        try:
            self._collections.correct(job.tenant, job.collection_id, gates, recount.counts)
        except (ConditionFailed, Conflict):
            return ended
        return ended.plus(counters_corrected=1)


def new_reconcile(tenant: Tenant, collection_id: CollectionId, now: datetime, revision: int = 0) -> Job:
    """Makes the job of a reconcile that has not begun."""
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

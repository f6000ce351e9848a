"""Reindex: embeds the chunks of every ready document again and replaces the document's vectors in turn."""

from datetime import timedelta
from functools import partial

from core.clock import Clock, Lifetime
from core.embedding.embedders import Embedders
from core.metadata.collections import Collections
from core.metadata.documents import Documents
from core.metadata.jobs import Job, JobKind, Jobs
from core.metadata.rows import CollectionRow
from core.model.errors import InvalidArgument, ReindexNotFound
from core.model.ids import CollectionId
from core.model.recovery import ReindexProgress
from core.model.tenant import Tenant
from core.observe import Observer
from core.recovery.jobs import JobRunner
from core.recovery.ready_chunks import next_ready_chunks
from core.recovery.reembedding import Reembedding

CHUNKS_AT_ONCE = 256


class ReindexService:
    """Reindexes collections. Retrieval answers throughout, because vectors are overwritten in place."""

    def __init__(
        self,
        collections: Collections,
        documents: Documents,
        jobs: Jobs,
        runner: JobRunner,
        embedders: Embedders,
        reembedding: Reembedding,
        observer: Observer,
        clock: Clock,
        writer_life: timedelta,
    ) -> None:
        self._collections = collections
        self._documents = documents
        self._jobs = jobs
        self._runner = runner
        self._embedders = embedders
        self._reembedding = reembedding
        self._observer = observer
        self._clock = clock
        self._writer_life = writer_life

    def start(self, tenant: Tenant, collection_id: CollectionId, deadline: float) -> ReindexProgress:
        """Begins a reindex, or goes on with the one under way. The sweep finishes what the deadline cuts off.

        Args:
            deadline: monotonic seconds of the engine's clock. No page begins after it.

        Raises:
            CollectionNotFound: the tenant has no such collection.
            NotConfigured: the collection's embedder is not configured.
            InvalidArgument: the embedder's number of dimensions has changed. Ingest into a new collection.
        """
        row = self._collections.active(tenant, collection_id)
        self._check_embedder(row)
        job = self._jobs.get(tenant, collection_id, JobKind.REINDEX)
        if job is not None and not job.finished and self._runner.is_leased(job):
            return _progress(job)
        if job is None or job.finished:
            job = self._new(row, revision=job.revision if job else 0)
            self._observer.fire("reindex_started", tenant=tenant, collection_id=collection_id)
        return _progress(self._work(job, deadline))

    def progress(self, tenant: Tenant, collection_id: CollectionId) -> ReindexProgress:
        """Returns the progress of the last reindex.

        Raises:
            CollectionNotFound: the tenant has no such collection.
            ReindexNotFound: the collection has never been reindexed.
        """
        self._collections.active(tenant, collection_id)
        job = self._jobs.get(tenant, collection_id, JobKind.REINDEX)
        if job is None:
            raise ReindexNotFound("The collection has not been reindexed")
        return _progress(job)

    def resume(self, job: Job, deadline: float) -> None:
        """Goes on with a reindex that no worker holds. The sweep calls this."""
        if not job.finished and not self._runner.is_leased(job):
            self._work(job, deadline)

    def _work(self, job: Job, deadline: float) -> Job:
        hook = partial(self._observer.fire, "reindex_completed", tenant=job.tenant, collection_id=job.collection_id)
        return self._runner.run(job, self._page, deadline, on_finished=hook)

    def _check_embedder(self, row: CollectionRow) -> None:
        space = self._embedders.of_model(row.embedding_model).space
        if space.dimensions != row.embedding_dims:
            raise InvalidArgument(
                f"The embedder has {space.dimensions} dimensions, the collection {row.embedding_dims}: "
                "a new model is a new collection",
                field="collection_id",
            )

    def _new(self, row: CollectionRow, revision: int) -> Job:
        now = self._clock.now()
        return Job(
            tenant=row.tenant,
            collection_id=row.id,
            kind=JobKind.REINDEX,
            revision=revision,
            lease_until=now,
            phase="documents",
            started_at=now,
            updated_at=now,
        )

    def _page(self, job: Job) -> Job:
        """Embeds the next chunks again."""
        lifetime = Lifetime(self._clock, self._writer_life)
        page, position = next_ready_chunks(self._documents, job, CHUNKS_AT_ONCE)
        for ready in page:
            chunks = list(self._documents.chunks(job.tenant, ready.chunk_ids).values())
            if self._reembedding.reembed(ready.head, ready.info.source_key, chunks, lifetime):
                job = job.plus(documents=int(ready.last), chunks=len(chunks))
        if position is None:
            return job.model_copy(update={"finished": True})
        return job.at("documents", position)


def _progress(job: Job) -> ReindexProgress:
    return ReindexProgress(
        collection_id=job.collection_id,
        documents=job.counts.get("documents", 0),
        chunks=job.counts.get("chunks", 0),
        finished=job.finished,
        started_at=job.started_at,
        updated_at=job.updated_at,
    )

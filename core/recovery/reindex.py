"""Reindex: every ready document's chunks are embedded again, and its vectors replaced in turn."""

from functools import partial

from core.clock import Lifetime
from core.metadata.jobs import Job, JobKind
from core.metadata.rows import CollectionRow
from core.model.errors import InvalidArgument, ReindexNotFound
from core.model.ids import CollectionId
from core.model.recovery import ReindexProgress
from core.model.tenant import Tenant
from core.parts import Parts
from core.recovery.jobs import is_leased, work
from core.recovery.pieces import next_pieces
from core.recovery.revector import write_again

CHUNKS_AT_ONCE = 256


class ReindexService:
    """Reindexes collections, a slice at a time. Retrieval answers throughout: vectors are overwritten in place."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def start(self, tenant: Tenant, collection_id: CollectionId, deadline: float) -> ReindexProgress:
        """Begins a reindex, or goes on with the one that is under way; the sweep finishes it.

        Args:
            deadline: monotonic seconds of the engine's clock.

        Raises:
            CollectionNotFound: no such collection in the tenant.
            NotConfigured: the embedder that the collection records is not there.
            InvalidArgument: the embedder of that name has other dimensions: a new model is a new collection.
        """
        row = self._parts.collection(tenant, collection_id)
        self._check_embedder(row)
        job = self._parts.jobs.get(tenant, collection_id, JobKind.REINDEX)
        if job is not None and not job.finished and is_leased(self._parts, job):
            return _progress(job)
        if job is None or job.finished:
            job = self._new(row, revision=job.revision if job else 0)
            self._parts.extensions.fire("reindex_started", tenant=tenant, collection_id=collection_id)
        return _progress(self._work(job, deadline))

    def progress(self, tenant: Tenant, collection_id: CollectionId) -> ReindexProgress:
        """How far the last reindex is.

        Raises:
            CollectionNotFound: no such collection in the tenant.
            ReindexNotFound: it has never been reindexed.
        """
        self._parts.collection(tenant, collection_id)
        job = self._parts.jobs.get(tenant, collection_id, JobKind.REINDEX)
        if job is None:
            raise ReindexNotFound("The collection has not been reindexed")
        return _progress(job)

    def resume(self, job: Job, deadline: float) -> None:
        """Goes on with a reindex that nobody works on; for the sweep."""
        if not job.finished and not is_leased(self._parts, job):
            self._work(job, deadline)

    def _work(self, job: Job, deadline: float) -> Job:
        hook = partial(
            self._parts.extensions.fire, "reindex_completed", tenant=job.tenant, collection_id=job.collection_id
        )
        return work(self._parts, job, self._page, deadline, on_finished=hook)

    def _check_embedder(self, row: CollectionRow) -> None:
        space = self._parts.embedder(row.embedding_model).space
        if space.dimensions != row.embedding_dims:
            raise InvalidArgument(
                f"The embedder has {space.dimensions} dimensions, the collection {row.embedding_dims}: "
                "a new model is a new collection",
                field="collection_id",
            )

    def _new(self, row: CollectionRow, revision: int) -> Job:
        now = self._parts.clock.now()
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
        """One step: the next chunks."""
        life = Lifetime(self._parts.clock, self._parts.writer_life)
        pieces, position = next_pieces(self._parts, job, CHUNKS_AT_ONCE)
        for piece in pieces:
            found = self._parts.documents.chunks(job.tenant, piece.chunk_ids)
            chunks = [found[one] for one in piece.chunk_ids if one in found]
            if write_again(self._parts, piece.head, piece.info.source_key, chunks, life):
                job = job.plus(documents=int(piece.last), chunks=len(chunks))
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

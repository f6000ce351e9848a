"""Walks over the chunks of a collection's ready documents, a page at a time, for jobs that go over all of them."""

from dataclasses import dataclass

from core.metadata.documents import Documents
from core.metadata.jobs import Job
from core.metadata.rows import Head, Info
from core.model.document import DocumentState
from core.model.ids import ChunkId, DocumentId

DOCUMENTS_AT_ONCE = 50


@dataclass(frozen=True)
class ReadyChunks:
    """Consecutive chunks of a ready document.

    Attributes:
        chunk_ids: in the document's order; never empty.
        last: whether these are the document's last chunks.
    """

    head: Head
    info: Info
    chunk_ids: list[ChunkId]
    last: bool


def next_ready_chunks(documents: Documents, job: Job, limit: int) -> tuple[list[ReadyChunks], str | None]:
    """Returns the next chunks of ready documents behind a job's position.

    Args:
        limit: how many chunks are returned at most, of all documents together.

    Returns:
        The chunks by document, and the position behind them: a document that is done, or the last chunk of a document
        that is not; None at the collection's end.
    """
    inside = ChunkId(job.position) if job.position and job.position.startswith(f"{ChunkId.prefix}_") else None
    after = inside.document_id if inside else DocumentId(job.position) if job.position else None
    listed = list(documents.listed(job.tenant, job.collection_id, after=after, limit=DOCUMENTS_AT_ONCE))
    page = []
    for head, info in documents.rows(job.tenant, [inside.document_id, *listed] if inside else listed):
        if head.state != DocumentState.READY:
            continue
        chunk_ids = head.served_chunk_ids()
        if inside and inside.document_id == head.document_id:
            chunk_ids = chunk_ids[inside.chunk_index + 1 :]
        ready = ReadyChunks(head, info, chunk_ids[:limit], last=len(chunk_ids) <= limit)
        page.append(ready)
        limit -= len(ready.chunk_ids)
        if not limit:
            return page, head.document_id if ready.last else ready.chunk_ids[-1]
    return page, listed[-1] if len(listed) == DOCUMENTS_AT_ONCE else None

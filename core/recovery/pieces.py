"""The ready documents of a collection, some chunks at a time: one step of a job that goes over all of them."""

from dataclasses import dataclass

from core.metadata.jobs import Job
from core.metadata.rows import Head, Info
from core.model.document import DocumentState
from core.model.ids import ChunkId, DocumentId
from core.parts import Parts

DOCUMENTS_AT_ONCE = 50


@dataclass(frozen=True)
class Piece:
    """Some chunks of a ready document.

    Attributes:
        chunk_ids: in order; never empty.
        last: whether these are the document's last ones.
    """

    head: Head
    info: Info
    chunk_ids: list[ChunkId]
    last: bool


def next_pieces(parts: Parts, job: Job, limit: int) -> tuple[list[Piece], str | None]:
    """The pieces beyond a job's position.

    Args:
        limit: of all their chunks together.

    Returns:
        The pieces, and the position behind them: a document that is done, or the last chunk of one that is not;
        None at the collection's end.
    """
    inside = ChunkId(job.position) if job.position and job.position.startswith(f"{ChunkId.prefix}_") else None
    after = inside.document_id if inside else DocumentId(job.position) if job.position else None
    listed = list(parts.documents.listed(job.tenant, job.collection_id, after=after, limit=DOCUMENTS_AT_ONCE))
    pieces = []
    for head, info in parts.documents.rows(job.tenant, [inside.document_id, *listed] if inside else listed):
        if head.state != DocumentState.READY:
            continue
        ids = head.served_chunk_ids()
        if inside and inside.document_id == head.document_id:
            ids = ids[inside.chunk_index + 1 :]
        piece = Piece(head, info, ids[:limit], last=len(ids) <= limit)
        pieces.append(piece)
        limit -= len(piece.chunk_ids)
        if not limit:
            return pieces, head.document_id if piece.last else piece.chunk_ids[-1]
    return pieces, listed[-1] if len(listed) == DOCUMENTS_AT_ONCE else None

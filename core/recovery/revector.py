"""Writing the vectors of a ready document again, under the same identifiers."""

from collections.abc import Sequence

from core.clock import Lifetime
from core.ingest.records import vector_records
from core.metadata.jobs import TakenOverError
from core.metadata.rows import Head
from core.model.chunk import Chunk
from core.model.document import DocumentState
from core.parts import Parts

EMBED_AT_ONCE = 64


def write_again(parts: Parts, head: Head, source_key: str | None, chunks: Sequence[Chunk], life: Lifetime) -> bool:
    """Embeds chunks of a ready document and writes their vectors over what is there.

    The row is read again afterwards: a document that is ready no more, under that attempt, loses them again.
    Nothing is written after the writer's life, which began before ``head`` was read.

    Returns:
        Whether the document was ready to the end.

    Raises:
        NotConfigured: the embedder that the collection records is not there.
        TakenOverError: the writer's life is over, and its lease with it: another worker goes on from where it was.
    """
    embedder = parts.embedder_of(head.space)
    store = parts.vector_store()
    for start in range(0, len(chunks), EMBED_AT_ONCE):
        part = chunks[start : start + EMBED_AT_ONCE]
        vectors = parts.embed(embedder, [chunk.text for chunk in part])
        if life.is_over():
            raise TakenOverError
        store.write(head.tenant, head.space, vector_records(head, source_key, part, vectors))
    now = parts.documents.head(head.tenant, head.document_id)
    if now is not None and now.state == DocumentState.READY and now.attempt == head.attempt:
        return True
    store.delete(head.tenant, head.space, [chunk.id for chunk in chunks if chunk.id is not None])
    return False

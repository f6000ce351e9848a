"""What is served: keyed, the source's current document and attempt; unkeyed, the ready row and its attempt.

The reads here are strongly consistent and come after a search, so that one answer never mixes two versions.
"""

from collections.abc import Iterator, Sequence

from core.metadata.rows import Head, Source
from core.model.document import DocumentState
from core.model.ids import ChunkId
from core.model.tenant import Tenant
from core.parts import Parts


def is_current(source: Source | None, chunk_id: ChunkId) -> bool:
    """Whether a source serves the document and the attempt that wrote a chunk."""
    current = source.current if source else None
    return current is not None and (current.document_id, current.attempt) == (
        chunk_id.document_id,
        chunk_id.attempt,
    )


def is_ready(head: Head | None, chunk_id: ChunkId) -> bool:
    """Whether an unkeyed document is served, and by the attempt that wrote a chunk."""
    return head is not None and head.state == DocumentState.READY and head.attempt == chunk_id.attempt


def served_heads(parts: Parts, tenant: Tenant, heads: Sequence[Head]) -> Iterator[Head]:
    """Those of the documents that are served."""
    ready = [head for head in heads if head.state == DocumentState.READY]
    keys = [(head.collection_id, head.source_id) for head in ready if head.source_id is not None]
    sources, _ = parts.documents.serving(tenant, keys, [])
    for head in ready:
        if head.source_id is None:
            yield head
            continue
        first = ChunkId.of(head.document_id, head.attempt, 0)
        if is_current(sources.get((head.collection_id, head.source_id)), first):
            yield head


def served_ids(parts: Parts, tenant: Tenant, chunk_ids: Sequence[ChunkId]) -> set[ChunkId]:
    """Those of the chunks that belong to what is served, in active collections."""
    heads = parts.documents.heads(tenant, list({one.document_id for one in chunk_ids}))
    served = {head.document_id: head for head in served_heads(parts, tenant, list(heads.values()))}
    active = {
        collection_id
        for collection_id in {head.collection_id for head in served.values()}
        if parts.is_active(tenant, collection_id)
    }
    return {
        one
        for one in chunk_ids
        if (head := served.get(one.document_id)) is not None
        and head.collection_id in active
        and (one.attempt == head.attempt and one.chunk_index < head.chunk_count)
    }

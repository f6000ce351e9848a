"""The one place that decides which chunks are served, that is: which chunks an answer may show.

- A chunk of a document *with* a source key is served while its source names this document and this attempt as its
  current version.
- A chunk of a document *without* a source key is served while its document is ready under the attempt that wrote it.

The reads of this module are strongly consistent. Retrieval reads after its search, so that one answer never mixes two
versions of a source: a version that was replaced before the read is left out, whatever the search has found.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.metadata.collections import Collections
from core.metadata.documents import Documents
from core.metadata.rows import Head, Source
from core.model.document import DocumentState
from core.model.ids import ChunkId, CollectionId, DocumentId, generation
from core.model.tenant import Tenant
from core.vectors.types import VectorMatch


def source_serves(source: Source | None, document_id: DocumentId, attempt: int) -> bool:
    """Tells whether a source's current version is this document, written by this attempt."""
    current = source.current if source else None
    return current is not None and (current.document_id, current.attempt) == (document_id, attempt)


def is_ready_under(head: Head | None, attempt: int) -> bool:
    """Tells whether a document is ready, and was made so by this attempt."""
    return head is not None and head.state == DocumentState.READY and head.attempt == attempt


def has_ready_chunk(head: Head | None, chunk_id: ChunkId) -> bool:
    """Tells whether a chunk is one of those that a document had when it became ready."""
    return head is not None and is_ready_under(head, chunk_id.attempt) and chunk_id.chunk_index < head.chunk_count


def may_be_written(head: Head | None, attempt: int) -> bool:
    """Tells whether this attempt owns the document and is still at work on it."""
    return head is not None and head.state.in_progress and head.attempt == attempt


@dataclass(frozen=True)
class ServedVersions:
    """What the sources and the documents of some matches serve, as one consistent read saw them.

    Attributes:
        sources: by collection and source ID.
        heads: the rows of documents without a source.
        removed: documents without a source whose row is gone, and where a late-writer mark says that the document was
            removed.
    """

    sources: dict[tuple[CollectionId, str], Source]
    heads: dict[DocumentId, Head]
    removed: set[DocumentId]

    def generations(self) -> set[str]:
        """Lists the generations that the sources serve."""
        currents = [source.current for source in self.sources.values() if source.current is not None]
        return {generation(current.document_id, current.attempt) for current in currents}

    def hides(self, match: VectorMatch) -> bool:
        """Tells whether a match belongs to a chunk that is not served.

        A match without a source and without a document's row is not hidden: it is an orphan, which a retrieve keeps,
        unless its document is known to have been removed. The chunk's text is then all that is left of the document.
        """
        document_id, attempt = match.chunk_id.document_id, match.chunk_id.attempt
        if match.source_id is not None:
            source = self.sources.get((match.collection_id, match.source_id))
            return not source_serves(source, document_id, attempt)
        head = self.heads.get(document_id)
        if head is None:
            return document_id in self.removed
        return not is_ready_under(head, attempt)


class Served:
    """Reads from the metadata store which documents and chunks are served."""

    def __init__(self, documents: Documents, collections: Collections) -> None:
        self._documents = documents
        self._collections = collections

    def versions_of(self, tenant: Tenant, matches: Sequence[VectorMatch]) -> ServedVersions:
        """Reads what the sources and the documents of matches serve now, in one consistent batch read."""
        keyed = {(match.collection_id, match.source_id) for match in matches if match.source_id is not None}
        unkeyed = {match.chunk_id.document_id for match in matches if match.source_id is None}
        sources, heads = self._documents.serving(tenant, sorted(keyed), sorted(unkeyed))
        missing = unkeyed - heads.keys()
        removed = {document_id for document_id in missing if self._documents.has_late_writer_mark(tenant, document_id)}
        return ServedVersions(sources, heads, removed)

    def heads(self, tenant: Tenant, heads: Sequence[Head]) -> Iterator[Head]:
        """Yields those of the documents that are served, in the order given."""
        ready = [head for head in heads if head.state == DocumentState.READY]
        keys = [(head.collection_id, head.source_id) for head in ready if head.source_id is not None]
        sources, _ = self._documents.serving(tenant, keys, [])
        for head in ready:
            if head.source_id is None or source_serves(
                sources.get((head.collection_id, head.source_id)), head.document_id, head.attempt
            ):
                yield head

    def chunk_ids(self, tenant: Tenant, chunk_ids: Sequence[ChunkId]) -> set[ChunkId]:
        """Returns those of the chunks that are served, and whose collection is not being deleted."""
        rows = self._documents.heads(tenant, list({chunk_id.document_id for chunk_id in chunk_ids}))
        served = {head.document_id: head for head in self.heads(tenant, list(rows.values()))}
        active = {
            collection_id
            for collection_id in {head.collection_id for head in served.values()}
            if self._collections.is_active(tenant, collection_id)
        }
        return {
            chunk_id
            for chunk_id in chunk_ids
            if (head := served.get(chunk_id.document_id)) is not None
            and head.collection_id in active
            and has_ready_chunk(head, chunk_id)
        }

    def is_still_ready(self, head: Head) -> bool:
        """Reads a document again and tells whether it is still ready under the attempt that `head` names."""
        return is_ready_under(self._documents.head(head.tenant, head.document_id), head.attempt)

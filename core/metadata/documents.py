"""Reads the rows of documents and sources; reads, writes and deletes the rows of chunks.

The states of documents and sources are changed by `core.protocol.transitions` alone.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from core.metadata import table
from core.metadata.dynamo import Action, Table
from core.metadata.rows import ChunkRow, Head, Info, LateWriterMark, Source
from core.model.base import rfc3339
from core.model.chunk import Chunk
from core.model.document import source_id
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.tenant import Tenant


class DocumentAndOwner(NamedTuple):
    """A document's row, and the row that names the document: its source's, or its content's.

    Attributes:
        head: None when the document has no row any more.
        source: the source of a document with a source key.
        holder: for a document without a source key, the document that its content's row names.
    """

    head: Head | None
    source: Source | None
    holder: DocumentId | None


class Documents:
    """The documents, sources and chunks of the table, in any state: the caller looks at the state."""

    def __init__(self, rows: Table) -> None:
        self._table = rows

    # -- one document, one source --------------------------------------------------------------------

    def head(self, tenant: Tenant, document_id: DocumentId) -> Head | None:
        """Reads a document's row; None when it does not exist."""
        item = self._table.get(table.head(tenant, document_id))
        return None if item is None else Head.read(item)

    def source(self, tenant: Tenant, collection_id: CollectionId, source_id: str) -> Source | None:
        """Reads a source's row; None when it does not exist."""
        item = self._table.get(table.source(tenant, collection_id, source_id))
        return None if item is None else Source.read(item)

    def source_or_new(self, tenant: Tenant, collection_id: CollectionId, key: str) -> Source:
        """Reads the source of a source key; returns an empty source for a key that has no row."""
        return self.source(tenant, collection_id, source_id(key)) or Source(key=key, collection_id=collection_id)

    def content_holder(self, tenant: Tenant, collection_id: CollectionId, fingerprint: str) -> DocumentId | None:
        """Returns the document that a content without a source key belongs to."""
        item = self._table.get(table.content(tenant, collection_id, fingerprint))
        return None if item is None else DocumentId(item["document_id"])

    def content_holder_of(self, head: Head) -> DocumentId | None:
        """Returns the document that holds the content of this document; None for a document with a source key."""
        if head.source_id is not None:
            return None
        return self.content_holder(head.tenant, head.collection_id, head.fingerprint)

    def head_and_source(self, head: Head) -> tuple[Head | None, Source | None]:
        """Reads a document and its source, if it has one, in one consistent batch read."""
        keys = [table.head(head.tenant, head.document_id)]
        if head.source_id is not None:
            keys.append(table.source(head.tenant, head.collection_id, head.source_id))
        items = self._table.batch_get(keys)
        source = items.get(keys[1]) if head.source_id is not None else None
        item = items.get(keys[0])
        return (
            None if item is None else Head.read(item),
            None if source is None else Source.read(source),
        )

    def with_owners(self, heads: Sequence[Head]) -> dict[DocumentId, DocumentAndOwner]:
        """Reads documents of any tenants with the rows that name them, in one consistent batch read."""
        keys = {head.document_id: (table.head(head.tenant, head.document_id), _held(head)) for head in heads}
        items = self._table.batch_get([key for pair in keys.values() for key in pair])
        rows = {}
        for head in heads:
            item, held = (items.get(key) for key in keys[head.document_id])
            rows[head.document_id] = DocumentAndOwner(
                head=None if item is None else Head.read(item),
                source=Source.read(held) if held and head.source_id is not None else None,
                holder=DocumentId(held["document_id"]) if held and head.source_id is None else None,
            )
        return rows

    def has_late_writer_mark(self, tenant: Tenant, document_id: DocumentId) -> bool:
        """Tells whether a late-writer mark of the document exists."""
        partition = table.head(tenant, document_id).pk
        return next(self._table.query(partition, prefix=table.LATE_WRITER_MARK_PREFIX, limit=1), None) is not None

    def update_info(self, tenant: Tenant, info: Info) -> None:
        """Writes title, source and metadata over a document's description.

        Raises:
            ConditionFailed: the document has no row any more.
        """
        self._table.write(
            Action(
                table.info(tenant, info.document_id),
                update="SET title = :title, #source = :source, metadata = :metadata",
                condition="attribute_exists(pk)",
                values={"title": info.title, "source": info.source, "metadata": info.metadata},
            )
        )
        self._table.write(
            Action(
                table.head(tenant, info.document_id),
                update="SET updated_at = :now",
                condition="attribute_exists(pk)",
                values={"now": rfc3339(self._table.clock.now())},
            )
        )

    # -- many documents ------------------------------------------------------------------------------

    def heads(self, tenant: Tenant, document_ids: Sequence[DocumentId]) -> dict[DocumentId, Head]:
        """Reads documents by their IDs. Documents without a row are left out."""
        items = self._table.batch_get([table.head(tenant, document_id) for document_id in document_ids])
        heads = (Head.read(item) for item in items.values())
        return {head.document_id: head for head in heads}

    def heads_at(self, keys: Sequence[table.Key]) -> dict[table.Key, Head]:
        """Reads documents of any tenants by their keys, for the sweep."""
        return {key: Head.read(item) for key, item in self._table.batch_get(keys).items()}

    def rows(self, tenant: Tenant, document_ids: Sequence[DocumentId]) -> list[tuple[Head, Info]]:
        """Reads documents with their descriptions, in the order of the IDs. Documents without rows are left out."""
        keys = [key(tenant, document_id) for document_id in document_ids for key in (table.head, table.info)]
        items = self._table.batch_get(keys)
        pairs = (
            (items.get(table.head(tenant, document_id)), items.get(table.info(tenant, document_id)))
            for document_id in document_ids
        )
        return [(Head.read(head), Info.read(info)) for head, info in pairs if head and info]

    def serving(
        self,
        tenant: Tenant,
        sources: Sequence[tuple[CollectionId, str]],
        documents: Sequence[DocumentId],
    ) -> tuple[dict[tuple[CollectionId, str], Source], dict[DocumentId, Head]]:
        """Reads sources and documents in one consistent batch read: each row is as it was at one moment."""
        source_keys = {table.source(tenant, *source): source for source in sources}
        head_keys = {table.head(tenant, document_id): document_id for document_id in documents}
        items = self._table.batch_get([*source_keys, *head_keys])
        return (
            {source: Source.read(items[key]) for key, source in source_keys.items() if key in items},
            {document_id: Head.read(items[key]) for key, document_id in head_keys.items() if key in items},
        )

    def versions(self, tenant: Tenant, collection_id: CollectionId, source_id: str) -> list[DocumentId]:
        """Lists every version of a source that has rows, oldest first. The read is strongly consistent."""
        partition = table.source(tenant, collection_id, source_id).pk
        rows = self._table.query(partition, prefix=table.VERSION_PREFIX)
        return [DocumentId(row["sk"].removeprefix(table.VERSION_PREFIX)) for row in rows]

    def listed(
        self,
        tenant: Tenant,
        collection_id: CollectionId | None,
        *,
        after: DocumentId | None = None,
        descending: bool = False,
        limit: int | None = None,
    ) -> Iterator[DocumentId]:
        """Lists the documents of a collection, or of the tenant, by time of creation. Eventually consistent."""
        if collection_id is None:
            partition, key = table.documents_of_tenant(tenant), table.info
        else:
            partition, key = table.documents_of_collection(tenant, collection_id), table.head
        start = None
        if after is not None:
            start = {**key(tenant, after)._asdict(), **table.listing(partition, after)}
        rows = self._table.query_index(table.LISTING, partition, after=start, descending=descending, limit=limit)
        return (DocumentId(row["listing_sk"]) for row in rows)

    # -- chunk rows ----------------------------------------------------------------------------------

    def write_chunks(
        self, tenant: Tenant, chunks: Sequence[Chunk], *, before: Callable[[], None] | None = None
    ) -> None:
        """Writes chunk rows, over rows that exist.

        Args:
            before: called before each request; what it raises ends the writing.
        """
        items = []
        for chunk in chunks:
            if chunk.id is None:
                raise ValueError("a chunk without an ID cannot be stored")
            items.append({**ChunkRow.of(chunk).item(), **table.chunk(tenant, chunk.id)._asdict()})
        self._table.batch_write(puts=items, before=before)

    def delete_chunks(self, tenant: Tenant, chunk_ids: Sequence[ChunkId]) -> None:
        """Deletes chunk rows, whether or not they exist."""
        self._table.batch_write(deletes=[table.chunk(tenant, chunk_id) for chunk_id in chunk_ids])

    def chunks(self, tenant: Tenant, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Chunk]:
        """Reads the chunks that have rows, as `chunks_and_infos` does."""
        return self.chunks_and_infos(tenant, chunk_ids)[0]

    def existing_chunks(self, tenant: Tenant, chunk_ids: Sequence[ChunkId]) -> set[ChunkId]:
        """Returns those of the chunks that have a row."""
        keys = {table.chunk(tenant, chunk_id): chunk_id for chunk_id in chunk_ids}
        return {keys[key] for key in self._table.batch_get(list(keys), attributes=("pk", "sk"))}

    def chunks_and_infos(
        self, tenant: Tenant, chunk_ids: Sequence[ChunkId]
    ) -> tuple[dict[ChunkId, Chunk], dict[DocumentId, Info]]:
        """Reads chunks and the descriptions of their documents. A chunk's origin is its document's source.

        The first batch read is eventually consistent, which costs half as much. Rows that it misses are read once more,
        consistently.
        """
        keys = {table.chunk(tenant, chunk_id): chunk_id for chunk_id in chunk_ids}
        infos = {table.info(tenant, chunk_id.document_id): chunk_id.document_id for chunk_id in chunk_ids}
        items = self._table.batch_get([*keys, *infos], consistent=False)
        missing = [key for key in (*keys, *infos) if key not in items]
        if missing:
            items |= self._table.batch_get(missing)
        info_rows = {document: Info.read(items[key]) for key, document in infos.items() if key in items}
        chunks = {}
        for key, chunk_id in keys.items():
            if key in items:
                info = info_rows.get(chunk_id.document_id)
                origin = (info.source or info.source_key) if info else None
                chunks[chunk_id] = ChunkRow.read(items[key]).chunk(origin)
        return chunks, info_rows

    # -- late-writer marks -------------------------------------------------------------------------

    def late_writer_mark(self, key: table.Key) -> LateWriterMark | None:
        """Reads a late-writer mark; None when it is gone."""
        item = self._table.get(key)
        return None if item is None else LateWriterMark.read(item)

    def remove_late_writer_mark(self, key: table.Key) -> None:
        """Deletes a late-writer mark."""
        self._table.batch_write(deletes=[key])


def _held(head: Head) -> table.Key:
    if head.source_id is None:
        return table.content(head.tenant, head.collection_id, head.fingerprint)
    return table.source(head.tenant, head.collection_id, head.source_id)

"""Rows of documents and sources, read; and their chunks, read, written and deleted."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from core.metadata import table
from core.metadata.dynamo import Action, Table
from core.metadata.rows import ChunkRow, Gone, Head, Info, Source
from core.model.base import rfc3339
from core.model.chunk import Chunk
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.tenant import Tenant


class Standing(NamedTuple):
    """A document and what it holds.

    Attributes:
        source: of a document with a key.
        holder: without a key: the document that holds its content.
    """

    head: Head | None
    source: Source | None
    holder: DocumentId | None


class Documents:
    """Documents, sources and chunks of the table, whatever their state: the caller looks at it."""

    def __init__(self, rows: Table) -> None:
        self._table = rows

    # -- one ---------------------------------------------------------------------------------------

    def head(self, tenant: Tenant, document_id: DocumentId) -> Head | None:
        item = self._table.get(table.head(tenant, document_id))
        return None if item is None else Head.read(item)

    def source(self, tenant: Tenant, collection_id: CollectionId, source_id: str) -> Source | None:
        item = self._table.get(table.source(tenant, collection_id, source_id))
        return None if item is None else Source.read(item)

    def content_holder(self, tenant: Tenant, collection_id: CollectionId, fingerprint: str) -> DocumentId | None:
        """The document that holds an unkeyed content."""
        item = self._table.get(table.content(tenant, collection_id, fingerprint))
        return None if item is None else DocumentId(item["document_id"])

    def content_holder_of(self, head: Head) -> DocumentId | None:
        """The document that holds an unkeyed document's content; None for a keyed one."""
        if head.source_id is not None:
            return None
        return self.content_holder(head.tenant, head.collection_id, head.fingerprint)

    def head_and_source(self, head: Head) -> tuple[Head | None, Source | None]:
        """A document and its source as they are now, in one read; no source for a document without key."""
        keys = [table.head(head.tenant, head.document_id)]
        if head.source_id is not None:
            keys.append(table.source(head.tenant, head.collection_id, head.source_id))
        found = self._table.batch_get(keys)
        source = found.get(keys[1]) if head.source_id is not None else None
        item = found.get(keys[0])
        return (
            None if item is None else Head.read(item),
            None if source is None else Source.read(source),
        )

    def standings(self, heads: Sequence[Head]) -> dict[DocumentId, Standing]:
        """Documents of any tenants and what they hold, as they are now, in one read."""
        keys = {head.document_id: (table.head(head.tenant, head.document_id), _held(head)) for head in heads}
        found = self._table.batch_get([key for pair in keys.values() for key in pair])
        standings = {}
        for head in heads:
            item, held = (found.get(key) for key in keys[head.document_id])
            standings[head.document_id] = Standing(
                head=None if item is None else Head.read(item),
                source=Source.read(held) if held and head.source_id is not None else None,
                holder=DocumentId(held["document_id"]) if held and head.source_id is None else None,
            )
        return standings

    def gone(self, tenant: Tenant, document_id: DocumentId) -> bool:
        """Whether a mark says that a writer of the document may still live."""
        partition = table.head(tenant, document_id).pk
        return next(self._table.query(partition, prefix=table.GONE_PREFIX, limit=1), None) is not None

    def update_info(self, tenant: Tenant, info: Info) -> None:
        """Writes title, source and metadata in place.

        Raises:
            ConditionFailed: the document is gone.
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

    # -- many --------------------------------------------------------------------------------------

    def heads(self, tenant: Tenant, document_ids: Sequence[DocumentId]) -> dict[DocumentId, Head]:
        found = self._table.batch_get([table.head(tenant, one) for one in document_ids])
        heads = (Head.read(item) for item in found.values())
        return {head.document_id: head for head in heads}

    def heads_at(self, keys: Sequence[table.Key]) -> dict[table.Key, Head]:
        """Documents of any tenants, for the sweep, which finds them by their keys."""
        return {key: Head.read(item) for key, item in self._table.batch_get(keys).items()}

    def rows(self, tenant: Tenant, document_ids: Sequence[DocumentId]) -> list[tuple[Head, Info]]:
        """Documents that are there, in the order asked for."""
        keys = [key(tenant, one) for one in document_ids for key in (table.head, table.info)]
        found = self._table.batch_get(keys)
        pairs = ((found.get(table.head(tenant, one)), found.get(table.info(tenant, one))) for one in document_ids)
        return [(Head.read(head), Info.read(info)) for head, info in pairs if head and info]

    def serving(
        self,
        tenant: Tenant,
        sources: Sequence[tuple[CollectionId, str]],
        documents: Sequence[DocumentId],
    ) -> tuple[dict[tuple[CollectionId, str], Source], dict[DocumentId, Head]]:
        """Sources and documents as they are at one moment each, in one consistent read."""
        source_keys = {table.source(tenant, *one): one for one in sources}
        head_keys = {table.head(tenant, one): one for one in documents}
        found = self._table.batch_get([*source_keys, *head_keys])
        return (
            {one: Source.read(found[key]) for key, one in source_keys.items() if key in found},
            {one: Head.read(found[key]) for key, one in head_keys.items() if key in found},
        )

    def versions(self, tenant: Tenant, collection_id: CollectionId, source_id: str) -> list[DocumentId]:
        """Every version of a source that has rows, oldest first. Strongly consistent."""
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
        """Documents of a collection, or of the tenant, by time of creation. Eventually consistent."""
        if collection_id is None:
            partition, key = table.documents_of_tenant(tenant), table.info
        else:
            partition, key = table.documents_of_collection(tenant, collection_id), table.head
        start = None
        if after is not None:
            start = {**key(tenant, after)._asdict(), **table.listing(partition, after)}
        rows = self._table.query_index(table.LISTING, partition, after=start, descending=descending, limit=limit)
        return (DocumentId(row["listing_sk"]) for row in rows)

    # -- chunks ------------------------------------------------------------------------------------

    def write_chunks(
        self, tenant: Tenant, chunks: Sequence[Chunk], *, before: Callable[[], None] | None = None
    ) -> None:
        """Writes chunk rows, over what is there.

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
        """Deletes chunk rows, whether they are there or not."""
        self._table.batch_write(deletes=[table.chunk(tenant, one) for one in chunk_ids])

    def chunks(self, tenant: Tenant, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Chunk]:
        """The chunks that are there, with their documents' sources as origin. See `chunks_and_infos`."""
        return self.chunks_and_infos(tenant, chunk_ids)[0]

    def chunks_there(self, tenant: Tenant, chunk_ids: Sequence[ChunkId]) -> set[ChunkId]:
        """Those of the chunks that have a row."""
        keys = {table.chunk(tenant, one): one for one in chunk_ids}
        return {keys[key] for key in self._table.batch_get(list(keys), attributes=("pk", "sk"))}

    def chunks_and_infos(
        self, tenant: Tenant, chunk_ids: Sequence[ChunkId]
    ) -> tuple[dict[ChunkId, Chunk], dict[DocumentId, Info]]:
        """Chunks and the descriptions of their documents. One batch read, eventually consistent; what it misses is
        read once more, consistently."""
        keys = {table.chunk(tenant, one): one for one in chunk_ids}
        infos = {table.info(tenant, one.document_id): one.document_id for one in chunk_ids}
        found = self._table.batch_get([*keys, *infos], consistent=False)
        missing = [key for key in (*keys, *infos) if key not in found]
        if missing:
            found |= self._table.batch_get(missing)
        info_rows = {document: Info.read(found[key]) for key, document in infos.items() if key in found}
        chunks = {}
        for key, one in keys.items():
            if key in found:
                info = info_rows.get(one.document_id)
                origin = (info.source or info.source_key) if info else None
                chunks[one] = ChunkRow.read(found[key]).chunk(origin)
        return chunks, info_rows

    # -- marks -------------------------------------------------------------------------------------

    def mark(self, key: table.Key) -> Gone | None:
        """What a mark of an abandoned attempt or a removed document says."""
        item = self._table.get(key)
        return None if item is None else Gone.read(item)

    def remove_mark(self, key: table.Key) -> None:
        self._table.batch_write(deletes=[key])


def _held(head: Head) -> table.Key:
    if head.source_id is None:
        return table.content(head.tenant, head.collection_id, head.fingerprint)
    return table.source(head.tenant, head.collection_id, head.source_id)

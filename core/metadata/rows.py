"""What the rows hold, as frozen models."""

import json
from typing import Any, Self

from pydantic import Field, field_serializer, field_validator

from core.metadata.dynamo import Item
from core.model.base import Model, Timestamp
from core.model.chunk import Attributes, Chunk
from core.model.collection import Collection, CollectionState, Metadata, VectorSpace
from core.model.document import Document, DocumentState, DocumentSummary, Failure, source_id
from core.model.ids import MAX_ATTEMPT, ChunkId, CollectionId, DocumentId
from core.model.query import Strategy
from core.model.tenant import Tenant

_KEYS = {
    "pk",
    "sk",
    "listing_pk",
    "listing_sk",
    "sweep_pk",
    "sweep_sk",
    "expires_at",
}


class Row(Model):
    """A row without its key."""

    @classmethod
    def read(cls, item: Item) -> Self:
        """The row of an item as the table has it."""
        return cls.model_validate({name: value for name, value in item.items() if name not in _KEYS})

    def item(self) -> Item:
        """The attributes of the row, without its key."""
        return self.model_dump(mode="json", exclude_none=True)


class CollectionRow(Row):
    """``T#tenant`` / ``COL#id``."""

    id: CollectionId
    tenant: Tenant
    name: str
    description: str
    embedding_model: str
    embedding_dims: int
    chunk_strategy: str
    chunk_size: int
    chunk_overlap: int
    retrieval_strategy: Strategy = Strategy.SIMILARITY
    metadata: Metadata
    state: CollectionState
    created_at: Timestamp
    updated_at: Timestamp

    @property
    def space(self) -> VectorSpace:
        return VectorSpace(model=self.embedding_model, dimensions=self.embedding_dims)

    def collection(self, document_count: int = 0, chunk_count: int = 0) -> Collection:
        """The collection as callers see it."""
        return Collection(**dict(self), document_count=document_count, chunk_count=chunk_count)


class Counts(Row):
    """What the gates of a collection count, summed.

    Attributes:
        documents: ready ones.
        chunks: chunks of ready documents.
        working: documents pending or processing.
        rows: all documents, whatever their state.
    """

    documents: int = 0
    chunks: int = 0
    working: int = 0
    rows: int = 0


class Head(Row):
    """``T#tenant#D#doc`` / ``HEAD``: what heartbeats and transactions touch; small.

    Attributes:
        attempt: the fencing token: the attempt that owns the document, 1 to 15.
        writer: a random name of the ingest that owns it, to know one's own writes by.
        reserved: by attempt, how many chunks it may have written.
        number: the version's place in its source's order; 0 without a source.
        heartbeat: the last sign of life.
        fingerprint: content and settings; what makes two ingests the same.
    """

    tenant: Tenant
    document_id: DocumentId
    collection_id: CollectionId
    state: DocumentState
    attempt: int = Field(ge=1, le=MAX_ATTEMPT)
    writer: str
    reserved: dict[str, int]
    number: int
    heartbeat: Timestamp
    fingerprint: str
    content_hash: str
    source_id: str | None = None
    embedding_model: str
    embedding_dims: int
    chunk_count: int = 0
    error: Failure | None = None
    created_at: Timestamp
    updated_at: Timestamp

    @property
    def space(self) -> VectorSpace:
        return VectorSpace(model=self.embedding_model, dimensions=self.embedding_dims)

    def served_chunk_ids(self) -> list[ChunkId]:
        """The chunks of a ready document, in order."""
        return [ChunkId.of(self.document_id, self.attempt, index) for index in range(self.chunk_count)]

    def chunk_ids(self) -> list[ChunkId]:
        """Every chunk that any attempt may have written."""
        return reserved_chunk_ids(self.document_id, self.reserved)


def reserved_chunk_ids(document_id: DocumentId, reserved: dict[str, int]) -> list[ChunkId]:
    """Identifiers 0 to reserved − 1 of every attempt."""
    return [
        ChunkId.of(document_id, int(number), index)
        for number, count in sorted(reserved.items(), key=lambda pair: int(pair[0]))
        for index in range(count)
    ]


class Info(Row):
    """``T#tenant#D#doc`` / ``INFO``: what describes a document and seldom changes."""

    document_id: DocumentId
    collection_id: CollectionId
    title: str
    source: str
    source_type: str
    source_key: str | None = None
    source_version: str | None = None
    metadata: Metadata
    attributes: Attributes

    @field_serializer("attributes")
    def _attributes_to_text(self, attributes: dict[str, Any]) -> str:
        # As text, since a number attribute may be a float and the table's own numbers are integers.
        return json.dumps(attributes, separators=(",", ":"), ensure_ascii=False)

    @field_validator("attributes", mode="before")
    @classmethod
    def _attributes_from_text(cls, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    def summary(self) -> DocumentSummary:
        """What a hit says of its document."""
        return DocumentSummary(
            id=self.document_id,
            title=self.title,
            source=self.source,
            source_key=self.source_key,
            source_type=self.source_type,
            metadata=self.metadata,
        )


def document(head: Head, info: Info) -> Document:
    """The document as callers see it."""
    return Document(
        id=head.document_id,
        tenant=head.tenant,
        collection_id=head.collection_id,
        title=info.title,
        source=info.source,
        source_type=info.source_type,
        source_key=info.source_key,
        source_id=head.source_id,
        source_version=info.source_version,
        content_hash=head.content_hash,
        state=head.state,
        error=head.error,
        metadata=info.metadata,
        attributes=info.attributes,
        chunk_count=head.chunk_count,
        created_at=head.created_at,
        updated_at=head.updated_at,
    )


class Gone(Row):
    """``T#tenant#D#doc`` / ``GONE#attempt`` or ``GONE#ALL``: where a writer could still be alive."""

    document_id: DocumentId
    reserved: dict[str, int]
    embedding_model: str
    embedding_dims: int
    due: Timestamp

    def chunk_ids(self) -> list[ChunkId]:
        """Every chunk that a writer may have written."""
        return reserved_chunk_ids(self.document_id, self.reserved)

    @property
    def space(self) -> VectorSpace:
        return VectorSpace(model=self.embedding_model, dimensions=self.embedding_dims)


class Current(Row):
    """The version that a source serves."""

    document_id: DocumentId
    attempt: int
    fingerprint: str
    content_hash: str
    chunk_count: int


class Seen(Row):
    """The highest ``source_version`` that a source has seen, and the number that version took.

    Attributes:
        sequence: versions of different sequences are not compared.
        content_hash: of what came with it; absent for a removal.
    """

    version: str
    sequence: str
    number: int
    content_hash: str | None = None


class Work(Row):
    """A version in progress."""

    document_id: DocumentId
    number: int


class Source(Row):
    """``T#tenant#C#col#S#sha256(key)`` / ``SOURCE``. Every write of it is conditional on ``revision`` as read.

    Attributes:
        revision: 0 while the row does not exist.
        next_number: what the next version or removal takes.
        current_number: of the current document, or of the removal that took it away.
        work: by fingerprint, at most 16.
    """

    key: str
    collection_id: CollectionId
    revision: int = 0
    next_number: int = 1
    current: Current | None = None
    current_number: int = 0
    seen: Seen | None = None
    work: dict[str, Work] = {}

    @property
    def source_id(self) -> str:
        return source_id(self.key)

    def without_work_up_to(self, number: int) -> dict[str, Work]:
        """The work that a swap or a removal of that number leaves standing."""
        return {key: work for key, work in self.work.items() if work.number > number}

    def without_document(self, document_id: DocumentId) -> dict[str, Work]:
        """The work of all other documents."""
        return {key: work for key, work in self.work.items() if work.document_id != document_id}


class ChunkRow(Row):
    """``T#tenant#D#doc#B#partition`` / ``CHUNK#attempt#index``."""

    body: str
    gap: str | None = None

    @classmethod
    def of(cls, chunk: Chunk) -> Self:
        # One text: read and written whole, never filtered by, and cheaper than twelve attributes.
        # Its origin follows from its document, where it can change.
        return cls(body=chunk.model_dump_json(exclude_none=True, exclude={"origin"}), gap=chunk.gap)

    def chunk(self, origin: str | None = None) -> Chunk:
        return Chunk.model_validate_json(self.body).model_copy(update={"origin": origin, "gap": self.gap})

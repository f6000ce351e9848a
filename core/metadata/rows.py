"""The rows of the table as frozen models. `core.metadata.table` says under which keys they lie."""

import json
from typing import Any, Self

from pydantic import Field, field_serializer, field_validator

from core.metadata.wire import Item
from core.model.base import Model, Timestamp
from core.model.chunk import Attributes, Chunk
from core.model.collection import Collection, CollectionState, Metadata
from core.model.document import Document, DocumentState, DocumentSummary, Failure, source_id
from core.model.ids import MAX_ATTEMPT, ChunkId, CollectionId, DocumentId
from core.model.query import Strategy
from core.model.tenant import Tenant
from core.model.vector import VectorSpace

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
    """A row of the table without its key."""

    @classmethod
    def read(cls, item: Item) -> Self:
        """Reads a row from an item of the table."""
        return cls.model_validate({name: value for name, value in item.items() if name not in _KEYS})

    def item(self) -> Item:
        """Returns the row's attributes as the table stores them, without the key."""
        return self.model_dump(mode="json", exclude_none=True)


class CollectionRow(Row):
    """The row ``T#tenant`` / ``COL#id``: a collection's settings and state."""

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
        """The vector space of the collection."""
        return VectorSpace(model=self.embedding_model, dimensions=self.embedding_dims)

    def collection(self, document_count: int = 0, chunk_count: int = 0) -> Collection:
        """Returns the collection as callers see it."""
        return Collection(**dict(self), document_count=document_count, chunk_count=chunk_count)


class Counts(Row):
    """The counts of one gate, or of all gates of a collection together.

    Attributes:
        documents: ready documents.
        chunks: chunks of ready documents.
        working: documents that are pending or processing.
        rows: documents in any state.
    """

    documents: int = 0
    chunks: int = 0
    working: int = 0
    rows: int = 0


class Head(Row):
    """The row ``T#tenant#D#doc`` / ``HEAD``: the part of a document that heartbeats and transactions write.

    The row is kept small, because each of those writes is paid for by the row's size.

    Attributes:
        attempt: the attempt that owns the document, 1 to 15. The attempt is the fencing token.
        writer: a random name of the ingest that owns the document, by which the ingest knows its own writes.
        reserved: by attempt, how many chunks the attempt may have written.
        number: the version's place in its source's order; 0 for a document without a source.
        heartbeat: when the attempt last said that it is alive.
        fingerprint: the hash of the content and of the settings that shape what is made of it.
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
        """The vector space of the document's vectors."""
        return VectorSpace(model=self.embedding_model, dimensions=self.embedding_dims)

    def served_chunk_ids(self) -> list[ChunkId]:
        """Lists the chunks of a ready document, in order."""
        return [ChunkId.of(self.document_id, self.attempt, index) for index in range(self.chunk_count)]

    def chunk_ids(self) -> list[ChunkId]:
        """Lists every chunk that any attempt may have written."""
        return reserved_chunk_ids(self.document_id, self.reserved)


def reserved_chunk_ids(document_id: DocumentId, reserved: dict[str, int]) -> list[ChunkId]:
    """Lists the IDs of the chunks 0 to reserved − 1 of every attempt."""
    return [
        ChunkId.of(document_id, int(number), index)
        for number, count in sorted(reserved.items(), key=lambda pair: int(pair[0]))
        for index in range(count)
    ]


class Info(Row):
    """The row ``T#tenant#D#doc`` / ``INFO``: a document's description, which seldom changes."""

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
        # Attributes are stored as JSON text: an attribute may be a float, and every number in the table is an integer.
        return json.dumps(attributes, separators=(",", ":"), ensure_ascii=False)

    @field_validator("attributes", mode="before")
    @classmethod
    def _attributes_from_text(cls, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    def summary(self) -> DocumentSummary:
        """Returns the part of the description that a hit carries."""
        return DocumentSummary(
            id=self.document_id,
            title=self.title,
            source=self.source,
            source_key=self.source_key,
            source_type=self.source_type,
            metadata=self.metadata,
        )


def document(head: Head, info: Info) -> Document:
    """Joins a document's two rows into the document as callers see it."""
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


class LateWriterMark(Row):
    """The row ``T#tenant#D#doc`` / ``GONE#attempt`` or ``GONE#ALL``: it says where a late writer could still write.

    Attributes:
        reserved: by attempt, how many chunks the attempt may have written.
        due: when every writer is dead, so that one more cleaning is final.
    """

    document_id: DocumentId
    reserved: dict[str, int]
    embedding_model: str
    embedding_dims: int
    due: Timestamp

    def chunk_ids(self) -> list[ChunkId]:
        """Lists every chunk that a writer may have written."""
        return reserved_chunk_ids(self.document_id, self.reserved)

    @property
    def space(self) -> VectorSpace:
        """The vector space of the vectors that may still be written."""
        return VectorSpace(model=self.embedding_model, dimensions=self.embedding_dims)


class CurrentVersion(Row):
    """The version that a source serves: a document, and the attempt that wrote it."""

    document_id: DocumentId
    attempt: int
    fingerprint: str
    content_hash: str
    chunk_count: int


class SeenVersion(Row):
    """The highest ``source_version`` that a source has seen, and the version number that it took.

    Attributes:
        sequence: versions of different sequences are not compared.
        content_hash: the hash of the content that came with the version; None for a removal.
    """

    version: str
    sequence: str
    number: int
    content_hash: str | None = None


class VersionInProgress(Row):
    """A version of a source that an ingest is working on."""

    document_id: DocumentId
    number: int


class Source(Row):
    """The row ``T#tenant#C#col#S#sha256(key)`` / ``SOURCE``. Every write of it is conditional on its revision.

    Attributes:
        revision: rises with every write; 0 while the row does not exist.
        next_number: the number that the next version or removal takes.
        current: the version that the source serves; None: the source serves nothing.
        current_number: the number of the current version, or of the removal that took the current version away.
        seen: what the source remembers of its callers' versions.
        in_progress: the versions in progress by their fingerprints, at most 16.
    """

    key: str
    collection_id: CollectionId
    revision: int = 0
    next_number: int = 1
    current: CurrentVersion | None = None
    current_number: int = 0
    seen: SeenVersion | None = None
    in_progress: dict[str, VersionInProgress] = {}

    @property
    def source_id(self) -> str:
        """The ID of the source: the SHA-256 of its source key."""
        return source_id(self.key)

    def in_progress_above(self, number: int) -> dict[str, VersionInProgress]:
        """Returns the versions in progress that a swap or a removal of this number does not end."""
        return {key: version for key, version in self.in_progress.items() if version.number > number}

    def in_progress_without(self, document_id: DocumentId) -> dict[str, VersionInProgress]:
        """Returns the versions in progress of all other documents."""
        return {key: version for key, version in self.in_progress.items() if version.document_id != document_id}


class ChunkRow(Row):
    """The row ``T#tenant#D#doc#B#partition`` / ``CHUNK#attempt#index``: a chunk.

    Attributes:
        body: the chunk as JSON, without its origin and its gap.
        gap: the text between this chunk and the chunk before.
    """

    body: str
    gap: str | None = None

    @classmethod
    def of(cls, chunk: Chunk) -> Self:
        # A chunk is stored as one JSON text, because chunks are read and written whole and never filtered by an
        # attribute, and one attribute costs less than twelve. The origin is left out: it follows from the document's
        # description, where it can change.
        """Makes the row of a chunk."""
        return cls(body=chunk.model_dump_json(exclude_none=True, exclude={"origin"}), gap=chunk.gap)

    def chunk(self, origin: str | None = None) -> Chunk:
        """Returns the chunk.

        Args:
            origin: the source of the chunk's document.
        """
        return Chunk.model_validate_json(self.body).model_copy(update={"origin": origin, "gap": self.gap})

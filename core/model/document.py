"""Documents: each is one version of one piece of content. Source keys, source versions and states of documents."""

import hashlib
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from core.model.base import EXAMPLE_TIME, Model, Timestamp, with_example
from core.model.chunk import Attributes
from core.model.collection import Metadata
from core.model.errors import InvalidArgument
from core.model.ids import (
    EXAMPLE_CHUNK_ID,
    EXAMPLE_COLLECTION_ID,
    EXAMPLE_DOCUMENT_ID,
    ChunkId,
    CollectionId,
    DocumentId,
)
from core.model.tenant import Tenant

MAX_SOURCE_KEY_BYTES = 1024
MAX_SOURCE_TYPE = 256
SOURCE_VERSION_DIGITS = 64


class DocumentState(StrEnum):
    """The state of a document: ``pending → processing → ready → superseded → (removed)``.

    A pending or processing document can turn ``failed`` instead. Only a ready document is served.
    """

    PENDING = "pending"
    PROCESSING = "processing"
    READY = "ready"
    SUPERSEDED = "superseded"
    FAILED = "failed"

    @property
    def in_progress(self) -> bool:
        """Whether an ingest still works on the document."""
        return self in (DocumentState.PENDING, DocumentState.PROCESSING)


def validate_source_key(key: str) -> str:
    """Returns a source key, the caller's stable name of a source, if it is 1 to 1,024 bytes of UTF-8 and not blank.

    Raises:
        InvalidArgument: the key is empty, blank, too long or no valid Unicode.
    """
    try:
        size = len(key.encode())
    except UnicodeEncodeError as error:
        raise InvalidArgument("A source key is valid UTF-8", field="source_key") from error
    if not key.strip() or size > MAX_SOURCE_KEY_BYTES:
        raise InvalidArgument(
            f"A source key is 1 to {MAX_SOURCE_KEY_BYTES} bytes of UTF-8 and not blank",
            field="source_key",
            limit=MAX_SOURCE_KEY_BYTES,
        )
    return key


def source_id(key: str) -> str:
    """Computes the SHA-256 of a source key, in hex.

    The ID is accepted wherever a source key is, since a long key may not fit into a URL.
    """
    return hashlib.sha256(key.encode()).hexdigest()


def normalize_source_version(version: str) -> str:
    """Writes a source version as 64 hex digits, so that comparing the strings compares the numbers."""
    return version.lower().rjust(SOURCE_VERSION_DIGITS, "0")


SourceKey = Annotated[str, AfterValidator(validate_source_key)]
SourceVersion = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{1,64}$")]
Title = Annotated[str, StringConstraints(max_length=1024)]
Source = Annotated[str, StringConstraints(max_length=2048)]
SourceType = Annotated[str, StringConstraints(max_length=MAX_SOURCE_TYPE)]


class Failure(Model):
    """The reason why a document failed.

    Attributes:
        stage: The stage of the ingest that failed, such as ``embed``.
        code: The code of the error.
        detail: The error in a sentence that holds nothing of the document's content.
    """

    stage: str
    code: str
    detail: str


class Document(Model):
    """A document as callers see it.

    Attributes:
        source: Where the content came from, for citations.
        source_type: The media type of the content.
        source_key: The caller's stable name of the source; null for a document without one.
        source_id: The SHA-256 of the source key in hex. It is accepted wherever a source key is.
        source_version: The version that the caller gave the content, in hex; null when it gave none.
        content_hash: The SHA-256 of the raw bytes in hex; empty when an upload was refused before it was read.
        error: Why the document failed; null for every other state.
        chunk_count: The number of chunks; 0 until the document is ready.
    """

    model_config = with_example(
        {
            "id": EXAMPLE_DOCUMENT_ID,
            "tenant": "acme",
            "collection_id": EXAMPLE_COLLECTION_ID,
            "title": "Looms",
            "source": "https://example.org/looms.md",
            "source_type": "text/markdown",
            "source_key": "looms.md",
            "source_id": "5c7d1f1c7a0f5fd9f4f6a5f0d7b6a1f8f1d1a9f7f5f9e1c8a0c1d2e3f4a5b6c7",
            "source_version": None,
            "content_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "state": "ready",
            "error": None,
            "metadata": {},
            "attributes": {"lang": "en", "year": 2024},
            "chunk_count": 12,
            "created_at": EXAMPLE_TIME,
            "updated_at": EXAMPLE_TIME,
        }
    )

    id: DocumentId
    tenant: Tenant
    collection_id: CollectionId
    title: Title
    source: Source
    source_type: SourceType
    source_key: str | None
    source_id: str | None
    source_version: str | None
    content_hash: str
    state: DocumentState
    error: Failure | None
    metadata: Metadata
    attributes: Attributes
    chunk_count: int = Field(ge=0)
    created_at: Timestamp
    updated_at: Timestamp


EXAMPLE_SUMMARY: dict[str, Any] = {
    "id": EXAMPLE_DOCUMENT_ID,
    "title": "Looms",
    "source": "https://example.org/looms.md",
    "source_key": "looms.md",
    "source_type": "text/markdown",
    "metadata": {},
}


class DocumentSummary(Model):
    """The fields of a document that come with each hit."""

    id: DocumentId
    title: Title
    source: Source
    source_key: str | None
    source_type: SourceType
    metadata: Metadata


class LineageChain(Model):
    """The chain from a chunk up to its document and the document's source.

    Attributes:
        chunks: The chunk, followed by the chunks that it was split from, nearest first.
        document: The document that the last of these chunks was split from.
    """

    model_config = with_example({"chunks": [EXAMPLE_CHUNK_ID], "document": EXAMPLE_SUMMARY})

    chunks: list[ChunkId]
    document: DocumentSummary

"""What goes into an ingest or a delete, and what comes out."""

from typing import Any

from pydantic import Field

from core.model.base import Model, with_example
from core.model.chunk import Attributes
from core.model.collection import Metadata
from core.model.document import (
    DocumentState,
    Source,
    SourceKey,
    SourceType,
    SourceVersion,
    Title,
)
from core.model.errors import WeftError
from core.model.ids import EXAMPLE_DOCUMENT_ID, CollectionId, DocumentId


class IngestInput(Model):
    """One document to ingest.

    Attributes:
        content: the raw bytes.
        source_type: the media type, with an optional ``charset``.
        source_key: makes the ingest an upsert of that source.
        source_version: 1 to 64 hex digits, compared as a number; needs a source key.
        version_sequence: which sequence the version belongs to (an S3 bucket's name); versions of two
            sequences are not compared.
    """

    collection_id: CollectionId
    content: bytes = Field(repr=False)
    title: Title = ""
    source: Source = ""
    source_type: SourceType = "text/plain"
    metadata: Metadata = {}
    attributes: Attributes = {}
    source_key: SourceKey | None = None
    source_version: SourceVersion | None = None
    version_sequence: str = ""


EXAMPLE_RESULT: dict[str, Any] = {
    "document_id": EXAMPLE_DOCUMENT_ID,
    "chunk_count": 12,
    "state": "ready",
    "unchanged": False,
    "replaced": [],
    "superseded_by": None,
}


class IngestResult(Model):
    """The outcome of an ingest.

    Attributes:
        document_id: absent when nothing was begun, because a newer version or a removal is there.
        unchanged: the same source with the same content and settings: nothing was embedded.
        replaced: the versions that this one superseded; gone, or about to be.
        superseded_by: the newer version that won, when this one did not come to serve;
            absent when what won is a removal.
    """

    model_config = with_example(EXAMPLE_RESULT)

    document_id: DocumentId | None
    chunk_count: int
    state: DocumentState
    unchanged: bool = False
    replaced: list[DocumentId] = []
    superseded_by: DocumentId | None = None


class Deletion(Model):
    """What was removed, counted as it was removed. ``complete`` is false when the rest is left to the sweep."""

    model_config = with_example({"documents": [EXAMPLE_DOCUMENT_ID], "chunks": 12, "vectors": 12, "complete": True})

    documents: list[DocumentId] = []
    chunks: int = 0
    vectors: int = 0
    complete: bool = True


BatchItem = IngestResult | WeftError

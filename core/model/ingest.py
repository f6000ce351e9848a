"""The input of an ingest, and the results of ingests and deletions."""

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
    """A document to ingest.

    Attributes:
        content: The raw bytes.
        source: Where the content came from, for citations.
        source_type: The media type, with an optional ``charset``.
        source_key: The caller's stable name of the source. With it the ingest is an upsert of that source.
        source_version: The version of the source, 1 to 64 hex digits, compared as a number. It needs a source key.
        version_sequence: The sequence that the version belongs to, such as the name of an S3 bucket. Versions of two
            different sequences are not compared.
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
        document_id: The document; null when the ingest did not begin, because the source has a newer version or a newer
            removal already.
        chunk_count: The number of the document's chunks; 0 until the document is ready.
        state: The document's state at the end of the call.
        unchanged: True when the source has the same content with the same settings already; nothing was embedded.
        replaced: The versions that this document superseded. Their data is removed, or is about to be.
        superseded_by: The newer version, when this document was superseded before it could be served; null when it was
            superseded by a removal.
    """

    model_config = with_example(EXAMPLE_RESULT)

    document_id: DocumentId | None
    chunk_count: int
    state: DocumentState
    unchanged: bool = False
    replaced: list[DocumentId] = []
    superseded_by: DocumentId | None = None


class Deletion(Model):
    """What a deletion removed.

    Attributes:
        documents: The IDs of the documents that were removed.
        chunks: How many chunks were removed.
        vectors: How many vectors were removed.
        complete: False when the call's time ran out; the sweep then removes the rest.
    """

    model_config = with_example({"documents": [EXAMPLE_DOCUMENT_ID], "chunks": 12, "vectors": 12, "complete": True})

    documents: list[DocumentId] = []
    chunks: int = 0
    vectors: int = 0
    complete: bool = True


BatchItem = IngestResult | WeftError

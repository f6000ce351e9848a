"""A collection: a named set of documents with one embedding model, one chunk strategy, size and overlap."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, StrictInt, StringConstraints

from core.model.base import EXAMPLE_TIME, Model, Timestamp, with_example
from core.model.ids import EXAMPLE_COLLECTION_ID, CollectionId
from core.model.query import Strategy
from core.model.tenant import Tenant
from core.model.vector import VectorSpace

# The longest whose UTF-8 is sure to fit into a table key.
CollectionName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=250)]
Description = Annotated[str, StringConstraints(max_length=4096)]
Metadata = Annotated[
    dict[
        Annotated[str, StringConstraints(min_length=1, max_length=128)],
        Annotated[str, StringConstraints(max_length=4096)],
    ],
    Field(max_length=64),
]
MAX_METADATA_BYTES = 64 * 1024


def _check_size(metadata: dict[str, str]) -> dict[str, str]:
    """A table's row has a limit, and every listing reads it."""
    if sum(len(name.encode()) + len(text.encode()) for name, text in metadata.items()) > MAX_METADATA_BYTES:
        raise ValueError(f"metadata is at most {MAX_METADATA_BYTES} bytes of UTF-8 altogether")
    return metadata


CollectionMetadata = Annotated[Metadata, AfterValidator(_check_size)]


class CollectionState(StrEnum):
    """``deleting``: closed to ingest and retrieve, and reads as not found. ``emptied``: all that was known is
    removed, and one more look, a writer's life later, is due."""

    ACTIVE = "active"
    DELETING = "deleting"
    EMPTIED = "emptied"


class NewCollection(Model):
    """What a caller says of a new collection. What is left out is the engine's default."""

    model_config = with_example(
        {
            "name": "handbook",
            "chunk_strategy": "markdown",
            "retrieval_strategy": "hybrid",
            "metadata": {"team": "looms"},
        }
    )

    name: CollectionName
    description: Description = ""
    embedding_model: str | None = None
    chunk_strategy: str = "recursive"
    chunk_size: StrictInt | None = Field(default=None, ge=1, description="Tokens")
    chunk_overlap: StrictInt | None = Field(default=None, ge=0, description="Tokens; 0 is a real value")
    retrieval_strategy: Strategy = Field(default=Strategy.SIMILARITY, description="Of questions that name none")
    metadata: CollectionMetadata = {}


class CollectionUpdate(Model):
    """What is safe to change after ingestion. A field not given is left alone; metadata is replaced whole."""

    model_config = with_example({"description": "What new weavers read"})

    name: CollectionName | None = None
    description: Description | None = None
    retrieval_strategy: Strategy | None = None
    metadata: CollectionMetadata | None = None


class Collection(Model):
    """A collection as it is recorded. ``embedding_model`` and ``chunk_strategy`` select the parts that work on it."""

    model_config = with_example(
        {
            "id": EXAMPLE_COLLECTION_ID,
            "tenant": "acme",
            "name": "handbook",
            "description": "What new weavers read",
            "embedding_model": "amazon.titan-embed-text-v2:0",
            "embedding_dims": 1024,
            "chunk_strategy": "markdown",
            "chunk_size": 512,
            "chunk_overlap": 50,
            "retrieval_strategy": "hybrid",
            "metadata": {"team": "looms"},
            "document_count": 1,
            "chunk_count": 12,
            "created_at": EXAMPLE_TIME,
            "updated_at": EXAMPLE_TIME,
        }
    )

    id: CollectionId
    tenant: Tenant
    name: CollectionName
    description: Description
    embedding_model: str
    embedding_dims: int
    chunk_strategy: str
    chunk_size: int
    chunk_overlap: int
    retrieval_strategy: Strategy
    metadata: Metadata
    document_count: int = Field(default=0, ge=0, description="Ready documents")
    chunk_count: int = Field(default=0, ge=0, description="Chunks of ready documents")
    state: CollectionState = Field(default=CollectionState.ACTIVE, exclude=True)
    created_at: Timestamp
    updated_at: Timestamp

    @property
    def space(self) -> VectorSpace:
        return VectorSpace(model=self.embedding_model, dimensions=self.embedding_dims)


class CollectionStats(Model):
    """Exact counts of what is served: ready documents and their chunks."""

    model_config = with_example(
        {
            "collection_id": EXAMPLE_COLLECTION_ID,
            "collection_name": "handbook",
            "document_count": 1,
            "chunk_count": 12,
            "embedding_model": "amazon.titan-embed-text-v2:0",
            "chunk_strategy": "markdown",
        }
    )

    collection_id: CollectionId
    collection_name: str
    document_count: int
    chunk_count: int
    embedding_model: str
    chunk_strategy: str

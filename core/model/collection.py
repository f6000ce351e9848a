"""Collections: named sets of documents with one embedding model, one chunk strategy, one chunk size and overlap."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, StrictInt, StringConstraints

from core.model.base import EXAMPLE_TIME, Model, Timestamp, with_example
from core.model.ids import EXAMPLE_COLLECTION_ID, CollectionId
from core.model.query import Strategy
from core.model.tenant import Tenant
from core.model.vector import VectorSpace

# 250 characters are at most 1,000 bytes of UTF-8, which fit into a key of the table.
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


def _validate_size(metadata: dict[str, str]) -> dict[str, str]:
    """Refuses metadata that is too large: a row of the table has a limit, and every listing reads whole rows."""
    if sum(len(name.encode()) + len(text.encode()) for name, text in metadata.items()) > MAX_METADATA_BYTES:
        raise ValueError(f"metadata is at most {MAX_METADATA_BYTES} bytes of UTF-8 altogether")
    return metadata


CollectionMetadata = Annotated[Metadata, AfterValidator(_validate_size)]


class CollectionState(StrEnum):
    """The state of a collection.

    ``active``: open to ingest and retrieve. ``deleting``: closed to both, and not found by callers. ``emptied``: all
    documents are removed; after the longest life of a writer the sweep looks once more for data of late writers.
    """

    ACTIVE = "active"
    DELETING = "deleting"
    EMPTIED = "emptied"


class NewCollection(Model):
    """The settings of a new collection. A field that is absent takes the engine's default.

    Attributes:
        name: The name, unique in the tenant. White space at its ends is removed.
        description: A text for people; the engine does not use it.
        embedding_model: The name of the embedding model; absent: the engine's first.
        chunk_strategy: The name of the splitter.
        metadata: Texts by name, at most 64 of them and 64 KiB altogether.
    """

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
    chunk_size: StrictInt | None = Field(default=None, ge=1, description="The longest chunk, in tokens")
    chunk_overlap: StrictInt | None = Field(
        default=None, ge=0, description="How many tokens two neighbouring chunks share; 0 means none"
    )
    retrieval_strategy: Strategy = Field(
        default=Strategy.SIMILARITY, description="The strategy of questions that name none"
    )
    metadata: CollectionMetadata = {}


class CollectionUpdate(Model):
    """The changes to a collection. A field that is absent stays as it is; metadata is replaced whole.

    The embedding model, the chunk strategy, size and overlap cannot change, because stored chunks were made with them.
    """

    model_config = with_example({"description": "What new weavers read"})

    name: CollectionName | None = None
    description: Description | None = None
    retrieval_strategy: Strategy | None = None
    metadata: CollectionMetadata | None = None


class Collection(Model):
    """A collection as it is stored.

    Attributes:
        embedding_model: The name of the embedding model of every document of the collection.
        embedding_dims: The number of dimensions of the model's vectors.
        chunk_strategy: The name of the splitter of every document of the collection.
        chunk_size: The longest chunk, in tokens.
        chunk_overlap: How many tokens two neighbouring chunks share.
        retrieval_strategy: The strategy of questions that name none.
    """

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
    document_count: int = Field(default=0, ge=0, description="The number of ready documents")
    chunk_count: int = Field(default=0, ge=0, description="The number of chunks of ready documents")
    state: CollectionState = Field(default=CollectionState.ACTIVE, exclude=True)
    created_at: Timestamp
    updated_at: Timestamp

    @property
    def space(self) -> VectorSpace:
        return VectorSpace(model=self.embedding_model, dimensions=self.embedding_dims)


class CollectionStats(Model):
    """Exact counts of a collection's ready documents and of their chunks."""

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

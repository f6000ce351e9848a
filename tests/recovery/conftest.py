"""An engine whose embedder lets something happen while it works."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from core.embedding.types import Embeddings
from core.model.collection import Collection
from core.model.ids import ChunkId, DocumentId
from tests.support.embedder import HashedEmbedder
from tests.support.engines import World
from tests.support.meddling import MeddlingVectors, Recorder
from tests.support.memory import memory_world


class BusyEmbedder(HashedEmbedder):
    """Attributes:
    during: what happens in every call, before it answers; not in the calls that this makes itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self.during: Callable[[], object] | None = None

    def embed(self, texts: Sequence[str]) -> Embeddings:
        during, self.during = self.during, None
        try:
            if during is not None:
                during()
        finally:
            self.during = during
        return super().embed(texts)


@pytest.fixture
def busy() -> BusyEmbedder:
    """The world's embedder."""
    return BusyEmbedder()


@pytest.fixture
def world(recorder: Recorder, vectors: MeddlingVectors, busy: BusyEmbedder) -> Iterator[World]:
    world = memory_world(recorder, vectors, embedder=busy)
    yield world
    world.close()


@pytest.fixture
def collection(world: World) -> Collection:
    """Of very small chunks."""
    return world.collection(chunk_size=3, chunk_overlap=0)


def words(tag: str, chunks: int) -> str:
    """A content of so many chunks."""
    return "\n\n".join(f"{tag} part{number} text" for number in range(chunks))


def ready(world: World, collection: Collection, tag: str, chunks: int = 2) -> DocumentId:
    """A document that is served, under a source key that is its content's tag."""
    document = world.ingest(collection, words(tag, chunks), source_key=tag).document_id
    assert document is not None
    world.clock.advance(1)
    return document


def chunks_of(document: DocumentId, count: int) -> list[ChunkId]:
    """The chunks of a document's first attempt."""
    return [ChunkId.of(document, 1, index) for index in range(count)]


def all_vectors(world: World, collection: Collection) -> list[ChunkId]:
    """Every vector of a collection."""
    return world.vectors.scan(collection.tenant, world.embedder.space, collection.id, None, 10_000)

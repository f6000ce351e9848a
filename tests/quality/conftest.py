"""What these tests share: each store, and the embedded model."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from core.embedding.models import find_embedding_model
from core.embedding.onnx import OnnxEmbedder
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.types import VectorStore
from tests.quality.kept import Kept, KeptEmbedder
from tests.support.opensearch import ON_OPENSEARCH, store_on


@pytest.fixture
def embedded() -> Iterator[VectorStore]:
    """The store in memory."""
    with closing(EmbeddedVectorStore(None)) as store:
        yield store


@pytest.fixture
def served(opensearch: str) -> Iterator[VectorStore]:
    """The store on a server."""
    with closing(store_on(opensearch, "quality")) as store:
        yield store


@pytest.fixture(params=["embedded", pytest.param("served", marks=ON_OPENSEARCH)])
def store(request: pytest.FixtureRequest) -> VectorStore:
    """Each of them."""
    store: VectorStore = request.getfixturevalue(request.param)
    return store


@pytest.fixture(scope="session")
def embedder() -> Iterator[KeptEmbedder]:
    """The packaged model; a text is embedded once."""
    with closing(Kept(None)) as kept:
        yield KeptEmbedder(OnnxEmbedder(find_embedding_model(None)), kept)

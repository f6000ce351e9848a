"""What these tests share: each store, the embedded model, and where public collections are."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from core.embedding.models import find_model
from core.embedding.onnx import OnnxEmbedder
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.types import VectorStore
from tests.quality import corpora
from tests.quality.corpora import Corpus
from tests.quality.kept import Kept, KeptEmbedder
from tests.support.opensearch import ON_OPENSEARCH, store_on

ABSENT = (
    "Public test collections are measured where they are found: in the folder shared/data beside the project, or in "
    f"the one that {corpora.VARIABLE} names"
)


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
        yield KeptEmbedder(OnnxEmbedder(find_model(None)), kept)


def public(name: str) -> Corpus:
    """A public collection. Leaves a test out where it is not found."""
    if name not in corpora.found(corpora.folder()):
        pytest.skip(ABSENT)
    return corpora.read(corpora.folder() / name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says in plain words what was left out, and what was not."""
    skipped = terminalreporter.stats.get("skipped", [])
    if count := sum(ABSENT in str(report.longrepr) for report in skipped):
        own = "The project's own were measured"
        terminalreporter.write_line(f"{count} tests of ranking were left out. {ABSENT}. {own}.", yellow=True)

"""One real OpenSearch for all tests of a process, and stores on it."""

import os
from collections.abc import Iterator

import pytest

from core.clock import Clock, SystemClock
from core.vectors.opensearch.client import Client, connect
from core.vectors.opensearch.index import Dialect, IndexOptions, KnnEngine
from core.vectors.opensearch.store import OpenSearchVectorStore
from infra.opensearch.server import HELP, available, running_server
from tests.support.serverless import NextGen, nextgen

REFRESH_MS = 10
"""Short, since every write waits for it."""

# A server that lives for minutes starts in half the time when little of it is optimised.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

# One server is enough: pytest-xdist gives all these tests to one worker.
ON_OPENSEARCH = pytest.mark.xdist_group("opensearch")


@pytest.fixture(scope="session")
def can_run_opensearch() -> None:
    """Leaves a test out where no server can be run."""
    if not available():
        # A build without OpenSearch would say nothing of the store that is deployed.
        if os.environ.get("CI") == "true":
            pytest.fail(HELP)
        pytest.skip(HELP)


@pytest.fixture(scope="session")
def opensearch(can_run_opensearch: None) -> Iterator[str]:
    """The URL of a server that all tests share: each takes tenants, or indexes, of its own."""
    with running_server() as server:
        yield server.url


@pytest.fixture(scope="session")
def collection_of_nextgen(opensearch: str) -> Iterator[NextGen]:
    """The same server behind what makes it like a NextGen collection of OpenSearch Serverless."""
    with nextgen(opensearch) as proxy:
        yield proxy


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says in plain words when a whole store was left out."""
    skipped = terminalreporter.stats.get("skipped", [])
    if count := sum(HELP in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(f"{count} tests of the OpenSearch store were left out. {HELP}.", yellow=True)


def store_on(
    url: str,
    prefix: str = "test",
    *,
    engine: KnnEngine = KnnEngine.FAISS,
    dialect: Dialect = Dialect.DOMAIN,
    clock: Clock | None = None,
) -> OpenSearchVectorStore:
    """A store whose writes are searchable soon."""
    clock = clock or SystemClock()
    options = IndexOptions(prefix=prefix, dialect=dialect, engine=engine, refresh_ms=REFRESH_MS)
    return OpenSearchVectorStore(Client(connect(url, "none"), clock), options, clock)

"""A whole ingest on a real server that is killed, is full, or shows its writes late: ready or failed, nothing lost."""

import http.client
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import urllib3
from moto import mock_aws

from core.ingest.finish import FinishMessage
from core.model.collection import Collection
from core.model.document import DocumentState
from core.model.errors import Unavailable
from core.model.ids import DocumentId
from core.model.page import PageRequest
from core.model.tenant import Tenant
from core.vectors.opensearch.client import BACKOFF
from core.vectors.opensearch.index import Dialect
from core.vectors.types import VectorQuery
from infra.opensearch import java
from infra.opensearch.server import running_server
from tests.support.books import check_books
from tests.support.clock import ManualClock
from tests.support.engines import ACME, World, make_world
from tests.support.loopback import Answer, Request, serving
from tests.support.opensearch import ON_OPENSEARCH, store_on
from tests.support.serverless import NextGen, nextgen
from tests.vectors.opensearch.conftest import Ask

pytestmark = ON_OPENSEARCH

LONG = " ".join(f"Thread {number} crosses the warp." for number in range(300))


class Node:
    """A server of one test, which can be killed and started again on what it held."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._running = ExitStack()
        self.url = ""
        self._pid = 0

    def start(self) -> None:
        before = children()
        self.url = self._running.enter_context(running_server(self._data)).url
        [self._pid] = children() - before

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        self.url = ""
        self._running.close()


def children() -> set[int]:
    """The processes that this one has started and that run."""
    listed = Path("/proc/self/task").glob("*/children")
    return {int(child) for path in listed for child in path.read_text().split()}


def busy(_: Request) -> Answer:
    """A server whose queue is full."""
    return Answer(429, json.dumps({"error": {"type": "rejected_execution_exception"}, "status": 429}).encode())


class Proxy:
    """What stands before a server, and what happens to its bulk requests.

    Attributes:
        on_bulk: what to do with the next of them, one after the other; None: nothing.
        otherwise: what to do when the server does not run.
    """

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        self._http = urllib3.PoolManager(retries=False, timeout=30.0)
        self.on_bulk: list[Callable[[Request], Answer] | None] = []
        self.otherwise: Callable[[], None] = lambda: None

    def answer(self, request: Request) -> Answer:
        if request.target.split("?")[0].endswith("_bulk") and self.on_bulk:
            step = self.on_bulk.pop(0)
            if step is not None:
                return step(request)
        if not self._url():
            self.otherwise()
        return self.forward(request)

    def forward(self, request: Request) -> Answer:
        """The server's own answer. Without one the client is hung up on."""
        url = self._url()
        if not url:
            raise ConnectionAbortedError
        headers = {"content-type": "application/json"}
        found = self._http.request(request.method, url + request.target, body=request.body or None, headers=headers)
        return Answer(found.status, found.data, found.headers["content-type"])

    def half(self, request: Request) -> Answer:
        """A queue that has room for every second operation."""
        lines = request.body.splitlines(keepends=True)
        pairs = [b"".join(lines[start : start + 2]) for start in range(0, len(lines), 2)]
        taken = json.loads(self.forward(request._replace(body=b"".join(pairs[::2]))).body)
        refused = {"index": {"status": 429, "error": {"type": "rejected_execution_exception"}}}
        items = [item for one in taken["items"] for item in (one, refused)][: len(pairs)]
        return Answer(200, json.dumps({"errors": True, "items": items}).encode())

    def close(self) -> None:
        self._http.clear()


@contextmanager
def a_world(proxy: Proxy, prefix: str) -> Iterator[World]:
    clock = ManualClock()
    with (
        mock_aws(),
        closing(proxy),
        serving(proxy.answer) as url,
        closing(make_world(vectors=store_on(url, prefix, clock=clock), clock=clock)) as world,
    ):
        yield world


@pytest.fixture(autouse=True)
def parts_of_two_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every two chunks are a bulk request."""
    monkeypatch.setattr("core.ingest.stages.WRITE_AT_ONCE", 2)


def found(world: World, collection: Collection, text: str) -> list[str]:
    """What searches for a text find."""
    [vector] = world.embedder.embed([text]).vectors
    matches = world.vectors.search(ACME, world.embedder.space, VectorQuery(vector, [collection.id], 100))
    return [match.text for match in matches]


def texts(world: World, collection: Collection) -> list[str]:
    """The chunks of ready documents."""
    chunks = world.engine.chunks.list(ACME, PageRequest(limit=100), collection_id=collection.id)
    return sorted(chunk.text for chunk in chunks.items)


def check_failed(world: World, error: Unavailable) -> None:
    """It failed for good, and when no writer of it can live any longer nothing of it is left."""
    failed = world.engine.documents.get(ACME, error.extras["document_id"])
    assert failed.state == DocumentState.FAILED
    world.clock.advance(world.engine.settings.writer_life_s)
    world.engine.recovery.sweep()
    check_books(world)


@pytest.mark.skipif(not java.available(), reason="kills the process of a Java on this machine")
@pytest.mark.usefixtures("can_run_opensearch")
@pytest.mark.parametrize("comes_back", [True, False], ids=["comes back meanwhile", "stays away"])
def test_a_node_that_is_killed_in_the_middle_of_a_bulk_loses_nothing_and_the_ingest_ends_ready_or_failed(
    tmp_path: Path, prefix: str, *, comes_back: bool
) -> None:
    node = Node(tmp_path)
    proxy = Proxy(lambda: node.url)

    def die(request: Request) -> Answer:
        connection = http.client.HTTPConnection(urlsplit(node.url).netloc)
        connection.request("POST", request.target, request.body, {"content-type": "application/json"})
        node.kill()
        connection.close()
        raise ConnectionAbortedError

    with ExitStack() as ends, a_world(proxy, prefix) as world:
        ends.callback(node.stop)
        node.start()
        notes = world.collection()
        world.ingest(notes, "A loom holds the warp.", source_key="before")
        proxy.on_bulk = [None, die]
        if comes_back:
            proxy.otherwise = node.start
            assert world.ingest(notes, LONG, source_key="meanwhile").state == DocumentState.READY
        else:
            with pytest.raises(Unavailable) as raised:
                world.ingest(notes, LONG, source_key="meanwhile")
            node.start()
            check_failed(world, raised.value)
        assert proxy.on_bulk == []
        assert "A loom holds the warp." in texts(world, notes)
        assert sorted(found(world, notes, "loom")) == texts(world, notes)
        check_books(world)


@pytest.mark.parametrize(
    "steps",
    [
        lambda proxy: [busy, proxy.half, None],
        lambda proxy: [None, busy, busy, proxy.half],
    ],
    ids=["at first", "in the middle"],
)
def test_a_queue_that_is_full_for_a_while_only_delays(
    steps: Callable[[Proxy], list[Callable[[Request], Answer] | None]], opensearch: str, prefix: str
) -> None:
    proxy = Proxy(lambda: opensearch)
    with a_world(proxy, prefix) as world:
        notes = world.collection()
        proxy.on_bulk = steps(proxy)
        assert world.ingest(notes, LONG).state == DocumentState.READY
        assert proxy.on_bulk == []
        assert sorted(found(world, notes, "thread")) == texts(world, notes)
        check_books(world)


@pytest.mark.parametrize("first", ["whole", "half"])
def test_a_queue_that_stays_full_fails_the_document_and_leaves_nothing(
    first: str, opensearch: str, prefix: str
) -> None:
    proxy = Proxy(lambda: opensearch)
    with a_world(proxy, prefix) as world:
        notes = world.collection()
        world.ingest(notes, "A loom holds the warp.", source_key="before")
        proxy.on_bulk = [None, proxy.half if first == "half" else busy, *[busy] * (BACKOFF.tries - 1)]
        with pytest.raises(Unavailable) as raised:
            world.ingest(notes, LONG, source_key="meanwhile")
        assert proxy.on_bulk == []
        check_failed(world, raised.value)
        assert found(world, notes, "loom") == texts(world, notes) == ["A loom holds the warp."]


class Queue:
    """What was sent."""

    def __init__(self) -> None:
        self.sent: list[FinishMessage] = []

    def send(self, tenant: Tenant, document_id: DocumentId, attempt: int) -> None:
        self.sent.append(FinishMessage(tenant, document_id, attempt))


@pytest.fixture
def collection_of_its_own(opensearch: str) -> Iterator[NextGen]:
    with nextgen(opensearch) as proxy:
        yield proxy


def test_what_serverless_does_not_show_in_time_is_finished_when_searches_see_it(
    collection_of_its_own: NextGen, prefix: str, ask: Ask
) -> None:
    clock, queue = ManualClock(), Queue()
    store = store_on(collection_of_its_own.url, prefix, dialect=Dialect.SERVERLESS, clock=clock)
    with mock_aws(), closing(make_world(vectors=store, clock=clock)) as world:
        world.rebuild(finish_queue=queue)
        notes = world.collection()
        collection_of_its_own.refreshes = False
        result = world.ingest(notes, LONG)
        assert result.state == DocumentState.PROCESSING
        [message] = queue.sent
        assert not world.engine.ingest.finish(*message, world.deadline())
        assert found(world, notes, "thread") == texts(world, notes) == []
        ask("POST", f"/{prefix}-*/_refresh")
        assert world.engine.ingest.finish(*message, world.deadline())
        served = texts(world, notes)
        assert len(served) > 1
        assert sorted(found(world, notes, "thread")) == served

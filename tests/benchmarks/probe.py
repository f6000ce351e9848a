"""What an engine asks of its stores and its embedder, counted and timed."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from opensearchpy import Transport

from core.embedding.types import Embedder, Embeddings
from core.metadata import dynamo
from core.model.component import Component
from core.model.vector import Vector
from core.vectors.types import VectorStore
from tests.support.engines import REGION

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")


_COUNTS: ContextVar[bool] = ContextVar("counts", default=True)
_MINE: ContextVar[dict[str, float] | None] = ContextVar("mine", default=None)


class Probe:
    """Requests by service and operation, and seconds by service."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        self.seconds: dict[str, float] = defaultdict(float)
        self._lock = threading.Lock()

    def count(self, service: str, operation: str) -> None:
        with self._lock:
            self.requests[service, operation] += _COUNTS.get()

    def spend(self, service: str, seconds: float) -> None:
        mine = _MINE.get()
        with self._lock:
            self.seconds[service] += seconds
            if mine is not None:
                mine[service] += seconds

    @contextmanager
    def timed(self, service: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.spend(service, time.perf_counter() - start)

    @contextmanager
    def one_call(self) -> Iterator[dict[str, float]]:
        """Seconds by service of what is done inside, in whichever threads that inherit the context."""
        mine: dict[str, float] = defaultdict(float)
        token = _MINE.set(mine)
        try:
            yield mine
        finally:
            _MINE.reset(token)

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """What is done inside, in this thread, is not counted."""
        token = _COUNTS.set(False)
        try:
            yield
        finally:
            _COUNTS.reset(token)

    def by_service(self, shares: int = 1) -> dict[str, dict[str, float]]:
        """Requests by service and operation, divided by ``shares``."""
        answer: dict[str, dict[str, float]] = {}
        for (service, operation), count in sorted(self.requests.items()):
            answer.setdefault(service, {})[operation] = count if shares == 1 else round(count / shares, 3)
        return answer

    def reset(self) -> None:
        with self._lock:
            self.requests.clear()
            self.seconds.clear()


def dynamodb_client(url: str, probe: Probe | None = None) -> "DynamoDBClient":
    """A client of a local server. With a probe it counts each request and times it from leaving to its answer."""
    client = dynamo.dynamodb_client(region=REGION, url=url)
    if probe is not None:

        def before_send(request: Any, operation_name: str = "", **_: Any) -> None:
            probe.count("dynamodb", request.headers["X-Amz-Target"].decode().rpartition(".")[2])

        client.meta.events.register("before-send.dynamodb", before_send)
        # botocore has no event between an answer's arrival and its parsing; the parsing is the engine's own time.
        session: Any = client._endpoint.http_session  # type: ignore[attr-defined]
        session.send = _timed(session.send, probe)
    return client


def _timed(send: Callable[..., T], probe: Probe) -> Callable[..., T]:
    def timed_send(request: Any) -> T:
        with probe.timed("dynamodb"):
            return send(request)

    return timed_send


class ProbedVectors:
    """A vector store, counted and timed. It is one to all who call it.

    Attributes:
        bare: the store itself.
        written: every vector that was written, for a bare product of them.
    """

    def __init__(self, store: VectorStore, probe: Probe) -> None:
        self.bare = store
        self.written: list[Vector] = []
        self._probe = probe

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self.bare, name)

        def counted(*arguments: Any) -> Any:
            self._probe.count("vectors", name)
            if name == "write":
                self.written += [record.vector for record in arguments[2]]
            with self._probe.timed("vectors"):
                return function(*arguments)

        return counted


class ProbedTransport:
    """A connection to OpenSearch, counted.

    Attributes:
        search: the address and the body of the last search.
    """

    def __init__(self, transport: Transport, probe: Probe) -> None:
        self._transport = transport
        self._probe = probe
        self.search: tuple[str, dict[str, Any]] = ("", {})

    def perform_request(self, method: str, path: str, **options: Any) -> Any:
        operation = path.rpartition("/")[2]
        self._probe.count("opensearch", operation)
        if operation == "_search":
            self.search = path, options["body"]
        return self._transport.perform_request(method, path, **options)

    def close(self) -> None:
        self._transport.close()


class ProbedEmbedder:
    """An embedder, counted and timed."""

    def __init__(self, embedder: Embedder, probe: Probe) -> None:
        self._embedder = embedder
        self._probe = probe
        self.space = embedder.space
        self.max_tokens = embedder.max_tokens
        self.counter = embedder.counter

    def embed(self, texts: Sequence[str]) -> Embeddings:
        self._probe.count("embedder", "embed")
        with self._probe.timed("embedder"):
            return self._embedder.embed(texts)

    def describe(self) -> Component:
        return self._embedder.describe()

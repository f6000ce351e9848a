"""Extensions, vector stores and metrics with which a test watches the engine and interferes with its work."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from core.model.collection import Collection
from core.model.errors import Unavailable
from core.model.ids import ChunkId, DocumentId
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.observe import HOOKS
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.types import VectorMatch, VectorQuery, VectorRecord
from tests.support.engines import World

Step = Callable[[], object]


class CrashError(BaseException):
    """The death of the process. Nothing in the engine catches this exception."""


def crash() -> None:
    """Ends the process at the place of the call."""
    raise CrashError


def at_next_request(
    world: World, operation: str, *, before: Step | None = None, after: Step | None = None, naming: str = ""
) -> None:
    """Takes a step once, before or after the next request of an operation of DynamoDB.

    Args:
        operation: the name of the client's method.
        naming: only a request whose arguments contain this text counts.
    """
    send = getattr(world.dynamodb, operation)

    def request(**arguments: Any) -> Any:
        if naming not in str(arguments):
            return send(**arguments)
        setattr(world.dynamodb, operation, send)
        if before is not None:
            before()
        answer = send(**arguments)
        if after is not None:
            after()
        return answer

    setattr(world.dynamodb, operation, request)


class Recorder:
    """An extension with every hook.

    Attributes:
        fired: each hook's name and details, in order.
        on: by hook, a step that runs once, the next time that the hook is fired.
    """

    name = "recorder"

    def __init__(self) -> None:
        self.fired: list[tuple[str, dict[str, Any]]] = []
        self.on: dict[str, Step] = {}

    def __getattr__(self, hook: str) -> Callable[..., None]:
        if hook not in HOOKS:
            raise AttributeError(hook)
        return partial(self._record, hook)

    def _record(self, hook: str, **details: Any) -> None:
        self.fired.append((hook, details))
        step = self.on.pop(hook, None)
        if step is not None:
            step()

    @property
    def hooks(self) -> list[str]:
        """The names of the hooks that were fired, in order."""
        return [hook for hook, _ in self.fired]

    def of(self, hook: str) -> list[dict[str, Any]]:
        """The details with which one hook was fired, in order."""
        return [details for name, details in self.fired if name == hook]


class MeddlingVectors(EmbeddedVectorStore):
    """The embedded store in memory, which a test can interrupt and make fail.

    Attributes:
        before_write, after_write, before_delete, after_search: steps that run once, at the next call.
        failing: the names of functions that fail as if the store did not answer.
        refuses: documents whose chunks cannot be deleted.
        searches: the queries of all searches so far.
    """

    def __init__(self) -> None:
        super().__init__(None)
        self.before_write: Step | None = None
        self.after_write: Step | None = None
        self.before_delete: Step | None = None
        self.after_search: list[Step] = []
        self.failing: set[str] = set()
        self.refuses: set[str] = set()
        self.searches: list[VectorQuery] = []

    def write(self, tenant: Tenant, space: VectorSpace, records: Sequence[VectorRecord]) -> None:
        step, self.before_write = self.before_write, None
        if step is not None:
            step()
        self._answer("write")
        super().write(tenant, space, records)
        step, self.after_write = self.after_write, None
        if step is not None:
            step()

    def delete(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> int:
        step, self.before_delete = self.before_delete, None
        if step is not None:
            step()
        self._answer("delete")
        if self.refuses & {chunk_id.document_id for chunk_id in chunk_ids}:
            raise Unavailable("The vector store does not answer")
        return super().delete(tenant, space, chunk_ids)

    def search(self, tenant: Tenant, space: VectorSpace, query: VectorQuery) -> list[VectorMatch]:
        self._answer("search")
        self.searches.append(query)
        matches = super().search(tenant, space, query)
        if self.after_search:
            self.after_search.pop(0)()
        return matches

    def ping(self) -> None:
        self._answer("ping")
        super().ping()

    def _answer(self, function: str) -> None:
        if function in self.failing:
            raise Unavailable("The vector store does not answer")


class RecordedMetrics:
    """Metrics that keep each record: name, value, unit and dimensions."""

    def __init__(self) -> None:
        self.records: list[tuple[str, float, str, dict[str, str]]] = []

    def record(self, name: str, value: float, unit: str, **dimensions: str) -> None:
        self.records.append((name, value, unit, dimensions))

    def of(self, name: str) -> list[float]:
        """Returns the recorded values of a metric."""
        return [value for recorded, value, _, _ in self.records if recorded == name]


def die(world: World, recorder: Recorder, collection: Collection, content: str, **fields: Any) -> DocumentId:
    """Runs an ingest whose process dies after it wrote all data, before its swap; answers the document in progress."""
    assert isinstance(world.vectors, MeddlingVectors)
    world.vectors.after_write = crash
    try:
        world.ingest(collection, content, **fields)
    except CrashError:
        started: DocumentId = recorder.of("ingest_started")[-1]["document_id"]
        return started
    raise AssertionError("the ingest ended before it wrote a vector")

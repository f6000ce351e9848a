"""Calls to the stores: every call of a process passes a plan, which makes, cuts, delays or watches the call.

The calls of botocore's client are cut, above its own retries: a proof tries what the engine does about an answer.
That leaves out the requests that botocore sends again by itself. A second request after a first that was carried out
is its own kind of cut (`tests.proofs.cuts.Kind.TWICE`); the killed processes of `tests.proofs.crash` have botocore's
retries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ReadTimeoutError

from core.model.errors import Unavailable
from core.model.ids import ChunkId
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.vectors.types import VectorRecord, VectorStore
from tests.support.dynamodb import cancelled, error

if TYPE_CHECKING:
    from tests.proofs.harness import Actor

READS = ("get_item", "batch_get_item", "query")
CONDITIONAL = ("put_item", "update_item", "delete_item", "transact_write_items")


class Death(BaseException):
    """The process ends at this call. Nothing in the engine catches this exception."""


@dataclass(frozen=True)
class Call:
    """A call to a store that is about to be made.

    Attributes:
        number: of a write, its place among the actor's writes, from 1; of a read, the number of writes before it.
        store: ``dynamodb`` or ``vectors``.
        perform: makes the call.
        pieces: the same call as several smaller calls, where a store may carry out a part of it.
    """

    actor: "Actor"
    number: int
    store: str
    name: str
    write: bool
    arguments: Mapping[str, Any]
    perform: Callable[[], Any]
    pieces: Sequence[Callable[[], Any]] = ()

    @property
    def label(self) -> str:
        return f"{self.store}.{self.name}"

    def throttle(self) -> Exception:
        """The answer of a service that is too busy and has written nothing."""
        if self.store == "vectors":
            return Unavailable("The vector store is busy")
        if self.name == "transact_write_items":
            return self._cancelled("ThrottlingError")
        return error("ProvisionedThroughputExceededException", "too fast")

    def conflict(self) -> Exception:
        """The answer of DynamoDB when another transaction works on the row; nothing was written."""
        if self.name == "transact_write_items":
            return self._cancelled("TransactionConflict")
        return error("TransactionConflictException", "another transaction is at the row")

    def _cancelled(self, code: str) -> Exception:
        return cancelled([code, *["None"] * (len(self.arguments["TransactItems"]) - 1)])

    def no_answer(self) -> Exception:
        """What the caller sees when no answer comes."""
        if self.store == "vectors":
            return Unavailable("The vector store does not answer")
        return ReadTimeoutError(endpoint_url="loopback")


Plan = Callable[[Call], Any]
"""Makes a call or does not make it, and answers or raises as the store would."""


def let_pass(call: Call) -> Any:
    """Makes every call."""
    return call.perform()


class Client:
    """The client of DynamoDB of one actor."""

    def __init__(self, actor: "Actor", client: Any) -> None:
        self._actor = actor
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        write = name not in READS
        if write and name not in (*CONDITIONAL, "batch_write_item"):
            raise AttributeError(name)

        def method(**arguments: Any) -> Any:
            operation = getattr(self._client, name)
            call = Call(
                actor=self._actor,
                number=len(self._actor.writes) + int(write),
                store="dynamodb",
                name=name,
                write=write,
                arguments=arguments,
                perform=lambda: operation(**arguments),
                pieces=_pieces(operation, arguments) if name == "batch_write_item" else (),
            )
            return self._actor.call(call)

        return method


def _pieces(operation: Callable[..., Any], arguments: Mapping[str, Any]) -> list[Callable[[], Any]]:
    """A batch as one request for each item."""
    ((table, requests),) = arguments["RequestItems"].items()
    return [partial(operation, RequestItems={table: [request]}) for request in requests]


class Vectors:
    """The vector store of one actor."""

    def __init__(self, actor: "Actor", store: VectorStore) -> None:
        self._actor = actor
        self._store = store

    def _call(self, name: str, *arguments: Any, write: bool = False, pieces: Sequence[Callable[[], Any]] = ()) -> Any:
        operation = getattr(self._store, name)
        call = Call(
            actor=self._actor,
            number=len(self._actor.writes) + int(write),
            store="vectors",
            name=name,
            write=write,
            arguments={},
            perform=lambda: operation(*arguments),
            pieces=pieces,
        )
        return self._actor.call(call)

    def write(self, tenant: Tenant, space: VectorSpace, records: Sequence[VectorRecord]) -> None:
        pieces = [partial(self._store.write, tenant, space, [record]) for record in records]
        self._call("write", tenant, space, records, write=True, pieces=pieces)

    def delete(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> int:
        pieces = [partial(self._store.delete, tenant, space, [chunk_id]) for chunk_id in chunk_ids]
        deleted: int = self._call("delete", tenant, space, chunk_ids, write=True, pieces=pieces)
        return deleted

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Every other function of a store reads."""
        return partial(self._call, name)

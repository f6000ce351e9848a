"""The one module that speaks to DynamoDB.

Answers are plain dictionaries; every number in the table is an integer. Errors are typed: a failed condition says
something about the row, while a conflict with another transaction says nothing.
"""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from core.clock import Clock
from core.metadata.table import Key
from core.metadata.wire import Item, from_wire, key_of, key_to_wire, serialize, to_wire
from core.model.errors import Unavailable
from core.retry import Backoff, attempts

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

logger = logging.getLogger(__name__)

T = TypeVar("T")

BACKOFF = Backoff(tries=10, first_wait_s=0.02, longest_wait_s=1.0)
UNANSWERED_TRIES = 3
GET_LIMIT = 100
WRITE_LIMIT = 25

_FAILED_CONDITION = {"ConditionalCheckFailedException", "ConditionalCheckFailed"}
_CONFLICT = {
    "TransactionConflictException",
    "TransactionConflict",
    "TransactionInProgressException",
    # These two come inside a cancelled transaction, which the client library does not repeat.
    "ThrottlingError",
    "ProvisionedThroughputExceeded",
}
_THROTTLED = {
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "InternalServerError",
    "ServiceUnavailable",
}

# The engine decides again after a failed write, so the client library tries only four times. Parameters are not
# validated here, because the service validates them anyway.
_CONFIG = Config(
    connect_timeout=2,
    read_timeout=5,
    retries={"mode": "standard", "max_attempts": 4},
    parameter_validation=False,
)


def dynamodb_client(*, region: str | None = None, url: str | None = None) -> "DynamoDBClient":
    """Returns a client of DynamoDB, in the environment's region, or of a stand-in at a URL.

    The client hands on the JSON that DynamoDB sends. boto3 would build an equal structure, value by value, which took a
    fifth of a retrieve's own time. Only binary values would differ, and the table has none.
    """
    client = boto3.client("dynamodb", region_name=region, endpoint_url=url, config=_CONFIG)
    client.meta.events.register("before-parse.dynamodb", _as_sent)
    return client


def _as_sent(response_dict: dict[str, Any], customized_response_dict: Item, **_: Any) -> None:
    if response_dict["status_code"] == HTTPStatus.OK:
        customized_response_dict |= json.loads(response_dict["body"])
        response_dict["body"] = b"{}"


class ConditionFailed(Exception):
    """A condition did not hold. The caller's own earlier write may be the cause: read the row."""


class Conflict(Exception):
    """Another transaction was at one of the rows. This says nothing about the rows."""


@dataclass(frozen=True)
class Action:
    """One write: an item to put, or a key to update, to delete or to check, with the condition of the write.

    ``values`` are the named values of ``update`` and ``condition``, without their colons. A name that is a
    reserved word is written with ``#``: ``#state`` means the attribute ``state``.
    """

    key: Key
    put: Item | None = None
    update: str | None = None
    delete: bool = False
    condition: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


def retry_on_conflict(clock: Clock, step: Callable[[], T]) -> T:
    """Repeats a step that reads, decides and writes, until no other writer interferes, and returns its result.

    A step that DynamoDB did not answer is repeated as well. Every step begins with a read, so the repetition finds
    what the unanswered write has done.

    Raises:
        Unavailable: another writer interfered ten times, or DynamoDB left three tries unanswered. Try again later.
    """
    unanswered = 0
    for _ in attempts(clock, BACKOFF):
        try:
            return step()
        except (ConditionFailed, Conflict):
            continue
        except Unavailable:
            unanswered += 1
            if unanswered == UNANSWERED_TRIES:
                raise
    raise Unavailable("Too many writers work on the same item; try again")


class Table:
    """One DynamoDB table. Reads are strongly consistent unless a call says otherwise.

    Every method raises ``Unavailable`` when DynamoDB throttles or does not answer. Try again later.
    """

    def __init__(self, client: "DynamoDBClient", name: str, clock: Clock) -> None:
        self._client = client
        self._name = name
        self.clock = clock

    def get(self, key: Key) -> Item | None:
        """Reads a row; None when it does not exist."""
        answer = _call(partial(self._client.get_item, TableName=self._name, Key=key_to_wire(key), ConsistentRead=True))
        return from_wire(answer["Item"]) if "Item" in answer else None

    def batch_get(
        self, keys: Sequence[Key], *, consistent: bool = True, attributes: Sequence[str] = ()
    ) -> dict[Key, Item]:
        """Reads any number of rows, by key. Rows that do not exist are left out. A repeated key is read once.

        Args:
            attributes: the attributes to read, the key's own among them; empty: all.
        """
        wanted_attributes = {"ProjectionExpression": ", ".join(attributes)} if attributes else {}
        found: dict[Key, Item] = {}
        wanted = list(dict.fromkeys(keys))
        for start in range(0, len(wanted), GET_LIMIT):
            request: Any = {
                self._name: {
                    "Keys": [key_to_wire(key) for key in wanted[start : start + GET_LIMIT]],
                    "ConsistentRead": consistent,
                    **wanted_attributes,
                }
            }
            for answer in self._until_processed(self._client.batch_get_item, request, "UnprocessedKeys"):
                for wire in answer["Responses"].get(self._name, []):
                    item = from_wire(wire)
                    found[key_of(item)] = item
        return found

    def batch_write(
        self, puts: Sequence[Item] = (), deletes: Sequence[Key] = (), *, before: Callable[[], None] | None = None
    ) -> None:
        """Writes and deletes rows without conditions. Each key may be named once.

        Args:
            before: called before each request. An error that it raises ends the writing.
        """
        requests: list[Any] = [{"PutRequest": {"Item": to_wire(item)}} for item in puts]
        requests += [{"DeleteRequest": {"Key": key_to_wire(key)}} for key in deletes]
        for start in range(0, len(requests), WRITE_LIMIT):
            request = {self._name: requests[start : start + WRITE_LIMIT]}
            for _ in self._until_processed(self._client.batch_write_item, request, "UnprocessedItems", before):
                pass

    def _until_processed(
        self, operation: Callable[..., Any], request: Any, rest: str, before: Callable[[], None] | None = None
    ) -> Iterator[Any]:
        """Sends a batch, then the part of it that DynamoDB left unprocessed, until nothing is left."""
        for _ in attempts(self.clock, BACKOFF):
            if before is not None:
                before()
            answer = _call(partial(operation, RequestItems=request))
            yield answer
            request = answer.get(rest)
            if not request:
                return
        raise Unavailable("The metadata store is busy; try again")

    def query(
        self,
        partition: str,
        *,
        prefix: str = "",
        after: str | None = None,
        descending: bool = False,
        limit: int | None = None,
    ) -> Iterator[Item]:
        """Reads the rows of a partition whose sort key starts with `prefix`, behind the sort key `after`."""
        return self._query(
            names=("pk", "sk"),
            partition=partition,
            condition="begins_with(sk, :sort)" if prefix else None,
            sort={":sort": prefix} if prefix else {},
            after=None if after is None else {"pk": partition, "sk": after},
            descending=descending,
            limit=limit,
            options={"ConsistentRead": True},
        )

    def query_index(
        self,
        index: str,
        partition: str,
        *,
        between: tuple[str, str] | None = None,
        after: Item | None = None,
        descending: bool = False,
        limit: int | None = None,
    ) -> Iterator[Item]:
        """Lists keys in a partition of an index, in the order of the index's sort key. Eventually consistent.

        Args:
            between: the lowest and the highest sort key; None: every key.
            after: all four key attributes of the row behind which the listing goes on.
        """
        pk, sk = f"{index}_pk", f"{index}_sk"
        return self._query(
            names=(pk, sk),
            partition=partition,
            condition=f"{sk} BETWEEN :low AND :high" if between else None,
            sort={":low": between[0], ":high": between[1]} if between else {},
            after=after,
            descending=descending,
            limit=limit,
            options={"IndexName": index},
        )

    def _query(
        self,
        *,
        names: tuple[str, str],
        partition: str,
        condition: str | None,
        sort: Mapping[str, str],
        after: Item | None,
        descending: bool,
        limit: int | None,
        options: Mapping[str, Any],
    ) -> Iterator[Item]:
        arguments: dict[str, Any] = {
            "TableName": self._name,
            "KeyConditionExpression": f"{names[0]} = :partition" + (f" AND {condition}" if condition else ""),
            "ExpressionAttributeValues": to_wire({":partition": partition, **sort}),
            "ScanIndexForward": not descending,
            **options,
        }
        left = limit
        start = None if after is None else to_wire(after)
        while left is None or left > 0:
            page = dict(arguments)
            if left is not None:
                page["Limit"] = left
            if start is not None:
                page["ExclusiveStartKey"] = start
            answer = _call(partial(self._client.query, **page))
            for wire in answer["Items"]:
                yield from_wire(wire)
            left = None if left is None else left - len(answer["Items"])
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return

    def write(self, action: Action) -> None:
        """Performs one write.

        Raises:
            ConditionFailed: the condition did not hold.
            Conflict: a transaction was at the row.
        """
        kind, arguments = self._wire(action)
        operations: dict[str, Callable[..., Any]] = {
            "Put": self._client.put_item,
            "Update": self._client.update_item,
            "Delete": self._client.delete_item,
        }
        _call(partial(operations[kind], **arguments))

    def transact(self, actions: Sequence[Action]) -> None:
        """Performs all the writes, or none of them.

        Raises:
            ConditionFailed: at least one condition did not hold.
            Conflict: another transaction was at a row, or DynamoDB was busy. No condition is known to fail.
        """
        items = [dict([self._wire(action)]) for action in actions]
        _call(partial(self._client.transact_write_items, TransactItems=cast(Any, items)))

    def _wire(self, action: Action) -> tuple[str, dict[str, Any]]:
        arguments: dict[str, Any] = {"TableName": self._name}
        names = set(re.findall(r"#\w+", f"{action.update or ''} {action.condition or ''}"))
        if names:
            arguments["ExpressionAttributeNames"] = {placeholder: placeholder[1:] for placeholder in names}
        if action.values:
            arguments["ExpressionAttributeValues"] = {
                f":{placeholder}": serialize(value) for placeholder, value in action.values.items()
            }
        if action.condition is not None:
            arguments["ConditionExpression"] = action.condition
        if action.put is not None:
            return "Put", {**arguments, "Item": to_wire({**action.put, **action.key._asdict()})}
        if action.update is not None:
            return "Update", {**arguments, "Key": key_to_wire(action.key), "UpdateExpression": action.update}
        kind = "Delete" if action.delete else "ConditionCheck"
        return kind, {**arguments, "Key": key_to_wire(action.key)}

    def ping(self) -> None:
        """Returns when the table answers, and raises Unavailable when it does not."""
        _call(partial(self._client.get_item, TableName=self._name, Key=key_to_wire(Key("SYSTEM", "PING"))))


def _call(operation: Callable[[], Any]) -> Any:
    try:
        return operation()
    except ClientError as error:
        raise _typed(error) from error
    except BotoCoreError as error:
        logger.warning("DynamoDB did not answer: %s", type(error).__name__)
        raise Unavailable("The metadata store does not answer; try again") from error


def _typed(error: ClientError) -> Exception:
    code = error.response.get("Error", {}).get("Code", "")
    reasons: Any = error.response.get("CancellationReasons", [])
    codes = {code, *(reason.get("Code", "None") for reason in reasons)} - {"None", "TransactionCanceledException"}
    if codes & _FAILED_CONDITION:
        return ConditionFailed(code)
    if codes <= _CONFLICT:
        return Conflict(code)
    if codes <= _THROTTLED:
        return Unavailable("The metadata store is busy; try again")
    return error

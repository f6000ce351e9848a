# ruff: noqa: N803 - the names of the arguments are DynamoDB's
"""DynamoDB in memory: the part of its client that the project uses, for the proofs and the fast tests.

`tests/support/test_memory_dynamodb.py` holds it to moto, call by call; `tests.support.validator` refuses the requests
that AWS refuses. Former states are kept for a while, so that an index can lag behind, a watch can compare the states
around each write, and a whole table can be set back to an earlier state. No other stand-in offers that.

It is home-made for its speed. Measured on the development machine (two shared cores, Python 3.11), with the requests of
five operations of the proof of crashes; a reset makes the table what it was before the operation:

| stand-in                             | µs a request   | µs a reset      |
| ------------------------------------ | -------------- | --------------- |
| this table                           | 16–104         | 10–99           |
| ministack's module in this process   | 315–1,205      | 821–2,509       |
| ministack's server, over loopback    | 5,800–7,125    | 13,600–48,700   |
| moto in this process                 | 8,520–15,760   | 920–5,620       |
| moto's server, over loopback         | 10,090–19,200  | 61,600–110,000  |

At the small size of the tests the proof of crashes makes 70,000 requests, and the proof of races 66,000. They spend 2.5
and 3.8 seconds in this table. The same requests would take 40 to 70 seconds in ministack's module, 7 minutes over
loopback to ministack, 13 minutes in moto and 19 minutes in moto's server; and the whole proofs 30 times as long.
"""

import threading
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from botocore.exceptions import ClientError

from tests.support.expressions import Item, MissingPath, holds, updated
from tests.support.sizes import item_size
from tests.support.validator import MAX_ITEM_BYTES, Validated, Validator

KEY = ("pk", "sk")
INDEXES = {"listing": ("listing_pk", "listing_sk"), "sweep": ("sweep_pk", "sweep_sk")}
STATES_KEPT = 512

Items = dict[tuple[str, str], Item]
"""A state of the table. Never changed once made, and neither are its items."""

Order = tuple[str, str, str]
"""Where a row stands in its partition: its sort key there, then its own key."""


def error(code: str, message: str, operation: str = "Memory", **more: Any) -> ClientError:
    """An error as botocore raises it."""
    response: Any = {"Error": {"Code": code, "Message": message}, **more}
    return ClientError(response, operation)


Operation = TypeVar("Operation", bound=Callable[..., dict[str, Any]])


def _validated(operation: Operation) -> Operation:
    """Refuses each request that AWS would refuse before the operation begins."""
    name = "".join(word.capitalize() for word in operation.__name__.split("_"))

    @wraps(operation)
    def checked(self: Any, **request: Any) -> dict[str, Any]:
        self.validator.remember(name, request)
        return operation(self, **request)

    return cast(Operation, checked)


class MemoryDynamoDB(Validated):
    """One table. Every call is atomic, whichever thread makes it.

    Attributes:
        watch: called under the lock with the state before and the state after each write.
        lag: seconds by which the indexes are behind; at most as far as ``states_kept`` states reach back.
    """

    def __init__(self, now: Callable[[], float] = lambda: 0.0, states_kept: int = STATES_KEPT) -> None:
        self.validator = Validator()
        self._now = now
        self._states_kept = states_kept
        self._lock = threading.RLock()
        self._states: list[tuple[float, Items]] = [(now(), {})]
        self._indexed: dict[int, tuple[Items, dict[str, dict[str, list[Item]]]]] = {}
        self.watch: Callable[[Items, Items], None] | None = None
        self.lag = 0.0

    # -- the whole table ---------------------------------------------------------------------------

    @property
    def items(self) -> Items:
        """The present state."""
        return self._states[-1][1]

    def set_back(self, items: Items) -> None:
        """Makes a former state the present one, and forgets all others."""
        with self._lock:
            self._states = [(self._now(), items)]
            self._indexed.clear()

    def get_paginator(self, operation: str) -> "_Scan":
        if operation != "scan":
            raise ValueError(operation)
        return _Scan(self)

    # -- reads -------------------------------------------------------------------------------------

    @_validated
    def get_item(self, *, TableName: str, Key: Item, ConsistentRead: bool = False) -> dict[str, Any]:
        found = self.items.get(_key_of(Key))
        return {} if found is None else {"Item": found}

    @_validated
    def batch_get_item(self, *, RequestItems: Mapping[str, Any]) -> dict[str, Any]:
        ((name, request),) = RequestItems.items()
        keys = [_key_of(key) for key in request["Keys"]]
        items = self.items
        found = [items[key] for key in keys if key in items]
        if "ProjectionExpression" in request:
            names = request["ProjectionExpression"].split(", ")
            found = [{attribute: item[attribute] for attribute in names if attribute in item} for item in found]
        return {"Responses": {name: found}, "UnprocessedKeys": {}}

    @_validated
    def query(
        self,
        *,
        TableName: str,
        KeyConditionExpression: str,
        ExpressionAttributeValues: Mapping[str, Any],
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        IndexName: str | None = None,
        ScanIndexForward: bool = True,
        ConsistentRead: bool = False,
        Limit: int | None = None,
        ExclusiveStartKey: Item | None = None,
    ) -> dict[str, Any]:
        partition, sort = INDEXES[IndexName] if IndexName else KEY
        first = KeyConditionExpression.split(" ")
        if first[:2] != [partition, "="]:
            raise ValueError(f"not understood: {KeyConditionExpression!r}")
        wanted = ExpressionAttributeValues[first[2]]["S"]
        rows = self._partition(IndexName, wanted)
        names = ExpressionAttributeNames or {}
        rows = [row for row in rows if holds(KeyConditionExpression, row, names, ExpressionAttributeValues)]
        if not ScanIndexForward:
            rows = rows[::-1]
        if ExclusiveStartKey is not None:
            rows = _after(rows, ExclusiveStartKey, sort, forward=ScanIndexForward)
        page = rows if Limit is None else rows[:Limit]
        answer: dict[str, Any] = {"Items": page, "Count": len(page), "ScannedCount": len(page)}
        if page and len(page) == Limit:  # whether or not there is more, as at AWS
            answer["LastEvaluatedKey"] = {name: page[-1][name] for name in dict.fromkeys((*KEY, partition, sort))}
        return answer

    def _partition(self, index: str | None, wanted: str) -> list[Item]:
        """Rows of a partition in order of its sort key; an index as it was ``lag`` seconds ago."""
        with self._lock:
            items = self._before(self._now() - self.lag) if index and self.lag else self.items
            known = self._indexed.get(id(items))
            if known is None:
                known = self._indexed[id(items)] = (items, {})
            if (index or "") not in known[1]:
                known[1][index or ""] = _partitions(items, index)
            return known[1][index or ""].get(wanted, [])

    def _before(self, moment: float) -> Items:
        times = [time for time, _ in self._states]
        return self._states[max(0, bisect_right(times, moment) - 1)][1]

    # -- writes ------------------------------------------------------------------------------------

    @_validated
    def put_item(self, *, TableName: str, **action: Any) -> dict[str, Any]:
        return self._single("Put", action)

    @_validated
    def update_item(self, *, TableName: str, **action: Any) -> dict[str, Any]:
        return self._single("Update", action)

    @_validated
    def delete_item(self, *, TableName: str, **action: Any) -> dict[str, Any]:
        return self._single("Delete", action)

    def _single(self, kind: str, action: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            if not _allowed(self.items, kind, action):
                raise error("ConditionalCheckFailedException", "The conditional request failed")
            self._become([(kind, action)])
        return {}

    @_validated
    def batch_write_item(self, *, RequestItems: Mapping[str, Any]) -> dict[str, Any]:
        ((_, requests),) = RequestItems.items()
        writes = [(kind.removesuffix("Request"), action) for request in requests for kind, action in request.items()]
        with self._lock:
            self._become(writes)
        return {"UnprocessedItems": {}}

    @_validated
    def transact_write_items(
        self, *, TransactItems: Sequence[Mapping[str, Any]], ClientRequestToken: str = ""
    ) -> dict[str, Any]:
        writes = [(kind, action) for one in TransactItems for kind, action in one.items()]
        with self._lock:
            allowed = [_allowed(self.items, kind, action) for kind, action in writes]
            if not all(allowed):
                raise cancelled(["None" if each else "ConditionalCheckFailed" for each in allowed])
            self._become([write for write in writes if write[0] != "ConditionCheck"])
        return {}

    def _become(self, writes: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        before = self.items
        items = dict(before)
        for kind, action in writes:
            key = _place(kind, action)
            after = _written(items.get(key), kind, action)
            if after is None:
                items.pop(key, None)
            else:
                items[key] = after
        self._states.append((self._now(), items))
        if len(self._states) > self._states_kept:
            del self._states[: -(self._states_kept + 1) // 2]
        self._indexed = {place: known for place, known in self._indexed.items() if known[0] is before and self.lag}
        if self.watch is not None:
            self.watch(before, items)


class LargeDynamoDB(MemoryDynamoDB):
    """The same for a table of many rows: it is written in place, so a write takes no longer than the rows it changes.

    It has no past: it is not set back, and its indexes do not lag.

    Attributes:
        written: called under the lock with the key of each row that is written, not of one that is deleted.
    """

    def __init__(self) -> None:
        super().__init__(states_kept=1)
        self._partitions: dict[tuple[str | None, str], tuple[list[Order], dict[Order, Item]]] = {}
        self.written: Callable[[str, str], None] = lambda partition, sort: None

    def get_item(self, **arguments: Any) -> dict[str, Any]:
        with self._lock:
            return super().get_item(**arguments)

    def batch_get_item(self, **arguments: Any) -> dict[str, Any]:
        with self._lock:
            return super().batch_get_item(**arguments)

    def _partition(self, index: str | None, wanted: str) -> list[Item]:
        with self._lock:
            order, rows = self._partitions.get((index, wanted), ([], {}))
            return [rows[place] for place in order]

    def _become(self, writes: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        # What refuses an action comes before the first is carried out.
        changes = [self._change(kind, action) for kind, action in writes]
        for key, before, after in changes:
            for index in (None, *INDEXES):
                if before is not None:
                    self._take_out(index, before)
                if after is not None:
                    self._put_in(index, after)
            if after is None:
                self.items.pop(key, None)
            else:
                self.items[key] = after
                self.written(*key)

    def _change(self, kind: str, action: Mapping[str, Any]) -> tuple[tuple[str, str], Item | None, Item | None]:
        key = _place(kind, action)
        before = self.items.get(key)
        return key, before, _written(before, kind, action)

    def _take_out(self, index: str | None, item: Item) -> None:
        partition, sort = INDEXES[index] if index else KEY
        if partition in item and sort in item:
            order, rows = self._partitions[index, item[partition]["S"]]
            place = _order(item, sort)
            del rows[place], order[bisect_left(order, place)]

    def _put_in(self, index: str | None, item: Item) -> None:
        partition, sort = INDEXES[index] if index else KEY
        if partition in item and sort in item:
            order, rows = self._partitions.setdefault((index, item[partition]["S"]), ([], {}))
            place = _order(item, sort)
            insort(order, place)
            rows[place] = _row(item, index)


class _Scan:
    def __init__(self, client: MemoryDynamoDB) -> None:
        self._client = client

    def paginate(self, *, TableName: str, ConsistentRead: bool = False) -> Iterator[dict[str, Any]]:
        yield {"Items": list(self._client.items.values())}


def cancelled(codes: Sequence[str]) -> ClientError:
    """A transaction that was cancelled: a code an action."""
    message = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{', '.join(codes)}]"
    reasons = [{"Code": code} for code in codes]
    return error("TransactionCanceledException", message, "TransactWriteItems", CancellationReasons=reasons)


def _key_of(key: Item) -> tuple[str, str]:
    return key["pk"]["S"], key["sk"]["S"]


def _place(kind: str, action: Mapping[str, Any]) -> tuple[str, str]:
    return _key_of(action["Item"] if kind == "Put" else action["Key"])


def _allowed(items: Items, kind: str, action: Mapping[str, Any]) -> bool:
    condition = action.get("ConditionExpression")
    if condition is None:
        return True
    names = action.get("ExpressionAttributeNames", {})
    values = action.get("ExpressionAttributeValues", {})
    return holds(condition, items.get(_place(kind, action)), names, values)


def _written(item: Item | None, kind: str, action: Mapping[str, Any]) -> Item | None:
    if kind == "Delete":
        return None
    if kind == "Put":
        return dict(action["Item"])
    names = action.get("ExpressionAttributeNames", {})
    values = action.get("ExpressionAttributeValues", {})
    try:
        after = updated(action["UpdateExpression"], item or dict(action["Key"]), names, values)
    except MissingPath:
        message = "The document path provided in the update expression is invalid for update"
        raise error("ValidationException", message) from None
    if item_size(after) > MAX_ITEM_BYTES:
        raise error("ValidationException", "Item size has exceeded the maximum allowed size")
    return after


def _partitions(items: Items, index: str | None) -> dict[str, list[Item]]:
    """Every partition's rows in order; of an index, keys alone."""
    partition, sort = INDEXES[index] if index else KEY
    found: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items.values():
        if partition in item and sort in item:
            found[item[partition]["S"]].append(_row(item, index))
    for rows in found.values():
        rows.sort(key=lambda row: _order(row, sort))
    return found


def _row(item: Item, index: str | None) -> Item:
    """What a query answers with; of an index, keys alone."""
    return item if index is None else {name: item[name] for name in (*KEY, *INDEXES[index])}


def _order(row: Item, sort: str) -> Order:
    return row[sort]["S"], row["pk"]["S"], row["sk"]["S"]


def _after(rows: list[Item], start: Item, sort: str, *, forward: bool) -> list[Item]:
    place = _order(start, sort)
    return [row for row in rows if (_order(row, sort) > place if forward else _order(row, sort) < place)]

"""Capacity units that DynamoDB would charge, by its developer guide; local doubles answer one unit for anything.

- A write costs a unit for each started KB of the larger of the item before and after; twice that in a transaction.
- Each index entry that a write makes, changes or removes costs a unit for each started KB of the entry; a changed
  key is a removal and a new entry. (That a transaction does not double these is read from "two units to write one
  item ... in the transaction" of the table, and has not been seen on a bill.)
- A strongly consistent read costs a unit for each started 4 KB of an item, an eventually consistent one half of
  that; a query for all its items together. What is not there costs as much as the smallest item.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, Any

from core.metadata.table import LISTING, SWEEP
from tests.support.sizes import item_size

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Item = Mapping[str, Any]
INDEXES = (LISTING, SWEEP)


class Meter:
    """Adds up what the requests of one client would cost.

    Args:
        reader: another client of the same table; it reads each item before and after a write.
    """

    def __init__(self, reader: "DynamoDBClient", table: str) -> None:
        self._reader = reader
        self._table = table
        self._requests: Counter[str] = Counter()
        self._read_units = 0.0
        self._write_units = 0

    @contextmanager
    def watching(self, client: "DynamoDBClient") -> Iterator[None]:
        """Adds up the requests that the client makes inside."""
        events = client.meta.events
        events.register("before-parameter-build.dynamodb", self._before)
        events.register("after-call.dynamodb", self._after)
        try:
            yield
        finally:
            events.unregister("before-parameter-build.dynamodb", self._before)
            events.unregister("after-call.dynamodb", self._after)

    def answer(self) -> dict[str, Any]:
        """What has been added up."""
        return {
            "requests": dict(sorted(self._requests.items())),
            "read_units": self._read_units,
            "write_units": self._write_units,
        }

    def _before(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        keys = _written(model.name, params)
        context["weft"] = params, [(key, self._item(key)) for key in keys]

    def _after(self, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        params, before = context["weft"]
        self._requests[model.name] += 1
        times = 2 if model.name.startswith("Transact") else 1
        self._write_units += sum(_write_units(old, self._item(key), times) for key, old in before)
        if model.name in _READS:
            self._read_units += _READS[model.name](params, parsed)

    def _item(self, key: Item) -> Item:
        answer: Item = self._reader.get_item(TableName=self._table, Key=dict(key), ConsistentRead=True).get("Item", {})
        return answer


def _written(operation: str, params: Mapping[str, Any]) -> list[Item]:
    """The keys that a request writes."""
    if operation == "TransactWriteItems":
        actions = [action for one in params["TransactItems"] for action in one.values()]
    elif operation == "BatchWriteItem":
        actions = [action for part in params["RequestItems"].values() for one in part for action in one.values()]
    elif operation in {"PutItem", "UpdateItem", "DeleteItem"}:
        actions = [params]
    else:
        return []
    return [_key(action.get("Key") or action["Item"]) for action in actions]


def _key(item: Item) -> Item:
    return {"pk": item["pk"], "sk": item["sk"]}


def _write_units(before: Item, after: Item, times: int) -> int:
    units = times * _started(max(item_size(before), item_size(after)), 1024)
    for index in INDEXES:
        old, new = _entry(before, index), _entry(after, index)
        if old != new:
            units += sum(_started(item_size(entry), 1024) for entry in (old, new) if entry)
    return units


def _entry(item: Item, index: str) -> Item:
    """What an index of keys holds of an item; nothing when the item is not in it."""
    names = (f"{index}_pk", f"{index}_sk")
    return {name: item[name] for name in (*names, "pk", "sk")} if all(name in item for name in names) else {}


def _get_units(params: Mapping[str, Any], parsed: Mapping[str, Any]) -> float:
    return _read_units([parsed.get("Item", {})], consistent=params.get("ConsistentRead", False))


def _batch_get_units(params: Mapping[str, Any], parsed: Mapping[str, Any]) -> float:
    units = 0.0
    for table, request in params["RequestItems"].items():
        found = parsed["Responses"].get(table, [])
        missing: list[Item] = [{}] * (len(request["Keys"]) - len(found))
        units += _read_units([*found, *missing], consistent=request.get("ConsistentRead", False))
    return units


def _query_units(params: Mapping[str, Any], parsed: Mapping[str, Any]) -> float:
    size = sum(item_size(item) for item in parsed["Items"])
    return _started(size, 4096) * (1 if params.get("ConsistentRead") else 0.5)


def _read_units(items: Iterable[Item], *, consistent: bool) -> float:
    return sum(_started(item_size(item), 4096) for item in items) * (1 if consistent else 0.5)


def _started(size: int, step: int) -> int:
    return max(1, ceil(size / step))


_READS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], float]] = {
    "GetItem": _get_units,
    "BatchGetItem": _batch_get_units,
    "Query": _query_units,
}

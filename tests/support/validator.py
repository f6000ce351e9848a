"""The validator refuses requests that DynamoDB refuses and its local doubles take: no test passes with such a request.

The limits and rules are those of "Quotas" and "Constraints" in DynamoDB's developer guide and of the API reference;
those of expressions are in `tests.support.expressions`. A refused request raises `Refused` and is remembered, since
code under test may swallow an exception.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

from infra.template import load
from tests.support.expressions import (
    Path,
    Refused,
    comparable,
    name_of,
    parse_condition,
    parse_projection,
    parse_update,
)
from tests.support.sizes import Wire, item_size

MIB = 1024 * 1024
MAX_ITEM_BYTES = 400 * 1024
MAX_TRANSACTION_BYTES = 4 * MIB
MAX_BATCH_BYTES = 16 * MIB
MAX_TRANSACTION = 100
MAX_BATCH_WRITE = 25
MAX_BATCH_GET = 100
MAX_DEPTH = 32
MAX_DIGITS = 38
MAX_TOKEN = 36
LARGEST = Decimal("9.9999999999999999999999999999999999999E+125")
SMALLEST = Decimal("1E-130")
KEY_BYTES = {"HASH": 2048, "RANGE": 1024}
CONDITIONS = ("ConditionExpression", "KeyConditionExpression", "FilterExpression")
_PLACEHOLDER = re.compile(r"[#:]\w{1,254}")

Request = Mapping[str, Any]
Keys = Mapping[str, int]
"""Key attributes, the partition's first, and the bytes that each may have."""


def refuse(reason: str) -> None:
    raise Refused(reason)


@dataclass(frozen=True)
class Schema:
    """A table's keys.

    Attributes:
        types: of the key attributes of the table and its indexes.
        table: its own keys.
        indexes: the keys of its indexes.
    """

    types: Mapping[str, str]
    table: Keys
    indexes: Mapping[str, Keys]

    @classmethod
    def of(cls, description: Request) -> "Schema":
        """The schema of a table as CloudFormation and CreateTable describe it."""
        return cls(
            types={one["AttributeName"]: one["AttributeType"] for one in description["AttributeDefinitions"]},
            table=_keys(description["KeySchema"]),
            indexes={
                one["IndexName"]: _keys(one["KeySchema"]) for one in description.get("GlobalSecondaryIndexes", [])
            },
        )

    @property
    def limits(self) -> Keys:
        """Every key attribute and the bytes that it may have."""
        every = dict(self.table)
        for keys in self.indexes.values():
            every |= keys
        return every


def _keys(schema: Sequence[Request]) -> Keys:
    return {one["AttributeName"]: KEY_BYTES[one["KeyType"]] for one in schema}


@cache
def template_schema() -> Schema:
    """The table's of template.yaml."""
    return Schema.of(load()["Resources"]["Table"]["Properties"])


class Validated:
    """A stand-in for a client of DynamoDB, whose requests are checked by its validator."""

    validator: "Validator"


@dataclass
class Validator:
    """Checks the requests of clients.

    Attributes:
        refused: why requests were refused, in order.
        checked: how many requests were checked.
    """

    schema: Schema = field(default_factory=template_schema)
    refused: list[str] = field(default_factory=list)
    checked: int = 0

    def watch(self, client: Any) -> None:
        """Checks every request of a client before it is sent. A table in memory checks its requests itself."""
        if isinstance(client, Validated):
            client.validator = self
        else:
            client.meta.events.register("before-parameter-build.dynamodb", self._before)

    def _before(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        self.remember(model.name, params)

    def remember(self, operation: str, request: Request) -> None:
        """Checks one request, and remembers it when it is refused.

        Raises:
            Refused: AWS would not take it.
        """
        self.checked += 1
        try:
            self.check(operation, request)
        except Refused as error:
            self.refused.append(f"{operation}: {error}")
            raise

    def check(self, operation: str, request: Request) -> None:
        """Checks one request; what is no request for items is let pass.

        Raises:
            Refused: AWS would not take it.
        """
        checks = {
            "GetItem": self._get,
            "PutItem": self._put,
            "UpdateItem": self._update,
            "DeleteItem": self._keyed,
            "Query": self._query,
            "BatchGetItem": self._batch_get,
            "BatchWriteItem": self._batch_write,
            "TransactWriteItems": self._transact,
        }
        if operation in checks:
            checks[operation](request)

    # -- one item ----------------------------------------------------------------------------------

    def _get(self, request: Request) -> None:
        self._check_key(request["Key"], self.schema.table)

    def _put(self, request: Request) -> None:
        self._check_item(request["Item"])
        self._check_expressions(request)

    def _keyed(self, request: Request) -> None:
        self._check_key(request["Key"], self.schema.table)
        self._check_expressions(request)

    def _update(self, request: Request) -> None:
        self._check_key(request["Key"], self.schema.table)
        self._check_expressions(request)
        if "UpdateExpression" in request:
            self._check_update(request)

    def _check_update(self, request: Request) -> None:
        changed: list[Path] = []
        written: dict[str, Wire] = {}
        names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
        for _, steps, last in parse_update(request["UpdateExpression"]).actions:
            path = tuple(name_of(step, names) for step in steps)
            if path[0] in self.schema.table:
                refuse(f"{path[0]} is part of the key and cannot be updated")
            for other in changed:
                if path[: len(other)] == other[: len(path)]:
                    refuse(f"Two document paths overlap: {'.'.join(other)} and {'.'.join(path)}")
            changed.append(path)
            if last in values:
                written[".".join(path)] = values[last]
        self._check_index_keys(written)
        self._check_size(written)

    # -- many items --------------------------------------------------------------------------------

    def _batch_get(self, request: Request) -> None:
        keys = [(name, key) for name, part in request["RequestItems"].items() for key in part["Keys"]]
        self._check_count(len(keys), MAX_BATCH_GET)
        for _, key in keys:
            self._check_key(key, self.schema.table)
        self._check_doubles(keys)
        for part in request["RequestItems"].values():
            self._check_expressions(part)

    def _batch_write(self, request: Request) -> None:
        writes = [(name, one) for name, part in request["RequestItems"].items() for one in part]
        self._check_count(len(writes), MAX_BATCH_WRITE)
        keys = []
        size = 0
        for name, write in writes:
            [(kind, action)] = write.items()
            if kind == "PutRequest":
                self._check_item(action["Item"])
                size += item_size(action["Item"])
                keys.append((name, self._key_of(action["Item"])))
            else:
                self._check_key(action["Key"], self.schema.table)
                keys.append((name, action["Key"]))
        self._check_doubles(keys)
        if size > MAX_BATCH_BYTES:
            refuse(f"A batch has at most {MAX_BATCH_BYTES} bytes: {size}")

    def _transact(self, request: Request) -> None:
        actions = request["TransactItems"]
        self._check_count(len(actions), MAX_TRANSACTION)
        if not 1 <= len(request.get("ClientRequestToken", "x")) <= MAX_TOKEN:
            refuse(f"A ClientRequestToken has 1 to {MAX_TOKEN} characters")
        checks = {"Put": self._put, "Update": self._update, "Delete": self._keyed, "ConditionCheck": self._keyed}
        keys = []
        size = 0
        for one in actions:
            if len(one) != 1:
                refuse(f"An element of a transaction is one action: {sorted(one)}")
            [(kind, action)] = one.items()
            if kind == "ConditionCheck" and "ConditionExpression" not in action:
                refuse("A ConditionCheck needs a ConditionExpression")
            checks[kind](action)
            keys.append((action["TableName"], action.get("Key") or self._key_of(action["Item"])))
            # What an update makes of its item is not known here; what it brings along is.
            size += item_size(action.get("Item") or {**action["Key"], **action.get("ExpressionAttributeValues", {})})
        self._check_doubles(keys)
        if size > MAX_TRANSACTION_BYTES:
            refuse(f"A transaction has at most {MAX_TRANSACTION_BYTES} bytes: {size}")

    @staticmethod
    def _check_count(count: int, limit: int) -> None:
        if not 1 <= count <= limit:
            refuse(f"1 to {limit} items a request: {count}")

    def _check_doubles(self, keys: Sequence[tuple[str, Wire]]) -> None:
        seen = set()
        for table, key in keys:
            place = (table, *(str(key[name]) for name in self.schema.table))
            if place in seen:
                refuse(f"One item twice in a request: {place}")
            seen.add(place)

    # -- queries -----------------------------------------------------------------------------------

    def _query(self, request: Request) -> None:
        index = request.get("IndexName")
        if index is not None and index not in self.schema.indexes:
            refuse(f"The table has no index {index!r}")
        if index is not None and request.get("ConsistentRead"):
            refuse("Consistent reads are not supported on global secondary indexes")
        if request.get("Limit", 1) < 1:
            refuse("Limit is 1 or more")
        keys = self.schema.indexes[index] if index else self.schema.table
        self._check_expressions(request)
        conditions = _key_conditions(request)
        self._check_key_conditions(conditions, keys)
        start = request.get("ExclusiveStartKey")
        if start is not None:
            self._check_start(start, conditions, keys)

    def _check_key_conditions(self, conditions: "Mapping[str, Condition]", keys: Keys) -> None:
        partition, *_ = keys
        if partition not in conditions or conditions[partition][0] != "=":
            refuse(f"A query needs {partition} = a value")
        for name, (_, operands) in conditions.items():
            if name not in keys:
                refuse(f"{name} is no key of what is queried")
            for operand in operands:
                self._check_key_value(name, operand, keys[name])

    def _check_start(self, start: Wire, conditions: "Mapping[str, Condition]", keys: Keys) -> None:
        self._check_key(start, {**self.schema.table, **keys})
        for name, condition in conditions.items():
            if not _within(start[name], condition):
                refuse("The start key is outside the query's boundaries")

    # -- keys and values ---------------------------------------------------------------------------

    def _key_of(self, item: Wire) -> Wire:
        return {name: item[name] for name in self.schema.table}

    def _check_key(self, key: Wire, keys: Keys) -> None:
        if set(key) != set(keys):
            refuse(f"A key has just {', '.join(keys)}: {', '.join(key)}")
        for name, value in key.items():
            self._check_key_value(name, value, keys[name])

    def _check_key_value(self, name: str, value: Wire, limit: int) -> None:
        [(kind, content)] = value.items()
        if kind != self.schema.types[name]:
            refuse(f"The key {name} is of type {self.schema.types[name]}: {kind}")
        size = len(content.encode()) if isinstance(content, str) else len(content)
        if not 1 <= size <= limit:
            refuse(f"The key {name} has 1 to {limit} bytes: {size}")

    def _check_item(self, item: Wire) -> None:
        for name in self.schema.table:
            if name not in item:
                refuse(f"An item needs {name}")
        self._check_index_keys(item)
        for name, value in item.items():
            if not name:
                refuse("An attribute's name is not empty")
            check_value(value)
        self._check_size(item)

    def _check_index_keys(self, item: Wire) -> None:
        limits = self.schema.limits
        for name, value in item.items():
            if name in limits:
                self._check_key_value(name, value, limits[name])

    @staticmethod
    def _check_size(item: Wire) -> None:
        size = item_size(item)
        if size > MAX_ITEM_BYTES:
            refuse(f"An item has at most {MAX_ITEM_BYTES} bytes: {size}")

    @staticmethod
    def _check_expressions(request: Request) -> None:
        for name in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
            if request.get(name) == {}:
                refuse(f"{name} must not be empty")
        values = request.get("ExpressionAttributeValues", {})
        defined = {*request.get("ExpressionAttributeNames", {}), *values}
        for placeholder in defined:
            if not _PLACEHOLDER.fullmatch(placeholder):
                refuse(f"{placeholder!r} is no placeholder")
        for value in values.values():
            check_value(value)
        used = _used(request)
        if used - defined:
            refuse(f"Used in an expression and not defined: {', '.join(sorted(used - defined))}")
        if defined - used:
            refuse(f"Defined and not used in any expression: {', '.join(sorted(defined - used))}")


def _used(request: Request) -> set[str]:
    """The placeholders that the expressions of a request use."""
    used: set[str] = set()
    for name in CONDITIONS:
        if name in request:
            condition = parse_condition(request[name])
            used |= condition.placeholders
            for _, comparison, words in condition.tests:
                if comparison == "BETWEEN":
                    values = request.get("ExpressionAttributeValues", {})
                    _check_bounds(*(values.get(word, {}) for word in words))
    if "UpdateExpression" in request:
        used |= parse_update(request["UpdateExpression"]).placeholders
    if "ProjectionExpression" in request:
        used |= parse_projection(request["ProjectionExpression"])
    return used


def _check_bounds(low: Wire, high: Wire) -> None:
    """The upper bound of a BETWEEN is not below the lower one, and of its type."""
    if low and high and (set(low) != set(high) or comparable(low) > comparable(high)):
        refuse("BETWEEN needs bounds of one type, the upper one not below the lower one")


def check_value(value: Wire, depth: int = 0) -> None:
    """Checks a value: numbers, sets, nesting.

    Raises:
        Refused: AWS would not store it.
    """
    if len(value) != 1:
        refuse(f"A value has one type: {sorted(value)}")
    [(kind, content)] = value.items()
    if depth > MAX_DEPTH:
        refuse(f"A value is nested at most {MAX_DEPTH} levels deep")
    match kind:
        case "N":
            _check_number(content)
        case "SS" | "NS" | "BS":
            if not content or len(set(content)) < len(content):
                refuse("A set is neither empty nor has an element twice")
            for one in content if kind == "NS" else ():
                _check_number(one)
        case "L":
            for one in content:
                check_value(one, depth + 1)
        case "M":
            for one in content.values():
                check_value(one, depth + 1)


def _check_number(text: str) -> None:
    number = Decimal(text)
    if not number.is_finite():
        refuse(f"No number: {text}")
    if len("".join(map(str, number.as_tuple().digits)).strip("0")) > MAX_DIGITS:
        refuse(f"A number has at most {MAX_DIGITS} digits: {text}")
    if number and not SMALLEST <= abs(number) <= LARGEST:
        refuse(f"A number's size is {SMALLEST} to {LARGEST}: {text}")


Condition = tuple[str, list[Wire]]
"""What a key condition asks of one attribute: the operator and its operands."""


def _key_conditions(request: Request) -> dict[str, Condition]:
    parsed = parse_condition(request["KeyConditionExpression"])
    if not parsed.joined:
        refuse("The parts of a key condition are joined by AND")
    names, values = request.get("ExpressionAttributeNames", {}), request["ExpressionAttributeValues"]
    conditions: dict[str, Condition] = {}
    for (step, *_), comparison, words in parsed.tests:
        name = name_of(step, names)
        if name in conditions:
            refuse(f"A key condition names {name} once")
        conditions[name] = (comparison, [values[word] for word in words])
    return conditions


def _within(value: Wire, condition: Condition) -> bool:
    """Whether a key lies in the range of a key condition."""
    comparison, operands = condition
    content, bounds = comparable(value), [comparable(operand) for operand in operands]
    match comparison:
        case "begins_with":
            return bool(content.startswith(bounds[0]))
        case "BETWEEN":
            return bool(bounds[0] <= content <= bounds[1])
        case "<" | "<=":
            return bool(content < bounds[0] or (comparison == "<=" and content == bounds[0]))
        case ">" | ">=":
            return bool(content > bounds[0] or (comparison == ">=" and content == bounds[0]))
    return bool(content == bounds[0])

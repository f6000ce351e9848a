"""The request validator refuses what AWS refuses, each rule with a request just over it, and takes one just under."""

from typing import Any

import boto3
import pytest
from moto import mock_aws

from core.metadata.dynamo import Action
from core.metadata.table import Key
from tests.support.engines import REGION, TABLE, World, make_world
from tests.support.expressions import Refused
from tests.support.sizes import item_size
from tests.support.validator import Validator

KEY = {"pk": {"S": "T#a"}, "sk": {"S": "HEAD"}}
KB = 1024


def text(size: int) -> dict[str, str]:
    return {"S": "x" * size}


def number(value: str) -> dict[str, str]:
    return {"N": value}


def item(place: int = 0, **attributes: Any) -> dict[str, Any]:
    return {"pk": {"S": f"T#{place}"}, "sk": {"S": "HEAD"}, **attributes}


def key(place: int = 0) -> dict[str, Any]:
    return item(place)


def put(**attributes: Any) -> tuple[str, dict[str, Any]]:
    return "PutItem", {"TableName": TABLE, "Item": item(**attributes)}


def update(expression: str, names: Any = None, values: Any = None, **more: Any) -> tuple[str, dict[str, Any]]:
    request = {"TableName": TABLE, "Key": KEY, "UpdateExpression": expression, **more}
    if names is not None:
        request["ExpressionAttributeNames"] = names
    if values is not None:
        request["ExpressionAttributeValues"] = values
    return "UpdateItem", request


def checked(condition: str, names: Any = None, values: Any = None) -> tuple[str, dict[str, Any]]:
    operation, request = update("REMOVE title", names, values, ConditionExpression=condition)
    return operation, request


def transact(*actions: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "TransactWriteItems", {"TransactItems": list(actions)}


def put_action(place: int, **attributes: Any) -> dict[str, Any]:
    return {"Put": {"TableName": TABLE, "Item": item(place, **attributes)}}


def batch_get(count: int) -> tuple[str, dict[str, Any]]:
    return "BatchGetItem", {"RequestItems": {TABLE: {"Keys": [key(place) for place in range(count)]}}}


def batch_write(*writes: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "BatchWriteItem", {"RequestItems": {TABLE: list(writes)}}


def put_request(place: int, **attributes: Any) -> dict[str, Any]:
    return {"PutRequest": {"Item": item(place, **attributes)}}


def query(condition: str = "pk = :p", **more: Any) -> tuple[str, dict[str, Any]]:
    values = {":p": {"S": "T#a"}, **more.pop("values", {})}
    request = {"TableName": TABLE, "KeyConditionExpression": condition, "ExpressionAttributeValues": values, **more}
    return "Query", request


def sweep_query(**more: Any) -> tuple[str, dict[str, Any]]:
    return query("sweep_pk = :p", IndexName="sweep", **more)


def start(pk: str = "T#a", sk: str = "HEAD", **more: str) -> dict[str, Any]:
    return {name: {"S": value} for name, value in {"pk": pk, "sk": sk, **more}.items()}


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(depth):
        value = {"L": [value]}
    return value


def operators(count: int) -> str:
    return " OR ".join(["a = b"] * ((count + 1) // 2))


REFUSED = [
    # how many, how large
    ("at most 100 actions", transact(*(put_action(place) for place in range(101))), "1 to 100"),
    ("at least one action", transact(), "1 to 100"),
    ("one item twice", transact(put_action(1), {"Delete": {"TableName": TABLE, "Key": key(1)}}), "twice"),
    ("4 MB in all", transact(*(put_action(place, a=text(390 * KB)) for place in range(11))), "4194304 bytes"),
    ("a transaction's row of 400 KB", transact(put_action(1, a=text(400 * KB))), "409600 bytes"),
    ("two actions in one", transact({**put_action(1), "Delete": {"TableName": TABLE, "Key": key(2)}}), "one action"),
    ("a check of nothing", transact({"ConditionCheck": {"TableName": TABLE, "Key": key()}}), "ConditionExpression"),
    ("a long token", ("TransactWriteItems", {**transact(put_action(1))[1], "ClientRequestToken": "x" * 37}), "36"),
    ("a row of 400 KB", put(a=text(400 * KB)), "409600 bytes"),
    ("an update that brings 400 KB", update("SET a = :a", values={":a": text(400 * KB)}), "409600 bytes"),
    ("26 writes", batch_write(*(put_request(place) for place in range(26))), "1 to 25"),
    ("no write", batch_write(), "1 to 25"),
    ("one key twice", batch_write(put_request(1), {"DeleteRequest": {"Key": key(1)}}), "twice"),
    ("a batch's row of 400 KB", batch_write(put_request(1, a=text(400 * KB))), "409600 bytes"),
    ("101 reads", batch_get(101), "1 to 100"),
    ("no read", batch_get(0), "1 to 100"),
    ("a read twice", ("BatchGetItem", {"RequestItems": {TABLE: {"Keys": [key(), key()]}}}), "twice"),
    # keys
    ("an empty key", ("GetItem", {"TableName": TABLE, "Key": {"pk": {"S": ""}, "sk": {"S": "a"}}}), "1 to 2048"),
    ("half a key", ("GetItem", {"TableName": TABLE, "Key": {"pk": {"S": "a"}}}), "just pk, sk"),
    ("more than a key", ("DeleteItem", {"TableName": TABLE, "Key": {**KEY, "a": {"S": "a"}}}), "just pk, sk"),
    ("a long partition key", put(pk=text(2049)), "1 to 2048"),
    ("a long sort key", put(sk=text(1025)), "1 to 1024"),
    ("a key of umlauts", put(sk={"S": "ü" * 513}), "1 to 1024"),
    ("a number as a key", put(pk=number("1")), "type S"),
    ("an item without a key", ("PutItem", {"TableName": TABLE, "Item": {"pk": {"S": "a"}}}), "needs sk"),
    ("a number in an index", put(sweep_sk=number("1")), "type S"),
    ("an empty key in an index", put(listing_pk=text(0)), "1 to 2048"),
    ("a number set in an index", update("SET sweep_sk = :d", values={":d": number("1")}), "type S"),
    ("a changed key", update("SET sk = :s", values={":s": text(1)}), "cannot be updated"),
    ("a removed key", update("REMOVE pk"), "cannot be updated"),
    # values
    ("39 digits", put(a=number("1" * 39)), "38 digits"),
    ("too large a number", put(a=number("1E126")), "size"),
    ("too small a number", put(a=number("-1E-131")), "size"),
    ("a bad number in a value", update("SET a = :a", values={":a": number("1E126")}), "size"),
    ("infinity", put(a=number("Infinity")), "No number"),
    ("33 levels", put(a=nested(33)), "32 levels"),
    ("an empty set", put(a={"SS": []}), "empty"),
    ("a set with doubles", put(a={"SS": ["x", "x"]}), "twice"),
    ("a value of two types", put(a={"S": "1", "N": "1"}), "one type"),
    # expressions
    ("an empty update", update(""), "empty"),
    ("an empty condition", checked(""), "empty"),
    ("no clause", update("a = :a", values={":a": text(1)}), "begins with"),
    ("a clause twice", update("SET a = b REMOVE c SET d = e"), "only be used once"),
    ("an undefined name", update("REMOVE #a"), "not defined"),
    ("an undefined value", update("SET a = :a"), "not defined"),
    ("an unused name", update("REMOVE a", names={"#b": "b"}), "#b"),
    ("an unused value", update("REMOVE a", values={":b": text(1)}), ":b"),
    ("empty names", update("REMOVE a", names={}), "must not be empty"),
    ("empty values", update("REMOVE a", values={}), "must not be empty"),
    ("no placeholder", update("REMOVE a", names={"b": "b"}), "no placeholder"),
    ("a reserved word", update("SET state = :s", values={":s": text(1)}), "reserved word"),
    ("a reserved word in a condition", checked("size > #n", {"#n": "n"}), "reserved word"),
    ("a reserved word of a path", update("REMOVE a.name"), "reserved word"),
    ("a name of digits", update("REMOVE a.1"), "give it a name"),
    ("an unknown function", checked("exists(a)"), "no function"),
    ("what is no expression", checked("a = 'b'"), "Not an expression"),
    ("over 4 KB", checked("a = " + "b" * 4 * KB), "4096 bytes"),
    ("over 300 operators", checked(operators(301)), "300 operators"),
    ("over 100 operands", checked(f"a IN ({', '.join('b' * 101)})"), "100 operands"),
    ("overlapping paths", update("SET a = b REMOVE a.c"), "overlap"),
    ("redundant parentheses", checked("((a = b))"), "Redundant"),
    ("an open parenthesis", checked("(a = b"), "not closed"),
    ("a parenthesis too many", checked("a = b)"), "too many"),
    ("bounds the wrong way", checked("a BETWEEN :a AND :b", None, {":a": text(2), ":b": text(1)}), "BETWEEN"),
    # queries
    ("a consistent read of an index", sweep_query(ConsistentRead=True), "not supported"),
    ("an unknown index", query(IndexName="other"), "no index"),
    ("a limit of 0", query(Limit=0), "1 or more"),
    ("no partition", query("sk = :p"), "pk ="),
    ("a range of partitions", query("begins_with(pk, :p)"), "pk ="),
    ("another attribute", query("pk = :p AND a = :a", values={":a": text(1)}), "no key"),
    ("an empty sort key", query("pk = :p AND begins_with(sk, :s)", values={":s": text(0)}), "1 to 1024"),
    ("a key twice", query("pk = :p AND pk = :p"), "once"),
    ("alternatives", query("pk = :p OR sk = :s", values={":s": text(1)}), "joined by AND"),
    ("another partition's start", query(ExclusiveStartKey=start(pk="T#b")), "outside"),
    (
        "a start beyond the range",
        query("pk = :p AND begins_with(sk, :s)", values={":s": {"S": "V#"}}, ExclusiveStartKey=start(sk="HEAD")),
        "outside",
    ),
    (
        "another partition's start in an index",
        sweep_query(ExclusiveStartKey=start(sweep_pk="T#b", sweep_sk="D#")),
        "outside",
    ),
    ("an index's start without its keys", sweep_query(ExclusiveStartKey=start()), "just"),
]

TAKEN = [
    ("100 actions", transact(*(put_action(place) for place in range(100)))),
    ("just below 4 MB", transact(*(put_action(place, a=text(390 * KB)) for place in range(10)))),
    ("a row of 400 KB", put(a=text(400 * KB - item_size(item()) - 1))),
    ("25 writes", batch_write(*(put_request(place) for place in range(25)))),
    ("100 reads", batch_get(100)),
    ("long keys", put(pk=text(2048), sk=text(1024))),
    ("38 digits", put(a=number("1" * 38))),
    ("trailing zeros", put(a=number("1" + "0" * 100))),
    ("the largest and the smallest number", put(a=number("9.9E+125"), b=number("-1E-130"), c=number("0"))),
    ("32 levels", put(a=nested(32))),
    ("empty values that are no keys", put(a=text(0), b={"L": []}, c={"M": {}})),
    ("a reserved word with #", update("SET #state = :s", {"#state": "state"}, {":s": text(1)})),
    ("a digit with #", update("SET a.#1 = :s", {"#1": "1"}, {":s": text(1)})),
    ("an element of a list", update("REMOVE a[0], a[1]")),
    ("several clauses", update("SET a = if_not_exists(a, :n) + :n REMOVE b, c ADD d :n", values={":n": number("1")})),
    ("no update at all", ("UpdateItem", {"TableName": TABLE, "Key": KEY})),
    ("300 operators", checked(operators(299))),
    ("100 operands", checked(f"a IN ({', '.join('b' * 100)})")),
    ("needed parentheses", checked("(a = b OR (c = d AND NOT (e = f))) AND attribute_exists(pk)")),
    ("a start in the partition", query(ExclusiveStartKey=start())),
    (
        "a start in the range",
        query(
            "pk = :p AND sk BETWEEN :a AND :b",
            values={":a": {"S": "A"}, ":b": {"S": "Z"}},
            ExclusiveStartKey=start(sk="HEAD"),
        ),
    ),
    ("a start in an index", sweep_query(ExclusiveStartKey=start(sweep_pk="T#a", sweep_sk="D#"))),
    ("what is no request for items", ("DescribeTable", {"TableName": TABLE})),
]


@pytest.mark.parametrize(("request_", "reason"), [pytest.param(*one[1:], id=one[0]) for one in REFUSED])
def test_a_request_that_aws_refuses_is_refused(request_: tuple[str, dict[str, Any]], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        Validator().check(*request_)


@pytest.mark.parametrize("request_", [pytest.param(one[1], id=one[0]) for one in TAKEN])
def test_a_request_that_aws_takes_is_taken(request_: tuple[str, dict[str, Any]]) -> None:
    Validator().check(*request_)


def test_every_request_of_a_world_is_checked(world: World) -> None:
    before = world.validator.checked
    world.ingest(world.collection(), "some text")
    assert world.validator.checked > before
    assert not world.validator.refused


def test_a_refused_request_is_not_sent_and_fails_the_test_when_its_world_is_closed() -> None:
    with mock_aws():
        world = make_world(dynamodb=boto3.client("dynamodb", region_name=REGION))
        with pytest.raises(Refused):
            world.stores.table.write(Action(Key("T#a", ""), put={}))
        assert world.rows() == []
        with pytest.raises(AssertionError, match="PutItem: The key sk has 1 to 1024 bytes: 0"):
            world.close()

"""The stand-in for DynamoDB that the proofs run on does what moto does: the same answers, the same rows."""

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from moto import mock_aws

from infra.template import create_table
from tests.proofs.harness import TABLE, Actor, World
from tests.proofs.operations import OPERATIONS, Operation, Scene
from tests.support.dynamodb import LargeDynamoDB, MemoryDynamoDB
from tests.support.engines import REGION
from tests.support.expressions import Refused, holds

_tables = itertools.count()

PARTITIONS, SORTS, LISTED = ("a", "b"), ("v#1", "v#2", "w"), ("l1", "l2")

keys = st.builds(lambda pk, sk: {"pk": {"S": pk}, "sk": {"S": sk}}, st.sampled_from(PARTITIONS), st.sampled_from(SORTS))
numbers = st.integers(-3, 3).map(lambda number: {"N": str(number)})
attributes = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from(["ready", "failed"]).map(lambda text: {"S": text}),
        "attempt": numbers,
        "opened": st.booleans().map(lambda value: {"BOOL": value}),
        "reserved": st.dictionaries(st.sampled_from("12"), numbers, max_size=2).map(lambda value: {"M": value}),
        "listing_pk": st.sampled_from(LISTED).map(lambda text: {"S": text}),
        "listing_sk": st.sampled_from(LISTED).map(lambda text: {"S": text}),
    },
)
items = st.builds(lambda key, more: {**key, **more}, keys, attributes)

CONDITIONS = (
    "attribute_exists(pk)",
    "attribute_not_exists(pk)",
    "#state = :ready",
    "#state IN (:ready, :failed) AND attempt = :one",
    "attempt <= :one AND reserved = :reserved",
    "opened = :true",
    "(attempt = :one OR attribute_not_exists(attempt)) AND NOT #state = :failed",
)
UPDATES = (
    "SET #state = :ready, attempt = :one",
    "SET #state = :failed REMOVE attempt, listing_pk, listing_sk",
    "SET attempt = if_not_exists(attempt, :one)",
    "ADD attempt :one, #rows :one",
    "REMOVE opened",
)
NEEDING = ("SET reserved.#one = :one", "SET attempt = attempt + :one")
"""Updates that are refused where there is nothing to change. Within a transaction each says so in its own way."""

NAMES = {"#state": "state", "#one": "1", "#rows": "rows"}
VALUES: dict[str, Any] = {
    ":ready": {"S": "ready"},
    ":failed": {"S": "failed"},
    ":one": {"N": "1"},
    ":true": {"BOOL": True},
    ":reserved": {"M": {"1": {"N": "1"}}},
}
conditions = st.none() | st.sampled_from(CONDITIONS)


def _used(*expressions: str | None) -> dict[str, Any]:
    """The names and values that expressions use: AWS refuses what is not used."""
    text = " ".join(one or "" for one in expressions)
    names = {name: value for name, value in NAMES.items() if name in text}
    values = {name: value for name, value in VALUES.items() if name in text}
    return {
        **({"ExpressionAttributeNames": names} if names else {}),
        **({"ExpressionAttributeValues": values} if values else {}),
    }


def _conditional(condition: str | None) -> dict[str, Any]:
    return {} if condition is None else {"ConditionExpression": condition}


puts = st.builds(lambda item, one: {"Item": item, **_conditional(one), **_used(one)}, items, conditions)
deletes = st.builds(lambda key, one: {"Key": key, **_conditional(one), **_used(one)}, keys, conditions)


def _updates(expressions: Sequence[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda key, update, one: {"Key": key, "UpdateExpression": update, **_conditional(one), **_used(update, one)},
        keys,
        st.sampled_from(expressions),
        conditions,
    )


updates = _updates(UPDATES + NEEDING)
checks = st.builds(lambda key, one: {"Key": key, **_conditional(one), **_used(one)}, keys, st.sampled_from(CONDITIONS))
actions = st.one_of(
    st.tuples(st.just("Put"), puts),
    st.tuples(st.just("Update"), _updates(UPDATES)),
    st.tuples(st.just("Delete"), deletes),
    st.tuples(st.just("ConditionCheck"), checks),
)


def _place(kind: str, action: dict[str, Any]) -> tuple[str, str]:
    key = action["Item"] if kind == "Put" else action["Key"]
    return key["pk"]["S"], key["sk"]["S"]


transactions = st.lists(actions, min_size=1, max_size=4, unique_by=lambda one: _place(*one))
batches = st.lists(
    st.one_of(
        items.map(lambda item: ("PutRequest", {"Item": item})), keys.map(lambda key: ("DeleteRequest", {"Key": key}))
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda one: _place(one[0].removesuffix("Request"), one[1]),
)
queries = st.builds(
    lambda partition, sort, forward, limit: {
        "KeyConditionExpression": f"pk = :partition{sort[0]}",
        "ExpressionAttributeValues": {":partition": {"S": partition}, **sort[1]},
        "ScanIndexForward": forward,
        **({"Limit": limit} if limit else {}),
    },
    st.sampled_from(PARTITIONS),
    st.sampled_from(
        [
            ("", {}),
            (" AND begins_with(sk, :sort)", {":sort": {"S": "v#"}}),
            (" AND sk BETWEEN :low AND :high", {":low": {"S": "v#2"}, ":high": {"S": "w"}}),
        ]
    ),
    st.booleans(),
    st.sampled_from([None, 1, 2]),
)
listings = st.builds(
    lambda partition, forward: {
        "IndexName": "listing",
        "KeyConditionExpression": "listing_pk = :partition",
        "ExpressionAttributeValues": {":partition": {"S": partition}},
        "ScanIndexForward": forward,
    },
    st.sampled_from(LISTED),
    st.booleans(),
)
calls = st.one_of(
    puts.map(lambda one: ("put_item", one)),
    updates.map(lambda one: ("update_item", one)),
    deletes.map(lambda one: ("delete_item", one)),
    keys.map(lambda one: ("get_item", {"Key": one, "ConsistentRead": True})),
    transactions.map(lambda some: ("transact_write_items", some)),
    batches.map(lambda some: ("batch_write_item", some)),
    st.lists(keys, min_size=1, max_size=4, unique_by=repr).map(lambda some: ("batch_get_item", some)),
    queries.map(lambda one: ("query", one)),
    listings.map(lambda one: ("query", one)),
)


def _arguments(table: str, name: str, given: Any) -> dict[str, Any]:
    if name == "transact_write_items":
        return {"TransactItems": [{kind: {"TableName": table, **action}} for kind, action in given]}
    if name == "batch_write_item":
        return {"RequestItems": {table: [dict([one]) for one in given]}}
    if name == "batch_get_item":
        return {"RequestItems": {table: {"Keys": given, "ProjectionExpression": "pk, sk, attempt"}}}
    return {"TableName": table, **given}


def _answer(client: Any, table: str, name: str, given: Any) -> Any:
    """What a caller can tell of a call, in a form that can be compared."""
    if name == "query":
        return _pages(client, {"TableName": table, **given})
    try:
        answer = getattr(client, name)(**_arguments(table, name, given))
    except ClientError as error:
        response: Any = error.response
        reasons = [reason.get("Code", "None") for reason in response.get("CancellationReasons", [])]
        return response["Error"]["Code"], reasons
    if name == "batch_get_item":
        return sorted(map(repr, (sorted(one.items()) for one in answer["Responses"][table])))
    return answer.get("Item")


def _pages(client: Any, query: dict[str, Any]) -> list[Any]:
    """All pages of a query. Whether the last page knows that it is the last differs, and may."""
    rows: list[Any] = []
    while True:
        page = client.query(**query)
        assert len(page["Items"]) <= query.get("Limit", 1000)
        rows += page["Items"]
        if "LastEvaluatedKey" not in page:
            # Rows of an index with the same sort key come in any order.
            return rows if "IndexName" not in query else sorted(rows, key=repr)
        query = {**query, "ExclusiveStartKey": page["LastEvaluatedKey"]}


@pytest.fixture(scope="module")
def moto() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("dynamodb", region_name=REGION)


@settings(max_examples=40, deadline=None, phases=(Phase.reuse, Phase.generate))
@given(st.lists(calls, min_size=1, max_size=12))
def test_calls_have_the_same_answers_and_leave_the_same_rows_as_in_moto(moto: Any, some: list[tuple[str, Any]]) -> None:
    table = f"contract-{next(_tables)}"
    create_table(moto, table)
    memory, large = MemoryDynamoDB(), LargeDynamoDB()
    for name, given_arguments in some:
        expected = _answer(moto, table, name, given_arguments)
        assert _answer(memory, table, name, given_arguments) == expected, f"{name} {given_arguments}"
        assert _answer(large, table, name, given_arguments) == expected, f"{name} {given_arguments}"
    rows = {(item["pk"]["S"], item["sk"]["S"]): item for item in moto.scan(TableName=table)["Items"]}
    assert memory.items == large.items == rows
    moto.delete_table(TableName=table)


SAME_ON_BOTH = (
    "replace",
    "replace with failed older versions",
    "replace that is overtaken",
    "ingest unchanged, by a higher version",
    "refusal",
    "unkeyed ingest after a failed one",
    "claim by a higher version",
    "delete source with versions of all kinds",
    "delete collection",
    "sweep of a removed document",
    "sweep of an emptied collection",
    "rename collection",
    "reindex",
    "reconcile",
)


def _run(operation: Operation, scene: Scene, actor: Actor) -> Any:
    return operation.run(actor, scene)


@pytest.mark.parametrize("name", SAME_ON_BOTH)
def test_an_operation_of_the_engine_leaves_the_same_rows_as_in_moto(moto: Any, name: str) -> None:
    (operation,) = [operation for operation in OPERATIONS if operation.name == name]
    ends = []
    create_table(moto, TABLE)
    for world in (World(), World(dynamodb=moto)):
        scene = operation.prepare(world)
        outcome = world.run(partial(_run, operation, scene))
        pages = world.dynamodb.get_paginator("scan").paginate(TableName=TABLE)
        rows = {(item["pk"]["S"], item["sk"]["S"]): item for page in pages for item in page["Items"]}
        ends.append((repr(outcome.answer), repr(outcome.failure), rows))
        world.close()
    moto.delete_table(TableName=TABLE)
    assert ends[0] == ends[1]


@pytest.mark.parametrize("expression", ["size(pk) = :one", "pk = :one AND", "contains(pk, :one)", "pk ! :one"])
def test_a_condition_that_is_not_understood_is_an_error_and_never_true(expression: str) -> None:
    with pytest.raises(Refused):
        holds(expression, {}, {}, {":one": {"N": "1"}})


def test_a_batch_that_AWS_refuses_is_refused() -> None:
    memory = MemoryDynamoDB()
    put = [{"PutRequest": {"Item": {"pk": {"S": "a"}, "sk": {"S": str(number)}}}} for number in range(26)]
    for requests in (put, [put[0], put[0]], []):
        with pytest.raises(Refused):
            memory.batch_write_item(RequestItems={TABLE: requests})
    assert memory.items == {}


def test_a_listing_that_lags_shows_an_older_state() -> None:
    moments = [0.0]
    memory = MemoryDynamoDB(lambda: moments[0])
    item = {name: {"S": name} for name in ("pk", "sk", "listing_pk", "listing_sk")}
    query: dict[str, Any] = {
        "TableName": TABLE,
        "IndexName": "listing",
        "KeyConditionExpression": "listing_pk = :partition",
        "ExpressionAttributeValues": {":partition": {"S": "listing_pk"}},
    }
    memory.lag = 5.0
    memory.put_item(TableName=TABLE, Item=item)
    assert memory.query(**query)["Items"] == []
    moments[0] = 6.0
    assert len(memory.query(**query)["Items"]) == 1

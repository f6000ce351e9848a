"""The DynamoDBs that the rows are held to: none of them is AWS, and each is strict where another is not."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from moto import mock_aws

from core.metadata.dynamo import dynamodb_client
from core.metadata.embedded import EmbeddedDynamoDB
from infra.template import create_table
from tests.support.clock import ManualClock
from tests.support.double import ministack_process, moto_process
from tests.support.dynamodb import MemoryDynamoDB
from tests.support.engines import REGION, TABLE, World, make_world
from tests.support.validator import Validated

DOUBLES = ["moto", "moto_over_http", "ministack", "memory", "embedded"]


class CheckedEmbeddedDynamoDB(Validated):
    """The product's embedded table, whose requests are held to the rules of AWS as every other stand-in's are."""

    def __init__(self) -> None:
        self._table = EmbeddedDynamoDB(None)

    def get_paginator(self, operation: str) -> "CheckedEmbeddedDynamoDB":
        """Returns an object whose `paginate` scans the table. The product never scans, so its table cannot."""
        assert operation == "scan"
        return self

    def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
        rows = self._table._connection.execute("SELECT item FROM items")
        yield {"Items": [json.loads(item) for (item,) in rows]}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = "".join(word.capitalize() for word in name.split("_"))

        def call(**request: Any) -> Any:
            self.validator.remember(operation, request)
            return getattr(self._table, name)(**request)

        return call


@pytest.fixture(scope="session")
def moto_over_http() -> Iterator[str]:
    """The URL of moto's server."""
    with moto_process() as url:
        yield url


@pytest.fixture(scope="session")
def ministack() -> Iterator[str]:
    """The URL of ministack. It is installed by `make`; where it is not, its tests fail and say so."""
    with ministack_process() as url:
        yield url


@pytest.fixture(params=DOUBLES)
def rows(request: pytest.FixtureRequest) -> Iterator[World]:
    """An engine on the template's table, new and empty, in one of the doubles."""
    clock = ManualClock()
    if request.param == "memory":
        yield from _world(MemoryDynamoDB(clock.monotonic), clock, create=False)
    elif request.param == "embedded":
        yield from _world(CheckedEmbeddedDynamoDB(), clock, create=False)
    elif request.param == "moto":
        with mock_aws():
            yield from _world(dynamodb_client(region=REGION), clock)
    else:
        client = dynamodb_client(region=REGION, url=request.getfixturevalue(request.param))
        try:
            yield from _world(client, clock)
        finally:
            client.delete_table(TableName=TABLE)
            client.close()


def _world(client: Any, clock: ManualClock, *, create: bool = True) -> Iterator[World]:
    if create:
        create_table(client, TABLE)
    world = make_world(dynamodb=client, clock=clock, create=False)
    yield world
    world.close()

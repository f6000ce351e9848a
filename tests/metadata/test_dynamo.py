"""The DynamoDB client returns plain values, repeats steps, and turns failures into the errors of the engine."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from core.metadata.dynamo import BACKOFF, Action, ConditionFailed, Conflict, Table, dynamodb_client, retry_on_conflict
from core.metadata.table import Key
from core.model.errors import Unavailable
from infra.template import create_table
from tests.support.clock import ManualClock
from tests.support.engines import REGION, TABLE

KEY, OTHER = Key("P", "a"), Key("P", "b")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


# -- retry_on_conflict -------------------------------------------------------------------------------------------


class Failing:
    """A step that fails in turn with each of these errors, and then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.mark.parametrize("error", [ConditionFailed(), Conflict()])
def test_a_step_that_meets_another_writer_each_time_is_tried_ten_times(clock: ManualClock, error: Exception) -> None:
    step = Failing(*[error] * (BACKOFF.tries - 1))
    assert retry_on_conflict(clock, step) == "done"
    assert step.calls == 10
    with pytest.raises(Unavailable) as raised:
        retry_on_conflict(clock, Failing(*[error] * BACKOFF.tries))
    assert raised.value.extras["retry_after_s"] > 0


def test_a_step_that_DynamoDB_does_not_answer_is_tried_three_times(clock: ManualClock) -> None:
    assert retry_on_conflict(clock, Failing(Unavailable("x"), Unavailable("y"))) == "done"
    with pytest.raises(Unavailable, match="z"):
        retry_on_conflict(clock, Failing(Unavailable("x"), Unavailable("y"), Unavailable("z")))


def test_a_step_with_any_other_error_is_not_tried_again(clock: ManualClock) -> None:
    step = Failing(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        retry_on_conflict(clock, step)
    assert step.calls == 1


class NotedClock(ManualClock):
    """Notes how long it was asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def test_waits_are_drawn_from_a_bound_that_doubles_from_20_ms_to_1_s() -> None:
    clock = NotedClock()
    for _ in range(200):
        with pytest.raises(Unavailable):
            retry_on_conflict(clock, Failing(*[Conflict()] * BACKOFF.tries))
    waits = BACKOFF.tries - 1
    assert len(clock.waits) == 200 * waits, "there is a wait between two tries, and none after the last one"
    for number in range(waits):
        bound = min(1.0, 0.02 * 2**number)
        drawn = clock.waits[number::waits]
        assert 0 <= min(drawn) < 0.1 * bound
        assert 0.9 * bound < max(drawn) <= bound


# -- the client ---------------------------------------------------------------------------------------


def test_answers_are_the_plain_values_that_boto3_would_return() -> None:
    values = {"text": {"S": "a"}, "number": {"N": "-12"}, "no": {"BOOL": False}, "nothing": {"NULL": True}}
    values["map"] = {"M": {"list": {"L": [{"S": ""}, {"M": {}}]}, "names": {"SS": ["a", "b"]}}}
    items: list[Any] = [{"pk": {"S": "P"}, "sk": {"S": sort}, **values} for sort in "ab"]
    key = {name: items[0][name] for name in ("pk", "sk")}
    with mock_aws():
        plain, ours = boto3.client("dynamodb", region_name=REGION), dynamodb_client(region=REGION)
        create_table(plain, TABLE)
        for item in items:
            ours.put_item(TableName=TABLE, Item=item)
        asked: dict[str, Any] = {
            "get_item": {"TableName": TABLE, "Key": key},
            "batch_get_item": {"RequestItems": {TABLE: {"Keys": [key]}}},
            "query": {
                "TableName": TABLE,
                "KeyConditionExpression": "pk = :pk",
                "ExpressionAttributeValues": {":pk": {"S": "P"}},
                "Limit": 1,
            },
        }
        for operation, request in asked.items():
            expected, answer = (getattr(client, operation)(**request) for client in (plain, ours))
            for each in (expected, answer):
                each.pop("ResponseMetadata")
            assert answer == expected, operation
        assert ours.get_item(TableName=TABLE, Key=key)["Item"] == items[0]


# -- errors of the service ----------------------------------------------------------------------------


class Wire:
    """The real client, with the service's answers given by the test."""

    def __init__(self) -> None:
        config = Config(retries={"mode": "standard", "total_max_attempts": 1})
        self.client = boto3.client("dynamodb", region_name=REGION, config=config)
        answer: Any = self._answer
        self.client.meta.events.register("before-send.dynamodb", answer)
        self.status, self.body = 200, "{}"
        self.error: Exception | None = None

    def _answer(self, request: Any, **_: Any) -> AWSResponse:
        if self.error is not None:
            raise self.error
        headers: Any = {"x-amzn-requestid": "1"}
        return AWSResponse(request.url, self.status, headers, _Raw(self.body.encode()))

    def says(self, code: str, more: str = "") -> None:
        self.status = 400
        self.body = f'{{"__type": "com.amazonaws.dynamodb.v20120810#{code}", "message": "no"{more}}}'


class _Raw:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self._body


@pytest.fixture
def wire() -> Wire:
    return Wire()


def reasons(*codes: str) -> str:
    return ', "CancellationReasons": [' + ", ".join(f'{{"Code": "{code}"}}' for code in codes) + "]"


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (("None", "ConditionalCheckFailed"), ConditionFailed),
        (("TransactionConflict", "ConditionalCheckFailed"), ConditionFailed),
        (("TransactionConflict", "None"), Conflict),
        (("ThrottlingError", "None"), Conflict),
        (("ProvisionedThroughputExceeded", "TransactionConflict"), Conflict),
        (("ValidationError", "None"), ClientError),
    ],
)
def test_only_a_failed_condition_becomes_ConditionFailed(
    wire: Wire, clock: ManualClock, codes: tuple[str, ...], expected: type[Exception]
) -> None:
    wire.says("TransactionCanceledException", reasons(*codes))
    with pytest.raises(expected):
        Table(wire.client, TABLE, clock).transact([Action(KEY, put={}), Action(OTHER, put={})])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ConditionalCheckFailedException", ConditionFailed),
        ("TransactionConflictException", Conflict),
        ("TransactionInProgressException", Conflict),
        ("ProvisionedThroughputExceededException", Unavailable),
        ("ThrottlingException", Unavailable),
        ("RequestLimitExceeded", Unavailable),
        ("InternalServerError", Unavailable),
        ("ValidationException", ClientError),
        ("AccessDeniedException", ClientError),
        ("ResourceNotFoundException", ClientError),
    ],
)
def test_a_refusal_of_DynamoDB_becomes_the_error_of_its_kind(
    wire: Wire, clock: ManualClock, code: str, expected: type[Exception]
) -> None:
    wire.says(code)
    with pytest.raises(expected):
        Table(wire.client, TABLE, clock).write(Action(KEY, put={}))


def test_a_service_that_does_not_answer_is_unavailable_without_its_host_name(
    wire: Wire, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    wire.error = EndpointConnectionError(endpoint_url="https://dynamodb.secret.example")
    with pytest.raises(Unavailable) as raised:
        Table(wire.client, TABLE, clock).get(KEY)
    assert "secret" not in str(raised.value) + caplog.text


def test_unprocessed_items_of_a_batch_are_sent_again_and_in_the_end_unavailable(wire: Wire, clock: ManualClock) -> None:
    wire.body = f'{{"UnprocessedItems": {{"{TABLE}": [{{"PutRequest": {{"Item": {{"pk": {{"S": "P"}}}}}}}}]}}}}'
    with pytest.raises(Unavailable):
        Table(wire.client, TABLE, clock).batch_write(puts=[KEY._asdict()])
    assert clock.monotonic() > 0, "with waits between"


def test_a_ping_of_an_existing_table_returns(clock: ManualClock) -> None:
    with mock_aws():
        client = boto3.client("dynamodb", region_name=REGION)
        rows = Table(client, TABLE, clock)
        with pytest.raises(ClientError):
            rows.ping()
        create_table(client, TABLE)
        rows.ping()

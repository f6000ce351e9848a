"""Messages reach the function as Lambda's event source mapping hands them on, and come back until they are settled."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from infra import template
from infra.local import workers
from infra.local.aws import AwsServer
from infra.local.function import LambdaFunction
from infra.local.names import DEAD_LETTERS, QUEUE
from infra.local.workers import QueueWorker, ScheduleWorker
from tests.support.waiting import until

Handler = Callable[[dict[str, Any], Any], Any]


class Recorder:
    """A handler that remembers its events and answers by rule."""

    def __init__(self, rule: Callable[[dict[str, Any]], Any] = lambda record: None) -> None:
        self.events: list[dict[str, Any]] = []
        self._rule = rule

    def __call__(self, event: dict[str, Any], _context: Any) -> Any:
        self.events.append(event)
        return self._rule(event)

    def bodies(self) -> list[str]:
        return [record["body"] for event in list(self.events) for record in event["Records"]]


class Feeding:
    """A queue worker that runs inside the block."""

    def __init__(self, aws: AwsServer, handler: Handler, max_receives: int = 3) -> None:
        queue = template.Queue(function="F", batch_size=5, concurrency=1, visibility_s=60, max_receives=max_receives)
        url = aws.queue_url(QUEUE)
        self.failed = threading.Event()
        self._worker = QueueWorker(aws.sqs, url, LambdaFunction("F", handler, 30), queue, self.failed.set)

    def __enter__(self) -> "Feeding":
        self._worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.stop()
        assert self._worker.join(30)


@pytest.fixture
def queue(aws: AwsServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The queue's URL, without the test event; messages that were not settled come again at once."""
    url = aws.queue_url(QUEUE)
    aws.sqs.purge_queue(QueueUrl=url)
    monkeypatch.setattr(workers, "RETRY_AFTER_S", 0)
    return url


def left(aws: AwsServer, name: str) -> int:
    counts = aws.sqs.get_queue_attributes(
        QueueUrl=aws.queue_url(name),
        AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    )["Attributes"]
    return sum(map(int, counts.values()))


def test_a_message_arrives_as_an_sqs_event_and_is_deleted_when_it_is_settled(aws: AwsServer, queue: str) -> None:
    handler = Recorder()
    with Feeding(aws, handler):
        sent = aws.sqs.send_message(QueueUrl=queue, MessageBody="hello")["MessageId"]
        until(lambda: handler.events and left(aws, QUEUE) == 0)
    [record] = handler.events[0]["Records"]
    assert (record["messageId"], record["body"], record["eventSource"]) == (sent, "hello", "aws:sqs")
    assert record["eventSourceARN"].endswith(f":{QUEUE}")
    assert record["receiptHandle"]
    assert record["attributes"]["ApproximateReceiveCount"] == "1"


def test_only_the_messages_that_the_answer_names_come_again(aws: AwsServer, queue: str) -> None:
    def rule(event: dict[str, Any]) -> Any:
        again = [
            record
            for record in event["Records"]
            if record["body"] == "later" and record["attributes"]["ApproximateReceiveCount"] == "1"
        ]
        return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in again]}

    handler = Recorder(rule)
    for body in ("now", "later"):
        aws.sqs.send_message(QueueUrl=queue, MessageBody=body)
    with Feeding(aws, handler):
        until(lambda: left(aws, QUEUE) == 0)
    assert sorted(handler.bodies()) == ["later", "later", "now"]


def fails(_event: dict[str, Any]) -> Any:
    raise LookupError


@pytest.mark.parametrize(
    "rule",
    [fails, lambda event: {"batchItemFailures": [{"itemIdentifier": "unknown"}]}],
    ids=["the function fails", "the answer names a message that was not sent"],
)
def test_a_batch_that_failed_comes_again_and_goes_to_the_dead_letters_in_the_end(
    aws: AwsServer, queue: str, rule: Callable[[dict[str, Any]], Any]
) -> None:
    handler = Recorder(rule)
    most = template.queue(template.load()).max_receives
    with Feeding(aws, handler, most):
        aws.sqs.send_message(QueueUrl=queue, MessageBody="bad")
        until(lambda: left(aws, DEAD_LETTERS) == 1)
    assert len(handler.events) == most
    assert left(aws, QUEUE) == 0


def test_a_worker_that_breaks_says_so(aws: AwsServer, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    feeding = Feeding(aws, Recorder())
    monkeypatch.setattr(workers, "MAX_RECEIVED", 11)
    monkeypatch.setattr(feeding._worker, "_url", queue + "-gone")
    with feeding:
        assert feeding.failed.wait(30)


def test_the_schedule_calls_its_function_again_and_again_and_after_a_failure() -> None:
    called = threading.Semaphore(0)
    events: list[dict[str, Any]] = []

    def handler(event: dict[str, Any], _context: Any) -> Any:
        events.append(event)
        called.release()
        if len(events) == 1:
            raise LookupError

    worker = ScheduleWorker(LambdaFunction("F", handler, 30), 0.01, lambda: None)
    worker.start()
    for _ in range(3):
        assert called.acquire(timeout=30)
    worker.stop()
    assert worker.join(30)
    assert json.dumps(events[0])
    assert events[0]["source"] == "aws.scheduler"

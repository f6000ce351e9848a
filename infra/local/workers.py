"""What goes on beside the requests: the queue of the bucket's events and the schedule call functions; a server is
watched."""

import json
import logging
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from infra import template
from infra.local.function import FunctionError, LambdaFunction
from infra.local.names import ACCOUNT, REGION

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import MessageTypeDef

RETRY_AFTER_S = 5
"""Until a message that was not settled is handed out again; on AWS it is the queue's visibility time-out, which is
longer than a developer wants to wait."""
IDLE_S = 0.5
LOOK_S = 1.0
MAX_RECEIVED = 10

logger = logging.getLogger(__name__)


class Worker:
    """A thread that does the same thing until it is stopped. ``on_failure`` is called when it ends by an error."""

    def __init__(self, name: str, on_failure: Callable[[], None]) -> None:
        self.failed = False
        self._stop = threading.Event()
        self._on_failure = on_failure
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Begins nothing more. What has begun goes on: see ``join``."""
        self._stop.set()

    def join(self, timeout_s: float) -> bool:
        """Waits; whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._work()
        except Exception:  # a thread's errors have no other way out
            logger.exception("The %s ended", self._thread.name)
            self.failed = True
            self._on_failure()

    def _work(self) -> None:
        raise NotImplementedError


class QueueWorker(Worker):
    """Hands messages to the function, one batch at a time, as Lambda's event source mapping does.

    Settled messages are deleted. Others come again, and go to the dead-letter queue in the end.
    """

    def __init__(
        self,
        client: "SQSClient",
        url: str,
        function: LambdaFunction,
        queue: template.Queue,
        on_failure: Callable[[], None],
    ) -> None:
        super().__init__("queue", on_failure)
        self._client = client
        self._url = url
        self._function = function
        self._queue = queue
        self._arn = template.queue_arn(client, url)

    def _work(self) -> None:
        while not self._stop.is_set():
            messages = self._receive()
            if messages:
                self._settle(messages, self._failed(messages))
            else:
                self._stop.wait(IDLE_S)

    def _receive(self) -> "list[MessageTypeDef]":
        # Nothing else receives, so a message stays hidden for as long as the function may take.
        return self._client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=min(self._queue.batch_size, MAX_RECEIVED),
            VisibilityTimeout=self._queue.visibility_s,
            AttributeNames=["All"],
        ).get("Messages", [])

    def _failed(self, messages: "list[MessageTypeDef]") -> set[str]:
        """The ids of the messages that the function did not settle."""
        everything = {message["MessageId"] for message in messages}
        event = {"Records": [_sqs_record(message, self._arn) for message in messages]}
        try:
            answer = self._function.invoke(event).result() or {}
        except FunctionError:
            return everything
        failed = {failure.get("itemIdentifier") for failure in answer.get("batchItemFailures") or []}
        # An id that was not sent fails the batch, as Lambda has it.
        return failed if failed <= everything else everything

    def _settle(self, messages: "list[MessageTypeDef]", failed: set[str]) -> None:
        for message in messages:
            handle = message["ReceiptHandle"]
            if message["MessageId"] in failed:
                received = message["Attributes"]["ApproximateReceiveCount"]
                logger.warning("An event was not settled (try %s of %d)", received, self._queue.max_receives)
                self._client.change_message_visibility(
                    QueueUrl=self._url, ReceiptHandle=handle, VisibilityTimeout=RETRY_AFTER_S
                )
            else:
                self._client.delete_message(QueueUrl=self._url, ReceiptHandle=handle)


def _sqs_record(message: "MessageTypeDef", arn: str) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": REGION,
    }


class ScheduleWorker(Worker):
    """Calls a function every so often, as EventBridge Scheduler does. The next call is the retry of a failed one."""

    def __init__(self, function: LambdaFunction, every_s: float, on_failure: Callable[[], None]) -> None:
        super().__init__("schedule", on_failure)
        self._function = function
        self._every_s = every_s

    def _work(self) -> None:
        while not self._stop.wait(self._every_s):
            invocation: Future[Any] = self._function.invoke(_scheduled_event())
            if invocation.exception() is None:
                logger.info("Sweep: %s", json.dumps(invocation.result()))


class ServerWatch(Worker):
    """Fails when a server has ended by itself."""

    def __init__(self, name: str, is_running: Callable[[], bool], on_failure: Callable[[], None]) -> None:
        super().__init__(name, on_failure)
        self._is_running = is_running

    def _work(self) -> None:
        while not self._stop.wait(LOOK_S):
            if not self._is_running():
                raise RuntimeError("The server has ended by itself")


def _scheduled_event() -> dict[str, Any]:
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": ACCOUNT,
        "time": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "region": REGION,
        "resources": [f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/default/sweep"],
        "detail": "{}",
    }

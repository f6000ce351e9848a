"""Messages that fail are delivered again, and documents that are not searchable in time are finished from the queue."""

import json
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws

from core.ingest.finish import SqsFinishQueue
from core.model.document import DocumentState
from core.model.errors import NotYetSearchable, Unavailable
from core.wiring import sqs_client
from functions.ingest.events import redeliver_soon
from tests.events.objects import Objects
from tests.support.gateway import Api
from tests.support.handlers import Meanwhile

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

ANSWER_TIME_MS = 10_000


def test_a_message_fails_while_a_store_does_not_answer_and_succeeds_at_its_next_delivery(objects: Objects) -> None:
    record = objects.put("a.txt")
    objects.world.embedder.failure = Unavailable("throttled")
    assert objects.deliver(record) == [0]
    objects.world.embedder.failure = None
    assert objects.deliver(record) == []
    assert objects.texts() == ["A loom."]


def test_a_batch_in_which_every_message_fails_names_each_of_them(objects: Objects) -> None:
    assert objects.deliver("x", "y") == [0, 1]


def test_a_message_fails_while_another_handler_ingests_the_same_content(objects: Objects, meanwhile: Meanwhile) -> None:
    record = objects.put("a.txt")
    failed: list[list[int]] = []
    meanwhile.do = lambda _: failed.append(objects.deliver(record))
    assert objects.deliver(record) == []
    assert failed == [[0]]
    assert objects.embedded() == ["A loom."]


def test_messages_that_the_functions_time_does_not_reach_fail_without_a_document(objects: Objects) -> None:
    objects.remaining_ms = ANSWER_TIME_MS
    assert objects.deliver(objects.put("a.txt"), objects.put("b.txt", b"Yarn.")) == [0, 1]
    assert objects.documents() == []


def test_a_message_may_name_several_objects(objects: Objects) -> None:
    records = [objects.put("a.txt"), objects.put("b.txt", b"Yarn.")]
    assert objects.deliver(json.dumps({"Records": records})) == []
    assert set(objects.ready()) == {"a.txt", "b.txt"}


@pytest.fixture
def slow(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> tuple["SQSClient", str]:
    """Makes a queue for documents to be finished, and a vector store that shows no write within its call."""
    sqs = sqs_client()
    url = sqs.create_queue(QueueName="events")["QueueUrl"]
    objects.world.rebuild(finish_queue=SqsFinishQueue(sqs, url))
    write = objects.world.vectors.write

    def write_slowly(*arguments: Any) -> None:
        write(*arguments)
        raise NotYetSearchable("not yet")

    monkeypatch.setattr(objects.world.vectors, "write", write_slowly)
    return sqs, url


def test_an_object_that_is_not_searchable_in_time_fails_its_message_until_the_queue_has_finished_the_document(
    objects: Objects, slow: tuple["SQSClient", str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs, url = slow
    sent: list[dict[str, Any]] = []
    sqs.meta.events.register("provide-client-params.sqs.SendMessage", lambda params, **_: sent.append(dict(params)))
    record = objects.put("a.txt")
    assert objects.deliver(record) == [0]
    [message] = sent
    assert (message["QueueUrl"], message["DelaySeconds"]) == (url, 10)
    assert "loom" not in message["MessageBody"]
    with monkeypatch.context() as hidden:
        hidden.setattr(objects.world.vectors, "present", lambda *_: set())
        assert objects.deliver(message["MessageBody"]) == [0]
    assert objects.deliver(record, message["MessageBody"]) == [0], "the object's own message came before the finish"
    assert objects.deliver(record, message["MessageBody"]) == []
    assert objects.texts() == ["A loom."]
    assert objects.embedded() == ["A loom."]


def test_over_http_a_document_that_is_not_searchable_in_time_is_answered_with_202(
    objects: Objects, slow: tuple["SQSClient", str], api: Api
) -> None:
    answer = api.post(f"/v1/collections/{objects.collection}/documents", {"content": "A loom."})
    assert (answer.status, answer.json["state"]) == (202, "processing")


def test_a_queue_that_refuses_the_finishing_message_fails_the_document(
    objects: Objects, slow: tuple["SQSClient", str]
) -> None:
    sqs, url = slow
    sqs.delete_queue(QueueUrl=url)
    assert objects.deliver(objects.put("a.txt")) == [0]
    [document] = objects.documents()
    assert document.error is not None
    assert (document.state, document.error.code) == (DocumentState.FAILED, "unavailable")


def test_failed_messages_alone_become_visible_again_after_a_minute() -> None:
    with mock_aws():
        sqs = sqs_client()
        url = sqs.create_queue(QueueName="events", Attributes={"VisibilityTimeout": "5400"})["QueueUrl"]
        for body in ("acknowledged", "failed"):
            sqs.send_message(QueueUrl=url, MessageBody=body)
        received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
        changed: list[dict[str, Any]] = []
        sqs.meta.events.register(
            "provide-client-params.sqs.ChangeMessageVisibility", lambda params, **_: changed.append(dict(params))
        )
        event = {
            "Records": [
                {"messageId": message["MessageId"], "receiptHandle": message["ReceiptHandle"]} for message in received
            ]
        }
        [failed] = [message for message in received if message["Body"] == "failed"]
        redeliver_soon(event, {"batchItemFailures": [{"itemIdentifier": failed["MessageId"]}]}, url, sqs)
    assert changed == [{"QueueUrl": url, "ReceiptHandle": failed["ReceiptHandle"], "VisibilityTimeout": 60}]

"""The bucket's notifications through the real queue handler."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import pytest
from moto import mock_aws

from core.ingest.finish import SqsFinishQueue
from core.model.document import Document, DocumentState
from core.model.errors import NotYetSearchable, Unavailable
from core.model.ids import CollectionId, UploadId
from core.model.page import PageRequest
from core.model.upload import UploadInfo
from core.wiring import sqs_client
from functions.ingest.events import handle_batch, redeliver_soon
from tests.support.engines import ACME, GLOBEX, World
from tests.support.gateway import Api, Context
from tests.support.handlers import BUCKET, Meanwhile

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient

MISSING_COLLECTION = CollectionId.new(1_780_000_000_000, 1 << 30)
ANSWER_TIME_MS = 10_000


def notification(name: str, key: str, *, version: str | None = None, sequencer: str | None = None) -> dict[str, Any]:
    """One record of a notification, as S3 sends it."""
    about: dict[str, Any] = {"key": quote_plus(key, safe="/"), "versionId": version, "sequencer": sequencer}
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "eventName": name,
        "s3": {
            "bucket": {"name": BUCKET},
            "object": {name: value for name, value in about.items() if value is not None},
        },
    }


@dataclass
class Objects:
    """A bucket, and a queue that hands its notifications to the handler."""

    world: World
    s3: "S3Client"
    collection: CollectionId
    remaining_ms: int = 900_000
    _sequence: int = field(default=0x100)

    def key(self, source_key: str) -> str:
        return f"acme/{self.collection}/{source_key}"

    def next(self) -> str:
        """S3's sequencers rise."""
        self._sequence += 1
        return f"{self._sequence:016X}"

    def put(self, source_key: str, content: bytes, **fields: Any) -> dict[str, Any]:
        """Puts an object; the record that S3 sends of it."""
        key = self.key(source_key)
        version = self.s3.put_object(Bucket=BUCKET, Key=key, Body=content, **fields)["VersionId"]
        return notification("ObjectCreated:Put", key, version=version, sequencer=self.next())

    def remove(self, source_key: str) -> dict[str, Any]:
        """A plain delete, which leaves a marker."""
        key = self.key(source_key)
        marker = self.s3.delete_object(Bucket=BUCKET, Key=key)["VersionId"]
        return notification("ObjectRemoved:DeleteMarkerCreated", key, version=marker, sequencer=self.next())

    def deliver(self, *records: dict[str, Any] | str) -> list[int]:
        """One message a record; the places of those that come back."""
        bodies = [body if isinstance(body, str) else json.dumps({"Records": [body]}) for body in records]
        event = {
            "Records": [
                {"messageId": str(place), "body": body, "eventSource": "aws:sqs"} for place, body in enumerate(bodies)
            ]
        }
        answer = handle_batch(event, Context(remaining_ms=self.remaining_ms), self.world.engine, self.s3)  # type: ignore[arg-type]  # all that is used of a context
        return [int(failure["itemIdentifier"]) for failure in answer["batchItemFailures"]]

    def documents(self) -> list[Document]:
        page = PageRequest(limit=100)
        return self.world.engine.documents.list(ACME, page, collection_id=self.collection).items

    def ready(self) -> dict[str | None, Document]:
        return {document.source_key: document for document in self.documents() if document.state == DocumentState.READY}

    def texts(self) -> list[str]:
        chunks = self.world.engine.chunks.list(ACME, PageRequest(limit=100), collection_id=self.collection)
        return sorted(chunk.text for chunk in chunks.items)


@pytest.fixture
def objects(world: World, s3: "S3Client") -> Objects:
    return Objects(world, s3, world.collection().id)


def test_an_object_becomes_a_document_whose_source_is_the_rest_of_its_key(objects: Objects) -> None:
    record = objects.put("books/looms.md", b"# Looms\n\nA loom holds the warp.", ContentType="text/markdown")
    assert objects.deliver(record) == []
    document = objects.ready()["books/looms.md"]
    assert (document.source_type, document.source) == (
        "text/markdown",
        f"s3://{BUCKET}/acme/{objects.collection}/books/looms.md",
    )
    assert document.source_version is not None


@pytest.mark.parametrize("source_key", ["a b+c.txt", "ünïcödé/文書.txt", "a%2Fb.txt", "100%.txt", "a&b=c?d#e.txt"])
def test_keys_are_decoded(objects: Objects, source_key: str) -> None:
    assert objects.deliver(objects.put(source_key, b"A loom.")) == []
    assert set(objects.ready()) == {source_key}


def test_the_test_event_of_a_new_notification_is_settled(objects: Objects) -> None:
    test_event = json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": BUCKET})
    assert objects.deliver(test_event, objects.put("a.txt", b"A loom.")) == []
    assert set(objects.ready()) == {"a.txt"}


def test_a_message_delivered_twice_is_embedded_once(objects: Objects) -> None:
    record = objects.put("a.txt", b"A loom.")
    assert objects.deliver(record, record) == []
    assert objects.deliver(record) == []
    assert objects.world.embedder.embedded == ["A loom."]


def test_an_event_reads_the_version_it_speaks_of_and_the_last_one_wins_in_any_order(objects: Objects) -> None:
    first, second = objects.put("a.txt", b"The first."), objects.put("a.txt", b"The second.")
    assert objects.deliver(second, first) == []
    assert objects.texts() == ["The second."]
    assert objects.world.embedder.embedded == ["The second."]


@pytest.mark.parametrize(("earlier", "later"), [("0055AED6DCD90281E5", "0055AED6DE"), ("0055AED6DC", "0055AED6DC01")])
@pytest.mark.parametrize("reordered", [False, True])
def test_sequencers_of_different_lengths_are_compared_as_if_the_shorter_went_on_with_zeros(
    objects: Objects, earlier: str, later: str, *, reordered: bool
) -> None:
    first, second = objects.put("a.txt", b"The first."), objects.put("a.txt", b"The second.")
    first["s3"]["object"]["sequencer"], second["s3"]["object"]["sequencer"] = earlier, later
    assert objects.deliver(*([second, first] if reordered else [first, second])) == []
    assert objects.texts() == ["The second."]


def test_a_version_that_is_gone_is_superseded(objects: Objects) -> None:
    record = objects.put("a.txt", b"The first.")
    objects.s3.delete_object(Bucket=BUCKET, Key=objects.key("a.txt"), VersionId=record["s3"]["object"]["versionId"])
    assert objects.deliver(record) == []
    assert objects.documents() == []


def test_a_removed_object_leaves_nothing_and_stays_removed(objects: Objects) -> None:
    created = objects.put("a.txt", b"A loom.")
    removed = objects.remove("a.txt")
    assert objects.deliver(created, removed) == []
    assert objects.documents() == []
    assert objects.deliver(created) == []
    assert objects.documents() == []
    assert objects.world.vector_count() == 0


def test_a_removal_that_comes_first_wins_over_the_creation_before_it(objects: Objects) -> None:
    created = objects.put("a.txt", b"A loom.")
    assert objects.deliver(objects.remove("a.txt"), created) == []
    assert objects.documents() == []
    assert objects.world.embedder.embedded == []


@pytest.mark.parametrize("event", ["ObjectRemoved:Delete", "LifecycleExpiration:Delete"])
def test_an_old_version_that_goes_for_good_leaves_the_object_served(objects: Objects, event: str) -> None:
    first, second = objects.put("a.txt", b"The first."), objects.put("a.txt", b"The second.")
    assert objects.deliver(first, second) == []
    old = first["s3"]["object"]["versionId"]
    objects.s3.delete_object(Bucket=BUCKET, Key=objects.key("a.txt"), VersionId=old)
    record = notification(event, objects.key("a.txt"), version=old, sequencer=objects.next())
    assert objects.deliver(record) == []
    assert objects.texts() == ["The second."]
    assert len(objects.world.embedder.embedded) == 2


def test_the_last_version_that_goes_for_good_takes_the_document_with_it(objects: Objects) -> None:
    created = objects.put("a.txt", b"A loom.")
    assert objects.deliver(created) == []
    version = created["s3"]["object"]["versionId"]
    objects.s3.delete_object(Bucket=BUCKET, Key=objects.key("a.txt"), VersionId=version)
    record = notification("ObjectRemoved:Delete", objects.key("a.txt"), version=version, sequencer=objects.next())
    assert objects.deliver(record) == []
    assert objects.documents() == []


def test_a_marker_that_goes_for_good_brings_the_object_back(objects: Objects) -> None:
    created = objects.put("a.txt", b"A loom.")
    removed = objects.remove("a.txt")
    assert objects.deliver(created, removed) == []
    marker = removed["s3"]["object"]["versionId"]
    objects.s3.delete_object(Bucket=BUCKET, Key=objects.key("a.txt"), VersionId=marker)
    record = notification("ObjectRemoved:Delete", objects.key("a.txt"), version=marker, sequencer=objects.next())
    assert objects.deliver(record) == []
    assert objects.texts() == ["A loom."]


def test_a_version_that_goes_for_good_is_settled_by_the_first_look_whatever_comes_later(objects: Objects) -> None:
    created = objects.put("a.txt", b"A loom.")
    version = created["s3"]["object"]["versionId"]
    objects.s3.delete_object(Bucket=BUCKET, Key=objects.key("a.txt"), VersionId=version)
    gone = notification("ObjectRemoved:Delete", objects.key("a.txt"), version=version, sequencer=objects.next())
    assert objects.deliver(created, gone) == []
    again = objects.put("a.txt", b"Yarn.")
    assert objects.deliver(gone) == [], "the event of what came later is still on its way"
    assert objects.deliver(again) == []
    assert objects.texts() == ["Yarn."]
    removed = objects.remove("a.txt")
    assert objects.deliver(gone, removed, gone) == []
    assert objects.documents() == []


def test_an_expired_object_leaves_nothing(objects: Objects) -> None:
    assert objects.deliver(objects.put("a.txt", b"A loom.")) == []
    removed = objects.remove("a.txt") | {"eventName": "LifecycleExpiration:DeleteMarkerCreated"}
    assert objects.deliver(removed) == []
    assert objects.documents() == []


def test_an_event_without_a_sequencer_is_ingested_and_removed(objects: Objects) -> None:
    created = objects.put("a.txt", b"A loom.")
    del created["s3"]["object"]["sequencer"]
    assert objects.deliver(created) == []
    assert objects.ready()["a.txt"].source_version is None
    removed = objects.remove("a.txt")
    del removed["s3"]["object"]["sequencer"]
    assert objects.deliver(removed) == []
    assert objects.documents() == []


def test_an_upload_brings_its_title_type_and_attributes(objects: Objects) -> None:
    upload = UploadId.new(1_780_000_000_000, 7)
    info = UploadInfo(title="Looms", source_type="text/markdown", attributes={"year": 2024})
    objects.world.stores.uploads.put(ACME, upload, info, objects.world.clock.now())
    record = objects.put("looms", b"# Looms\n\nA loom.", Metadata={"weft-upload": upload})
    assert objects.deliver(record) == []
    document = objects.ready()["looms"]
    assert (document.title, document.source_type, document.attributes) == ("Looms", "text/markdown", {"year": 2024})


def test_an_upload_that_is_not_the_tenants_says_nothing(objects: Objects) -> None:
    upload = UploadId.new(1_780_000_000_000, 7)
    info = UploadInfo(title="Secret", source_type="text/markdown", attributes={})
    objects.world.stores.uploads.put(GLOBEX, upload, info, objects.world.clock.now())
    record = objects.put("a.txt", b"A loom.", Metadata={"weft-upload": upload})
    assert objects.deliver(record) == []
    assert objects.ready()["a.txt"].title == ""


@pytest.mark.parametrize(
    ("source_key", "content", "fields", "code"),
    [
        ("a.zip", b"PK\x03\x04", {"ContentType": "application/zip"}, "unsupported_media_type"),
        ("a.unknown", b"text", {}, "unsupported_media_type"),
        ("a.txt", b"\xff\xfe\x00\x80\x01", {"ContentType": "text/plain; charset=utf-8"}, "unsupported_media_type"),
        ("a.txt", b"", {}, "empty_content"),
        ("a.txt", b" \n ", {}, "empty_content"),
        ("a.txt", b"x" * (10 * 1024 * 1024 + 1), {}, "payload_too_large"),
        ("a.txt", b"A loom.", {"Metadata": {"weft-upload": "garbage"}}, "invalid_argument"),
        ("a.txt", b"A loom.", {"ContentType": f"text/plain; charset={'x' * 256}"}, "unsupported_media_type"),
    ],
    ids=["no loader", "no type", "no text", "empty", "blank", "too large", "no upload", "a long type"],
)
def test_an_object_that_can_never_be_ingested_leaves_a_failed_document_that_says_why(
    objects: Objects, source_key: str, content: bytes, fields: dict[str, Any], code: str
) -> None:
    record = objects.put(source_key, content, **fields)
    assert objects.deliver(record) == []
    [document] = objects.documents()
    assert (document.state, document.source_key) == (DocumentState.FAILED, source_key)
    assert document.error is not None
    assert document.error.code == code
    read = content if len(content) <= objects.world.engine.settings.object_bytes else b""
    assert document.content_hash == (hashlib.sha256(read).hexdigest() if read else "")
    assert objects.deliver(record) == []
    assert len(objects.documents()) == 1


def test_a_refused_object_leaves_the_version_before_it_served(objects: Objects) -> None:
    assert objects.deliver(objects.put("a.txt", b"A loom."), objects.put("a.txt", b"")) == []
    assert objects.texts() == ["A loom."]


@pytest.mark.parametrize(
    "key",
    [
        "acme",
        "acme/looms.md",
        "/looms.md",
        f"acme/{MISSING_COLLECTION}",
        f"acme/{MISSING_COLLECTION}/",
        f"a#b/{MISSING_COLLECTION}/a.txt",
        f"acme/{MISSING_COLLECTION}/ ",
    ],
)
def test_a_key_that_leads_nowhere_fails_and_is_left_to_the_dead_letters(objects: Objects, key: str) -> None:
    objects.s3.put_object(Bucket=BUCKET, Key=key, Body=b"A loom.")
    assert objects.deliver(notification("ObjectCreated:Put", key, sequencer=objects.next())) == [0]


def test_another_tenants_collection_is_no_place_for_an_object(objects: Objects) -> None:
    key = f"globex/{objects.collection}/a.txt"
    objects.s3.put_object(Bucket=BUCKET, Key=key, Body=b"A loom.")
    assert objects.deliver(notification("ObjectCreated:Put", key, sequencer=objects.next())) == []
    assert objects.documents() == []
    assert objects.world.embedder.embedded == []
    assert objects.world.engine.documents.list(GLOBEX, PageRequest(limit=1)).items == []


@pytest.mark.parametrize(
    ("event", "content"),
    [
        ("ObjectCreated:Put", b"A secret loom."),
        ("ObjectCreated:Put", b""),
        ("ObjectRemoved:DeleteMarkerCreated", None),
        ("ObjectRemoved:Delete", b"A secret loom."),
    ],
    ids=["put", "put and refused", "removed", "an old version went"],
)
@pytest.mark.parametrize("left", ["its row", "nothing"])
def test_an_object_of_a_deleted_collection_is_settled_with_a_line_that_holds_no_text(
    objects: Objects, event: str, content: bytes | None, left: str, caplog: pytest.LogCaptureFixture
) -> None:
    collection = objects.collection if left == "its row" else MISSING_COLLECTION
    objects.world.engine.collections.delete(ACME, objects.collection, objects.world.deadline())
    key = f"acme/{collection}/loom.txt"
    if content is not None:
        objects.s3.put_object(Bucket=BUCKET, Key=key, Body=content)
    assert objects.deliver(notification(event, key, sequencer=objects.next())) == []
    [said] = [vars(line) for line in caplog.records if "there is no such collection" in line.getMessage()]
    assert said["collection_id"] == collection
    assert "loom" not in str(said)


@pytest.mark.parametrize(
    "body",
    ["", "no JSON", "[]", "{}", '{"finish": {}}', '{"finish": "x"}', '{"Records": [{}]}', '{"Records": "x"}', "null"],
)
def test_a_message_that_is_no_notification_fails_alone(objects: Objects, body: str) -> None:
    assert objects.deliver(body, objects.put("a.txt", b"A loom.")) == [0]
    assert set(objects.ready()) == {"a.txt"}


def test_an_unknown_event_fails(objects: Objects) -> None:
    record = objects.put("a.txt", b"A loom.") | {"eventName": "ObjectTagging:Put"}
    assert objects.deliver(record) == [0]
    assert objects.documents() == []


def test_a_store_that_does_not_answer_fails_the_message_and_the_next_delivery_succeeds(objects: Objects) -> None:
    record = objects.put("a.txt", b"A loom.")
    objects.world.embedder.failure = Unavailable("throttled")
    assert objects.deliver(record) == [0]
    objects.world.embedder.failure = None
    assert objects.deliver(record) == []
    assert objects.texts() == ["A loom."]


def test_a_batch_in_which_all_fail_names_each_of_them(objects: Objects) -> None:
    assert objects.deliver("x", "y") == [0, 1]


def test_content_that_another_handler_is_still_at_comes_back(objects: Objects, meanwhile: Meanwhile) -> None:
    record = objects.put("a.txt", b"A loom.")
    seen: list[list[int]] = []
    meanwhile.do = lambda _: seen.append(objects.deliver(record))
    assert objects.deliver(record) == []
    assert seen == [[0]]
    assert objects.world.embedder.embedded == ["A loom."]


def test_what_is_not_begun_when_the_time_is_up_comes_back(objects: Objects) -> None:
    objects.remaining_ms = ANSWER_TIME_MS
    assert objects.deliver(objects.put("a.txt", b"A loom."), objects.put("b.txt", b"Yarn.")) == [0, 1]
    assert objects.documents() == []


def test_a_message_may_name_several_objects(objects: Objects) -> None:
    records = [objects.put("a.txt", b"A loom."), objects.put("b.txt", b"Yarn.")]
    assert objects.deliver(json.dumps({"Records": records})) == []
    assert set(objects.ready()) == {"a.txt", "b.txt"}


@pytest.fixture
def slow(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> tuple["SQSClient", str]:
    """A queue that takes documents to be finished; what a write holds is not searchable within its call."""
    sqs = sqs_client()
    url = sqs.create_queue(QueueName="events")["QueueUrl"]
    objects.world.rebuild(finish_queue=SqsFinishQueue(sqs, url))
    write = objects.world.vectors.write

    def write_slowly(*arguments: Any) -> None:
        write(*arguments)
        raise NotYetSearchable("not yet")

    monkeypatch.setattr(objects.world.vectors, "write", write_slowly)
    return sqs, url


def test_an_object_that_is_not_searchable_in_time_comes_back_until_a_message_of_names_has_finished_it(
    objects: Objects, slow: tuple["SQSClient", str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs, url = slow
    sent: list[dict[str, Any]] = []
    sqs.meta.events.register("provide-client-params.sqs.SendMessage", lambda params, **_: sent.append(dict(params)))
    record = objects.put("a.txt", b"A loom.")
    assert objects.deliver(record) == [0]
    [message] = sent
    assert (message["QueueUrl"], message["DelaySeconds"]) == (url, 10)
    assert "loom" not in message["MessageBody"]
    with monkeypatch.context() as hidden:
        hidden.setattr(objects.world.vectors, "present", lambda *_: set())
        assert objects.deliver(message["MessageBody"]) == [0]
    assert objects.deliver(record, message["MessageBody"]) == [0], "its end is not the object's message"
    assert objects.deliver(record, message["MessageBody"]) == []
    assert objects.texts() == ["A loom."]
    assert objects.world.embedder.embedded == ["A loom."]


def test_over_http_it_is_answered_as_accepted(objects: Objects, slow: tuple["SQSClient", str], api: Api) -> None:
    answer = api.post(f"/v1/collections/{objects.collection}/documents", {"content": "A loom."})
    assert (answer.status, answer.json["state"]) == (202, "processing")


def test_a_queue_that_refuses_the_message_fails_the_document(objects: Objects, slow: tuple["SQSClient", str]) -> None:
    sqs, url = slow
    sqs.delete_queue(QueueUrl=url)
    assert objects.deliver(objects.put("a.txt", b"A loom.")) == [0]
    [document] = objects.documents()
    assert document.error is not None
    assert (document.state, document.error.code) == (DocumentState.FAILED, "unavailable")


def test_what_was_not_settled_comes_back_soon_and_nothing_else_does() -> None:
    with mock_aws():
        sqs = sqs_client()
        url = sqs.create_queue(QueueName="events", Attributes={"VisibilityTimeout": "5400"})["QueueUrl"]
        for body in ("settled", "failed"):
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

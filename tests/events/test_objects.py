"""Objects of the bucket: a created object becomes a document, and a removed object takes its document with it."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from core.model.ids import UploadId
from core.model.page import PageRequest
from core.model.tenant import Tenant
from core.model.upload import UploadInfo
from tests.events.objects import MISSING_COLLECTION, Objects, notification
from tests.support.engines import ACME, GLOBEX
from tests.support.handlers import BUCKET

if TYPE_CHECKING:
    pass

# -- created objects ---------------------------------------------------------------------------------------------------


def test_an_object_becomes_a_document_whose_source_key_is_the_rest_of_the_objects_key(objects: Objects) -> None:
    record = objects.put("books/looms.md", b"# Looms\n\nA loom holds the warp.", ContentType="text/markdown")
    assert objects.deliver(record) == []
    document = objects.ready()["books/looms.md"]
    assert (document.source_type, document.source) == (
        "text/markdown",
        f"s3://{BUCKET}/acme/{objects.collection}/books/looms.md",
    )
    assert document.source_version is not None


@pytest.mark.parametrize("source_key", ["a b+c.txt", "ünïcödé/文書.txt", "a%2Fb.txt", "100%.txt", "a&b=c?d#e.txt"])
def test_the_key_of_a_notification_is_decoded(objects: Objects, source_key: str) -> None:
    assert objects.deliver(objects.put(source_key)) == []
    assert set(objects.ready()) == {source_key}


def test_the_test_event_of_a_new_notification_is_acknowledged(objects: Objects) -> None:
    test_event = json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": BUCKET})
    assert objects.deliver(test_event, objects.put("a.txt")) == []
    assert set(objects.ready()) == {"a.txt"}


def test_a_message_that_is_delivered_three_times_is_embedded_once(objects: Objects) -> None:
    record = objects.put("a.txt")
    assert objects.deliver(record, record) == []
    assert objects.deliver(record) == []
    assert objects.embedded() == ["A loom."]


def test_each_event_ingests_its_own_version_and_the_last_version_wins_in_any_order(objects: Objects) -> None:
    first, second = objects.put("a.txt", b"The first."), objects.put("a.txt", b"The second.")
    assert objects.deliver(second, first) == []
    assert objects.texts() == ["The second."]
    assert objects.embedded() == ["The second."]


@pytest.mark.parametrize(("earlier", "later"), [("0055AED6DCD90281E5", "0055AED6DE"), ("0055AED6DC", "0055AED6DC01")])
@pytest.mark.parametrize("reordered", [False, True])
def test_sequencers_of_different_lengths_are_compared_as_if_the_shorter_went_on_with_zeros(
    objects: Objects, earlier: str, later: str, *, reordered: bool
) -> None:
    first, second = objects.put("a.txt", b"The first."), objects.put("a.txt", b"The second.")
    first["s3"]["object"]["sequencer"], second["s3"]["object"]["sequencer"] = earlier, later
    assert objects.deliver(*([second, first] if reordered else [first, second])) == []
    assert objects.texts() == ["The second."]


def test_an_event_without_a_sequencer_is_ingested_and_removed(objects: Objects) -> None:
    created = objects.put("a.txt")
    del created["s3"]["object"]["sequencer"]
    assert objects.deliver(created) == []
    assert objects.ready()["a.txt"].source_version is None
    removed = objects.remove("a.txt")
    del removed["s3"]["object"]["sequencer"]
    assert objects.deliver(removed) == []
    assert objects.documents() == []


@pytest.mark.parametrize(
    ("owner", "described"), [(ACME, ("Looms", "text/markdown", {"year": 2024})), (GLOBEX, ("", "text/plain", {}))]
)
def test_an_object_takes_title_type_and_attributes_of_its_own_tenants_upload_alone(
    objects: Objects, owner: Tenant, described: tuple[Any, ...]
) -> None:
    upload = UploadId.new(1_780_000_000_000, 7)
    info = UploadInfo(title="Looms", source_type="text/markdown", attributes={"year": 2024})
    objects.world.stores.uploads.put(owner, upload, info, objects.world.clock.now())
    assert objects.deliver(objects.put("a.txt", ContentType="text/plain", Metadata={"weft-upload": upload})) == []
    document = objects.ready()["a.txt"]
    assert (document.title, document.source_type, document.attributes) == described


def test_an_object_under_another_tenants_collection_is_not_ingested(objects: Objects) -> None:
    key = f"globex/{objects.collection}/a.txt"
    objects.s3.put_object(Bucket=BUCKET, Key=key, Body=b"A loom.")
    assert objects.deliver(notification("ObjectCreated:Put", key, sequencer=objects.next_sequencer())) == []
    assert objects.documents() == []
    assert objects.embedded() == []
    assert objects.world.engine.documents.list(GLOBEX, PageRequest(limit=1)).items == []


# -- removed objects and versions --------------------------------------------------------------------------------------


def test_the_event_of_a_version_that_is_gone_is_acknowledged_without_a_document(objects: Objects) -> None:
    record = objects.put("a.txt")
    objects.remove_version(record)
    assert objects.deliver(record) == []
    assert objects.documents() == []


@pytest.mark.parametrize("event", ["ObjectRemoved:DeleteMarkerCreated", "LifecycleExpiration:DeleteMarkerCreated"])
def test_a_removed_or_expired_object_leaves_nothing_and_stays_removed(objects: Objects, event: str) -> None:
    created = objects.put("a.txt")
    removed = objects.remove("a.txt") | {"eventName": event}
    assert objects.deliver(created, removed) == []
    assert objects.documents() == []
    assert objects.deliver(created) == []
    assert objects.documents() == []
    assert objects.world.vector_count() == 0


def test_a_removal_that_is_delivered_first_wins_over_the_earlier_creation(objects: Objects) -> None:
    created = objects.put("a.txt")
    assert objects.deliver(objects.remove("a.txt"), created) == []
    assert objects.documents() == []
    assert objects.embedded() == []


@pytest.mark.parametrize("event", ["ObjectRemoved:Delete", "LifecycleExpiration:Delete"])
def test_after_an_old_version_is_deleted_for_good_the_current_version_is_served(objects: Objects, event: str) -> None:
    first, second = objects.put("a.txt", b"The first."), objects.put("a.txt", b"The second.")
    assert objects.deliver(first, second) == []
    assert objects.deliver(objects.remove_version(first, event)) == []
    assert objects.texts() == ["The second."]
    assert len(objects.embedded()) == 2


def test_after_the_last_version_is_deleted_for_good_the_document_is_gone(objects: Objects) -> None:
    created = objects.put("a.txt")
    assert objects.deliver(created) == []
    assert objects.deliver(objects.remove_version(created)) == []
    assert objects.documents() == []


def test_after_a_delete_marker_is_deleted_for_good_the_object_is_served_again(objects: Objects) -> None:
    created, removed = objects.put("a.txt"), objects.remove("a.txt")
    assert objects.deliver(created, removed) == []
    assert objects.deliver(objects.remove_version(removed)) == []
    assert objects.texts() == ["A loom."]


def test_a_deletion_for_good_is_decided_by_its_first_delivery_whatever_the_key_holds_later(objects: Objects) -> None:
    created = objects.put("a.txt")
    deleted = objects.remove_version(created)
    assert objects.deliver(created, deleted) == []
    again = objects.put("a.txt", b"Yarn.")
    assert objects.deliver(deleted) == [], "the event of the later object is still on its way"
    assert objects.deliver(again) == []
    assert objects.texts() == ["Yarn."]
    removed = objects.remove("a.txt")
    assert objects.deliver(deleted, removed, deleted) == []
    assert objects.documents() == []


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
def test_an_event_of_a_deleted_collection_is_acknowledged_with_a_log_line_without_text(
    objects: Objects, event: str, content: bytes | None, left: str, caplog: pytest.LogCaptureFixture
) -> None:
    collection = objects.collection if left == "its row" else MISSING_COLLECTION
    objects.world.engine.collections.delete(ACME, objects.collection, objects.world.deadline())
    key = f"acme/{collection}/loom.txt"
    if content is not None:
        objects.s3.put_object(Bucket=BUCKET, Key=key, Body=content)
    assert objects.deliver(notification(event, key, sequencer=objects.next_sequencer())) == []
    [line] = [vars(line) for line in caplog.records if "there is no such collection" in line.getMessage()]
    assert line["collection_id"] == collection
    assert "loom" not in str(line)

"""Objects that can never be ingested become failed documents, and messages that nobody can read fail."""

import hashlib
from typing import Any

import pytest

from core.model.document import DocumentState
from tests.events.objects import MISSING_COLLECTION, Objects, notification
from tests.support.handlers import BUCKET


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
def test_an_object_that_can_never_be_ingested_leaves_one_failed_document_with_the_reason(
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
    assert objects.deliver(objects.put("a.txt"), objects.put("a.txt", b"")) == []
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
def test_an_object_whose_key_names_no_source_fails_its_message(objects: Objects, key: str) -> None:
    objects.s3.put_object(Bucket=BUCKET, Key=key, Body=b"A loom.")
    assert objects.deliver(notification("ObjectCreated:Put", key, sequencer=objects.next_sequencer())) == [0]


@pytest.mark.parametrize(
    "body",
    ["", "no JSON", "[]", "{}", '{"finish": {}}', '{"finish": "x"}', '{"Records": [{}]}', '{"Records": "x"}', "null"],
)
def test_a_message_that_is_no_notification_fails_alone(objects: Objects, body: str) -> None:
    assert objects.deliver(body, objects.put("a.txt")) == [0]
    assert set(objects.ready()) == {"a.txt"}


def test_a_message_of_an_unknown_event_fails(objects: Objects) -> None:
    assert objects.deliver(objects.put("a.txt") | {"eventName": "ObjectTagging:Put"}) == [0]
    assert objects.documents() == []

"""A bucket whose notifications a test hands to the queue's handler."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from core.model.document import Document, DocumentState
from core.model.ids import CollectionId
from core.model.page import PageRequest
from functions.ingest.events import handle_batch
from tests.support.engines import ACME, World
from tests.support.gateway import Context
from tests.support.handlers import BUCKET

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

MISSING_COLLECTION = CollectionId.new(1_780_000_000_000, 1 << 30)


def notification(event: str, key: str, *, version: str | None = None, sequencer: str | None = None) -> dict[str, Any]:
    """Makes one record of a notification, as S3 sends it."""
    about: dict[str, Any] = {"key": quote_plus(key, safe="/"), "versionId": version, "sequencer": sequencer}
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "eventName": event,
        "s3": {
            "bucket": {"name": BUCKET},
            "object": {name: value for name, value in about.items() if value is not None},
        },
    }


@dataclass
class Objects:
    """A bucket, and a queue that hands the bucket's notifications to the handler.

    Attributes:
        remaining_ms: the time that the function has left when it is called.
    """

    world: World
    s3: "S3Client"
    collection: CollectionId
    remaining_ms: int = 900_000
    _sequence: int = 0x100

    def key(self, source_key: str) -> str:
        return f"acme/{self.collection}/{source_key}"

    def next_sequencer(self) -> str:
        """Returns a sequencer above all before it, as S3's rise with every change of a key."""
        self._sequence += 1
        return f"{self._sequence:016X}"

    def put(self, source_key: str, content: bytes = b"A loom.", **fields: Any) -> dict[str, Any]:
        """Puts an object, and returns the record that S3 sends of it."""
        key = self.key(source_key)
        version = self.s3.put_object(Bucket=BUCKET, Key=key, Body=content, **fields)["VersionId"]
        return notification("ObjectCreated:Put", key, version=version, sequencer=self.next_sequencer())

    def remove(self, source_key: str) -> dict[str, Any]:
        """Deletes an object without naming a version, which leaves a delete marker."""
        key = self.key(source_key)
        marker = self.s3.delete_object(Bucket=BUCKET, Key=key)["VersionId"]
        return notification("ObjectRemoved:DeleteMarkerCreated", key, version=marker, sequencer=self.next_sequencer())

    def remove_version(self, record: dict[str, Any], event: str = "ObjectRemoved:Delete") -> dict[str, Any]:
        """Deletes the version, or the delete marker, of a record for good."""
        key, version = self.key("a.txt"), record["s3"]["object"]["versionId"]
        self.s3.delete_object(Bucket=BUCKET, Key=key, VersionId=version)
        return notification(event, key, version=version, sequencer=self.next_sequencer())

    def deliver(self, *records: dict[str, Any] | str) -> list[int]:
        """Delivers one message for each record, and returns the places of the messages that failed."""
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

    def embedded(self) -> list[str]:
        return self.world.embedder.embedded

"""A bucket with versions, the notifications that S3 sends of its changes, and the queue that hands them out.

All of them are in memory and safe for threads. The bucket has those functions of S3's client that the queue's handler
calls. The notifications are as AWS sends them: encoded keys, named versions, sequencers of different lengths, and one
event for a multipart upload.
"""

import io
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Any
from urllib.parse import quote_plus

from tests.support.dynamodb import error

BUCKET = "weft-proof"
SHORT = 0.3
CREATED = ("Put", "Post", "Copy", "CompleteMultipartUpload")


@dataclass(frozen=True)
class Version:
    """One version of an object. Its content is None when the version is a delete marker."""

    id: str
    content: bytes | None
    content_type: str


@dataclass(frozen=True)
class Change:
    """One change of a key, as its notification tells of it.

    Attributes:
        number: the place of the change in the order of all changes.
        sequencer: the same place as S3 writes it.
    """

    number: int
    event: str
    key: str
    version: Version
    sequencer: str

    def record(self) -> dict[str, Any]:
        """The record of the notification."""
        return {
            "eventVersion": "2.1",
            "eventSource": "aws:s3",
            "eventName": self.event,
            "s3": {
                "s3SchemaVersion": "1.0",
                "bucket": {"name": BUCKET, "arn": f"arn:aws:s3:::{BUCKET}"},
                "object": {
                    "key": quote_plus(self.key, safe="/"),
                    "versionId": self.version.id,
                    "sequencer": self.sequencer,
                },
            },
        }


class Bucket:
    """A bucket that keeps every version of its objects.

    Attributes:
        changes: all changes so far, in order.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._lock = RLock()
        self._versions: dict[str, list[Version]] = {}
        self.changes: list[Change] = []

    # -- changes ------------------------------------------------------------------------------------

    def put(self, key: str, content: bytes, content_type: str = "text/plain") -> Change:
        """Puts a new version of an object."""
        return self._add(key, content, content_type, f"ObjectCreated:{self._chance.choice(CREATED)}")

    def remove(self, key: str) -> Change:
        """Deletes an object as a plain delete does: by a delete marker."""
        return self._add(key, None, "", self._removed("DeleteMarkerCreated"))

    def expunge(self, key: str, version: Version) -> Change:
        """Deletes one version, or a delete marker, for good."""
        with self._lock:
            self._versions[key].remove(version)
            return self._change(self._removed("Delete"), key, version)

    def _removed(self, how: str) -> str:
        return f"{self._chance.choice(['ObjectRemoved', 'LifecycleExpiration'])}:{how}"

    def _add(self, key: str, content: bytes | None, content_type: str, event: str) -> Change:
        with self._lock:
            version = Version(f"{self._chance.getrandbits(120):030x}", content, content_type)
            self._versions.setdefault(key, []).append(version)
            return self._change(event, key, version)

    def _change(self, event: str, key: str, version: Version) -> Change:
        number = len(self.changes) + 1
        sequencer = f"0055AED6{number:08X}00"
        # Sequencers may be of different lengths, and compare as if the shorter one went on with zeros.
        if self._chance.random() < SHORT:
            sequencer = sequencer.rstrip("0")
        change = Change(number, event, key, version, sequencer)
        self.changes.append(change)
        return change

    def versions(self, key: str) -> list[Version]:
        """The versions of a key, oldest first."""
        with self._lock:
            return list(self._versions.get(key, ()))

    def current(self, key: str) -> Version | None:
        """The current version of a key; None when the key has no version, or a delete marker."""
        versions = self.versions(key)
        return versions[-1] if versions and versions[-1].content is not None else None

    # -- the functions of S3's client ---------------------------------------------------------------

    def get_object(self, *, Bucket: str, Key: str, VersionId: str | None = None) -> dict[str, Any]:  # noqa: N803 - S3's
        version = self._find(Key, VersionId, "NoSuchKey")
        content = version.content or b""
        return {"Body": io.BytesIO(content), "ContentLength": len(content), **_head(version)}

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - S3's
        return _head(self._find(Key, None, "404"))

    def _find(self, key: str, version_id: str | None, gone: str) -> Version:
        if version_id is None:
            current = self.current(key)
            if current is None:
                raise error(gone, "gone")
            return current
        for version in self.versions(key):
            if version.id == version_id:
                return version
        raise error("NoSuchVersion", "gone")


def _head(version: Version) -> dict[str, Any]:
    return {"ContentType": version.content_type, "Metadata": {}, "VersionId": version.id}


# -- the queue -------------------------------------------------------------------------------------


@dataclass
class Message:
    """One message of the queue. Several messages may tell of the same change.

    Attributes:
        changes: the changes that the message tells of; none when it is no notification of a change.
        visible: the time from which the message is handed out.
        received: how often the message was handed out.
    """

    id: str
    body: str
    changes: tuple[Change, ...] = ()
    visible: float = 0.0
    received: int = 0

    def record(self) -> dict[str, Any]:
        """The message as the handler gets it."""
        return {"messageId": self.id, "receiptHandle": self.id, "body": self.body, "eventSource": "aws:sqs"}


@dataclass
class Queue:
    """A queue that hands each message out until it is acknowledged, or has been received too often.

    Attributes:
        waiting: messages that are neither acknowledged nor dead letters.
        dead: the dead-letter queue.
        deliveries: how often messages were handed out.
    """

    max_receives: int
    waiting: list[Message] = field(default_factory=list)
    dead: list[Message] = field(default_factory=list)
    deliveries: int = 0
    _sent: int = 0

    def send(self, body: str | Sequence[Change], copies: int = 1, visible: float = 0.0) -> None:
        """Sends a notification of changes, or any other body. SQS delivers at least once: there may be copies."""
        changes = () if isinstance(body, str) else tuple(body)
        text = body if isinstance(body, str) else json.dumps({"Records": [change.record() for change in body]})
        for _ in range(copies):
            self._sent += 1
            self.waiting.append(Message(f"message-{self._sent}", text, changes, visible))

    def receive(self, now: float, largest: int, chance: random.Random) -> Iterator[list[Message]]:
        """Hands out all visible messages, in a random order, in batches of at most ``largest``."""
        self.dead += [message for message in self.waiting if message.received >= self.max_receives]
        self.waiting = [message for message in self.waiting if message.received < self.max_receives]
        visible = [message for message in self.waiting if message.visible <= now]
        chance.shuffle(visible)
        while visible:
            size = chance.randint(1, largest)
            batch, visible = visible[:size], visible[size:]
            for message in batch:
                message.received += 1
            self.deliveries += len(batch)
            yield batch

    def acknowledge(self, batch: Sequence[Message], back: Mapping[str, float]) -> list[Message]:
        """Removes the messages of a batch that succeeded, and answers them.

        Args:
            back: by message, the time from which a message that did not succeed is handed out again.
        """
        for message in batch:
            message.visible = back.get(message.id, message.visible)
        acknowledged = [message for message in batch if message.id not in back]
        self.waiting = [message for message in self.waiting if message not in acknowledged]
        return acknowledged

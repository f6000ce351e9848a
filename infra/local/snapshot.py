"""What survives a restart: one snapshot of rows, objects, events and vectors, written when the stack stops.

A snapshot is a folder that appears by one rename when everything in it is on the disk, so it is there whole or not
at all. A crash leaves the one before. Older versions of objects are not kept, and version ids change: events that
wait in a queue are rewritten to the new ones.
"""

import base64
import fcntl
import json
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from infra.local.aws import AwsServer
from infra.local.names import BUCKET, DEAD_LETTERS, QUEUE, TABLE

if TYPE_CHECKING:
    from types_boto3_sqs.literals import QueueAttributeNameType

FORMAT = 2
HEADERS = ("ContentType", "CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage", "Metadata")
COUNTS: "list[QueueAttributeNameType]" = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
ROWS_IN_ONE_WRITE = 25
LONGEST_HIDDEN_S = 30.0

Versions = dict[tuple[str, str], str]
"""An object's key and its old version id, and the new one."""


class DataFolder:
    """A folder that belongs to one running stack.

    Raises:
        BlockingIOError: another stack runs on it.
    """

    def __init__(self, path: Path) -> None:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self._lock = (path / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise
        self._remove(self._leftovers())

    @property
    def latest(self) -> Path | None:
        """The last complete snapshot."""
        return max(self.path.glob("snapshot-*"), default=None)

    def close(self) -> None:
        self._lock.close()

    def save(self, aws: AwsServer, vectors: Path) -> Path:
        """Writes a snapshot and then removes those before it. Nothing else may write to the services meanwhile.

        Args:
            vectors: the embedded store's file, or the folder of an OpenSearch that has ended.

        Raises:
            OSError: the disk is full, or a message stays hidden for too long (TimeoutError).
        """
        draft = self.path / f"draft-{secrets.token_hex(8)}"
        draft.mkdir()
        _write(draft, aws, vectors)
        _sync(draft)
        before = self.latest
        number = int(before.name.removeprefix("snapshot-")) + 1 if before else 1
        done = draft.rename(self.path / f"snapshot-{number:08}")
        _sync_one(self.path)
        self._remove(self._leftovers())
        return done

    def _leftovers(self) -> Iterator[Path]:
        """Drafts that were never finished, and snapshots that a later one replaced."""
        yield from self.path.glob("draft-*")
        yield from sorted(self.path.glob("snapshot-*"))[:-1]

    def _remove(self, folders: Iterable[Path]) -> None:
        for folder in folders:
            shutil.rmtree(folder)


def _write(folder: Path, aws: AwsServer, vectors: Path) -> None:
    _save_rows(folder, aws)
    _save_objects(folder, aws)
    _save_events(folder, aws)
    _save_vectors(folder, vectors)
    manifest = {"format": FORMAT, "sequencer": aws.notifications.sequencer.last, "vectors": vectors.name}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def restore(folder: Path, aws: AwsServer, vectors: Path) -> None:
    """Fills empty services from a snapshot.

    Args:
        vectors: where the vectors go; its name tells the store, and is the one that was saved.

    Raises:
        ValueError: it was written by another version of the local stack, or with another vector store.
    """
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    if manifest["format"] != FORMAT:
        raise ValueError(f"{folder} was written by another version of the local stack; remove it to start afresh")
    if manifest["vectors"] != vectors.name:
        raise ValueError(f"{folder} holds vectors of another store: start with the same --vectors, or other --data")
    # Sequencers go on where they stopped, also when the clock was put back.
    aws.notifications.sequencer.last = manifest["sequencer"]
    _restore_rows(folder, aws)
    _restore_events(folder, aws, _restore_objects(folder, aws))
    _restore_vectors(folder, vectors)


def _save_vectors(folder: Path, vectors: Path) -> None:
    if vectors.is_dir():
        shutil.copytree(vectors, folder / vectors.name)
    elif vectors.exists():
        with closing(sqlite3.connect(vectors)) as source, closing(sqlite3.connect(folder / vectors.name)) as copy:
            source.backup(copy)


def _restore_vectors(folder: Path, vectors: Path) -> None:
    saved = folder / vectors.name
    if saved.is_dir():
        shutil.copytree(saved, vectors)
    elif saved.exists():
        shutil.copy(saved, vectors)


def _save_rows(folder: Path, aws: AwsServer) -> None:
    with _lines(folder, "rows") as file:
        for page in aws.dynamodb.get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True):
            for item in page["Items"]:
                file.write(json.dumps(item, default=_from_bytes) + "\n")


def _restore_rows(folder: Path, aws: AwsServer) -> None:
    rows = [json.loads(line, object_hook=_to_bytes) for line in _read(folder, "rows")]
    for start in range(0, len(rows), ROWS_IN_ONE_WRITE):
        writes: Any = [{"PutRequest": {"Item": item}} for item in rows[start : start + ROWS_IN_ONE_WRITE]]
        aws.dynamodb.batch_write_item(RequestItems={TABLE: writes})


def _from_bytes(value: Any) -> str:
    return base64.b64encode(value).decode()


def _to_bytes(value: dict[str, Any]) -> dict[str, Any]:
    """DynamoDB's binary values: a map's own member named B holds a typed value, never a string."""
    if isinstance(value.get("B"), str):
        return {"B": base64.b64decode(value["B"])}
    if isinstance(value.get("BS"), list):
        return {"BS": [base64.b64decode(item) for item in value["BS"]]}
    return value


def _save_objects(folder: Path, aws: AwsServer) -> None:
    (folder / "objects").mkdir()
    with _lines(folder, "objects") as file:
        pages = aws.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        for number, key in enumerate(listed["Key"] for page in pages for listed in page.get("Contents", [])):
            found: Any = aws.s3.get_object(Bucket=BUCKET, Key=key)
            (folder / "objects" / str(number)).write_bytes(found["Body"].read())
            described = {
                "key": key,
                "version": found["VersionId"],
                "file": str(number),
                "headers": {name: found[name] for name in HEADERS if name in found},
            }
            file.write(json.dumps(described) + "\n")


def _restore_objects(folder: Path, aws: AwsServer) -> Versions:
    versions: Versions = {}
    for line in _read(folder, "objects"):
        described = json.loads(line)
        content = (folder / "objects" / described["file"]).read_bytes()
        made = aws.s3.put_object(Bucket=BUCKET, Key=described["key"], Body=content, **described["headers"])
        versions[described["key"], described["version"]] = made["VersionId"]
    return versions


def _save_events(folder: Path, aws: AwsServer) -> None:
    with _lines(folder, "events") as file:
        for queue in (QUEUE, DEAD_LETTERS):
            for body in _drain(aws, aws.queue_url(queue)):
                file.write(json.dumps({"queue": queue, "body": body}) + "\n")


def _drain(aws: AwsServer, url: str) -> Iterator[str]:
    """Takes every message out, also one that shows itself only when its visibility time-out ends.

    Raises:
        TimeoutError: someone has received one and hides it for long.
    """
    ends = time.monotonic() + LONGEST_HIDDEN_S
    while time.monotonic() < ends:
        counts = aws.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=COUNTS)["Attributes"]
        if not any(int(count) for count in counts.values()):
            return
        for message in aws.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            yield message["Body"]
            aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        time.sleep(0.05)
    raise TimeoutError(f"a message of {url} stayed hidden")


def _restore_events(folder: Path, aws: AwsServer, versions: Versions) -> None:
    for line in _read(folder, "events"):
        event = json.loads(line)
        body = _renamed(event["body"], versions)
        aws.sqs.send_message(QueueUrl=aws.queue_url(event["queue"]), MessageBody=body)


def _renamed(body: str, versions: Versions) -> str:
    """An event that speaks of the objects' new versions."""
    event = json.loads(body)
    for record in event.get("Records", []):
        described = record["s3"]["object"]
        new = versions.get((unquote_plus(described["key"]), described.get("versionId", "")))
        if new is not None:
            described["versionId"] = new
    return json.dumps(event)


def _lines(folder: Path, name: str) -> IO[str]:
    return (folder / f"{name}.jsonl").open("w", encoding="utf-8")


def _read(folder: Path, name: str) -> Iterator[str]:
    with (folder / f"{name}.jsonl").open(encoding="utf-8") as file:
        yield from file


def _sync(folder: Path) -> None:
    """Returns when the folder and all that is in it are on the disk."""
    for path in folder.rglob("*"):
        _sync_one(path)
    _sync_one(folder)


def _sync_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""What survives a restart survives whole: rows, objects, events and vectors of one moment, or of the one before."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from infra.local import snapshot
from infra.local.aws import AwsServer
from infra.local.names import BUCKET, DEAD_LETTERS, QUEUE, TABLE
from infra.local.snapshot import DataFolder
from infra.local.stack import VECTORS as PLACES

ITEM: dict[str, Any] = {
    "pk": {"S": "a"},
    "sk": {"S": "b"},
    "number": {"N": "1.5"},
    "bytes": {"B": b"\x00\xff"},
    "several": {"BS": [b"\x01", b"\x02"]},
    "map": {"M": {"B": {"S": "not bytes"}, "BS": {"L": [{"BOOL": True}, {"NULL": True}]}}},
    "set": {"SS": ["x", "y"]},
}


VECTORS = PLACES["embedded"]

NewAws = Callable[[], AwsServer]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[DataFolder]:
    opened = DataFolder(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture
def restored(new_aws: NewAws, folder: DataFolder, tmp_path: Path) -> Callable[[], AwsServer]:
    """Fills new services from the folder's last snapshot; the vectors go to ``restored`` in the test's own folder."""
    (tmp_path / "restored").mkdir()

    def restore() -> AwsServer:
        assert folder.latest is not None
        server = new_aws()
        snapshot.restore(folder.latest, server, tmp_path / "restored" / VECTORS)
        return server

    return restore


def bodies(aws: AwsServer, name: str) -> list[dict[str, Any]]:
    return [json.loads(body) for body in snapshot._drain(aws, aws.queue_url(name))]


def test_rows_come_back_with_every_kind_of_value(
    aws: AwsServer, folder: DataFolder, tmp_path: Path, restored: NewAws
) -> None:
    aws.dynamodb.put_item(TableName=TABLE, Item=ITEM)
    for number in range(60):
        aws.dynamodb.put_item(TableName=TABLE, Item={"pk": {"S": f"p{number}"}, "sk": {"S": "s"}})
    folder.save(aws, tmp_path / VECTORS)
    aws = restored()
    assert aws.dynamodb.scan(TableName=TABLE)["Count"] == 61
    assert aws.dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": "a"}, "sk": {"S": "b"}})["Item"] == ITEM


def test_objects_come_back_with_their_type_and_metadata_and_send_no_new_events(
    aws: AwsServer, folder: DataFolder, tmp_path: Path, restored: NewAws
) -> None:
    aws.s3.put_object(
        Bucket=BUCKET, Key="a/é b", Body=b"\x00text", ContentType="text/markdown", Metadata={"upload": "upl_1"}
    )
    aws.s3.put_object(Bucket=BUCKET, Key="gone", Body=b"x")
    aws.s3.delete_object(Bucket=BUCKET, Key="gone")
    aws.sqs.purge_queue(QueueUrl=aws.queue_url(QUEUE))
    folder.save(aws, tmp_path / VECTORS)
    aws = restored()
    found = aws.s3.get_object(Bucket=BUCKET, Key="a/é b")
    assert found["Body"].read() == b"\x00text"
    assert (found["ContentType"], found["Metadata"]) == ("text/markdown", {"upload": "upl_1"})
    assert [item["Key"] for item in aws.s3.list_objects_v2(Bucket=BUCKET)["Contents"]] == ["a/é b"]
    assert [body for body in bodies(aws, QUEUE) if "Records" in body] == []


def test_waiting_events_come_back_and_speak_of_the_objects_new_versions(
    aws: AwsServer, folder: DataFolder, tmp_path: Path, restored: NewAws
) -> None:
    aws.sqs.purge_queue(QueueUrl=aws.queue_url(QUEUE))
    aws.s3.put_object(Bucket=BUCKET, Key="a b", Body=b"old")
    aws.s3.put_object(Bucket=BUCKET, Key="a b", Body=b"new")
    aws.sqs.send_message(QueueUrl=aws.queue_url(DEAD_LETTERS), MessageBody='{"dead": true}')
    # One that was received and not settled is hidden for a moment, and kept all the same.
    aws.sqs.receive_message(QueueUrl=aws.queue_url(QUEUE), VisibilityTimeout=1)
    folder.save(aws, tmp_path / VECTORS)
    aws = restored()
    objects = [record["s3"]["object"] for body in bodies(aws, QUEUE) for record in body.get("Records", [])]
    newest = max(objects, key=lambda described: str(described["sequencer"]))
    assert len(objects) == 2
    assert aws.s3.get_object(Bucket=BUCKET, Key="a b", VersionId=newest["versionId"])["Body"].read() == b"new"
    assert bodies(aws, DEAD_LETTERS) == [{"dead": True}]


def test_sequencers_go_on_rising_after_a_restart(
    aws: AwsServer, folder: DataFolder, tmp_path: Path, restored: NewAws
) -> None:
    ahead = 2**62
    aws.notifications.sequencer.last = ahead
    folder.save(aws, tmp_path / VECTORS)
    assert int(restored().notifications.sequencer.next(), 16) > ahead


def test_vectors_come_back_as_they_were_at_the_snapshot(
    aws: AwsServer, folder: DataFolder, tmp_path: Path, restored: NewAws
) -> None:
    vectors = tmp_path / VECTORS
    with closing(sqlite3.connect(vectors)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE v (n)")
        database.execute("INSERT INTO v VALUES (1)")
        database.commit()
        folder.save(aws, vectors)
        database.execute("INSERT INTO v VALUES (2)")
        database.commit()
    restored()
    with closing(sqlite3.connect(tmp_path / "restored" / VECTORS)) as database:
        assert database.execute("SELECT n FROM v").fetchall() == [(1,)]


def test_a_folder_of_vectors_comes_back_as_it_was_at_the_snapshot(
    aws: AwsServer, folder: DataFolder, tmp_path: Path
) -> None:
    vectors = tmp_path / PLACES["opensearch"]
    (vectors / "nodes").mkdir(parents=True)
    (vectors / "nodes" / "segment").write_bytes(b"kept")
    saved = folder.save(aws, vectors)
    (vectors / "nodes" / "segment").write_bytes(b"later")
    shutil.rmtree(vectors)
    snapshot.restore(saved, aws, vectors)
    assert (vectors / "nodes" / "segment").read_bytes() == b"kept"


def test_a_snapshot_with_another_vector_store_is_refused_before_anything_is_restored(
    aws: AwsServer, folder: DataFolder, tmp_path: Path
) -> None:
    aws.dynamodb.put_item(TableName=TABLE, Item=ITEM)
    saved = folder.save(aws, tmp_path / VECTORS)
    aws.dynamodb.delete_item(TableName=TABLE, Key={"pk": ITEM["pk"], "sk": ITEM["sk"]})
    with pytest.raises(ValueError, match="same --vectors"):
        snapshot.restore(saved, aws, tmp_path / PLACES["opensearch"])
    assert aws.dynamodb.scan(TableName=TABLE)["Items"] == []


def test_one_snapshot_is_kept_the_last(aws: AwsServer, folder: DataFolder, tmp_path: Path) -> None:
    first = folder.save(aws, tmp_path / VECTORS)
    second = folder.save(aws, tmp_path / VECTORS)
    assert not first.exists()
    assert folder.latest == second


def test_a_snapshot_that_was_never_finished_is_not_loaded_and_goes(
    aws: AwsServer, folder: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = folder.save(aws, tmp_path / VECTORS)

    def breaks(_folder: Path) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(snapshot, "_sync", breaks)
    with pytest.raises(OSError, match="full"):
        folder.save(aws, tmp_path / VECTORS)
    assert folder.latest == whole
    assert len(list(folder.path.glob("draft-*"))) == 1
    folder.close()
    opened = DataFolder(folder.path)
    assert opened.latest == whole
    assert list(folder.path.glob("draft-*")) == []
    opened.close()


def test_two_stacks_cannot_share_a_folder(folder: DataFolder) -> None:
    with pytest.raises(BlockingIOError):
        DataFolder(folder.path)


def test_a_snapshot_of_another_form_is_refused_by_name(aws: AwsServer, folder: DataFolder, tmp_path: Path) -> None:
    saved = folder.save(aws, tmp_path / VECTORS)
    (saved / "manifest.json").write_text(json.dumps({"format": 0, "sequencer": 0}))
    with pytest.raises(ValueError, match=saved.name):
        snapshot.restore(saved, aws, tmp_path / VECTORS)


def test_a_message_that_someone_hides_for_long_does_not_keep_the_stack_from_ending(
    aws: AwsServer, folder: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.sqs.receive_message(QueueUrl=aws.queue_url(QUEUE), VisibilityTimeout=3600)
    monkeypatch.setattr(snapshot, "LONGEST_HIDDEN_S", 0.1)
    with pytest.raises(TimeoutError, match="hidden"):
        folder.save(aws, tmp_path / VECTORS)
    assert folder.latest is None

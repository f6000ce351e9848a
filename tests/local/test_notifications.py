"""Every write to the bucket becomes the event that S3 would send, in the order of the writes."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote_plus

import httpx
import pytest
from botocore.exceptions import ClientError

from infra.local.aws import AwsServer
from infra.local.names import BUCKET, QUEUE
from infra.local.notifications import Sequencer

KEY = "acme/col_1/a b/é+&.md"


def events(aws: AwsServer) -> list[dict[str, Any]]:
    """The records in the queue, in order, and no more than there are."""
    url = aws.queue_url(QUEUE)
    records = []
    while messages := aws.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
        for message in messages:
            records += json.loads(message["Body"]).get("Records", [])
            aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return records


def summary(records: list[dict[str, Any]]) -> list[tuple[str, str, str | None]]:
    return [
        (
            record["eventName"],
            unquote_plus(record["s3"]["object"]["key"]),
            record["s3"]["object"].get("versionId"),
        )
        for record in records
    ]


def test_a_put_names_the_object_s_version_its_size_and_its_tag(aws: AwsServer) -> None:
    put = aws.s3.put_object(Bucket=BUCKET, Key=KEY, Body=b"four")
    [record] = events(aws)
    assert record["eventSource"] == "aws:s3"
    assert record["eventName"] == "ObjectCreated:Put"
    assert record["s3"]["bucket"]["name"] == BUCKET
    described = record["s3"]["object"]
    assert unquote_plus(described["key"]) == KEY
    assert described["versionId"] == put["VersionId"]
    assert (described["size"], described["eTag"]) == (4, put["ETag"].strip('"'))
    assert int(described["sequencer"], 16) > 0


def test_a_presigned_put_is_told_like_any_other(aws: AwsServer) -> None:
    url = aws.s3.generate_presigned_url("put_object", Params={"Bucket": BUCKET, "Key": KEY})
    httpx.put(url, content=b"x", trust_env=False).raise_for_status()
    assert [name for name, _, _ in summary(events(aws))] == ["ObjectCreated:Put"]


def test_a_plain_delete_tells_of_its_marker_and_the_delete_of_a_version_of_that_version(aws: AwsServer) -> None:
    version = aws.s3.put_object(Bucket=BUCKET, Key=KEY, Body=b"x")["VersionId"]
    marker = aws.s3.delete_object(Bucket=BUCKET, Key=KEY)["VersionId"]
    aws.s3.delete_object(Bucket=BUCKET, Key=KEY, VersionId=version)
    assert summary(events(aws)) == [
        ("ObjectCreated:Put", KEY, version),
        ("ObjectRemoved:DeleteMarkerCreated", KEY, marker),
        ("ObjectRemoved:Delete", KEY, version),
    ]


def test_a_delete_of_several_tells_of_each(aws: AwsServer) -> None:
    versions = [aws.s3.put_object(Bucket=BUCKET, Key=key, Body=b"x")["VersionId"] for key in ("a", "b")]
    events(aws)
    aws.s3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": "a"}, {"Key": "b", "VersionId": versions[1]}]})
    [first, second] = summary(events(aws))
    assert first[:2] == ("ObjectRemoved:DeleteMarkerCreated", "a")
    assert second == ("ObjectRemoved:Delete", "b", versions[1])


def test_a_multipart_upload_is_told_once_when_it_is_complete(aws: AwsServer) -> None:
    upload = aws.s3.create_multipart_upload(Bucket=BUCKET, Key=KEY)["UploadId"]
    part = aws.s3.upload_part(Bucket=BUCKET, Key=KEY, UploadId=upload, PartNumber=1, Body=b"part")
    done = aws.s3.complete_multipart_upload(
        Bucket=BUCKET,
        Key=KEY,
        UploadId=upload,
        MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]},
    )
    assert summary(events(aws)) == [("ObjectCreated:CompleteMultipartUpload", KEY, done["VersionId"])]


def test_a_copy_is_told_as_one(aws: AwsServer) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="a", Body=b"x")
    aws.s3.copy_object(Bucket=BUCKET, Key="b", CopySource={"Bucket": BUCKET, "Key": "a"})
    version = aws.s3.head_object(Bucket=BUCKET, Key="b")["VersionId"]
    assert summary(events(aws))[1:] == [("ObjectCreated:Copy", "b", version)]


def test_what_writes_no_object_is_not_told(aws: AwsServer) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="a", Body=b"x")
    events(aws)
    aws.s3.put_object_tagging(Bucket=BUCKET, Key="a", Tagging={"TagSet": [{"Key": "k", "Value": "v"}]})
    aws.s3.get_object(Bucket=BUCKET, Key="a")
    upload = aws.s3.create_multipart_upload(Bucket=BUCKET, Key="a")["UploadId"]
    aws.s3.abort_multipart_upload(Bucket=BUCKET, Key="a", UploadId=upload)
    with pytest.raises(ClientError):
        aws.s3.put_object(Bucket=BUCKET, Key="a", Body=b"y", IfNoneMatch="*")
    assert events(aws) == []


def test_of_writes_at_the_same_moment_the_highest_sequencer_is_the_version_that_stays(aws: AwsServer) -> None:
    def put(number: int) -> None:
        aws.s3.put_object(Bucket=BUCKET, Key="a", Body=str(number).encode())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(24)))
    records = [record["s3"]["object"] for record in events(aws)]
    assert len({record["sequencer"] for record in records}) == 24
    last = max(records, key=lambda record: str(record["sequencer"]))
    assert last["versionId"] == aws.s3.head_object(Bucket=BUCKET, Key="a")["VersionId"]


def test_a_closed_bucket_refuses_writes_and_answers_reads(aws: AwsServer) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="a", Body=b"x")
    aws.notifications.close()
    assert httpx.put(f"{aws.url}/{BUCKET}/a", content=b"y", trust_env=False).status_code == 503
    assert aws.s3.get_object(Bucket=BUCKET, Key="a")["Body"].read() == b"x"


def test_the_queue_first_gets_the_event_that_s3_sends_when_notifications_are_set(aws: AwsServer) -> None:
    [message] = aws.sqs.receive_message(QueueUrl=aws.queue_url(QUEUE))["Messages"]
    assert json.loads(message["Body"])["Event"] == "s3:TestEvent"


def test_a_sequencer_rises_also_when_the_clock_was_put_back() -> None:
    ahead = 2**62
    sequencer = Sequencer(ahead)
    first, second = sequencer.next(), sequencer.next()
    assert ahead < int(first, 16) < int(second, 16)
    assert len(first) == len(second) == 18

"""Objects of the bucket: S3's notifications, through the queue. Documents that are to be finished come along.

A message is settled when its object's state has come to rest: ready, unchanged, superseded, removed, or refused
for good by a failed document that says why; or when its collection is gone. Anything else fails the message: it
comes back, and in the end lies in the dead-letter queue.
"""

import json
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.s3_event import S3Event, S3EventRecord
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import BotoCoreError, ClientError

from core.engine import Engine
from core.ingest.finish import Message
from core.ingest.uploads import UPLOAD_METADATA, ObjectName
from core.model.document import MAX_SOURCE_TYPE, SOURCE_VERSION_DIGITS
from core.model.errors import (
    CollectionNotFound,
    EmptyContent,
    InvalidArgument,
    PayloadTooLarge,
    UnsupportedMediaType,
    VersionConflict,
    WeftError,
)
from core.model.ids import UploadId
from core.model.ingest import IngestInput
from core.model.upload import UploadInfo
from core.powertools import configure_logging, describe, logger
from core.wiring import engine_from_environment, s3_client, sqs_client

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_s3.type_defs import GetObjectOutputTypeDef
    from types_boto3_sqs import SQSClient

# What is left of the function's time when the last ingest stops: failing a document takes a few writes.
_MARGIN_S = 10.0
# Times the queue's maximum receives, it covers the time after which a dead ingest can be taken over.
_BACK_AFTER_S = 60

_GONE = {"NoSuchKey", "NoSuchVersion", "404"}
_REFUSED = (EmptyContent, UnsupportedMediaType, PayloadTooLarge, InvalidArgument)

configure_logging()


class NotSettledError(Exception):
    """The message has to come back."""


class ObjectEvents:
    """Brings what the bucket says about its objects into the engine, and finishes documents.

    Args:
        deadline: seconds of the engine's monotonic clock.
    """

    def __init__(self, engine: Engine, s3: "S3Client", deadline: float) -> None:
        self._engine = engine
        self._s3 = s3
        self._deadline = deadline

    def settle_message(self, record: SQSRecord) -> None:
        """Settles the objects, or the document, that a message names. Powertools calls it with this argument's name.

        Raises:
            Exception: whatever kept one from being settled; it has been logged.
        """
        try:
            body = json.loads(record.body)
            if body.get("Event") == "s3:TestEvent":
                return
            if message := Message.read(body):
                self._finish(message)
                return
            for change in S3Event(body).records:
                self._settle_change(change)
        except Exception as error:
            logger.warning("Message not settled", extra={"message_id": record.message_id, "error": describe(error)})
            raise

    def _finish(self, message: Message) -> None:
        if not self._engine.ingest.finish(*message, self._deadline):
            raise NotSettledError(f"Document {message.document_id} is not searchable yet")

    def _settle_change(self, record: S3EventRecord) -> None:
        if self._engine.clock.monotonic() >= self._deadline:
            raise NotSettledError("The function's time is up")
        name = ObjectName.parse(unquote_plus(record.s3.get_object.key))
        try:
            self._settle(record, name)
        except CollectionNotFound:
            logger.warning("Left alone: there is no such collection", extra={"collection_id": name.collection_id})

    def _settle(self, record: S3EventRecord, name: ObjectName) -> None:
        match record.event_name.split(":"):
            case ["ObjectCreated", _]:
                self._ingest(record, name, record.s3.get_object.version_id)
            case ["ObjectRemoved" | "LifecycleExpiration", "DeleteMarkerCreated"]:
                self._remove(record, name)
            case ["ObjectRemoved" | "LifecycleExpiration", "Delete"]:
                try:
                    self._look_again(record, name)
                except VersionConflict:
                    # A look before this one found something else, so a later event speaks of what is there now.
                    logger.info("Superseded: the object has changed since", extra={"collection_id": name.collection_id})
            case _:
                raise NotSettledError(f"Unknown event {record.event_name}")

    def _look_again(self, record: S3EventRecord, name: ObjectName) -> None:
        """One version, or a delete marker, went for good: what the key holds now is what counts."""
        try:
            current = self._s3.head_object(Bucket=record.s3.bucket.name, Key=name.key)
        except ClientError as error:
            if not _is_gone(error):
                raise
            self._remove(record, name)
        else:
            self._ingest(record, name, current.get("VersionId"))

    def _remove(self, record: S3EventRecord, name: ObjectName) -> None:
        deletion = self._engine.documents.delete_source(
            name.tenant,
            name.collection_id,
            name.source_key,
            self._deadline,
            source_version=_sequencer(record),
            version_sequence=record.s3.bucket.name,
        )
        if not deletion.complete:
            raise NotSettledError("The removal is not finished")

    def _ingest(self, record: S3EventRecord, name: ObjectName, version: str | None) -> None:
        try:
            found = self._read(record.s3.bucket.name, name.key, version)
        except ClientError as error:
            if not _is_gone(error):
                raise
            logger.info("Superseded: the object's version is gone", extra={"collection_id": name.collection_id})
            return
        given = _bare(record, name, found)
        try:
            with closing(found["Body"]) as body:
                self._check_size(found["ContentLength"])
                given = given.model_copy(update={"content": body.read()})
            given = self._described(given, name, found)
            result = self._engine.ingest.ingest(name.tenant, given, self._deadline)
        except _REFUSED as error:
            self._refuse(name, given, error)
            return
        if result.state.in_progress:
            raise NotSettledError(f"Document {result.document_id} is still in progress")

    def _check_size(self, size: int) -> None:
        limit = self._engine.settings.object_bytes
        if size > limit:
            raise PayloadTooLarge(f"An object is at most {limit} bytes", limit=limit)

    def _read(self, bucket: str, key: str, version: str | None) -> "GetObjectOutputTypeDef":
        if version is None:
            return self._s3.get_object(Bucket=bucket, Key=key)
        return self._s3.get_object(Bucket=bucket, Key=key, VersionId=version)

    def _described(self, given: IngestInput, name: ObjectName, found: "GetObjectOutputTypeDef") -> IngestInput:
        """The ingest of an object with what was said of it.

        Raises:
            InvalidArgument: its metadata names no upload.
            UnsupportedMediaType: no loader reads its type.
        """
        info = self._upload(name, found)
        declared = info.source_type if info else found.get("ContentType", "")
        # What is not said leaves an unchanged document's title alone.
        said = {"title": info.title, "attributes": info.attributes} if info else {}
        source_type = self._engine.uploads.source_type(name.source_key, declared)
        return given.model_copy(update={**said, "source_type": source_type})

    def _upload(self, name: ObjectName, found: "GetObjectOutputTypeDef") -> UploadInfo | None:
        upload_id = found["Metadata"].get(UPLOAD_METADATA)
        return self._engine.uploads.get(name.tenant, UploadId(upload_id)) if upload_id else None

    def _refuse(self, name: ObjectName, given: IngestInput, error: WeftError) -> None:
        """Leaves a failed document that says why, unless the ingest has left one."""
        if "document_id" not in error.extras:
            self._engine.ingest.refuse(name.tenant, given, error)
        logger.info("Refused", extra={"collection_id": name.collection_id, "code": error.code})


def _bare(record: S3EventRecord, name: ObjectName, found: "GetObjectOutputTypeDef") -> IngestInput:
    """The ingest of an object by its names alone, which are always right: what says why it is refused, too."""
    return IngestInput(
        collection_id=name.collection_id,
        content=b"",
        source=f"s3://{record.s3.bucket.name}/{name.key}",
        source_type=found.get("ContentType", "")[:MAX_SOURCE_TYPE],
        source_key=name.source_key,
        source_version=_sequencer(record),
        version_sequence=record.s3.bucket.name,
    )


def _sequencer(record: S3EventRecord) -> str | None:
    """The object's place in the order of its key's changes; some events have none.

    Sequencers of different lengths are compared as if the shorter went on with zeros (Amazon S3 User Guide, "Event
    message structure"), which makes them numbers of one length.
    """
    sequencer: str | None = record.s3.get_object.get("sequencer")
    return sequencer and sequencer.ljust(SOURCE_VERSION_DIGITS, "0")


def _is_gone(error: ClientError) -> bool:
    return error.response["Error"]["Code"] in _GONE


def settle_batch(event: dict[str, Any], context: LambdaContext, engine: Engine, s3: "S3Client") -> dict[str, Any]:
    """Settles the messages of one batch; the answer names those that come back."""
    seconds = context.get_remaining_time_in_millis() / 1000 - _MARGIN_S
    events = ObjectEvents(engine, s3, engine.clock.monotonic() + seconds)
    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    answer = process_partial_response(
        event=event, record_handler=events.settle_message, processor=processor, context=context
    )
    return dict(answer)


def bring_back_soon(event: dict[str, Any], answer: dict[str, Any], queue_url: str, sqs: "SQSClient") -> None:
    """Makes the messages that were not settled visible after a short while. The queue's own time-out is long,
    since it must outlast the function, and an ingest elsewhere is over much sooner."""
    failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
    for record in event["Records"]:
        if record["messageId"] not in failed:
            continue
        try:
            sqs.change_message_visibility(
                QueueUrl=queue_url, ReceiptHandle=record["receiptHandle"], VisibilityTimeout=_BACK_AFTER_S
            )
        except (ClientError, BotoCoreError) as error:  # it comes back all the same, only later
            logger.warning("Visibility not changed", extra={"error": describe(error)})


_s3_client = cache(s3_client)
_sqs_client = cache(sqs_client)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    engine = engine_from_environment()
    answer = settle_batch(event, context, engine, _s3_client())
    if engine.settings.queue_url:
        bring_back_soon(event, answer, engine.settings.queue_url, _sqs_client())
    return answer

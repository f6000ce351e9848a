"""The handler of the queue: it brings the bucket's changes into the engine, and finishes documents that had to wait.

Two kinds of message arrive in batches:

* S3's notifications of objects that were created or removed;
* Weft's own messages that name a document whose chunks were written but not yet searchable (`core.ingest.finish`).

A message is acknowledged when nothing more is to be done for it: each object's document is ready, unchanged,
superseded, removed, or failed for good with its reason on the document; or the object's collection is gone. In every
other case the message fails. The queue then delivers it again, and after too many deliveries moves it to the
dead-letter queue.
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
from core.ingest.finish import FinishMessage
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
    from types_boto3_s3.type_defs import GetObjectOutputTypeDef, HeadObjectOutputTypeDef
    from types_boto3_sqs import SQSClient

# Ingests stop so long before the function's own time-out: marking a document failed takes a few writes.
_MARGIN_S = 10.0
REDELIVER_AFTER_S = 60
"""Seconds until a failed message is delivered again. Multiplied by the queue's maximum number of receives, this is
longer than the time after which a document whose ingest died can be claimed."""

_GONE = {"NoSuchKey", "NoSuchVersion", "404"}
_REFUSED = (EmptyContent, UnsupportedMediaType, PayloadTooLarge, InvalidArgument)

configure_logging()


class NotAcknowledgedError(Exception):
    """The message cannot be acknowledged yet: the queue has to deliver it again."""


class QueueMessages:
    """Handles the messages of one batch.

    Args:
        engine: the engine that ingests and removes.
        s3: a client that reads the bucket's objects.
        deadline: when the work must stop, in seconds of the engine's monotonic clock.
    """

    def __init__(self, engine: Engine, s3: "S3Client", deadline: float) -> None:
        self._engine = engine
        self._s3 = s3
        self._deadline = deadline

    def handle_message(self, record: SQSRecord) -> None:
        """Handles one message; a return without an error acknowledges it.

        Powertools calls this method with an argument named ``record``.

        Raises:
            Exception: the message has to be delivered again. The error has been logged.
        """
        try:
            body = json.loads(record.body)
            if body.get("Event") == "s3:TestEvent":  # S3 sends it once, when the bucket's notifications are set up
                return
            if message := FinishMessage.read(body):
                self._finish(message)
                return
            for change in S3Event(body).records:
                self._handle_change(change)
        except Exception as error:
            logger.warning(
                "FinishMessage not acknowledged", extra={"message_id": record.message_id, "error": describe(error)}
            )
            raise

    def _finish(self, message: FinishMessage) -> None:
        if not self._engine.ingest.finish(*message, self._deadline):
            raise NotAcknowledgedError(f"Document {message.document_id} is not searchable yet")

    def _handle_change(self, record: S3EventRecord) -> None:
        if self._engine.clock.monotonic() >= self._deadline:
            raise NotAcknowledgedError("The function's time is up")
        name = ObjectName.parse(unquote_plus(record.s3.get_object.key))
        try:
            self._apply_change(record, name)
        except CollectionNotFound:
            logger.warning("Left alone: there is no such collection", extra={"collection_id": name.collection_id})

    def _apply_change(self, record: S3EventRecord, name: ObjectName) -> None:
        match record.event_name.split(":"):
            case ["ObjectCreated", _]:
                self._ingest(record, name, record.s3.get_object.version_id)
            case ["ObjectRemoved" | "LifecycleExpiration", "DeleteMarkerCreated"]:
                self._remove(record, name)
            case ["ObjectRemoved" | "LifecycleExpiration", "Delete"]:
                self._apply_current_version(record, name)
            case _:
                raise NotAcknowledgedError(f"Unknown event {record.event_name}")

    def _apply_current_version(self, record: S3EventRecord, name: ObjectName) -> None:
        """Applies what the bucket holds under a key after one version, or a delete marker, was deleted for good.

        The event does not say whether the deleted version was the current one, so the bucket is asked.
        """
        current = self._head_object(record.s3.bucket.name, name.key)
        try:
            if current is None:
                self._remove(record, name)
            else:
                self._ingest(record, name, current.get("VersionId"))
        except VersionConflict:
            # An earlier delivery of this event saw the key in another state, so the object has changed since then. The
            # event of that change applies the state in which the key is now.
            logger.info("Superseded: the object has changed since", extra={"collection_id": name.collection_id})

    def _head_object(self, bucket: str, key: str) -> "HeadObjectOutputTypeDef | None":
        try:
            return self._s3.head_object(Bucket=bucket, Key=key)
        except ClientError as error:
            if _is_gone(error):
                return None
            raise

    def _remove(self, record: S3EventRecord, name: ObjectName) -> None:
        deletion = self._engine.documents.delete_source(
            name.tenant,
            name.collection_id,
            name.source_key,
            self._deadline,
            source_version=_source_version(record),
            version_sequence=record.s3.bucket.name,
        )
        if not deletion.complete:
            raise NotAcknowledgedError("The removal is not finished")

    def _ingest(self, record: S3EventRecord, name: ObjectName, version_id: str | None) -> None:
        """Ingests one version of an object; without a version ID, the current one.

        Raises:
            NotAcknowledgedError: another ingest is at this content, or the document is not searchable yet.
        """
        s3_object = self._get_object(record.s3.bucket.name, name.key, version_id)
        if s3_object is None:
            logger.info("Superseded: the object's version is gone", extra={"collection_id": name.collection_id})
            return
        document = _input_without_content(record, name, s3_object)
        try:
            with closing(s3_object["Body"]) as body:
                self._check_size(s3_object["ContentLength"])
                document = document.model_copy(update={"content": body.read()})
            document = self._with_description(document, name, s3_object)
            result = self._engine.ingest.ingest(name.tenant, document, self._deadline)
        except _REFUSED as error:
            self._record_refusal(name, document, error)
            return
        if result.state.in_progress:
            raise NotAcknowledgedError(f"Document {result.document_id} is still in progress")

    def _get_object(self, bucket: str, key: str, version_id: str | None) -> "GetObjectOutputTypeDef | None":
        try:
            if version_id is None:
                return self._s3.get_object(Bucket=bucket, Key=key)
            return self._s3.get_object(Bucket=bucket, Key=key, VersionId=version_id)
        except ClientError as error:
            if _is_gone(error):
                return None
            raise

    def _check_size(self, size: int) -> None:
        limit = self._engine.settings.object_bytes
        if size > limit:
            raise PayloadTooLarge(f"An object is at most {limit} bytes", limit=limit)

    def _with_description(
        self, document: IngestInput, name: ObjectName, s3_object: "GetObjectOutputTypeDef"
    ) -> IngestInput:
        """Adds to an input its media type, and the title and attributes that were sent when the upload was created.

        Raises:
            InvalidArgument: the object's metadata names no upload.
            UnsupportedMediaType: no loader reads the object's media type.
        """
        upload = self._upload(name, s3_object)
        declared = upload.source_type if upload else s3_object.get("ContentType", "")
        # Without an upload the title is not set at all: an ingest of unchanged content then keeps the document's title.
        described = {"title": upload.title, "attributes": upload.attributes} if upload else {}
        source_type = self._engine.uploads.source_type(name.source_key, declared)
        return document.model_copy(update={**described, "source_type": source_type})

    def _upload(self, name: ObjectName, s3_object: "GetObjectOutputTypeDef") -> UploadInfo | None:
        upload_id = s3_object["Metadata"].get(UPLOAD_METADATA)
        return self._engine.uploads.get(name.tenant, UploadId(upload_id)) if upload_id else None

    def _record_refusal(self, name: ObjectName, document: IngestInput, error: WeftError) -> None:
        """Leaves a failed document that holds the reason, unless the ingest itself has left one."""
        if "document_id" not in error.extras:
            self._engine.ingest.refuse(name.tenant, document, error)
        logger.info("Refused", extra={"collection_id": name.collection_id, "code": error.code})


def _input_without_content(record: S3EventRecord, name: ObjectName, s3_object: "GetObjectOutputTypeDef") -> IngestInput:
    """The part of an object's input that is always valid, so that a refused object can be recorded under its names."""
    return IngestInput(
        collection_id=name.collection_id,
        content=b"",
        source=f"s3://{record.s3.bucket.name}/{name.key}",
        source_type=s3_object.get("ContentType", "")[:MAX_SOURCE_TYPE],
        source_key=name.source_key,
        source_version=_source_version(record),
        version_sequence=record.s3.bucket.name,
    )


def _source_version(record: S3EventRecord) -> str | None:
    """Makes a source version of the event's sequencer, which orders the changes of one key. Some events have none.

    Sequencers of different lengths are compared as if the shorter one went on with zeros (Amazon S3 User Guide, "Event
    message structure"). Padded with zeros, they are numbers of one length.
    """
    sequencer: str | None = record.s3.get_object.get("sequencer")
    return sequencer and sequencer.ljust(SOURCE_VERSION_DIGITS, "0")


def _is_gone(error: ClientError) -> bool:
    return error.response["Error"]["Code"] in _GONE


def handle_batch(event: dict[str, Any], context: LambdaContext, engine: Engine, s3: "S3Client") -> dict[str, Any]:
    """Handles the messages of one batch. The answer names the messages that SQS has to deliver again."""
    seconds = context.get_remaining_time_in_millis() / 1000 - _MARGIN_S
    messages = QueueMessages(engine, s3, engine.clock.monotonic() + seconds)
    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    answer = process_partial_response(
        event=event, record_handler=messages.handle_message, processor=processor, context=context
    )
    return dict(answer)


def redeliver_soon(event: dict[str, Any], answer: dict[str, Any], queue_url: str, sqs: "SQSClient") -> None:
    """Makes the messages that failed visible again after `REDELIVER_AFTER_S`.

    The queue's own visibility time-out is long, since it must outlast the function. The cause of a failure, such as an
    ingest of the same content elsewhere, is over much sooner.
    """
    failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
    for record in event["Records"]:
        if record["messageId"] not in failed:
            continue
        try:
            sqs.change_message_visibility(
                QueueUrl=queue_url, ReceiptHandle=record["receiptHandle"], VisibilityTimeout=REDELIVER_AFTER_S
            )
        except (ClientError, BotoCoreError) as error:  # the queue delivers the message all the same, only later
            logger.warning("Visibility not changed", extra={"error": describe(error)})


_s3_client = cache(s3_client)
_sqs_client = cache(sqs_client)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    engine = engine_from_environment()
    answer = handle_batch(event, context, engine, _s3_client())
    if engine.settings.queue_url:
        redeliver_soon(event, answer, engine.settings.queue_url, _sqs_client())
    return answer

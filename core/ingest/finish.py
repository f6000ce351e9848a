"""Finishes documents that were written whole before searches saw them. Their messages wait in the queue.

OpenSearch Serverless shows writes only after some seconds. An attempt that would have to wait longer than its call
leaves its document to the queue (`core.ingest.attempt`); the queue's function then finishes it.
"""

import json
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from core.ingest.completion import Completion
from core.ingest.hold import HoldLost, Holds
from core.metadata.documents import Documents
from core.model.errors import Unavailable
from core.model.ids import DocumentId
from core.model.tenant import Tenant
from core.protocol.served import may_be_written
from core.vectors.types import VectorStore

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

_MEMBER = "finish"
_FIRST_LOOK_S = 10
"""OpenSearch Serverless shows writes every ten seconds."""


class FinishQueue(Protocol):
    """A queue of documents that are written whole. `Finisher.finish` is called with each until it returns True."""

    def send(self, tenant: Tenant, document_id: DocumentId, attempt: int) -> None:
        """Puts a document into the queue.

        Raises:
            Unavailable: the queue does not take the document.
        """
        ...


class Finisher:
    """Makes documents ready whose vectors searches see by now.

    A finisher acts for the attempt that wrote the document: whatever would keep that attempt from making the document
    ready keeps the finisher from it. SQS may deliver a message twice. Two calls running at the same time have the same
    effect as one.
    """

    def __init__(self, documents: Documents, vectors: VectorStore, holds: Holds, completion: Completion) -> None:
        self._documents = documents
        self._vectors = vectors
        self._holds = holds
        self._completion = completion

    def finish(self, tenant: Tenant, document_id: DocumentId, attempt: int, deadline: float) -> bool:
        """Makes a document ready once searches see all its vectors.

        Args:
            attempt: the attempt that wrote the document.
            deadline: monotonic seconds. No new piece of work begins after it.

        Returns:
            True when nothing is left to do: the document is ready, or no longer belongs to this attempt. False when
            the call has sent a heartbeat and is to be repeated later.

        Raises:
            Unavailable: a store does not answer, or the time is over. Call again later.
        """
        lifetime = self._holds.start_life()
        head = self._documents.head(tenant, document_id)
        if head is None or not may_be_written(head, attempt):
            return True
        hold = self._holds.hold(head, lifetime, deadline)
        count = head.reserved[str(attempt)]
        try:
            # The attempt wrote every chunk's row before its vector, so the vectors are all that has to be looked for.
            if len(self._vectors.present(tenant, head.space, hold.chunk_ids(count))) < count:
                hold.wait_in_queue()
                return False
            result = hold.swap(count, None)
        except HoldLost:
            return not hold.is_over  # whoever took the document sees to its data
        self._completion.complete(hold, result)
        return True


class FinishMessage(NamedTuple):
    """A message of the queue. It names the document and holds nothing of its content."""

    tenant: Tenant
    document_id: DocumentId
    attempt: int

    @property
    def body(self) -> str:
        return json.dumps({_MEMBER: self._asdict()})

    @classmethod
    def read(cls, body: dict[str, Any]) -> "FinishMessage | None":
        """Reads a message's body; returns None for a message of another kind.

        Raises:
            InvalidArgument, KeyError, TypeError: the body is not one that Weft has sent.
        """
        if _MEMBER not in body:
            return None
        names = body[_MEMBER]
        return cls(Tenant(names["tenant"]), DocumentId(names["document_id"]), int(names["attempt"]))


class SqsFinishQueue:
    """The queue of the bucket's events, which carries these messages as well."""

    def __init__(self, sqs: "SQSClient", url: str) -> None:
        self._sqs = sqs
        self._url = url

    def send(self, tenant: Tenant, document_id: DocumentId, attempt: int) -> None:
        body = FinishMessage(tenant, document_id, attempt).body
        try:
            self._sqs.send_message(QueueUrl=self._url, MessageBody=body, DelaySeconds=_FIRST_LOOK_S)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("The queue does not take the document to be finished") from error

"""Documents that are written whole and that searches do not see yet: finished from the queue."""

import json
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from core.ingest.owner import LostError, Owner
from core.metadata.dynamo import retry_on_conflict
from core.model.errors import Unavailable
from core.model.ids import ChunkId, DocumentId
from core.model.tenant import Tenant

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

_MEMBER = "finish"
_FIRST_LOOK_S = 10
"""A collection of OpenSearch Serverless shows its writes every ten seconds."""


class Finish(Owner):
    """The end of an attempt whose own process has left it.

    It is the attempt: what would stop that one from making the document ready stops this one. Two at once, from a
    message that came twice, do what one does.
    """

    def run(self) -> bool:
        """Whether nothing is left to do. A document that is not ready yet has given a sign of life."""
        head = self._head
        count = head.reserved[str(head.attempt)]
        chunk_ids = [ChunkId.of(head.document_id, head.attempt, index) for index in range(count)]
        try:
            # A vector is written after its chunk's row, so these are all there is to look for.
            if len(self._parts.vector_store().present(head.tenant, head.space, chunk_ids)) < count:
                self._wait_in_queue()
                return False
            result = retry_on_conflict(self._parts.clock, partial(self._swap, count, None))
        except LostError:
            return not self._life.is_over()  # whoever took it has its data cleaned, too
        self._complete(result)
        return True


class Message(NamedTuple):
    """What is on the queue: names, and nothing of the document."""

    tenant: Tenant
    document_id: DocumentId
    attempt: int

    @property
    def body(self) -> str:
        return json.dumps({_MEMBER: self._asdict()})

    @classmethod
    def read(cls, body: dict[str, Any]) -> "Message | None":
        """The message of a body; None when it is of another kind.

        Raises:
            InvalidArgument, KeyError, TypeError: it is none of ours.
        """
        if _MEMBER not in body:
            return None
        names = body[_MEMBER]
        return cls(Tenant(names["tenant"]), DocumentId(names["document_id"]), int(names["attempt"]))


class FinishQueue:
    """The queue of the bucket's events, which takes these messages too."""

    def __init__(self, sqs: "SQSClient", url: str) -> None:
        self._sqs = sqs
        self._url = url

    def send(self, tenant: Tenant, document_id: DocumentId, attempt: int) -> None:
        body = Message(tenant, document_id, attempt).body
        try:
            self._sqs.send_message(QueueUrl=self._url, MessageBody=body, DelaySeconds=_FIRST_LOOK_S)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("The queue does not take the document to be finished") from error

"""What owns a document in progress: its signs of life, its swap, and what follows."""

import logging
from datetime import timedelta
from functools import partial

from core.clock import Lifetime
from core.ingest.purge import purge
from core.metadata.dynamo import ConditionFailed, retry_on_conflict
from core.metadata.rows import Head, Info, Source
from core.model.document import DocumentState
from core.model.errors import Unavailable
from core.model.ids import DocumentId
from core.model.ingest import IngestResult
from core.parts import Parts
from core.settings import HEARTBEAT_INTERVAL_S

logger = logging.getLogger(__name__)

QUEUED = timedelta(hours=1)
"""A document that is left to the queue counts as interrupted only when its message has been away for so long."""
PURGED_STATES = (DocumentState.SUPERSEDED, DocumentState.FAILED)


class LostError(Exception):
    """The document is no longer this attempt's."""


class Owner:
    """One attempt's hold on a document.

    Args:
        head: the document as the attempt owns it.
        life: begun before the write that made it own the document, or before ``head`` was read.
        deadline: monotonic seconds; nothing new is started after it.
    """

    def __init__(self, parts: Parts, head: Head, life: Lifetime, deadline: float) -> None:
        self._parts = parts
        self._head = head
        self._life = life
        self._deadline = deadline
        self._last_heartbeat = parts.clock.monotonic()
        self._replaced: list[DocumentId] = []

    # -- the swap ----------------------------------------------------------------------------------

    def _swap(self, chunk_count: int, info: Info | None) -> IngestResult:
        head, source = self._parts.documents.head_and_source(self._head)
        if head is None or head.attempt != self._head.attempt:
            raise LostError
        if not head.state.in_progress:
            settled = self._settled(head, source)
            if settled is None:
                raise LostError
            return settled
        self._check_time()
        self._head = head  # its number may have risen since it began
        if source is not None and source.current_number > head.number:
            self._parts.transitions.overtaken(head)
            return superseded(head.document_id, source)
        self._replaced = [source.current.document_id] if source and source.current else []
        self._make_ready(chunk_count, info, source)
        return self._ready(chunk_count)

    def _make_ready(self, chunk_count: int, info: Info | None, source: Source | None) -> None:
        try:
            self._parts.transitions.swap(self._head, chunk_count=chunk_count, info=info, read=source)
        except ConditionFailed:
            if not self._parts.is_active(self._head.tenant, self._head.collection_id):
                raise LostError from None  # the gates are closed, and never open again
            raise

    def _settled(self, head: Head, source: Source | None) -> IngestResult | None:
        """Ready under my attempt is my success; superseded under it is a success that was overtaken."""
        if head.state == DocumentState.READY:
            return self._ready(head.chunk_count)
        if head.state == DocumentState.SUPERSEDED:
            return superseded(head.document_id, source)
        return None

    def _ready(self, chunk_count: int) -> IngestResult:
        return IngestResult(
            document_id=self._head.document_id,
            chunk_count=chunk_count,
            state=DocumentState.READY,
            replaced=self._replaced,
        )

    # -- the guard ---------------------------------------------------------------------------------

    def _heartbeat(self, reserve: int | None = None) -> None:
        self._check_time()
        retry_on_conflict(self._parts.clock, partial(self._beat, reserve))
        self._last_heartbeat = self._parts.clock.monotonic()

    def _wait_in_queue(self, info: Info | None = None) -> None:
        """The sign of life of a document that the queue brings back."""
        retry_on_conflict(self._parts.clock, partial(self._beat, None, QUEUED, info))

    def _beat(self, reserve: int | None, quiet: timedelta = timedelta(0), info: Info | None = None) -> None:
        try:
            self._parts.transitions.heartbeat(self._head, reserve=reserve, quiet=quiet, info=info)
        except ConditionFailed:
            head = self._parts.documents.head(self._head.tenant, self._head.document_id)
            if head is None or not head.state.in_progress or head.attempt != self._head.attempt:
                raise LostError from None
            raise

    def _heartbeat_if_due(self) -> None:
        if self._parts.clock.monotonic() - self._last_heartbeat > HEARTBEAT_INTERVAL_S:
            self._heartbeat()

    def _check_time(self) -> None:
        """Before every write.

        Raises:
            LostError: the writer's life is over; what it wrote may have been cleaned for good already.
            Unavailable: the call's time is over.
        """
        if self._life.is_over():
            raise LostError
        if self._parts.clock.monotonic() >= self._deadline:
            raise Unavailable("The ingest takes longer than one call may; upload the document instead")

    # -- what follows ------------------------------------------------------------------------------

    def _complete(self, result: IngestResult) -> None:
        self._purge_older(result)
        self._fire("ingest_completed", result=result)

    def _purge_older(self, result: IngestResult) -> None:
        """Removes this source's superseded and failed versions, this one too when it was overtaken."""
        head = self._head
        first = head.number <= 1 and result.state == DocumentState.READY
        if head.source_id is None or first:
            return
        try:
            versions = self._parts.documents.versions(head.tenant, head.collection_id, head.source_id)
            for version in self._parts.documents.heads(head.tenant, versions).values():
                if version.number <= head.number and version.state in PURGED_STATES:
                    purge(self._parts, version)
        except Exception as error:  # noqa: BLE001 - this version serves: what older ones left is due for the sweep
            logger.warning("Older versions of %s are left to the sweep: %s", head.document_id, type(error).__name__)

    def _fire(self, hook: str, **details: object) -> None:
        self._parts.extensions.fire(
            hook,
            tenant=self._head.tenant,
            collection_id=self._head.collection_id,
            document_id=self._head.document_id,
            **details,
        )


def superseded(document_id: DocumentId | None, source: Source | None) -> IngestResult:
    """The answer of an ingest that did not come to serve."""
    winner = source.current.document_id if source and source.current else None
    return IngestResult(
        document_id=document_id,
        chunk_count=0,
        state=DocumentState.SUPERSEDED,
        superseded_by=winner if winner != document_id else None,
    )

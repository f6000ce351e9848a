"""An attempt's hold on its document: the heartbeats, the checks before every write, and the swap."""

from datetime import timedelta
from functools import partial

from core.clock import Clock, Lifetime
from core.metadata.collections import Collections
from core.metadata.documents import Documents
from core.metadata.dynamo import ConditionFailed, retry_on_conflict
from core.metadata.rows import Head, Info, Source
from core.model.document import DocumentState
from core.model.errors import Unavailable
from core.model.ids import ChunkId, DocumentId
from core.model.ingest import IngestResult
from core.protocol.served import may_be_written
from core.protocol.transitions import Transitions
from core.settings import HEARTBEAT_INTERVAL_S

QUEUED = timedelta(hours=1)
"""How long a document that waits in the queue may go without a heartbeat before it counts as interrupted."""


class HoldLost(Exception):
    """The document no longer belongs to this attempt."""


class DocumentHold:
    """An attempt's right to write its document.

    Attributes:
        head: the document's row as the attempt has last read it.
        replaced: the version that the swap has superseded, if there was one.
    """

    def __init__(
        self,
        documents: Documents,
        collections: Collections,
        transitions: Transitions,
        clock: Clock,
        *,
        head: Head,
        lifetime: Lifetime,
        deadline: float,
    ) -> None:
        self._documents = documents
        self._collections = collections
        self._transitions = transitions
        self._clock = clock
        self._lifetime = lifetime
        self._deadline = deadline
        self._last_heartbeat = clock.monotonic()
        self.head = head
        self.replaced: list[DocumentId] = []

    def chunk_ids(self, count: int) -> list[ChunkId]:
        """Lists the IDs of this attempt's first `count` chunks."""
        return [ChunkId.of(self.head.document_id, self.head.attempt, index) for index in range(count)]

    # -- checks and heartbeats -----------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether the writer's life is over, so that nothing may be written or deleted any more."""
        return self._lifetime.is_over()

    def check_time(self) -> None:
        """Stops the attempt when its time is up. Called before every write.

        Raises:
            HoldLost: the writer's life is over. The last cleaning of what it wrote may have happened already.
            Unavailable: the call's time is over. The caller uploads the document instead.
        """
        if self.is_over:
            raise HoldLost
        if self._clock.monotonic() >= self._deadline:
            raise Unavailable("The ingest takes longer than one call may; upload the document instead")

    def heartbeat(self, reserve: int | None = None) -> None:
        """Records that the attempt is alive.

        Args:
            reserve: how many chunks the attempt is about to write. Recorded before the first chunk is written.

        Raises:
            HoldLost: the document no longer belongs to this attempt.
            Unavailable: the call's time is over, or DynamoDB does not answer.
        """
        self.check_time()
        retry_on_conflict(self._clock, partial(self._beat, reserve))
        self._last_heartbeat = self._clock.monotonic()

    def heartbeat_if_due(self) -> None:
        """Sends a heartbeat when the last heartbeat is older than ``HEARTBEAT_INTERVAL_S``."""
        if self._clock.monotonic() - self._last_heartbeat > HEARTBEAT_INTERVAL_S:
            self.heartbeat()

    def wait_in_queue(self, info: Info | None = None) -> None:
        """Sends the heartbeat of a document that waits in the queue until searches see it.

        Args:
            info: the document's description, when loading has changed it.
        """
        retry_on_conflict(self._clock, partial(self._beat, None, QUEUED, info))

    def _beat(self, reserve: int | None, quiet: timedelta = timedelta(0), info: Info | None = None) -> None:
        try:
            self._transitions.heartbeat(self.head, reserve=reserve, quiet=quiet, info=info)
        except ConditionFailed:
            now = self._documents.head(self.head.tenant, self.head.document_id)
            if not may_be_written(now, self.head.attempt):
                raise HoldLost from None
            raise

    # -- swap ----------------------------------------------------------------------------------------

    def swap(self, chunk_count: int, info: Info | None) -> IngestResult:
        """Makes the document ready, or superseded when a newer version or a removal exists.

        Args:
            chunk_count: how many chunks the document has.
            info: the document's description, when loading has changed it.

        Raises:
            HoldLost: the document no longer belongs to this attempt, or its collection is being deleted.
            Unavailable: the call's time is over, or DynamoDB does not answer.
        """
        return retry_on_conflict(self._clock, partial(self._swap, chunk_count, info))

    def _swap(self, chunk_count: int, info: Info | None) -> IngestResult:
        head, source = self._documents.head_and_source(self.head)
        if head is None or head.attempt != self.head.attempt:
            raise HoldLost
        if not head.state.in_progress:
            result = self.result_of(head, source)
            if result is None:
                raise HoldLost
            return result
        self.check_time()
        self.head = head  # the version number may have risen since the document began
        if source is not None and source.current_number > head.number:
            self._transitions.overtaken(head)
            return superseded(head.document_id, source)
        self.replaced = [source.current.document_id] if source and source.current else []
        self._make_ready(chunk_count, info, source)
        return self._ready(chunk_count)

    def _make_ready(self, chunk_count: int, info: Info | None, source: Source | None) -> None:
        try:
            self._transitions.swap(self.head, chunk_count=chunk_count, info=info, source_as_read=source)
        except ConditionFailed:
            if not self._collections.is_active(self.head.tenant, self.head.collection_id):
                raise HoldLost from None  # the collection's gates are closed and never open again
            raise

    def result_of(self, head: Head, source: Source | None) -> IngestResult | None:
        """Returns the answer of an attempt whose document is no longer in progress.

        A document that is ready under this attempt is this attempt's success. A document that is superseded under
        this attempt was its success, or was overtaken.

        Args:
            head: the document's row, owned by this attempt.

        Returns:
            None when the document has failed.
        """
        if head.state == DocumentState.READY:
            return self._ready(head.chunk_count)
        if head.state == DocumentState.SUPERSEDED:
            return superseded(head.document_id, source)
        return None

    def _ready(self, chunk_count: int) -> IngestResult:
        return IngestResult(
            document_id=self.head.document_id,
            chunk_count=chunk_count,
            state=DocumentState.READY,
            replaced=self.replaced,
        )


class Holds:
    """Makes holds."""

    def __init__(
        self,
        documents: Documents,
        collections: Collections,
        transitions: Transitions,
        clock: Clock,
        writer_life: timedelta,
    ) -> None:
        self._documents = documents
        self._collections = collections
        self._transitions = transitions
        self._clock = clock
        self._writer_life = writer_life

    def start_life(self) -> Lifetime:
        """Starts a writer's life. Called before the write, or the read, by which the writer comes to own a document."""
        return Lifetime(self._clock, self._writer_life)

    def hold(self, head: Head, lifetime: Lifetime, deadline: float) -> DocumentHold:
        """Returns the hold of the attempt that owns a document.

        Args:
            deadline: monotonic seconds. No new piece of work begins after it.
        """
        return DocumentHold(
            self._documents,
            self._collections,
            self._transitions,
            self._clock,
            head=head,
            lifetime=lifetime,
            deadline=deadline,
        )


def superseded(document_id: DocumentId | None, source: Source | None) -> IngestResult:
    """Returns the answer of an ingest that a newer version or a removal has overtaken.

    Args:
        document_id: the overtaken document; None when nothing was begun.
        source: the source as it is now; its current version is the winner.
    """
    winner = source.current.document_id if source and source.current else None
    return IngestResult(
        document_id=document_id,
        chunk_count=0,
        state=DocumentState.SUPERSEDED,
        superseded_by=winner if winner != document_id else None,
    )

"""One attempt at one document: from the first heartbeat to the swap, or to the document's failure."""

import logging
from dataclasses import dataclass, field
from functools import partial

from core.clock import Clock
from core.deletion.purge import Purger
from core.ingest.begin import OwnedDocument
from core.ingest.completion import Completion
from core.ingest.description import described_again
from core.ingest.finish import FinishQueue
from core.ingest.hold import DocumentHold, HoldLost
from core.ingest.plan import Plan
from core.ingest.stages import Segment, Stages
from core.metadata.documents import Documents
from core.metadata.dynamo import retry_on_conflict
from core.metadata.fields import Fields
from core.metadata.rows import Info
from core.model.document import DocumentState
from core.model.errors import IngestInterrupted, Unavailable, WeftError
from core.model.ingest import IngestResult
from core.observe import Observer
from core.protocol.failing import Failing, failure_of, fire_ingest_failed

logger = logging.getLogger(__name__)

MAX_TITLE = 1024


@dataclass
class Attempt:
    """The state of one attempt.

    Attributes:
        info: the document's description, which loading may change.
        stage: the stage that the attempt is in, as a failed document names it.
        reserved: how many chunks the attempt may have written.
    """

    plan: Plan
    hold: DocumentHold
    info: Info
    stage: str = "start"
    reserved: int = 0
    info_at_begin: Info = field(init=False)

    def __post_init__(self) -> None:
        self.info_at_begin = self.info

    @property
    def changed_info(self) -> Info | None:
        """The description, when loading has changed it."""
        return self.info if self.info != self.info_at_begin else None


class AttemptRunner:
    """Runs attempts."""

    def __init__(
        self,
        *,
        stages: Stages,
        documents: Documents,
        fields: Fields,
        failing: Failing,
        purger: Purger,
        completion: Completion,
        finish_queue: FinishQueue | None,
        observer: Observer,
        clock: Clock,
    ) -> None:
        self._stages = stages
        self._documents = documents
        self._fields = fields
        self._failing = failing
        self._purger = purger
        self._completion = completion
        self._finish_queue = finish_queue
        self._observer = observer
        self._clock = clock

    def run(self, plan: Plan, owned: OwnedDocument, hold: DocumentHold) -> IngestResult:
        """Writes a document that this ingest has begun or claimed.

        Returns:
            The answer. Its state is in progress when the document is finished from the queue.

        Raises:
            IngestInterrupted: the document was taken from this attempt. Nothing that the attempt wrote is left.
            WeftError: an error stopped the attempt. The document is failed and says why.
        """
        attempt = Attempt(plan, hold, owned.info)
        self._fire("ingest_started", attempt, source_key=plan.input.source_key)
        try:
            result = self._write(attempt)
        except HoldLost as error:
            self._discard(attempt)
            raise IngestInterrupted(document_id=hold.head.document_id) from error
        except Exception as error:
            success = self._end_in_failure(attempt, error)
            if success is None:
                if isinstance(error, WeftError):
                    error.extras["document_id"] = hold.head.document_id
                raise
            result = success
        if not result.state.in_progress:
            self._completion.complete(hold, result)
        return result

    # -- the order of writes -------------------------------------------------------------------------

    def _write(self, attempt: Attempt) -> IngestResult:
        """Runs the stages. The writes have this order, and a heartbeat stands between each two stages:

        heartbeat, load, split, heartbeat with the number of reserved chunks, names of attributes, embed, heartbeat,
        then for each group of at most 500 chunks the chunk rows and the vectors, heartbeat, swap.
        """
        hold = attempt.hold
        segments = self._load_and_split(attempt)
        attempt.stage = "embed"
        self._stages.embed(segments)
        self._fire("ingest_embedded", attempt, chunks=attempt.reserved)
        hold.heartbeat()
        attempt.stage = "write"
        searchable = self._stages.write(segments)
        attempt.stage = "swap"
        if not searchable:
            return self._leave_to_queue(attempt)
        hold.heartbeat()
        return hold.swap(attempt.reserved, attempt.changed_info)

    def _load_and_split(self, attempt: Attempt) -> list[Segment]:
        attempt.stage = "load"
        attempt.hold.heartbeat()
        loaded = self._stages.load(attempt.plan)
        attempt.stage = "chunk"
        segments = self._stages.split(attempt.plan, attempt.hold, loaded)
        self._describe(attempt, loaded.title, segments)
        chunks = sum(len(segment.chunks) for segment in segments)
        self._fire("ingest_chunked", attempt, chunks=chunks)
        attempt.hold.heartbeat(reserve=chunks)
        attempt.reserved = chunks
        names = {name for segment in segments for chunk in segment.chunks for name in chunk.attributes}
        self._fields.add(attempt.plan.tenant, attempt.plan.input.collection_id, names)
        return segments

    @staticmethod
    def _describe(attempt: Attempt, found_title: str, segments: list[Segment]) -> None:
        """Completes the description with the title and the attributes that loading has found."""
        described = described_again(attempt.info, attempt.plan.input)  # a claimed document may have another description
        title = described.title or found_title[:MAX_TITLE]
        attributes = segments[0].chunks[0].attributes
        attempt.info = described.model_copy(update={"title": title, "attributes": attributes})

    def _leave_to_queue(self, attempt: Attempt) -> IngestResult:
        """Leaves a document that is written whole to the queue, from which it is finished (`core.ingest.finish`)."""
        head = attempt.hold.head
        attempt.hold.wait_in_queue(attempt.changed_info)
        if self._finish_queue is not None:
            self._finish_queue.send(head.tenant, head.document_id, head.attempt)
        return IngestResult(document_id=head.document_id, chunk_count=0, state=DocumentState.PROCESSING)

    # -- failure -------------------------------------------------------------------------------------

    def _end_in_failure(self, attempt: Attempt, error: Exception) -> IngestResult | None:
        """Marks the document failed, or finds that the attempt has succeeded and only the answer was lost.

        While neither is known, the swap may still be on its way to DynamoDB. The data then stays, and the sweep
        decides.

        Returns:
            The answer of a success; None when there is none.
        """
        if attempt.hold.is_over:
            return None
        head = attempt.hold.head
        try:
            self._fail(attempt, error)
            now, source = self._documents.head_and_source(head)
        except Unavailable:
            # The caller is told the first error, which has the same cause.
            logger.warning("Document %s is left to the sweep", head.document_id)
            return None
        is_own = now is not None and now.attempt == head.attempt
        result = attempt.hold.result_of(now, source) if now is not None and is_own else None
        if result is None:
            self._discard(attempt)
        return result

    def _fail(self, attempt: Attempt, error: Exception) -> None:
        """Marks the document failed, unless it is no longer in progress under this attempt.

        Raises:
            Unavailable: DynamoDB does not answer, so it is not known whether the document is failed.
        """
        failure = failure_of(attempt.stage, error)
        head = attempt.hold.head
        if retry_on_conflict(self._clock, partial(self._failing.mark, head, failure)):
            fire_ingest_failed(self._observer, head, failure)

    def _discard(self, attempt: Attempt) -> None:
        """Removes the data that this attempt wrote, and no other attempt's.

        Data that cannot be removed now is due for the sweep anyway.
        """
        if attempt.hold.is_over:
            return
        head = attempt.hold.head
        try:
            self._purger.remove_data(head.tenant, head.space, attempt.hold.chunk_ids(attempt.reserved))
        except Exception as error:  # noqa: BLE001 - whatever the store raises, the data is due for the sweep
            logger.warning("Data of document %s is left to the sweep: %s", head.document_id, type(error).__name__)

    def _fire(self, hook: str, attempt: Attempt, **details: object) -> None:
        head = attempt.hold.head
        self._observer.fire(
            hook, tenant=head.tenant, collection_id=head.collection_id, document_id=head.document_id, **details
        )

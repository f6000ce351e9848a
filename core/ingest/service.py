"""The ingest of documents, as the engine offers it."""

from collections.abc import Sequence
from functools import partial
from math import inf

from core.clock import Clock
from core.ingest.attempt import AttemptRunner
from core.ingest.batch import ingest_batch
from core.ingest.finish import Finisher
from core.ingest.hold import Holds
from core.ingest.keyed import KeyedBeginning
from core.ingest.plan import Planner
from core.ingest.refusal import Refusals
from core.ingest.unkeyed import UnkeyedBeginning
from core.metadata.dynamo import retry_on_conflict
from core.model.errors import Unavailable, WeftError
from core.model.ids import DocumentId
from core.model.ingest import BatchItem, IngestInput, IngestResult
from core.model.tenant import Tenant
from core.observe import Observer


class IngestService:
    """Takes documents in."""

    def __init__(
        self,
        *,
        planner: Planner,
        keyed: KeyedBeginning,
        unkeyed: UnkeyedBeginning,
        holds: Holds,
        runner: AttemptRunner,
        finisher: Finisher,
        refusals: Refusals,
        observer: Observer,
        clock: Clock,
        concurrency: int,
    ) -> None:
        self._planner = planner
        self._keyed = keyed
        self._unkeyed = unkeyed
        self._holds = holds
        self._runner = runner
        self._finisher = finisher
        self._refusals = refusals
        self._observer = observer
        self._clock = clock
        self._concurrency = concurrency

    def ingest(self, tenant: Tenant, document: IngestInput, deadline: float = inf) -> IngestResult:
        """Loads, splits, embeds and stores one document.

        With a source key the ingest is an upsert. The same content again embeds nothing and answers ``unchanged``; new
        content replaces the source's current version, whose ID is then in ``replaced``. Content that another ingest
        is still writing is answered with that ingest's document in its state. A document that searches do not see
        within the call is answered in its state, too; the queue then brings it to `finish`.

        Args:
            deadline: monotonic seconds of the engine's clock. No new piece of work begins after it.

        Raises:
            InvalidArgument, EmptyContent, UnsupportedMediaType, CollectionNotFound, NotConfigured: the input is
                refused. Nothing was written.
            DuplicateDocument: a ready document without a source key has this content.
            VersionConflict: the source version came with another content before.
            IngestInterrupted: the document was taken from this ingest. Nothing that the ingest wrote is left.
            Unavailable: a store or the model does not answer, or the time is over. A document that had begun is
                failed and says why. Ingest again.
        """
        with self._observer.timed("ingest"):
            if self._clock.monotonic() >= deadline:
                raise Unavailable("The time was over before this document's turn; send it again")
            plan = self._planner.plan(tenant, document, deadline)
            begin = self._keyed.begin if document.source_key is not None else self._unkeyed.begin
            lifetime = self._holds.start_life()
            begun = retry_on_conflict(self._clock, partial(begin, plan))
            if isinstance(begun, IngestResult):
                return begun
            return self._runner.run(plan, begun, self._holds.hold(begun.head, lifetime, deadline))

    def batch(
        self, tenant: Tenant, inputs: Sequence[IngestInput | WeftError], deadline: float = inf
    ) -> list[BatchItem]:
        """Ingests several documents, several at once, as `core.ingest.batch.ingest_batch` says.

        A document whose turn comes after the deadline is answered with Unavailable.
        """
        return ingest_batch(lambda document: self.ingest(tenant, document, deadline), inputs, self._concurrency)

    def finish(self, tenant: Tenant, document_id: DocumentId, attempt: int, deadline: float) -> bool:
        """Makes a document ready that an ingest has written whole, as `core.ingest.finish.Finisher` says."""
        return self._finisher.finish(tenant, document_id, attempt, deadline)

    def refuse(self, tenant: Tenant, document: IngestInput, error: WeftError) -> IngestResult:
        """Records an upload that can never be ingested, as `core.ingest.refusal.Refusals` says."""
        return self._refusals.record(tenant, document, error)

"""Ingest: from check to swap, one document or a batch."""

import logging
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from operator import itemgetter

from core.clock import Lifetime, new_id
from core.ingest.attempt import Attempt, Plan, failure_of, mark_failed
from core.ingest.decide import Join, Late, Unchanged, Version, decide
from core.ingest.description import check_description, described_again, info_of
from core.ingest.fingerprint import content_hash, fingerprint_of
from core.ingest.finish import Finish
from core.ingest.owner import superseded
from core.metadata.dynamo import ConditionFailed, Conflict, retry_on_conflict
from core.metadata.rows import CollectionRow, Head, Info, Source
from core.metadata.transitions import next_version
from core.model.document import DocumentState, Failure, source_id
from core.model.errors import (
    DuplicateDocument,
    EmptyContent,
    IngestInterrupted,
    InternalError,
    InvalidArgument,
    Unavailable,
    WeftError,
)
from core.model.ids import MAX_ATTEMPT, CollectionId, DocumentId
from core.model.ingest import BatchItem, IngestInput, IngestResult
from core.model.tenant import Tenant
from core.parts import Parts

logger = logging.getLogger(__name__)

MAX_WORK = 16


class IngestService:
    """Documents in."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def ingest(self, tenant: Tenant, given: IngestInput, deadline: float) -> IngestResult:
        """Loads, chunks, embeds and stores one document.

        With a source key it is an upsert: the same content again embeds nothing and answers ``unchanged``; new
        content replaces the source's current version, whose ID is then in ``replaced``. Content that another
        ingest is still working on is answered with that document in its state; so is a document of this ingest
        that searches do not see yet, which the queue brings to `finish`.

        Args:
            deadline: monotonic seconds of the engine's clock; nothing new is started after it.

        Raises:
            InvalidArgument, EmptyContent, UnsupportedMediaType, CollectionNotFound, NotConfigured: nothing was written.
            DuplicateDocument: unkeyed content that is ready in the collection.
            VersionConflict: one source version with two contents.
            IngestInterrupted: the document was taken from this ingest; nothing it wrote is left.
            Unavailable: a store or the model does not answer, or the time is over; a document that had begun
                has failed and says why.
        """
        with self._parts.timed("ingest"):
            if self._parts.clock.monotonic() >= deadline:
                raise Unavailable("The time was over before this document's turn; send it again")
            plan = self._plan(tenant, given, deadline)
            step = self._settle_keyed if given.source_key is not None else self._settle_unkeyed
            life = Lifetime(self._parts.clock, self._parts.writer_life)
            settled = retry_on_conflict(self._parts.clock, partial(step, plan))
            if isinstance(settled, IngestResult):
                return settled
            return Attempt(self._parts, plan, *settled, life).run()

    def finish(self, tenant: Tenant, document_id: DocumentId, attempt: int, deadline: float) -> bool:
        """Makes a document ready that an ingest has written whole, once searches see all of it.

        Args:
            attempt: the one that wrote it.
            deadline: monotonic seconds of the engine's clock; nothing new is started after it.

        Returns:
            Whether nothing is left to do: it is ready, or no longer this attempt's. Else it is to be called again.

        Raises:
            Unavailable: a store does not answer, or the time is over.
        """
        life = Lifetime(self._parts.clock, self._parts.writer_life)
        head = self._parts.documents.head(tenant, document_id)
        if head is None or head.attempt != attempt or not head.state.in_progress:
            return True
        return Finish(self._parts, head, life, deadline).run()

    def refuse(self, tenant: Tenant, given: IngestInput, error: WeftError) -> IngestResult:
        """Records a source's content that can never be ingested, as a failed document that says why.

        For uploads: nobody waits for an answer there. The version that is served goes on being served. Content that
        was never read is none.

        Raises:
            CollectionNotFound: missing, another tenant's, or being deleted.
        """
        collection = self._parts.collection(tenant, given.collection_id)
        failure = failure_of("check", error)
        result = retry_on_conflict(self._parts.clock, partial(self._record_refusal, tenant, given, failure, collection))
        if result.state == DocumentState.FAILED:
            self._fire_failed(tenant, given.collection_id, result.document_id, failure)
        return result

    def _fire_failed(
        self, tenant: Tenant, collection_id: CollectionId, document_id: DocumentId | None, failure: Failure
    ) -> None:
        self._parts.extensions.fire(
            "ingest_failed", tenant=tenant, collection_id=collection_id, document_id=document_id, failure=failure
        )

    def _record_refusal(
        self, tenant: Tenant, given: IngestInput, failure: Failure, collection: CollectionRow
    ) -> IngestResult:
        read = self._source(tenant, given)
        version = Version.of(given.source_version, given.version_sequence)
        if version and version.is_seen(read.seen):
            return superseded(None, read)
        hashed = content_hash(given.content) if given.content else ""
        head, info = self._new_rows(tenant, given, collection, hashed, hashed, read.next_number)
        head = head.model_copy(update={"state": DocumentState.FAILED, "error": failure})
        source = read.model_copy(update={"next_number": read.next_number + 1})
        if version is not None:
            source = source.model_copy(update={"seen": version.seen(head.number, hashed)})
        self._begin(head, partial(self._parts.transitions.begin_keyed, head, info, read, source))
        return IngestResult(document_id=head.document_id, chunk_count=0, state=head.state)

    def _begin(self, head: Head, transaction: Callable[[], None]) -> None:
        try:
            transaction()
        except ConditionFailed:
            self._parts.collection(head.tenant, head.collection_id)  # its gates may have closed since the check
            raise

    def _source(self, tenant: Tenant, given: IngestInput) -> Source:
        """The source's row, or what it is before its first version."""
        key = given.source_key or ""
        found = self._parts.documents.source(tenant, given.collection_id, source_id(key))
        return found or Source(key=key, collection_id=given.collection_id)

    def batch(self, tenant: Tenant, items: Sequence[IngestInput | WeftError], deadline: float) -> list[BatchItem]:
        """Ingests several documents, several at once; one answer an input, in order.

        Inputs with the same source key, or the same unkeyed content, run in input order. An input that is
        already an error is answered with it. What is not begun at the deadline is Unavailable.
        """
        keyed = sorted((self._lane(item), place) for place, item in enumerate(items))
        lanes = [[place for _, place in lane] for _, lane in groupby(keyed, key=itemgetter(0))]
        answers: dict[int, BatchItem] = {}
        with ThreadPoolExecutor(self._parts.settings.ingest_concurrency, "ingest") as pool:
            for lane in pool.map(partial(self._run_lane, tenant, items, deadline), lanes):
                answers |= lane
        return [answers[place] for place in range(len(items))]

    @staticmethod
    def _lane(item: IngestInput | WeftError) -> str:
        if isinstance(item, WeftError):
            return ""
        if item.source_key is not None:
            return f"{item.collection_id} key {item.source_key}"
        return f"{item.collection_id} content {content_hash(item.content)}"

    def _run_lane(
        self, tenant: Tenant, items: Sequence[IngestInput | WeftError], deadline: float, lane: Sequence[int]
    ) -> dict[int, BatchItem]:
        return {place: self._one_of_batch(tenant, items[place], deadline) for place in lane}

    def _one_of_batch(self, tenant: Tenant, item: IngestInput | WeftError, deadline: float) -> BatchItem:
        if isinstance(item, WeftError):
            return item
        try:
            return self.ingest(tenant, item, deadline)
        except WeftError as error:
            return error
        except Exception as error:  # noqa: BLE001 - one document's defect takes no other's answer away
            stack = "".join(traceback.format_tb(error.__traceback__))
            logger.error("Unexpected %s in a batch:\n%s", type(error).__name__, stack)  # noqa: TRY400 - no message: it may hold text of the document
            return InternalError("Something went wrong on our side; the log says what")

    # -- check -------------------------------------------------------------------------------------

    def _plan(self, tenant: Tenant, given: IngestInput, deadline: float) -> Plan:
        parts = self._parts
        parts.vector_store()
        if not given.content:
            raise EmptyContent("There is nothing to ingest", field="content")
        if given.source_version is not None and given.source_key is None:
            raise InvalidArgument("A source_version needs a source_key", field="source_version")
        check_description(given)
        loader, charset = parts.loaders.find(given.source_type)
        collection = parts.collection(tenant, given.collection_id)
        embedder = parts.embedder_of(collection.space)
        splitter = parts.splitters.find(collection.chunk_strategy)
        loader.check(given.content, charset)
        hashed = content_hash(given.content)
        return Plan(
            tenant=tenant,
            given=given,
            collection=collection,
            loader=loader,
            charset=charset,
            splitter=splitter,
            embedder=embedder,
            content_hash=hashed,
            fingerprint=fingerprint_of(
                hashed,
                loader=loader.name,
                charset=charset,
                splitter=splitter.name,
                row=collection,
                attributes=None if given.source_key is None else given.attributes,
            ),
            writer=f"{parts.clock.random.getrandbits(64):016x}",
            deadline=deadline,
        )

    # -- keyed -------------------------------------------------------------------------------------

    def _settle_keyed(self, plan: Plan) -> IngestResult | tuple[Head, Info]:
        """One step: an answer, or a document that is this ingest's to work on."""
        given = plan.given
        read = self._source(plan.tenant, given)
        version = Version.of(given.source_version, given.version_sequence)
        decision = decide(read, plan.fingerprint, plan.content_hash, version)
        if isinstance(decision, Late):
            return superseded(None, read)
        if isinstance(decision, Unchanged):
            return self._unchanged(plan, read, decision, version)
        if isinstance(decision, Join):
            found = self._parts.documents.rows(plan.tenant, [decision.work.document_id])
            if found and found[0][0].state.in_progress:
                head, info = found[0]
                if decision.renumber and version:
                    head = self._renumber(plan, head, read, version)
                return self._join(plan, head, info)
            if found and found[0][0].state != DocumentState.FAILED:
                raise self._changed(plan)
        return self._begin_keyed(plan, read, version)

    def _unchanged(self, plan: Plan, read: Source, decision: Unchanged, version: Version | None) -> IngestResult:
        current = decision.current
        found = self._parts.documents.rows(plan.tenant, [current.document_id])
        if not found or found[0][0].state != DocumentState.READY:
            raise self._changed(plan)
        head, info = found[0]
        if decision.renumber and version:
            self._renumber(plan, head, read, version)
        again = described_again(info, plan.given)
        if again != info:
            self._parts.documents.update_info(plan.tenant, again)
        return IngestResult(
            document_id=head.document_id,
            chunk_count=head.chunk_count,
            state=head.state,
            unchanged=True,
        )

    def _changed(self, plan: Plan) -> Conflict:
        """What a source whose row and document do not agree is answered with: one of them was read too early.

        Raises:
            CollectionNotFound: it is being deleted, where documents go before sources.
        """
        self._parts.collection(plan.tenant, plan.given.collection_id)
        return Conflict("the source has changed since it was read")

    def _renumber(self, plan: Plan, head: Head, read: Source, version: Version) -> Head:
        number = read.next_number
        seen = version.seen(number, head.content_hash)
        changes: dict[str, object] = {"next_number": number + 1, "seen": seen}
        if head.state == DocumentState.READY:
            changes |= {"current_number": number, "work": read.without_work_up_to(number)}
        else:
            work = read.work[head.fingerprint].model_copy(update={"number": number})
            changes["work"] = {**read.work, head.fingerprint: work}
        source = read.model_copy(update=changes)
        self._parts.transitions.renumber(head, number, plan.given.source_version or "", read, source)
        return head.model_copy(update={"number": number})

    def _begin_keyed(self, plan: Plan, read: Source, version: Version | None) -> tuple[Head, Info]:
        head, info = self._plan_rows(plan, read.next_number)
        source = next_version(read, plan.fingerprint, head.document_id)
        if len(source.work) > MAX_WORK:
            raise Unavailable(f"The source has {MAX_WORK} versions in progress", retry_after_s=30)
        if version is not None:
            seen = version.seen(head.number, plan.content_hash)
            source = source.model_copy(update={"seen": seen})
        self._begin(head, partial(self._parts.transitions.begin_keyed, head, info, read, source))
        return head, info

    # -- unkeyed -----------------------------------------------------------------------------------

    def _settle_unkeyed(self, plan: Plan) -> IngestResult | tuple[Head, Info]:
        holder = self._parts.documents.content_holder(plan.tenant, plan.given.collection_id, plan.fingerprint)
        found = self._parts.documents.rows(plan.tenant, [holder]) if holder else []
        if found:
            head, info = found[0]
            if head.state == DocumentState.READY:
                raise DuplicateDocument("This content is in the collection already", document_id=head.document_id)
            if head.state.in_progress:
                return self._join(plan, head, info)
        head, info = self._plan_rows(plan, number=0)
        self._begin(head, partial(self._parts.transitions.begin_unkeyed, head, info, holder))
        return head, info

    # -- both --------------------------------------------------------------------------------------

    def _plan_rows(self, plan: Plan, number: int) -> tuple[Head, Info]:
        head, info = self._new_rows(
            plan.tenant, plan.given, plan.collection, plan.content_hash, plan.fingerprint, number
        )
        return head.model_copy(update={"writer": plan.writer}), info

    def _new_rows(
        self,
        tenant: Tenant,
        given: IngestInput,
        collection: CollectionRow,
        hashed: str,
        fingerprint: str,
        number: int,
    ) -> tuple[Head, Info]:
        now = self._parts.clock.now()
        document_id = new_id(DocumentId, self._parts.clock)
        head = Head(
            tenant=tenant,
            document_id=document_id,
            collection_id=given.collection_id,
            state=DocumentState.PENDING,
            attempt=1,
            writer="",
            reserved={},
            number=number,
            heartbeat=now,
            fingerprint=fingerprint,
            content_hash=hashed,
            source_id=None if given.source_key is None else source_id(given.source_key),
            embedding_model=collection.embedding_model,
            embedding_dims=collection.embedding_dims,
            created_at=now,
            updated_at=now,
        )
        return head, info_of(given, document_id)

    def _join(self, plan: Plan, head: Head, info: Info) -> IngestResult | tuple[Head, Info]:
        """A document with this content is in progress: it answers for this ingest, unless it has stalled."""
        if head.writer == plan.writer:  # this ingest's own begin or claim, its answer lost
            return head, info
        cutoff = self._parts.clock.now() - self._parts.settings.stalled_after
        if head.heartbeat > cutoff:
            return IngestResult(document_id=head.document_id, chunk_count=0, state=head.state)
        if head.attempt == MAX_ATTEMPT:
            detail = f"{MAX_ATTEMPT} attempts at this document have died; its content may be what stops them"
            failure = Failure(stage="claim", code=IngestInterrupted.code, detail=detail)
            if not mark_failed(self._parts, head, failure, cutoff):
                raise Conflict("the document has changed since it was read")
            self._fire_failed(head.tenant, head.collection_id, head.document_id, failure)
            raise IngestInterrupted(detail, document_id=head.document_id)
        return self._parts.transitions.claim(head, plan.writer, cutoff), info

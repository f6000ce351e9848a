"""What the beginnings of all ingests share: new rows, and documents in progress that have the same content."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from core.clock import Clock, new_id
from core.ingest.description import info_of
from core.ingest.plan import Plan
from core.metadata.collections import Collections
from core.metadata.dynamo import ConditionFailed, Conflict
from core.metadata.rows import CollectionRow, Head, Info
from core.model.document import DocumentState, Failure, source_id
from core.model.errors import IngestInterrupted
from core.model.ids import MAX_ATTEMPT, DocumentId
from core.model.ingest import IngestInput, IngestResult
from core.model.tenant import Tenant
from core.observe import Observer
from core.protocol.failing import Failing, fire_ingest_failed
from core.protocol.transitions import Transitions


class OwnedDocument(NamedTuple):
    """A document that an ingest has begun or claimed, and is to write now."""

    head: Head
    info: Info


def new_rows(
    clock: Clock,
    tenant: Tenant,
    document: IngestInput,
    collection: CollectionRow,
    *,
    content_hash: str,
    fingerprint: str,
    number: int,
    writer: str = "",
) -> OwnedDocument:
    """Makes the rows of a new pending document. Nothing is written.

    Args:
        number: the version number; 0 for a document without a source.
    """
    now = clock.now()
    document_id = new_id(DocumentId, clock)
    head = Head(
        tenant=tenant,
        document_id=document_id,
        collection_id=document.collection_id,
        state=DocumentState.PENDING,
        attempt=1,
        writer=writer,
        reserved={},
        number=number,
        heartbeat=now,
        fingerprint=fingerprint,
        content_hash=content_hash,
        source_id=None if document.source_key is None else source_id(document.source_key),
        embedding_model=collection.embedding_model,
        embedding_dims=collection.embedding_dims,
        created_at=now,
        updated_at=now,
    )
    return OwnedDocument(head, info_of(document, document_id))


class Beginning:
    """Begins a document, or joins or claims a document in progress that has the same content."""

    def __init__(
        self,
        collections: Collections,
        transitions: Transitions,
        failing: Failing,
        observer: Observer,
        clock: Clock,
        stalled_after: timedelta,
    ) -> None:
        self._collections = collections
        self._transitions = transitions
        self._failing = failing
        self._observer = observer
        self._clock = clock
        self._stalled_after = stalled_after

    def new_rows(self, plan: Plan, number: int) -> OwnedDocument:
        """Makes the rows of the new document that a plan begins. Nothing is written."""
        return new_rows(
            self._clock,
            plan.tenant,
            plan.input,
            plan.collection,
            content_hash=plan.content_hash,
            fingerprint=plan.fingerprint,
            number=number,
            writer=plan.writer,
        )

    def begin(self, owned: OwnedDocument, transaction: Callable[[], None]) -> OwnedDocument:
        """Runs the transaction that begins a document.

        Raises:
            CollectionNotFound: the collection has closed its gates since it was checked.
            ConditionFailed, Conflict: a row has changed since it was read. Read it again.
        """
        try:
            transaction()
        except ConditionFailed:
            self._collections.active(owned.head.tenant, owned.head.collection_id)
            raise
        return owned

    def join_or_claim(self, plan: Plan, head: Head, info: Info) -> IngestResult | OwnedDocument:
        """Answers with a document in progress that has the same content, or claims it when it has stalled.

        Raises:
            IngestInterrupted: the document has used up its attempts and has been marked failed.
            ConditionFailed, Conflict: a row has changed since it was read. Read it again.
        """
        if head.writer == plan.writer:  # this ingest has begun or claimed the document, and the answer was lost
            return OwnedDocument(head, info)
        cutoff = self._clock.now() - self._stalled_after
        if head.heartbeat > cutoff:
            return IngestResult(document_id=head.document_id, chunk_count=0, state=head.state)
        if head.attempt == MAX_ATTEMPT:
            self._give_up(head, cutoff)
        return OwnedDocument(self._transitions.claim(head, plan.writer, cutoff), info)

    def _give_up(self, head: Head, cutoff: datetime) -> None:
        """Marks a document failed whose content may be what kills its ingests."""
        detail = f"{MAX_ATTEMPT} attempts at this document have died; its content may be what stops them"
        failure = Failure(stage="claim", code=IngestInterrupted.code, detail=detail)
        if not self._failing.mark(head, failure, cutoff):
            raise Conflict("the document has changed since it was read")
        fire_ingest_failed(self._observer, head, failure)
        raise IngestInterrupted(detail, document_id=head.document_id)

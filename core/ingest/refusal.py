"""Records an uploaded content that can never be ingested, as a failed document that says why."""

from functools import partial

from core.clock import Clock
from core.ingest.begin import Beginning, OwnedDocument, new_rows
from core.ingest.fingerprint import content_hash
from core.ingest.hold import superseded
from core.metadata.collections import Collections
from core.metadata.documents import Documents
from core.metadata.dynamo import retry_on_conflict
from core.metadata.rows import CollectionRow, Head
from core.model.document import DocumentState, Failure
from core.model.errors import WeftError
from core.model.ingest import IngestInput, IngestResult
from core.model.tenant import Tenant
from core.observe import Observer
from core.protocol.decide import CallerVersion
from core.protocol.failing import failure_of, fire_ingest_failed
from core.protocol.transitions import Transitions


class Refusals:
    """Records refused contents."""

    def __init__(
        self,
        documents: Documents,
        collections: Collections,
        transitions: Transitions,
        beginning: Beginning,
        observer: Observer,
        clock: Clock,
    ) -> None:
        self._documents = documents
        self._collections = collections
        self._transitions = transitions
        self._beginning = beginning
        self._observer = observer
        self._clock = clock

    def record(self, tenant: Tenant, document: IngestInput, error: WeftError) -> IngestResult:
        """Adds a failed document to a source, for a content that can never be ingested.

        Nobody waits for the answer to an upload, so the failed document is what tells the user. The version that the
        source serves is served on.

        Args:
            document: its content may be empty, when the content was never read.

        Raises:
            CollectionNotFound: the collection does not exist, belongs to another tenant, or is being deleted.
        """
        collection = self._collections.active(tenant, document.collection_id)
        failure = failure_of("check", error)
        refused = retry_on_conflict(self._clock, partial(self._record, tenant, document, failure, collection))
        if isinstance(refused, IngestResult):
            return refused
        fire_ingest_failed(self._observer, refused, failure)
        return IngestResult(document_id=refused.document_id, chunk_count=0, state=refused.state)

    def _record(
        self, tenant: Tenant, document: IngestInput, failure: Failure, collection: CollectionRow
    ) -> IngestResult | Head:
        source = self._documents.source_or_new(tenant, document.collection_id, document.source_key or "")
        version = CallerVersion.of(document.source_version, document.version_sequence)
        if version and version.is_seen(source.seen):
            return superseded(None, source)
        hash_of_content = content_hash(document.content) if document.content else ""
        rows = new_rows(
            self._clock,
            tenant,
            document,
            collection,
            content_hash=hash_of_content,
            fingerprint=hash_of_content,
            number=source.next_number,
        )
        head = rows.head.model_copy(update={"state": DocumentState.FAILED, "error": failure})
        changes: dict[str, object] = {"next_number": source.next_number + 1}
        if version is not None:
            changes["seen"] = version.seen(head.number, hash_of_content)
        changed = source.model_copy(update=changes)
        self._beginning.begin(
            OwnedDocument(head, rows.info), partial(self._transitions.begin_keyed, head, rows.info, source, changed)
        )
        return head

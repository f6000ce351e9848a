"""Begins the ingest of a document with a source key, which is a version of its source."""

from functools import partial

from core.ingest.begin import Beginning, OwnedDocument
from core.ingest.description import described_again
from core.ingest.hold import superseded
from core.ingest.plan import Plan
from core.metadata.collections import Collections
from core.metadata.documents import Documents
from core.metadata.dynamo import Conflict
from core.metadata.rows import Head, Source
from core.model.document import DocumentState
from core.model.errors import Unavailable
from core.model.ingest import IngestResult
from core.protocol.decide import CallerVersion, Join, Late, Unchanged, decide
from core.protocol.transitions import Transitions, with_new_version

MAX_IN_PROGRESS = 16
"""How many versions of one source may be in progress: they all lie in the source's row."""


class KeyedBeginning:
    """Decides what an ingest of a source means, and begins a version of the source where there is something to do."""

    def __init__(
        self, documents: Documents, collections: Collections, transitions: Transitions, beginning: Beginning
    ) -> None:
        self._documents = documents
        self._collections = collections
        self._transitions = transitions
        self._beginning = beginning

    def begin(self, plan: Plan) -> IngestResult | OwnedDocument:
        """Reads the source, decides, and writes the decision in one transaction.

        This is one step of `core.metadata.dynamo.retry_on_conflict`.

        Returns:
            An answer, or a document that this ingest is to write.

        Raises:
            VersionConflict: the source version came with another content before.
            CollectionNotFound: the collection is being deleted.
            Unavailable: the source has 16 versions in progress.
            ConditionFailed, Conflict: a row has changed since it was read. Read it again.
        """
        source = self._documents.source_or_new(plan.tenant, plan.input.collection_id, plan.input.source_key or "")
        version = CallerVersion.of(plan.input.source_version, plan.input.version_sequence)
        decision = decide(source, plan.fingerprint, plan.content_hash, version)
        if isinstance(decision, Late):
            return superseded(None, source)
        if isinstance(decision, Unchanged):
            return self._answer_unchanged(plan, source, decision, version)
        if isinstance(decision, Join):
            joined = self._join(plan, source, decision, version)
            if joined is not None:
                return joined
        return self._begin_version(plan, source, version)

    def _answer_unchanged(
        self, plan: Plan, source: Source, decision: Unchanged, version: CallerVersion | None
    ) -> IngestResult:
        rows = self._documents.rows(plan.tenant, [decision.current.document_id])
        if not rows or rows[0][0].state != DocumentState.READY:
            raise self._read_too_early(plan)
        head, info = rows[0]
        if decision.renumber and version:
            self._renumber(plan, head, source, version)
        described = described_again(info, plan.input)
        if described != info:
            self._documents.update_info(plan.tenant, described)
        return IngestResult(
            document_id=head.document_id,
            chunk_count=head.chunk_count,
            state=head.state,
            unchanged=True,
        )

    def _join(
        self, plan: Plan, source: Source, decision: Join, version: CallerVersion | None
    ) -> IngestResult | OwnedDocument | None:
        """Joins or claims the version in progress; returns None when that version has failed or is removed."""
        rows = self._documents.rows(plan.tenant, [decision.version.document_id])
        if not rows:
            return None
        head, info = rows[0]
        if head.state.in_progress:
            if decision.renumber and version:
                head = self._renumber(plan, head, source, version)
            return self._beginning.join_or_claim(plan, head, info)
        if head.state != DocumentState.FAILED:
            raise self._read_too_early(plan)
        return None

    def _read_too_early(self, plan: Plan) -> Conflict:
        """Returns the error of a source whose row and document disagree, because one was read before a change.

        Raises:
            CollectionNotFound: the collection is being deleted, where documents are removed before sources.
        """
        self._collections.active(plan.tenant, plan.input.collection_id)
        return Conflict("the source has changed since it was read")

    def _renumber(self, plan: Plan, head: Head, source: Source, version: CallerVersion) -> Head:
        """Gives a document the source's next number, because its content came with a higher source version."""
        number = source.next_number
        changes: dict[str, object] = {"next_number": number + 1, "seen": version.seen(number, head.content_hash)}
        if head.state == DocumentState.READY:
            changes |= {"current_number": number, "in_progress": source.in_progress_above(number)}
        else:
            renumbered = source.in_progress[head.fingerprint].model_copy(update={"number": number})
            changes["in_progress"] = {**source.in_progress, head.fingerprint: renumbered}
        changed = source.model_copy(update=changes)
        self._transitions.renumber(head, number, plan.input.source_version or "", source, changed)
        return head.model_copy(update={"number": number})

    def _begin_version(self, plan: Plan, source: Source, version: CallerVersion | None) -> OwnedDocument:
        owned = self._beginning.new_rows(plan, source.next_number)
        changed = with_new_version(source, plan.fingerprint, owned.head.document_id)
        if len(changed.in_progress) > MAX_IN_PROGRESS:
            raise Unavailable(f"The source has {MAX_IN_PROGRESS} versions in progress", retry_after_s=30)
        if version is not None:
            changed = changed.model_copy(update={"seen": version.seen(owned.head.number, plan.content_hash)})
        return self._beginning.begin(
            owned, partial(self._transitions.begin_keyed, owned.head, owned.info, source, changed)
        )

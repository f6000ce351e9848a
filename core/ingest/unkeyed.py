"""Begins the ingest of a document without a source key. Such a document is known by its content alone."""

from functools import partial

from core.ingest.begin import Beginning, OwnedDocument
from core.ingest.plan import Plan
from core.metadata.documents import Documents
from core.model.document import DocumentState
from core.model.errors import DuplicateDocument
from core.model.ingest import IngestResult
from core.protocol.transitions import Transitions


class UnkeyedBeginning:
    """Begins a document unless the collection has its content already."""

    def __init__(self, documents: Documents, transitions: Transitions, beginning: Beginning) -> None:
        self._documents = documents
        self._transitions = transitions
        self._beginning = beginning

    def begin(self, plan: Plan) -> IngestResult | OwnedDocument:
        """Reads which document holds the content, and begins, joins or claims a document in one transaction.

        This is one step of `core.metadata.dynamo.retry_on_conflict`.

        Returns:
            The document in progress that has this content, or a document that this ingest is to write.

        Raises:
            DuplicateDocument: a ready document has this content.
            ConditionFailed, Conflict: a row has changed since it was read. Read it again.
        """
        holder = self._documents.content_holder(plan.tenant, plan.input.collection_id, plan.fingerprint)
        rows = self._documents.rows(plan.tenant, [holder]) if holder else []
        if rows:
            head, info = rows[0]
            if head.state == DocumentState.READY:
                raise DuplicateDocument("This content is in the collection already", document_id=head.document_id)
            if head.state.in_progress:
                return self._beginning.join_or_claim(plan, head, info)
        owned = self._beginning.new_rows(plan, number=0)
        return self._beginning.begin(owned, partial(self._transitions.begin_unkeyed, owned.head, owned.info, holder))

"""What follows a swap: older versions of the source are purged, and the hook ``ingest_completed`` is called."""

import logging

from core.deletion.purge import Purger
from core.ingest.hold import DocumentHold
from core.metadata.documents import Documents
from core.model.document import DocumentState
from core.model.ingest import IngestResult
from core.observe import Observer

logger = logging.getLogger(__name__)

PURGED_STATES = (DocumentState.SUPERSEDED, DocumentState.FAILED)


class Completion:
    """Completes ingests whose document has become ready or superseded."""

    def __init__(self, documents: Documents, purger: Purger, observer: Observer) -> None:
        self._documents = documents
        self._purger = purger
        self._observer = observer

    def complete(self, hold: DocumentHold, result: IngestResult) -> None:
        """Purges older versions of the source, then tells the extensions."""
        self._purge_older(hold, result)
        head = hold.head
        self._observer.fire(
            "ingest_completed",
            tenant=head.tenant,
            collection_id=head.collection_id,
            document_id=head.document_id,
            result=result,
        )

    def _purge_older(self, hold: DocumentHold, result: IngestResult) -> None:
        """Purges the source's superseded and failed versions, and this version, too, when it was overtaken."""
        head = hold.head
        is_first = head.number <= 1 and result.state == DocumentState.READY
        if head.source_id is None or is_first:
            return
        try:
            versions = self._documents.versions(head.tenant, head.collection_id, head.source_id)
            for version in self._documents.heads(head.tenant, versions).values():
                if version.number <= head.number and version.state in PURGED_STATES:
                    self._purger.purge(version)
        except Exception as error:  # noqa: BLE001 - the new version is served, and the sweep purges what is left
            logger.warning("Older versions of %s are left to the sweep: %s", head.document_id, type(error).__name__)

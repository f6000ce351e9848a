"""What a sweep did, and how far the work on a whole collection is."""

from core.model.base import EXAMPLE_TIME, Model, Timestamp, with_example
from core.model.ids import EXAMPLE_COLLECTION_ID, CollectionId


class RecoveryResult(Model):
    """Counts of one sweep.

    Attributes:
        failed: pending or processing documents marked failed.
        purged: superseded documents removed.
        cleaned: failed documents, abandoned attempts and removed documents cleaned a writer's life later,
            and collections whose delete was finished.
        advanced: slices of reindex, reconcile and collection deletes that were worked on.
        skipped_no_tenant: rows without a tenant, left alone.
        left: candidates that were due and not reached, as far as they were counted (at most 1,000). A document
            that is alive may be among them: the index knows its heartbeat to five minutes only.
    """

    failed: int = 0
    purged: int = 0
    cleaned: int = 0
    advanced: int = 0
    skipped_no_tenant: int = 0
    left: int = 0


class ReindexProgress(Model):
    """How far a reindex is.

    Attributes:
        documents: ready documents whose vectors have been replaced.
        chunks: their chunks.
        finished: whether every ready document has had its turn.
    """

    model_config = with_example(
        {
            "collection_id": EXAMPLE_COLLECTION_ID,
            "documents": 120,
            "chunks": 1440,
            "finished": False,
            "started_at": EXAMPLE_TIME,
            "updated_at": EXAMPLE_TIME,
        }
    )

    collection_id: CollectionId
    documents: int
    chunks: int
    finished: bool
    started_at: Timestamp
    updated_at: Timestamp


class ReconcileReport(Model):
    """What the last comparison of a collection's rows and vectors found, and has repaired.

    Attributes:
        chunks: chunk rows compared.
        vectors: vectors compared.
        embedded_again: chunks whose vectors were missing.
        removed: vectors without a row that is served or in progress.
        lost: chunks of ready documents without a row; nothing can bring them back but an ingest.
        counters_corrected: gates' sums that disagreed with the rows.
        finished: whether both directions and the counters are through.
    """

    collection_id: CollectionId
    chunks: int
    vectors: int
    embedded_again: int
    removed: int
    lost: int
    counters_corrected: int
    finished: bool
    started_at: Timestamp
    updated_at: Timestamp

"""The results of a sweep, and the progress of work on a whole collection."""

from core.model.base import EXAMPLE_TIME, Model, Timestamp, with_example
from core.model.ids import EXAMPLE_COLLECTION_ID, CollectionId


class RecoveryResult(Model):
    """The counts of one sweep.

    Attributes:
        failed: Pending or processing documents that the sweep marked failed.
        purged: Superseded documents that the sweep removed.
        cleaned: Failed documents, abandoned attempts and removed documents whose data was removed once more after the
            longest life of a writer, and collections whose deletion was finished.
        advanced: Pages of reindexes, reconciles and deletions of collections that were worked on.
        skipped_no_tenant: Rows without a tenant, which are never touched.
        left: Rows that were due and not reached, counted up to 1,000. A document that is alive may be among them,
            because the sweep's index holds heartbeats to five minutes only.
    """

    failed: int = 0
    purged: int = 0
    cleaned: int = 0
    advanced: int = 0
    skipped_no_tenant: int = 0
    left: int = 0


class ReindexProgress(Model):
    """The progress of a reindex.

    Attributes:
        documents: The number of ready documents whose vectors have been replaced.
        chunks: The number of chunks of these documents.
        finished: Whether every ready document has been reindexed.
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
    """The findings and repairs of the last comparison of a collection's rows with its vectors.

    Attributes:
        chunks: The number of chunk rows that were compared.
        vectors: The number of vectors that were compared.
        embedded_again: Chunks whose vectors were missing and have been written again.
        removed: Vectors that were removed, because they had no chunk row of a served or unfinished document.
        lost: Chunks of ready documents whose rows are missing. Only an ingest of the content brings them back.
        counters_corrected: Counters of gates that disagreed with the rows and have been corrected.
        finished: Whether the rows, the vectors and the counters have all been compared.
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

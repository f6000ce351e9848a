"""What a sweep did."""

from core.model.base import Model


class RecoveryResult(Model):
    """Counts of one sweep.

    Attributes:
        failed: pending or processing documents marked failed.
        purged: superseded documents removed.
        cleaned: failed documents, abandoned attempts and removed documents cleaned a writer's life later,
            and collections whose delete was finished.
        skipped_no_tenant: rows without a tenant, left alone.
        left: candidates that were due and not reached.
    """

    failed: int = 0
    purged: int = 0
    cleaned: int = 0
    skipped_no_tenant: int = 0
    left: int = 0

"""Errors are part of the interface: each has a stable code, an HTTP status and what to do next.

A message never holds a secret, a host name or another tenant's data.
"""

from typing import Any, ClassVar


class WeftError(Exception):
    """The base of all. ``extras`` are the named members that a caller needs to act on."""

    code: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]

    def __init__(self, detail: str, **extras: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.extras = extras


class InvalidArgument(WeftError):
    """The call itself is wrong; ``field`` names the part. Correct it and call again."""

    code, status, title = "invalid_argument", 400, "Invalid argument"


class EmptyContent(WeftError):
    """Nothing to ingest, or nothing left after loading."""

    code, status, title = "empty_content", 400, "Empty content"


class TenantRequired(WeftError):
    """The token is valid and names no tenant."""

    code, status, title = "tenant_required", 403, "Tenant required"

    def __init__(self, detail: str = "The token carries no tenant", **extras: Any) -> None:
        super().__init__(detail, **extras)


class NotFound(WeftError):
    """Missing, or another tenant's: the two look the same."""

    status, title = 404, "Not found"


class CollectionNotFound(NotFound):
    """No such collection in the tenant."""

    code = "collection_not_found"

    def __init__(self, detail: str = "No such collection", **extras: Any) -> None:
        super().__init__(detail, **extras)


class DocumentNotFound(NotFound):
    """No such document in the tenant."""

    code = "document_not_found"

    def __init__(self, detail: str = "No such document", **extras: Any) -> None:
        super().__init__(detail, **extras)


class ChunkNotFound(NotFound):
    """No such chunk in the tenant, or not of the version that is served."""

    code = "chunk_not_found"

    def __init__(self, detail: str = "No such chunk", **extras: Any) -> None:
        super().__init__(detail, **extras)


class StaleRanking(ChunkNotFound):
    """A chunk that a ranking named is gone: retrieve again. ``chunk_id`` names it."""

    code, status, title = "stale_ranking", 409, "Stale ranking"


class ReindexNotFound(NotFound):
    """The collection has not been reindexed."""

    code = "reindex_not_found"


class RouteNotFound(NotFound):
    """No such route."""

    code = "route_not_found"


class MethodNotAllowed(WeftError):
    """The route exists, with other methods."""

    code, status, title = "method_not_allowed", 405, "Method not allowed"


class CollectionAlreadyExists(WeftError):
    """The name is taken in the tenant."""

    code, status, title = "collection_already_exists", 409, "Collection already exists"


class DuplicateDocument(WeftError):
    """Unkeyed content that is already ready in the collection; ``document_id`` names it."""

    code, status, title = "duplicate_document", 409, "Duplicate document"


class VersionConflict(WeftError):
    """One ``source_version`` with two contents. Send a higher version."""

    code, status, title = "version_conflict", 409, "Version conflict"


class IngestInterrupted(WeftError):
    """The document stopped being pending or processing under its ingest. Ingest again."""

    code, status, title = "ingest_interrupted", 409, "Ingest interrupted"

    def __init__(
        self,
        detail: str = "The ingest was interrupted before it finished; ingest again",
        **extras: Any,
    ) -> None:
        super().__init__(detail, **extras)


class PayloadTooLarge(WeftError):
    """Over a limit; ``limit`` says which. Larger content goes through an upload."""

    code, status, title = "payload_too_large", 413, "Payload too large"


class UnsupportedMediaType(WeftError):
    """No loader reads the content as what it is said to be."""

    code, status, title = "unsupported_media_type", 415, "Unsupported media type"


class InternalError(WeftError):
    """A defect, and the log has it whole. Stands in a batch for one document; the others go on."""

    code, status, title = "internal_error", 500, "Internal error"


class NotConfigured(WeftError):
    """A part of the engine that the call needs is not configured."""

    code, status, title = "not_configured", 503, "Not configured"


class Unavailable(WeftError):
    """A store or a model throttles, times out or wakes up. Try again after ``retry_after_s`` seconds."""

    code, status, title = "unavailable", 503, "Unavailable"

    def __init__(self, detail: str, *, retry_after_s: int = 2, **extras: Any) -> None:
        super().__init__(detail, retry_after_s=retry_after_s, **extras)


class NotYetSearchable(Unavailable):
    """A write is whole, and searches do not see it yet."""


class ConfigurationError(Exception):
    """The settings are wrong. Raised at start, to the operator; never to a caller."""

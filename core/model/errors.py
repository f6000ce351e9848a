"""Every error that the engine raises. The errors are part of the interface: callers act on their codes.

Each error has a stable ``code``, an HTTP status and a title. Over HTTP it is answered as ``application/problem+json``
(`core.http.problem`). A message never holds a secret, a host name or another tenant's data.

The tree, with each error's status::

    WeftError
    ├── InvalidArgument            400  the call itself is wrong; ``field`` names the part
    ├── EmptyContent               400  there is nothing to ingest
    ├── TenantRequired             403  the token names no tenant
    ├── NotFound                   404  missing, or another tenant's
    │   ├── CollectionNotFound
    │   ├── DocumentNotFound
    │   ├── ChunkNotFound
    │   │   └── StaleRanking       409  a chunk that an earlier ranking named is gone
    │   ├── ReindexNotFound
    │   └── RouteNotFound
    ├── MethodNotAllowed           405  the route exists, with other methods
    ├── CollectionAlreadyExists    409  the name is taken
    ├── DuplicateDocument          409  the content is ingested already; ``document_id`` names where
    ├── VersionConflict            409  one source version was sent with two contents
    ├── IngestInterrupted          409  the document was taken from its ingest
    ├── PayloadTooLarge            413  ``limit`` says what was exceeded
    ├── UnsupportedMediaType       415  no loader reads the content
    ├── InternalError              500  a defect; the log has it whole
    ├── NotConfigured              503  the call needs a stage that is not configured
    └── Unavailable                503  a store or a model is busy; ``retry_after_s`` says when to try again
        └── NotYetSearchable            a write is whole, and searches do not see it yet
    ConfigurationError                  the settings are wrong: raised at start, to the operator
"""

from typing import Any, ClassVar


class WeftError(Exception):
    """The base of every error that a caller can meet.

    Args:
        detail: what is wrong and what to do about it, in a sentence for callers. Without a detail the error says its
            class's ``default_detail``, or else its title.
        extras: the named members that a caller needs to act, such as ``field`` or ``retry_after_s``.

    Attributes:
        code: the stable name by which callers tell errors apart.
        status: the HTTP status.
        title: the code in words.
        default_detail: the sentence of an error that is raised without a detail; empty where the title must do.
    """

    code: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]
    default_detail: ClassVar[str] = ""

    def __init__(self, detail: str = "", **extras: Any) -> None:
        self.detail = detail or self.default_detail or self.title
        super().__init__(self.detail)
        self.extras = extras


class InvalidArgument(WeftError):
    """The call itself is wrong; ``field`` names the part. Correct it and call again."""

    code, status, title = "invalid_argument", 400, "Invalid argument"


class EmptyContent(WeftError):
    """There is nothing to ingest, or nothing is left after loading."""

    code, status, title = "empty_content", 400, "Empty content"


class TenantRequired(WeftError):
    """The token is valid and names no tenant."""

    code, status, title = "tenant_required", 403, "Tenant required"
    default_detail = "The token carries no tenant"


class NotFound(WeftError):
    """The thing is missing, or it is another tenant's: the two look the same to a caller."""

    status, title = 404, "Not found"


class CollectionNotFound(NotFound):
    """The tenant has no such collection."""

    code = "collection_not_found"
    default_detail = "No such collection"


class DocumentNotFound(NotFound):
    """The tenant has no such document."""

    code = "document_not_found"
    default_detail = "No such document"


class ChunkNotFound(NotFound):
    """The tenant has no such chunk, or the chunk is of a version that is not served."""

    code = "chunk_not_found"
    default_detail = "No such chunk"


class StaleRanking(ChunkNotFound):
    """A chunk that an earlier ranking named is gone: retrieve again. ``chunk_id`` names the chunk."""

    code, status, title = "stale_ranking", 409, "Stale ranking"


class ReindexNotFound(NotFound):
    """The collection has never been reindexed."""

    code = "reindex_not_found"


class RouteNotFound(NotFound):
    """The interface has no such route."""

    code = "route_not_found"


class MethodNotAllowed(WeftError):
    """The route exists, with other methods."""

    code, status, title = "method_not_allowed", 405, "Method not allowed"


class CollectionAlreadyExists(WeftError):
    """Another collection of the tenant has this name."""

    code, status, title = "collection_already_exists", 409, "Collection already exists"


class DuplicateDocument(WeftError):
    """The collection holds this content already, in a ready document without a source key. ``document_id`` names it."""

    code, status, title = "duplicate_document", 409, "Duplicate document"


class VersionConflict(WeftError):
    """The same ``source_version`` was sent before with other content. Send a higher version."""

    code, status, title = "version_conflict", 409, "Version conflict"


class IngestInterrupted(WeftError):
    """The document stopped being pending or processing while it was ingested. Ingest again."""

    code, status, title = "ingest_interrupted", 409, "Ingest interrupted"
    default_detail = "The ingest was interrupted before it finished; ingest again"


class PayloadTooLarge(WeftError):
    """The content, the body or the answer exceeds ``limit``. Larger content goes through an upload."""

    code, status, title = "payload_too_large", 413, "Payload too large"


class UnsupportedMediaType(WeftError):
    """No loader reads the content as the media type that was declared."""

    code, status, title = "unsupported_media_type", 415, "Unsupported media type"


class InternalError(WeftError):
    """The engine has a defect, which the log holds whole. In a batch it stands for one document; the others go on."""

    code, status, title = "internal_error", 500, "Internal error"


class NotConfigured(WeftError):
    """The call needs a stage of the engine that is not configured."""

    code, status, title = "not_configured", 503, "Not configured"


class Unavailable(WeftError):
    """A store or a model throttles, times out or is starting up. Try again after ``retry_after_s`` seconds."""

    code, status, title = "unavailable", 503, "Unavailable"

    def __init__(self, detail: str, *, retry_after_s: int = 2, **extras: Any) -> None:
        super().__init__(detail, retry_after_s=retry_after_s, **extras)


class NotYetSearchable(Unavailable):
    """A write is whole, and searches do not see it yet."""


class ConfigurationError(Exception):
    """The settings are wrong. The error is raised at start, to the operator, and never reaches a caller."""

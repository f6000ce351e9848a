"""What is said of a document beside its content: title, source, metadata and attributes."""

from core.metadata.rows import Info
from core.model.errors import InvalidArgument
from core.model.ids import DocumentId
from core.model.ingest import IngestInput
from core.model.upload import NewUpload

MAX_INFO_BYTES = 64 * 1024


def check_description(given: IngestInput | NewUpload) -> None:
    """Refuses what would not fit into a document's row, or weigh on every read of it.

    Raises:
        InvalidArgument: all but the content is over 64 KiB.
    """
    size = len(given.model_dump_json(exclude={"content"}).encode())
    if size > MAX_INFO_BYTES:
        raise InvalidArgument(
            f"Title, source, metadata and attributes together are at most {MAX_INFO_BYTES} bytes",
            field="attributes" if isinstance(given, NewUpload) else "metadata",
            limit=MAX_INFO_BYTES,
        )


def info_of(given: IngestInput, document_id: DocumentId) -> Info:
    """What describes a document, as its ingest says it."""
    return Info(
        document_id=document_id,
        collection_id=given.collection_id,
        title=given.title,
        source=given.source,
        source_type=given.source_type,
        source_key=given.source_key,
        source_version=given.source_version,
        metadata=given.metadata,
        attributes=given.attributes,
    )


def described_again(info: Info, given: IngestInput) -> Info:
    """A document's description after another ingest of its content. What that does not say is left alone, and so
    is the title that the document was found to have."""
    sent: dict[str, object] = {
        name: getattr(given, name) for name in ("title", "source", "metadata") if name in given.model_fields_set
    }
    if not given.title:
        sent.pop("title", None)
    return info.model_copy(update=sent)

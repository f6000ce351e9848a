"""A document's description: its title, source, metadata and attributes."""

from core.metadata.rows import Info
from core.model.errors import InvalidArgument
from core.model.ids import DocumentId
from core.model.ingest import IngestInput
from core.model.upload import NewUpload

MAX_INFO_BYTES = 64 * 1024


def validate_description(document: IngestInput | NewUpload) -> None:
    """Refuses a description that is too large for a document's row, or would make every read of the row slow.

    Raises:
        InvalidArgument: the input without its content is larger than 64 KiB.
    """
    size = len(document.model_dump_json(exclude={"content"}).encode())
    if size > MAX_INFO_BYTES:
        raise InvalidArgument(
            f"Title, source, metadata and attributes together are at most {MAX_INFO_BYTES} bytes",
            field="attributes" if isinstance(document, NewUpload) else "metadata",
            limit=MAX_INFO_BYTES,
        )


def info_of(document: IngestInput, document_id: DocumentId) -> Info:
    """Makes the description of a new document from its ingest's input."""
    return Info(
        document_id=document_id,
        collection_id=document.collection_id,
        title=document.title,
        source=document.source,
        source_type=document.source_type,
        source_key=document.source_key,
        source_version=document.source_version,
        metadata=document.metadata,
        attributes=document.attributes,
    )


def described_again(info: Info, document: IngestInput) -> Info:
    """Returns a document's description after another ingest of the same content.

    Members that the ingest leaves out stay as they are. An empty title leaves the title that loading has found.
    """
    sent: dict[str, object] = {
        name: getattr(document, name) for name in ("title", "source", "metadata") if name in document.model_fields_set
    }
    if not document.title:
        sent.pop("title", None)
    return info.model_copy(update=sent)

"""An upload: content that is too large for a request's body goes straight into the bucket."""

from typing import Annotated

from pydantic import Field, StrictInt, StringConstraints

from core.model.base import Model, Timestamp, with_example
from core.model.chunk import Attributes
from core.model.document import SourceKey, SourceType, Title
from core.model.ids import EXAMPLE_COLLECTION_ID, EXAMPLE_UPLOAD_ID

# It becomes a header of the upload: printable ASCII only, so that nothing can end the header.
MediaType = Annotated[
    SourceType,
    StringConstraints(pattern=r"^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( *;[ -~]*)?$"),
]


class NewUpload(Model):
    """What a caller says of an object before it is uploaded.

    Attributes:
        source_key: names the source; it becomes the end of the object's key.
        source_type: the media type, with an optional ``charset``; absent: it follows from the key's ending.
        size: bytes; the upload must have exactly this length.
    """

    model_config = with_example(
        {
            "source_key": "manuals/looms.html",
            "source_type": "text/html",
            "title": "Looms",
            "attributes": {"lang": "en"},
            "size": 1048576,
        }
    )

    source_key: SourceKey
    source_type: MediaType | None = None
    title: Title = ""
    attributes: Attributes = {}
    size: StrictInt = Field(ge=1)


class UploadInfo(Model):
    """What waits in a row until the object arrives; only the upload's ID travels with the object."""

    title: Title
    source_type: SourceType
    attributes: Attributes


class Upload(Model):
    """How to upload: one request with this method, URL and exactly these headers.

    Attributes:
        expires_at: the URL is refused after this.
        max_bytes: the largest object that is ingested.
    """

    model_config = with_example(
        {
            "url": (
                f"https://bucket.s3.eu-central-1.amazonaws.com/acme/{EXAMPLE_COLLECTION_ID}/manuals/looms.html"
                "?X-Amz-Signature=…"
            ),
            "method": "PUT",
            "headers": {
                "content-type": "text/html",
                "content-length": "1048576",
                "x-amz-meta-weft-upload": EXAMPLE_UPLOAD_ID,
            },
            "expires_at": "2026-11-30T09:30:00.123Z",
            "max_bytes": 10485760,
        }
    )

    url: str
    method: str
    headers: dict[str, str]
    expires_at: Timestamp
    max_bytes: int

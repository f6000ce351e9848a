"""Uploads: content that is too large for a request goes straight into the bucket, by a signed URL."""

from typing import Annotated

from pydantic import Field, StrictInt, StringConstraints

from core.model.base import Model, Timestamp, with_example
from core.model.chunk import Attributes
from core.model.document import SourceKey, SourceType, Title
from core.model.ids import EXAMPLE_COLLECTION_ID, EXAMPLE_UPLOAD_ID

# The media type becomes a header of the upload. It is printable ASCII, so that it cannot end the header.
MediaType = Annotated[
    SourceType,
    StringConstraints(pattern=r"^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( *;[ -~]*)?$"),
]


class NewUpload(Model):
    """The description of an object that is going to be uploaded.

    Attributes:
        source_key: The stable name of the source. It becomes the end of the object's key.
        source_type: The media type, with an optional ``charset``; absent: the type follows from the key's ending.
        title: The title of the document.
        attributes: The attributes of the document, to filter by.
        size: The length of the object in bytes. The upload must have exactly this length.
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
    """The description of an upload, which waits in a row until the object arrives.

    The object itself carries only the upload's ID.
    """

    title: Title
    source_type: SourceType
    attributes: Attributes


class Upload(Model):
    """The request that uploads one object: this method and URL, with exactly these headers.

    Attributes:
        url: The signed URL.
        expires_at: The time after which the bucket refuses the URL.
        max_bytes: The largest object that is ingested, in bytes.
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

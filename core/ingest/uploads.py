"""Uploads: a signed URL for one object, and the description that is kept until the object arrives."""

import unicodedata
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from core.clock import Clock, new_id
from core.ingest.description import validate_description
from core.loading.loaders import GENERIC_TYPES, Loaders
from core.metadata.collections import Collections
from core.metadata.uploads import Uploads
from core.model.document import MAX_SOURCE_TYPE
from core.model.errors import InvalidArgument, NotConfigured, PayloadTooLarge, UnsupportedMediaType
from core.model.ids import CollectionId, UploadId
from core.model.tenant import Tenant
from core.model.upload import NewUpload, Upload, UploadInfo
from core.settings import Settings

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

UPLOAD_HEADER = "x-amz-meta-weft-upload"
UPLOAD_METADATA = "weft-upload"
MAX_OBJECT_KEY_BYTES = 1024

# A queue keeps a message for at most 14 days, and an operator needs some more to look into a dead letter.
_INFO_LIFE = timedelta(days=60)


class ObjectName(NamedTuple):
    """An object's key in its parts: the tenant, the collection and the source key."""

    tenant: Tenant
    collection_id: CollectionId
    source_key: str

    @classmethod
    def parse(cls, key: str) -> "ObjectName":
        """Reads a key of the form ``{tenant}/{collection id}/{source key}``.

        Raises:
            InvalidArgument: the key has another form.
        """
        tenant, _, rest = key.partition("/")
        collection_id, _, source_key = rest.partition("/")
        name = cls(Tenant(tenant), CollectionId(collection_id), source_key)
        if not source_key.strip():
            raise InvalidArgument("An object's key is tenant/collection/source key", field="source_key")
        return name

    @property
    def key(self) -> str:
        return f"{self.tenant}/{self.collection_id}/{self.source_key}"


def validate_object_name(name: ObjectName) -> None:
    """Refuses a source key that is too long for an object's key, or that an HTTP client would rewrite.

    Raises:
        InvalidArgument: too long, a segment ``.`` or ``..``, or a control character.
    """
    room = MAX_OBJECT_KEY_BYTES - len(name.key.encode()) + len(name.source_key.encode())
    if len(name.source_key.encode()) > room:
        raise InvalidArgument(f"An uploaded source's key is at most {room} bytes here", field="source_key", limit=room)
    if {".", ".."} & set(name.source_key.split("/")):
        raise InvalidArgument("An uploaded source's key has no segment . or ..", field="source_key")
    if any(unicodedata.category(character) == "Cc" for character in name.source_key):
        raise InvalidArgument("An uploaded source's key has no control characters", field="source_key")


class UploadService:
    """Signs uploads.

    Args:
        s3: signs with ``s3v4``, since only that signature covers the headers; None: uploads are not configured.
    """

    def __init__(
        self,
        uploads: Uploads,
        collections: Collections,
        loaders: Loaders,
        s3: "S3Client | None",
        settings: Settings,
        clock: Clock,
    ) -> None:
        self._uploads = uploads
        self._collections = collections
        self._loaders = loaders
        self._s3 = s3
        self._settings = settings
        self._clock = clock

    def create(self, tenant: Tenant, collection_id: CollectionId, new: NewUpload) -> Upload:
        """Signs a URL that takes one object of exactly the length and media type that the request names.

        Raises:
            NotConfigured: there is no bucket.
            PayloadTooLarge: ``size`` is over the largest object.
            InvalidArgument: the key cannot be an object's, or title and attributes are over 64 KiB.
            UnsupportedMediaType: no loader reads the type, or the key's ending says none.
            CollectionNotFound: no such collection in the tenant.
        """
        settings = self._settings
        if self._s3 is None or not settings.bucket:
            raise NotConfigured("Uploads need a bucket")
        if new.size > settings.object_bytes:
            raise PayloadTooLarge(
                f"An uploaded object is at most {settings.object_bytes} bytes", limit=settings.object_bytes
            )
        name = ObjectName(tenant, collection_id, new.source_key)
        validate_object_name(name)
        validate_description(new)
        self._collections.active(tenant, collection_id)

        source_type = self.source_type(new.source_key, new.source_type or "")
        upload_id = new_id(UploadId, self._clock)
        now = self._clock.now()
        info = UploadInfo(title=new.title, source_type=source_type, attributes=new.attributes)
        self._uploads.put(tenant, upload_id, info, now + _INFO_LIFE)
        return Upload(
            url=self._sign(self._s3, name, source_type, new.size, upload_id),
            method="PUT",
            headers={
                "content-type": source_type,
                "content-length": str(new.size),
                UPLOAD_HEADER: upload_id,
            },
            expires_at=now + timedelta(seconds=settings.upload_seconds),
            max_bytes=settings.object_bytes,
        )

    def _sign(self, s3: "S3Client", name: ObjectName, source_type: str, size: int, upload_id: UploadId) -> str:
        return s3.generate_presigned_url(
            "put_object",
            Params={
                "Bucket": self._settings.bucket,
                "Key": name.key,
                "ContentType": source_type,
                "ContentLength": size,
                "Metadata": {UPLOAD_METADATA: upload_id},
            },
            ExpiresIn=self._settings.upload_seconds,
        )

    def get(self, tenant: Tenant, upload_id: UploadId) -> UploadInfo | None:
        """Returns an upload's description; None when it has expired or never existed."""
        return self._uploads.get(tenant, upload_id)

    def source_type(self, source_key: str, declared: str) -> str:
        """Returns the media type of an object: the declared type, or else the type that the key's ending stands for.

        Raises:
            UnsupportedMediaType: no loader reads the type, or the ending says none.
        """
        if len(declared) > MAX_SOURCE_TYPE:
            raise UnsupportedMediaType(f"A media type is at most {MAX_SOURCE_TYPE} characters")
        source_type = self._loaders.guess(source_key) if declared in GENERIC_TYPES else declared
        self._loaders.find(source_type)
        return source_type

"""The rows of uploads: the description of a document whose content arrives as an object in the bucket."""

from datetime import datetime

from core.metadata import table
from core.metadata.dynamo import Action, Table
from core.model.ids import UploadId
from core.model.tenant import Tenant
from core.model.upload import UploadInfo


class Uploads:
    """The uploads of the table. DynamoDB deletes each row after its expiry."""

    def __init__(self, rows: Table) -> None:
        self._table = rows

    def put(self, tenant: Tenant, upload_id: UploadId, info: UploadInfo, expires_at: datetime) -> None:
        """Writes the description of an upload."""
        key = table.upload(tenant, upload_id)
        # Stored as JSON text: an attribute may be a float, and every number in the table is an integer.
        item = {"info": info.model_dump_json(), "expires_at": int(expires_at.timestamp())}
        self._table.write(Action(key, put=item))

    def get(self, tenant: Tenant, upload_id: UploadId) -> UploadInfo | None:
        """Reads the description of an upload; None when it has expired or never existed."""
        item = self._table.get(table.upload(tenant, upload_id))
        return None if item is None else UploadInfo.model_validate_json(item["info"])

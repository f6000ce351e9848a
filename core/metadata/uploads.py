"""Rows of uploads: what an uploaded object cannot carry itself."""

from datetime import datetime

from core.metadata import table
from core.metadata.dynamo import Action, Table
from core.model.ids import UploadId
from core.model.tenant import Tenant
from core.model.upload import UploadInfo


class Uploads:
    """Uploads of the table. A row goes away by itself after it has expired."""

    def __init__(self, rows: Table) -> None:
        self._table = rows

    def put(self, tenant: Tenant, upload_id: UploadId, info: UploadInfo, expires_at: datetime) -> None:
        key = table.upload(tenant, upload_id)
        # As text, since a number attribute may be a float and the table's own numbers are integers.
        item = {"info": info.model_dump_json(), "expires_at": int(expires_at.timestamp())}
        self._table.write(Action(key, put=item))

    def get(self, tenant: Tenant, upload_id: UploadId) -> UploadInfo | None:
        item = self._table.get(table.upload(tenant, upload_id))
        return None if item is None else UploadInfo.model_validate_json(item["info"])

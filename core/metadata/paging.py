"""Page tokens: opaque, signed, and bound to the tenant and the query they belong to."""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from contextlib import suppress
from functools import cached_property
from typing import Any

from core.metadata import table
from core.metadata.dynamo import Action, ConditionFailed, Table
from core.model.errors import InvalidArgument
from core.model.tenant import Tenant

_MAC_BYTES = 16


class PageTokens:
    """Makes and reads page tokens. The key is made once, by whoever needs it first, and lies in the table."""

    def __init__(self, rows: Table) -> None:
        self._table = rows

    @cached_property
    def _key(self) -> bytes:
        item = self._table.get(table.PAGE_TOKEN_KEY)
        if item is None:
            # Another may be first: then its key is read below.
            with suppress(ConditionFailed):
                self._table.write(
                    Action(
                        table.PAGE_TOKEN_KEY,
                        put={"key": secrets.token_hex(32)},
                        condition="attribute_not_exists(pk)",
                    )
                )
            item = self._table.get(table.PAGE_TOKEN_KEY) or {}
        return bytes.fromhex(item["key"])

    def write(self, tenant: Tenant, query: dict[str, Any], position: Any) -> str:
        """The token of a position (anything JSON can hold) in the listing that a query makes."""
        payload = json.dumps(position, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._mac(tenant, query, payload) + payload).decode().rstrip("=")

    def read(self, tenant: Tenant, query: dict[str, Any], token: str) -> Any:
        """The position of a token.

        Raises:
            InvalidArgument: not a token of this tenant and this query.
        """
        try:
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidArgument("Not a page token of this listing", field="page_token") from error
        mac, payload = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(tenant, query, payload)):
            raise InvalidArgument("Not a page token of this listing", field="page_token")
        return json.loads(payload)

    def _mac(self, tenant: Tenant, query: dict[str, Any], payload: bytes) -> bytes:
        bound = json.dumps([tenant, query, payload.decode(errors="replace")], sort_keys=True, default=str)
        return hmac.new(self._key, bound.encode(), hashlib.sha256).digest()[:_MAC_BYTES]

"""Listings in pages, and their page tokens: opaque, signed, and bound to a tenant and a listing."""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

from core.metadata import table
from core.metadata.dynamo import Action, ConditionFailed, Table
from core.model.errors import InvalidArgument
from core.model.page import Page, PageRequest
from core.model.tenant import Tenant

_MAC_BYTES = 16

Entry = TypeVar("Entry")


class PageTokens:
    """Makes and reads page tokens.

    The tokens are signed with a key that is stored in the table. The process that first needs the key makes it.
    """

    def __init__(self, rows: Table) -> None:
        self._table = rows

    @cached_property
    def _key(self) -> bytes:
        item = self._table.get(table.PAGE_TOKEN_KEY)
        if item is None:
            # Another process may be first. Then its key is read below.
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
        """Makes the token of a position in a listing.

        Args:
            query: what makes the listing; the token is valid for the same query only.
            position: any JSON value.
        """
        payload = json.dumps(position, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._mac(tenant, query, payload) + payload).decode().rstrip("=")

    def read(self, tenant: Tenant, query: dict[str, Any], token: str) -> Any:
        """Reads the position from a token.

        Raises:
            InvalidArgument: the token was not made for this tenant and this query.
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


class Listings:
    """Cuts listings into pages, whose tokens are bound to the tenant and to the listing."""

    def __init__(self, page_tokens: PageTokens) -> None:
        self._page_tokens = page_tokens

    def page(
        self,
        tenant: Tenant,
        request: PageRequest,
        listing: dict[str, Any],
        *,
        entries: Callable[[str | None], Iterator[Entry]],
        position: Callable[[Entry], str],
        count: Callable[[], int],
    ) -> Page[Entry]:
        """Returns one page of a listing.

        Args:
            listing: what makes this listing different from others: its kind, its filters. Its order is added here.
            entries: yields the entries behind a position, or from the listing's start.
            position: returns the position of an entry, as text.
            count: counts the whole listing; called only when the request asks for the total.

        Raises:
            InvalidArgument: the page token belongs to another listing or to another tenant.
        """
        query = {**listing, "order": request.order}
        after = None if request.token is None else str(self._page_tokens.read(tenant, query, request.token))
        read = list(islice(entries(after), request.limit + 1))
        shown = read[: request.limit]
        more = len(read) > request.limit
        token = self._page_tokens.write(tenant, query, position(shown[-1])) if more else None
        return Page(items=shown, next_page_token=token, total=count() if request.total else None)


def batches(entries: Iterable[Entry], size: int) -> Iterator[list[Entry]]:
    """Yields the entries of a listing in lists of at most `size`. Each list is read when its turn comes."""
    remaining = iter(entries)
    while batch := list(islice(remaining, size)):
        yield batch

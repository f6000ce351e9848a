"""What a request says of itself, read strictly."""

from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import Request
from pydantic_core import from_json
from starlette.datastructures import Headers

from core.model.errors import InvalidArgument, PayloadTooLarge, TenantRequired, UnsupportedMediaType
from core.model.tenant import Tenant, resolve_tenant

# A function takes no larger event. Beyond it the gateway answers by itself.
MAX_BODY_BYTES = 6 * 1024 * 1024


def gateway_event(request: Request) -> dict[str, Any]:
    """The API Gateway event behind a request; empty when another server hands it over."""
    event: dict[str, Any] = request.scope.get("aws.event") or {}
    return event


def request_id(request: Request) -> str:
    """The gateway's ID of this request."""
    return str(gateway_event(request).get("requestContext", {}).get("requestId", ""))


def tenant_of(request: Request, claim: str) -> Tenant:
    """The tenant of the token that the gateway has verified. Nothing else of a request can name one.

    Claims come as strings, an array as ``"[a b]"``.

    Raises:
        TenantRequired: the claim is absent or cannot be a tenant's name.
    """
    authorizer = gateway_event(request).get("requestContext", {}).get("authorizer") or {}
    value = authorizer.get("jwt", {}).get("claims", {}).get(claim)
    if not isinstance(value, str):
        raise TenantRequired
    try:
        return Tenant(value)
    except InvalidArgument as error:
        raise TenantRequired("The token's tenant is not a tenant's name") from error


def check_query(request: Request, known: frozenset[str]) -> None:
    """Refuses a query parameter that the route does not have, one that is given twice, and broken UTF-8.

    Raises:
        InvalidArgument: names it.
    """
    try:
        unquote_to_bytes(request.url.query).decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument("The query is not UTF-8", field="query") from error
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name not in known:
            raise InvalidArgument(f"{name[:128]}: unknown query parameter", field=name[:128])
        if name in seen:
            raise InvalidArgument(f"{name}: given more than once", field=name)
        seen.add(name)


def check_no_body(body: bytes) -> None:
    """Refuses a body where none is read.

    Raises:
        InvalidArgument: there is one.
    """
    if body:
        raise InvalidArgument("The route takes no body", field="body")


def read_body(body: bytes, headers: Headers) -> Any:
    """A JSON body. Its strings are valid Unicode, and it is nested at most 200 deep.

    Raises:
        PayloadTooLarge, UnsupportedMediaType, InvalidArgument: it is too large, not sent as JSON, or no JSON.
    """
    if len(body) > MAX_BODY_BYTES:
        raise PayloadTooLarge(f"A body is at most {MAX_BODY_BYTES} bytes", limit=MAX_BODY_BYTES)
    media_type, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.lower().replace(" ", "").replace('"', "")
    if media_type.strip().lower() != "application/json" or charset not in {"", "charset=utf-8"}:
        raise UnsupportedMediaType("A body is sent as application/json in UTF-8", field="content-type")
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidArgument(f"The body is not JSON: {error}", field="body") from error


def agree_on_tenant(document: Any, tenant: Tenant) -> Any:
    """The body without ``tenant``, which must agree with the token's when it is there.

    Raises:
        InvalidArgument: it names another.
    """
    if not isinstance(document, dict) or "tenant" not in document:
        return document
    named = document.pop("tenant")
    if named is not None and not isinstance(named, str):
        raise InvalidArgument("tenant: a string", field="tenant")
    resolve_tenant(tenant, named)
    return document

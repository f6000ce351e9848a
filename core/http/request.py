"""Reads a request strictly: its tenant, its query and its body.

**Where the tenant comes from.** API Gateway verifies the token of every call but ``GET /v1/health`` and puts the
token's claims into the event. `tenant_of` reads the claim that the setting ``tenant_claim`` names, and nothing else. No
header, no query parameter and no body can name a tenant: a body may repeat the tenant of the token, and any other name
is refused.

**Why no handler can forget it.** Every function of the engine that reads or writes data takes a
`core.model.tenant.Tenant`, which the type checker does not let a plain string pass for. The only Tenant that an
endpoint can get is `core.http.dependencies.CurrentTenant`. A ``tenant`` in a body is compared by
`core.http.route.StrictRoute` before the endpoint runs, and a ``tenant`` in a query is an unknown parameter.
``tests/http/test_strictness.py`` calls every route without a tenant, with another tenant in the body and with a tenant
in the query and headers.
"""

from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import Request
from pydantic_core import from_json
from starlette.datastructures import Headers

from core.model.errors import InvalidArgument, PayloadTooLarge, TenantRequired, UnsupportedMediaType
from core.model.tenant import Tenant, resolve_tenant

# A Lambda function takes no larger event, and the gateway itself refuses a larger request.
MAX_BODY_BYTES = 6 * 1024 * 1024


def gateway_event(request: Request) -> dict[str, Any]:
    """Returns the event of API Gateway behind a request; empty when another server made the request."""
    event: dict[str, Any] = request.scope.get("aws.event") or {}
    return event


def request_id(request: Request) -> str:
    """Returns the gateway's ID of a request."""
    return str(gateway_event(request).get("requestContext", {}).get("requestId", ""))


def tenant_of(request: Request, claim: str) -> Tenant:
    """Returns the tenant of the token that the gateway has verified.

    The gateway hands claims over as strings. An array becomes ``"[a b]"``, which is no tenant's name.

    Raises:
        TenantRequired: the claim is absent, or is not the name of a tenant.
    """
    authorizer = gateway_event(request).get("requestContext", {}).get("authorizer") or {}
    value = authorizer.get("jwt", {}).get("claims", {}).get(claim)
    if not isinstance(value, str):
        raise TenantRequired
    try:
        return Tenant(value)
    except InvalidArgument as error:
        raise TenantRequired("The tenant claim of the token is not the name of a tenant") from error


def validate_query(request: Request, known: frozenset[str]) -> None:
    """Refuses a query with an unknown parameter, with a parameter that is given twice, or with broken UTF-8.

    Args:
        known: the names of the route's parameters.

    Raises:
        InvalidArgument: the query has one of these faults; ``field`` names the parameter.
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


def validate_no_body(body: bytes) -> None:
    """Refuses the body of a request to a route that reads no body.

    Raises:
        InvalidArgument: the body is not empty.
    """
    if body:
        raise InvalidArgument("The route takes no body", field="body")


def read_body(body: bytes, headers: Headers) -> Any:
    """Parses a JSON body. Its strings are valid Unicode, and it is nested at most 200 levels deep.

    Raises:
        PayloadTooLarge: the body has more than 6 MiB.
        UnsupportedMediaType: the body is not sent as ``application/json`` in UTF-8.
        InvalidArgument: the body is not JSON.
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
    """Removes ``tenant`` from a body. If the body names a tenant, it must be the tenant of the token.

    Raises:
        InvalidArgument: the body names another tenant.
    """
    if not isinstance(document, dict) or "tenant" not in document:
        return document
    named = document.pop("tenant")
    if named is not None and not isinstance(named, str):
        raise InvalidArgument("tenant: must be a string", field="tenant")
    resolve_tenant(tenant, named)
    return document

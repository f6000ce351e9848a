"""The HTTP API: routes requests into functions as API Gateway does, payload format 2.0, with its own refusals."""

import asyncio
import base64
import json
import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from infra.local.authorizer import Authorizer, Unauthorized
from infra.local.function import FunctionError, LambdaFunction, PayloadTooLarge
from infra.local.names import ACCOUNT

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_BODY_BYTES = 10 * 1024 * 1024
MAX_SECONDS = 30.0
TEXT_TYPES = ("text/", "application/json", "application/javascript", "application/xml")
FORWARDED = ("x-forwarded-for", "x-forwarded-port", "x-forwarded-proto")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the template and the function behind it. ``path`` is ``$default`` where no other takes it."""

    method: str
    path: str
    function: LambdaFunction
    authorized: bool

    @property
    def key(self) -> str:
        """``GET /v1/collections/{collection_id}`` or ``$default``."""
        return f"{self.method} {self.path}".strip()


class Match(NamedTuple):
    route: Route
    parameters: dict[str, str]


class Router:
    """Finds the route of a request: the method's own before ANY, more fixed segments before fewer, then $default."""

    def __init__(self, routes: Iterable[Route]) -> None:
        known = list(routes)
        self._default = next((route for route in known if route.path == "$default"), None)
        patterns = [(_segments(route.path), route) for route in known if route.path != "$default"]
        self._patterns = sorted(
            patterns, key=lambda pattern: (sum(map(_is_variable, pattern[0])), pattern[1].method == "ANY")
        )

    def match(self, method: str, raw_path: str) -> Match | None:
        """The route, and its path's parameters decoded; None when there is none and no $default."""
        segments = _segments(raw_path)
        for pattern, route in self._patterns:
            if route.method in (method, "ANY") and len(pattern) == len(segments):
                pairs = list(zip(pattern, segments, strict=True))
                if all((_is_variable(name) and text) or name == text for name, text in pairs):
                    return Match(route, {name[1:-1]: unquote(text) for name, text in pairs if _is_variable(name)})
        return Match(self._default, {}) if self._default else None


def _segments(path: str) -> list[str]:
    return path.removeprefix("/").split("/")


def _is_variable(segment: str) -> bool:
    return segment.startswith("{")


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back to the client."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


def refusal(status: int, message: str, *headers: tuple[str, str]) -> Answer:
    """An answer of the gateway itself."""
    body = json.dumps({"message": message}).encode()
    return Answer(status, [("content-type", "application/json"), *headers], body)


class Gateway:
    """An ASGI application."""

    def __init__(self, router: Router, authorizer: Authorizer, max_seconds: float = MAX_SECONDS) -> None:
        self._router = router
        self._authorizer = authorizer
        self._max_seconds = max_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = str(uuid.uuid4())
        try:
            body = await _read(receive)
        except ConnectionAbortedError:
            return
        answer = await self._answer(scope, body, request_id)
        headers = [*answer.headers, ("apigw-requestid", request_id)]
        if answer.status != HTTPStatus.NO_CONTENT:
            headers.append(("content-length", str(len(answer.body))))
        await send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": [(name.encode(), value.encode()) for name, value in headers],
            }
        )
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, scope: Scope, body: bytes | None, request_id: str) -> Answer:
        match = self._router.match(scope["method"], scope["raw_path"].decode("latin-1"))
        if match is None:
            return refusal(404, "Not Found")
        if body is None:
            return refusal(413, "Request Entity Too Large")
        claims = None
        if match.route.authorized:
            try:
                claims = self._authorizer.claims(_header(scope, b"authorization"))
            except Unauthorized as error:
                return refusal(401, "Unauthorized", ("www-authenticate", _challenge(error)))
        return await self._invoke(match, http_event(scope, body, match, claims, request_id))

    async def _invoke(self, match: Match, event: dict[str, Any]) -> Answer:
        try:
            invocation = match.route.function.invoke(event)
            return answer_of(await asyncio.wait_for(asyncio.wrap_future(invocation), self._max_seconds))
        except PayloadTooLarge:
            return refusal(413, "Request Entity Too Large")
        except TimeoutError:
            logger.warning("Function %s took longer than %g s", match.route.function.name, self._max_seconds)
            return refusal(503, "Service Unavailable")
        except FunctionError:
            return refusal(500, "Internal Server Error")


def _challenge(error: Unauthorized) -> str:
    reason = str(error).replace('"', "'")
    return f'Bearer scope="" error="invalid_token" error_description="{reason}"' if reason else "Bearer"


async def _read(receive: Receive) -> bytes | None:
    """The body; None when it is too large. Then the rest is read and dropped, so that the client hears the answer.

    Raises:
        ConnectionAbortedError: the client went away.
    """
    parts: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionAbortedError
        part = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(part)
        if size <= MAX_BODY_BYTES:
            parts.append(part)
    return b"".join(parts) if size <= MAX_BODY_BYTES else None


def _header(scope: Scope, wanted: bytes) -> str | None:
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]
    return ",".join(values) if values else None


def http_event(
    scope: Scope, body: bytes, match: Match, claims: dict[str, str] | None, request_id: str
) -> dict[str, Any]:
    """A request in payload format 2.0. The path comes decoded, as HTTP APIs hand it on."""
    headers = _joined((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
    cookies = headers.pop("cookie", None)
    client, _ = scope["client"]
    headers |= dict(zip(FORWARDED, (client, str(scope["server"][1]), "http"), strict=True))
    query = scope["query_string"].decode("latin-1")
    path = unquote(scope["raw_path"].decode("latin-1"))
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": match.route.key,
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": _request_context(scope, match, path, headers, claims, request_id),
        "isBase64Encoded": False,
    }
    if cookies:
        event["cookies"] = [cookie.strip() for cookie in cookies.replace(",", ";").split(";")]
    if query:
        event["queryStringParameters"] = _joined(parse_qsl(query, keep_blank_values=True))
    if match.parameters:
        event["pathParameters"] = match.parameters
    if body:
        event["body"], event["isBase64Encoded"] = _body(body, headers)
    return event


def _request_context(
    scope: Scope,
    match: Match,
    path: str,
    headers: dict[str, str],
    claims: dict[str, str] | None,
    request_id: str,
) -> dict[str, Any]:
    now = datetime.now(UTC)
    context: dict[str, Any] = {
        "accountId": ACCOUNT,
        "apiId": "local",
        "domainName": headers.get("host", "127.0.0.1"),
        "domainPrefix": "local",
        "http": {
            "method": scope["method"],
            "path": path,
            "protocol": f"HTTP/{scope['http_version']}",
            "sourceIp": scope["client"][0],
            "userAgent": headers.get("user-agent", ""),
        },
        "requestId": request_id,
        "routeKey": match.route.key,
        "stage": "$default",
        "time": now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "timeEpoch": int(time.time() * 1000),
    }
    if claims is not None:
        context["authorizer"] = {"jwt": {"claims": claims, "scopes": None}}
    return context


def _joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Repeated names once, their values joined by commas."""
    values: dict[str, list[str]] = defaultdict(list)
    for name, value in pairs:
        values[name].append(value)
    return {name: ",".join(several) for name, several in values.items()}


def _body(body: bytes, headers: dict[str, str]) -> tuple[str, bool]:
    """The body as text where its media type and its bytes are; else in base64."""
    if headers.get("content-type", "").lower().startswith(TEXT_TYPES) and "content-encoding" not in headers:
        try:
            return body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), True


def answer_of(answer: Any) -> Answer:
    """A function's answer in payload format 2.0.

    Raises:
        FunctionError: it has another form.
    """
    try:
        body = answer.get("body") or ""
        content = base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode()
        headers = [
            (name.lower(), str(value))
            for name, value in (answer.get("headers") or {}).items()
            if name.lower() != "content-length"
        ]
        headers += [("set-cookie", cookie) for cookie in answer.get("cookies") or []]
        return Answer(int(answer["statusCode"]), headers, content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        logger.exception("The function's answer has no form that the gateway knows")
        raise FunctionError("malformed answer") from error

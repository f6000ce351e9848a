"""API Gateway in a test: it makes the events that the real handlers get, and routes them as the template says."""

import base64
import importlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI

from core.engine import Engine
from core.http.app import LambdaHandler
from infra.template import functions, load, routes

TENANT = "acme"
REQUEST_ID = "request-1"


@dataclass(frozen=True)
class Context:
    """What a function is told of its call."""

    function_name: str = "weft-test"
    memory_limit_in_mb: int = 1024
    invoked_function_arn: str = "arn:aws:lambda:eu-central-1:123456789012:function:weft-test"
    aws_request_id: str = "invocation-1"
    remaining_ms: int = 60_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


@dataclass(frozen=True)
class Answer:
    """A function's answer, as the gateway hands it on."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def refused(answer: Answer, status: int, code: str, field: str | None = None) -> None:
    """Asserts that an answer is a whole problem of this status, this code and, if named, this field."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    problem = answer.json
    assert (answer.status, problem["code"]) == (status, code), answer.text
    assert problem["status"] == status
    assert problem["type"] == f"urn:weft:error:{code}"
    assert problem["title"]
    assert problem["detail"]
    if field is not None:
        assert problem["field"] == field, answer.text


@cache
def _routes() -> list[tuple[str, re.Pattern[str], str]]:
    return [
        (route.method, re.compile(re.sub(r"\{[^}]*\}", "[^/]+", route.path)), route.function)
        for route in routes(load())
        if route.path != "$default"
    ]


@cache
def _module(function: str) -> Any:
    return importlib.import_module(functions(load())[function].handler.rpartition(".")[0])


def applications() -> list[FastAPI]:
    """The applications of the functions that are routed to."""
    return [_module(name).app for name in sorted({function for _, _, function in _routes()})]


@contextmanager
def served(engine: Engine | Callable[[], Engine]) -> Iterator[None]:
    """The applications answer from this engine, or from the engine that a function answers with at each request."""
    provide = engine if callable(engine) else lambda: engine
    apps = applications()
    before = [app.state.engine for app in apps]
    for app in apps:
        app.state.engine = provide
    yield
    for app, provider in zip(apps, before, strict=True):
        app.state.engine = provider


def handler_of(method: str, path: str) -> LambdaHandler:
    """The handler that the template's routes send a call to; what none takes goes to the catalog."""
    for route_method, pattern, function in _routes():
        if route_method == method and pattern.fullmatch(path):
            handler: LambdaHandler = _module(function).handler
            return handler
    default: LambdaHandler = _module("CatalogFunction").handler
    return default


@dataclass
class Api:
    """Calls the handlers.

    Attributes:
        claims: of the token that the gateway has verified; None where no token is needed.
    """

    claims: dict[str, str] | None = field(default_factory=lambda: {"tenant": TENANT, "sub": "someone"})
    context: Context = field(default_factory=Context)

    def as_tenant(self, tenant: str) -> "Api":
        return Api(claims={"tenant": tenant})

    def with_time(self, seconds: float) -> "Api":
        """A caller whose functions have that much time left, beside their margin."""
        return Api(self.claims, Context(remaining_ms=int(1000 * (1 + seconds))))

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | str | None = None,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One call. ``body`` is sent as JSON, ``raw`` as it is."""
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        sent = {"host": "api.example.org", **({"content-type": "application/json"} if content is not None else {})}
        event = self._event(method, path, query, content, {**sent, **(headers or {})})
        answer = handler_of(method, path)(event, self.context)  # type: ignore[arg-type]  # all that is used of it
        assert not answer["isBase64Encoded"]
        return Answer(answer["statusCode"], answer["headers"], answer["body"])

    def _event(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | str | None,
        content: bytes | None,
        headers: Mapping[str, str],
    ) -> dict[str, Any]:
        context: dict[str, Any] = {
            "http": {"method": method, "path": path, "sourceIp": "192.0.2.1", "protocol": "HTTP/1.1"},
            "requestId": REQUEST_ID,
            "stage": "$default",
        }
        if self.claims is not None:
            context["authorizer"] = {"jwt": {"claims": self.claims, "scopes": None}}
        event: dict[str, Any] = {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": query if isinstance(query, str) else urlencode(query or {}),
            "headers": dict(headers),
            "requestContext": context,
            "isBase64Encoded": False,
        }
        if content is not None:
            event |= {"body": base64.b64encode(content).decode(), "isBase64Encoded": True}
        return event

    def get(self, path: str, **query: Any) -> Answer:
        return self.call("GET", path, query=query)

    def post(self, path: str, body: Any = None) -> Answer:
        return self.call("POST", path, body)

    def patch(self, path: str, body: Any) -> Answer:
        return self.call("PATCH", path, body)

    def delete(self, path: str, **query: Any) -> Answer:
        return self.call("DELETE", path, query=query)

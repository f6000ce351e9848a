"""The gateway hands requests on, and refuses them, as API Gateway's HTTP API does."""

import asyncio
import base64
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from infra.local.authorizer import Authorizer, DevelopmentKey
from infra.local.function import MAX_PAYLOAD_BYTES, LambdaFunction
from infra.local.gateway import MAX_BODY_BYTES, Gateway, Route, Router

Handler = Callable[[dict[str, Any], Any], Any]


class Api:
    """A gateway with one handler behind every route, and the events that the handler saw."""

    def __init__(self, key: DevelopmentKey, handler: Handler | None = None, max_seconds: float = 30) -> None:
        self.events: list[dict[str, Any]] = []
        self._key = key
        self._handler = handler or (lambda event, _: {"statusCode": 200, "body": event["routeKey"]})
        function = LambdaFunction("Function", self._handle, 29)
        paths = ["/v1/things", "/v1/things/{id}", "/v1/things/{id}/parts", "/v1/things/mine"]
        routes = [Route("GET", path, function, authorized=True) for path in paths]
        routes.append(Route("POST", "/v1/things", function, authorized=True))
        self.routes = [*routes, Route("GET", "/v1/health", function, authorized=False)]
        self.default = Route("", "$default", function, authorized=True)
        self._max_seconds = max_seconds

    def _handle(self, event: dict[str, Any], context: Any) -> Any:
        self.events.append(event)
        return self._handler(event, context)

    def request(
        self, method: str, path: str, *, default: bool = True, token: bool = True, **request: Any
    ) -> httpx.Response:
        router = Router([*self.routes, self.default] if default else self.routes)
        gateway = Gateway(router, Authorizer(self._key), self._max_seconds)
        headers = list(httpx.Headers(request.pop("headers", {})).multi_items())
        if token:
            headers.append(("authorization", f"Bearer {self._key.token('acme')}"))

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=gateway)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as client:
                return await client.request(method, path, headers=headers, **request)

        return asyncio.run(send())


@pytest.fixture
def api(key: DevelopmentKey) -> Api:
    return Api(key)


@pytest.mark.parametrize(
    ("method", "path", "route", "parameters"),
    [
        ("GET", "/v1/things", "GET /v1/things", None),
        ("POST", "/v1/things", "POST /v1/things", None),
        ("GET", "/v1/things/mine", "GET /v1/things/mine", None),
        ("GET", "/v1/things/a%20b%2Fc", "GET /v1/things/{id}", {"id": "a b/c"}),
        ("GET", "/v1/things/7/parts", "GET /v1/things/{id}/parts", {"id": "7"}),
        ("DELETE", "/v1/things", "$default", None),
        ("GET", "/elsewhere", "$default", None),
        ("GET", "/v1/things//parts", "$default", None),
        ("GET", "/v1/things/", "$default", None),
    ],
)
def test_the_most_exact_route_wins_and_the_default_route_takes_the_rest(
    api: Api, method: str, path: str, route: str, parameters: dict[str, str] | None
) -> None:
    assert api.request(method, path).text == route
    assert api.events[0].get("pathParameters") == parameters


def test_without_a_default_route_the_gateway_itself_answers_not_found(api: Api) -> None:
    answer = api.request("GET", "/elsewhere", default=False)
    assert (answer.status_code, answer.json()) == (404, {"message": "Not Found"})
    assert api.events == []


def test_a_request_becomes_an_event_of_payload_format_2(api: Api) -> None:
    api.request(
        "POST",
        "/v1/things?key=a%2Fb+c&tag=1&tag=2&empty=",
        headers=[("X-Some", "1"), ("x-some", "2"), ("Cookie", "a=1; b=2"), ("Content-Type", "application/json")],
        content=b'{"text": "h\xc3\xa9"}',
    )
    [event] = api.events
    assert event["version"] == "2.0"
    assert event["rawPath"] == "/v1/things"
    assert event["rawQueryString"] == "key=a%2Fb+c&tag=1&tag=2&empty="
    assert event["queryStringParameters"] == {"key": "a/b c", "tag": "1,2", "empty": ""}
    assert event["headers"]["x-some"] == "1,2"
    assert event["cookies"] == ["a=1", "b=2"]
    assert "cookie" not in event["headers"]
    assert (event["body"], event["isBase64Encoded"]) == ('{"text": "hé"}', False)
    http = event["requestContext"]["http"]
    assert (http["method"], http["path"], http["sourceIp"]) == ("POST", "/v1/things", "127.0.0.1")
    assert event["requestContext"]["stage"] == "$default"
    claims = event["requestContext"]["authorizer"]["jwt"]["claims"]
    assert claims["tenant"] == "acme"
    assert all(isinstance(value, str) for value in claims.values())


@pytest.mark.parametrize(
    ("content", "media_type"),
    [(b"\x00\xff", "application/octet-stream"), (b'{"a": "\xff"}', "application/json"), (b"plain", None)],
)
def test_a_body_that_is_no_text_arrives_in_base64(api: Api, content: bytes, media_type: str | None) -> None:
    api.request("POST", "/v1/things", content=content, headers={"content-type": media_type} if media_type else {})
    [event] = api.events
    assert event["isBase64Encoded"]
    assert base64.b64decode(event["body"]) == content


def test_without_a_token_the_gateway_refuses_and_no_handler_runs(api: Api) -> None:
    for path in ("/v1/things", "/elsewhere"):
        answer = api.request("GET", path, token=False)
        assert (answer.status_code, answer.json()) == (401, {"message": "Unauthorized"})
        assert answer.headers["www-authenticate"] == "Bearer"
    assert api.events == []


def test_a_bad_token_is_refused_and_the_answer_says_why(api: Api, other_key: DevelopmentKey) -> None:
    answer = api.request(
        "GET", "/v1/things", token=False, headers={"authorization": f"Bearer {other_key.token('acme')}"}
    )
    assert (answer.status_code, answer.json()) == (401, {"message": "Unauthorized"})
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert api.events == []


def test_a_route_without_authorizer_needs_no_token_and_carries_no_claims(api: Api) -> None:
    assert api.request("GET", "/v1/health", token=False).status_code == 200
    assert api.request("GET", "/v1/health").status_code == 200
    assert all("authorizer" not in event["requestContext"] for event in api.events)


def test_a_client_that_goes_away_in_the_middle_of_its_body_reaches_no_handler(api: Api, key: DevelopmentKey) -> None:
    messages = [{"type": "http.request", "body": b"half", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return messages.pop(0)

    async def send(_message: Any) -> None:
        raise AssertionError("nobody hears an answer")

    gateway = Gateway(Router(api.routes), Authorizer(key))
    asyncio.run(gateway({"type": "http", "method": "POST", "raw_path": b"/v1/things"}, receive, send))
    assert api.events == []


def test_a_body_over_ten_megabytes_is_refused(api: Api) -> None:
    answer = api.request("POST", "/v1/things", content=b"x" * (MAX_BODY_BYTES + 1))
    assert (answer.status_code, answer.json()) == (413, {"message": "Request Entity Too Large"})
    assert api.events == []


def test_an_event_over_the_function_s_own_limit_is_refused(api: Api) -> None:
    answer = api.request("POST", "/v1/things", content=b"\x00" * (MAX_PAYLOAD_BYTES - 1000))
    assert answer.status_code == 413
    assert api.events == []


def raises(_event: dict[str, Any], _context: Any) -> Any:
    raise LookupError("the handler's own secret")


@pytest.mark.parametrize(
    "handler",
    [
        raises,
        lambda event, _: None,
        lambda event, _: {"body": "no status"},
        lambda event, _: {"statusCode": 200, "body": object()},
        lambda event, _: {"statusCode": 200, "body": "x" * MAX_PAYLOAD_BYTES},
    ],
    ids=["raises", "nothing", "no status", "not JSON", "too large"],
)
def test_a_failed_invocation_is_an_internal_server_error(key: DevelopmentKey, handler: Handler) -> None:
    answer = Api(key, handler).request("GET", "/v1/things")
    assert (answer.status_code, answer.json()) == (500, {"message": "Internal Server Error"})


def test_a_handler_that_takes_too_long_is_service_unavailable(key: DevelopmentKey) -> None:
    done = threading.Event()
    answer = Api(key, lambda *_: {"statusCode": 200 if done.wait(30) else 500}, max_seconds=0.05).request(
        "GET", "/v1/things"
    )
    done.set()
    assert (answer.status_code, answer.json()) == (503, {"message": "Service Unavailable"})


def test_the_handler_s_answer_reaches_the_client_whole(key: DevelopmentKey) -> None:
    answered = {
        "statusCode": 409,
        "headers": {"Content-Type": "application/problem+json", "Retry-After": "2"},
        "cookies": ["a=1", "b=2"],
        "body": base64.b64encode("é".encode()).decode(),
        "isBase64Encoded": True,
    }
    answer = Api(key, lambda *_: answered).request("GET", "/v1/things")
    assert (answer.status_code, answer.text) == (409, "é")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["retry-after"] == "2"
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert answer.headers["apigw-requestid"]


def test_the_context_tells_a_handler_how_long_it_has(key: DevelopmentKey) -> None:
    seen: list[int] = []

    def handler(_event: dict[str, Any], context: Any) -> Any:
        seen.append(context.get_remaining_time_in_millis())
        return {"statusCode": 204}

    assert Api(key, handler).request("GET", "/v1/things").status_code == 204
    assert 0 < seen[0] <= 29_000

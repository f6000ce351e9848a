"""Every route, whatever it does: whose call it is, and what it refuses before it does anything."""

import re
from collections.abc import Iterator

import pytest
from fastapi.routing import APIRoute
from moto import mock_aws

from core.model.ids import ChunkId, CollectionId, DocumentId
from tests.support.engines import make_world
from tests.support.gateway import TENANT, Api, applications, refused, served
from tests.support.handlers import SETTINGS

COLLECTION = CollectionId.new(1_780_000_000_000, 1 << 30)
DOCUMENT = DocumentId.new(1_780_000_000_000, 1 << 40)
CHUNK = ChunkId.of(DOCUMENT, 1, 0)
_IDS = {"collection_id": COLLECTION, "document_id": DOCUMENT, "chunk_id": CHUNK}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """One engine for all of them: whatever is refused leaves nothing behind."""
    with mock_aws():
        world = make_world(settings=SETTINGS)
        with served(world.engine):
            Api().get("/v1/collections", page_token="forged")  # the key of page tokens is made at its first use
            empty = world.rows()
            yield Api()
        assert world.rows() == empty, "a refused call has written something"
        world.vectors.close()


def _filled(path: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: _IDS[match[1]], path)


TAKES_BODY = {
    (method, _filled(route.path)): route.body_field is not None
    for app in applications()
    for route in app.routes
    if isinstance(route, APIRoute)
    for method in sorted(route.methods or ())
}
ROUTES = list(TAKES_BODY)
WITH_TENANT = [route for route in ROUTES if route[1] != "/v1/health"]
WITH_BODY = [route for route in ROUTES if TAKES_BODY[route]]
WITHOUT_BODY = [route for route in ROUTES if route not in WITH_BODY]


def _body(method: str, path: str) -> dict[str, object] | None:
    return {} if TAKES_BODY[method, path] else None


@pytest.mark.parametrize(("method", "path"), WITH_TENANT)
@pytest.mark.parametrize(
    "claims",
    [{"sub": "someone"}, {"tenant": ""}, {"tenant": "[acme other]"}, {"tenant": "acme#D"}, {"tenant": "a/b"}, None],
    ids=["absent", "empty", "an array", "a key's separator", "a path", "no token"],
)
def test_a_token_without_a_tenants_name_is_refused(
    api: Api, method: str, path: str, claims: dict[str, str] | None
) -> None:
    refused(Api(claims=claims).call(method, path, _body(method, path)), 403, "tenant_required")


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
def test_a_body_that_names_another_tenant_is_refused(api: Api, method: str, path: str) -> None:
    for other in ("other", "", 5):
        refused(api.call(method, path, {"tenant": other}), 400, "invalid_argument", "tenant")


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_no_query_and_no_header_can_name_a_tenant(api: Api, method: str, path: str) -> None:
    answer = api.call(
        method, path, _body(method, path), query={"tenant": TENANT}, headers={"x-tenant": "other", "tenant": "other"}
    )
    refused(answer, 400, "invalid_argument", "tenant")


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_an_unknown_query_parameter_is_refused(api: Api, method: str, path: str) -> None:
    refused(api.call(method, path, _body(method, path), query={"surprise": "1"}), 400, "invalid_argument", "surprise")


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
def test_an_unknown_member_of_a_body_is_refused(api: Api, method: str, path: str) -> None:
    answer = api.call(method, path, {"surprise": 1})
    refused(answer, 400, "invalid_argument")
    assert "surprise: Extra inputs are not permitted" in answer.json["detail"]


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"nonsense",
        b"\x00\xff\xfe\x80",
        b"\xef\xbb\xbf{}",
        b'{"name": NaN}',
        b'{"name": "\\ud800"}',
        b"[" * 100_000,
        b'{"name":' * 5_000 + b"1" + b"}" * 5_000,
        b'{"name":' + b"1" * 5_000 + b"}",
    ],
    ids=[
        "empty",
        "cut short",
        "no JSON",
        "binary",
        "byte order mark",
        "not a number",
        "half a character",
        "deep and open",
        "deep",
        "a number of 5,000 digits",
    ],
)
def test_what_is_no_json_is_refused(api: Api, method: str, path: str, raw: bytes) -> None:
    answer = api.call(method, path, raw=raw)
    refused(answer, 400, "invalid_argument", "body")
    assert answer.json["detail"].startswith("The body is not JSON: ")


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
@pytest.mark.parametrize("body", [[], "text", 5, True], ids=repr)
def test_a_body_that_is_no_object_is_refused(api: Api, method: str, path: str, body: object) -> None:
    refused(api.call(method, path, body), 400, "invalid_argument", "body")


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/xml", "application/json; charset=latin-1", "multipart/form-data"]
)
def test_a_body_that_is_not_sent_as_json_is_refused(api: Api, method: str, path: str, content_type: str) -> None:
    answer = api.call(method, path, raw=b"{}", headers={"content-type": content_type})
    refused(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
def test_a_body_over_six_mebibytes_is_refused_and_the_limit_is_named(api: Api, method: str, path: str) -> None:
    answer = api.call(method, path, raw=b'{"name": "' + b"x" * 6 * 1024 * 1024 + b'"}')
    refused(answer, 413, "payload_too_large")
    assert answer.json["limit"] == 6 * 1024 * 1024


@pytest.mark.parametrize(("method", "path"), WITHOUT_BODY)
def test_a_body_that_nobody_reads_is_refused(api: Api, method: str, path: str) -> None:
    refused(api.call(method, path, {"collections": []}), 400, "invalid_argument", "body")


@pytest.mark.parametrize(
    ("method", "path"), [route for route in ROUTES if any(identifier in route[1] for identifier in _IDS.values())]
)
@pytest.mark.parametrize("wrong", ["nonsense", "usr_01ksr49200e008000001000000", "%00", "..", "col_%F0%9F%98%80"])
def test_an_identifier_of_another_form_is_refused(api: Api, method: str, path: str, wrong: str) -> None:
    body = _body(method, path)
    for identifier in _IDS.values():
        path = path.replace(identifier, wrong)
    answer = api.call(method, path, body)
    refused(answer, 400, "invalid_argument")
    assert answer.json["field"].endswith("_id")


@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("GET", "/v1/collections/"), ("POST", "/v2/retrieve")])
def test_an_unknown_route_is_a_problem(api: Api, method: str, path: str) -> None:
    refused(api.call(method, path), 404, "route_not_found")


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json"])
def test_nothing_is_served_beside_the_interface(api: Api, path: str) -> None:
    refused(api.get(path), 404, "route_not_found")


def test_another_method_is_a_problem_that_names_the_right_ones(api: Api) -> None:
    answer = api.call("PUT", "/v1/collections")
    refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, POST"


def test_a_query_parameter_given_twice_is_refused(api: Api) -> None:
    refused(api.call("GET", "/v1/collections", query="limit=1&limit=2"), 400, "invalid_argument", "limit")


def test_a_query_that_is_not_utf8_is_refused(api: Api) -> None:
    path = f"/v1/collections/{COLLECTION}/sources"
    refused(api.call("DELETE", path, query="key=%FF"), 400, "invalid_argument", "query")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"order": "random"}, "order"),
        ({"page_token": "forged"}, "page_token"),
        ({"include_total": "perhaps"}, "include_total"),
    ],
)
def test_a_listing_refuses_what_it_does_not_know(api: Api, query: dict[str, object], field: str) -> None:
    refused(api.get("/v1/collections", **query), 400, "invalid_argument", field)


def test_what_was_sent_is_never_repeated(api: Api) -> None:
    answer = api.post("/v1/retrieve", {"query": ["a secret text"], "top_k": "another secret", "strategy": "secret"})
    refused(answer, 400, "invalid_argument", "query")
    assert "secret" not in answer.text

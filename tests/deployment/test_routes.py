"""The template's routes, the interface's and the applications' are the same."""

import importlib
import re
from collections import Counter
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from infra.template import Template, functions, routes

COLLECTION = "/v1/collections/{collection_id}"
DOCUMENT = "/v1/documents/{document_id}"
CHUNK = "/v1/chunks/{chunk_id}"

INTERFACE = {
    "CatalogFunction": {
        "POST /v1/collections",
        "GET /v1/collections",
        f"GET {COLLECTION}",
        f"PATCH {COLLECTION}",
        f"DELETE {COLLECTION}",
        f"GET {COLLECTION}/stats",
        f"POST {COLLECTION}/reindex",
        f"GET {COLLECTION}/reindex",
        "GET /v1/documents",
        f"GET {DOCUMENT}",
        f"DELETE {DOCUMENT}",
        f"GET {DOCUMENT}/chunks",
        "GET /v1/chunks",
        f"GET {CHUNK}",
        f"GET {CHUNK}/lineage",
        "GET /v1/components",
        "GET /v1/extensions",
        "GET /v1/health",
    },
    "IngestFunction": {
        f"POST {COLLECTION}/documents",
        f"POST {COLLECTION}/documents/batch",
        f"POST {COLLECTION}/uploads",
        f"DELETE {COLLECTION}/sources",
    },
    "RetrieveFunction": {"POST /v1/retrieve", "POST /v1/assemble"},
    "CompareFunction": {"POST /v1/compare"},
}

APPLICATIONS = {
    "CatalogFunction": "functions.catalog.handler",
    "IngestFunction": "functions.ingest.http",
    "RetrieveFunction": "functions.retrieve.handler",
    "CompareFunction": "functions.compare.handler",
}


def nameless(key: str) -> str:
    """A route's key whatever its parameters are called."""
    return re.sub(r"\{[^}]*\}", "{}", key)


def answered(application: FastAPI) -> set[str]:
    return {
        nameless(f"{method} {route.path}")
        for route in application.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }


def test_the_interface_is_routed_and_nothing_else(template: Template) -> None:
    routed = {(route.key, route.function) for route in routes(template)} - {("$default", "CatalogFunction")}

    assert routed == {(key, function) for function, keys in INTERFACE.items() for key in keys}


@pytest.mark.parametrize("function", APPLICATIONS)
def test_a_function_answers_exactly_what_is_routed_to_it(template: Template, function: str) -> None:
    application = importlib.import_module(APPLICATIONS[function]).app
    routed = {nameless(route.key) for route in routes(template) if route.function == function} - {"$default"}

    assert answered(application) == routed


def test_every_handler_of_the_template_can_be_called(template: Template) -> None:
    for function in functions(template).values():
        module, _, name = function.handler.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name, None)), function.handler


def test_no_route_is_there_twice(template: Template) -> None:
    counts = Counter(nameless(route.key) for route in routes(template))

    assert [key for key, count in counts.items() if count > 1] == []


def test_only_health_is_open(template: Template) -> None:
    assert [route.key for route in routes(template) if route.authorizer is None] == ["GET /v1/health"]


def test_what_no_route_takes_goes_to_the_catalog_which_answers_with_a_problem(template: Template) -> None:
    [default] = [route for route in routes(template) if route.path == "$default"]

    assert (default.function, default.authorizer) == ("CatalogFunction", "Token")


def test_sam_keeps_the_default_route_and_its_authorizer(transformed: dict[str, dict[str, Any]]) -> None:
    operation = transformed["Api"]["Properties"]["Body"]["paths"]["$default"]["x-amazon-apigateway-any-method"]

    assert operation["isDefaultRoute"]
    assert operation["security"] == [{"Token": []}]


def test_every_event_comes_in_payload_format_2(transformed: dict[str, dict[str, Any]]) -> None:
    paths = transformed["Api"]["Properties"]["Body"]["paths"]
    formats = {
        operation["x-amazon-apigateway-integration"]["payloadFormatVersion"]
        for operations in paths.values()
        for operation in operations.values()
    }

    assert formats == {"2.0"}


def test_the_api_stands_at_its_root(transformed: dict[str, dict[str, Any]]) -> None:
    assert transformed["ApiApiGatewayDefaultStage"]["Properties"]["StageName"] == "$default"

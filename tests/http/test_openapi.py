"""The committed OpenAPI document: current, valid, and whole."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # ships no types
from openapi_spec_validator import validate

from core.http.problem import codes
from core.model.comparison import CompareResult
from core.model.hit import RetrieveResult
from core.ranking.explain import explain
from infra import openapi
from infra.template import load, routes


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    committed: dict[str, Any] = json.loads(openapi.PATH.read_text(encoding="utf-8"))
    return committed


def test_the_committed_document_is_current() -> None:
    assert openapi.PATH.read_text(encoding="utf-8") == openapi.text(), (
        "infra/openapi.json is not current: run make openapi"
    )


def test_it_is_a_valid_openapi_document(document: dict[str, Any]) -> None:
    validate(document)


def test_it_has_the_routes_of_the_template(document: dict[str, Any]) -> None:
    described = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    routed = {route.key for route in routes(load()) if route.path != "$default"}
    assert described == routed


def test_only_health_needs_no_token(document: dict[str, Any]) -> None:
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["security"] == ([] if path == "/v1/health" else [{"token": []}])


def test_every_refusal_is_described_in_its_form(document: dict[str, Any]) -> None:
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                if status in {"400", "403", "404", "409", "415", "500"}:
                    assert "application/problem+json" in answer["content"], (path, status)
            assert {"400", "413", "429", "500", "503"} <= operation["responses"].keys(), path
            assert "422" not in operation["responses"], path


def test_every_code_of_a_function_has_its_place(document: dict[str, Any]) -> None:
    described = {
        code
        for operations in document["paths"].values()
        for operation in operations.values()
        for answer in operation["responses"].values()
        for code in answer["content"].get("application/problem+json", {}).get("examples", {})
    }
    assert described <= set(codes())
    assert described == {
        "chunk_not_found",
        "collection_already_exists",
        "collection_not_found",
        "document_not_found",
        "duplicate_document",
        "empty_content",
        "ingest_interrupted",
        "invalid_argument",
        "not_configured",
        "payload_too_large",
        "reindex_not_found",
        "stale_ranking",
        "tenant_required",
        "unavailable",
        "unsupported_media_type",
        "version_conflict",
    }


def example(document: dict[str, Any], name: str) -> Any:
    return document["components"]["schemas"][name]["example"]


def test_every_body_and_answer_has_an_example(document: dict[str, Any]) -> None:
    shown = {
        content["schema"]["$ref"].rpartition("/")[2]
        for operations in document["paths"].values()
        for operation in operations.values()
        for part in (operation.get("requestBody"), *operation["responses"].values())
        if part
        for content in part["content"].values()
        if "$ref" in content["schema"]
    }
    assert all(example(document, name) for name in shown)


def test_every_example_fits_its_own_schema(document: dict[str, Any]) -> None:
    examples = {name for name, schema in document["components"]["schemas"].items() if "example" in schema}
    assert len(examples) > 25
    for name in examples:
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        Draft202012Validator(schema).validate(example(document, name))


def test_the_examples_of_answers_hold_what_answers_promise(document: dict[str, Any]) -> None:
    RetrieveResult.model_validate(example(document, "RetrieveResult"))
    answer = CompareResult.model_validate(example(document, "CompareResult"))
    assert explain(answer) == [hit.chunk.id for hit in (*answer.hits, *answer.left_out)]

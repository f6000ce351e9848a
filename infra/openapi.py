"""Describes the interface of all HTTP functions as one OpenAPI document. ``make openapi`` writes infra/openapi.json."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from core.http.problem import Problem
from core.model.base import Model
from functions.catalog.handler import app as catalog
from functions.compare.handler import app as compare
from functions.ingest.http import app as ingest
from functions.retrieve.handler import app as retrieve

PATH = Path(__file__).parent / "openapi.json"

Document = dict[str, Any]

_METHODS = {"get", "post", "patch", "delete"}
_OPEN = {"/v1/health"}
_GATEWAY_REFUSALS = {
    "401": "The gateway refused the token: it is missing, expired or not valid.",
    "413": "The gateway refused the request: it is too large.",
    "429": "The gateway refused the request: there are too many requests.",
    "503": "The function did not answer the gateway within 30 seconds.",
}
# An entry of a docstring's "Attributes:": names, a colon, and a text whose further lines are indented more.
_ATTRIBUTE = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n     +.*)*)", re.MULTILINE)


def document() -> Document:
    """Describes the routes of all HTTP functions in one document."""
    paths: Document = {}
    schemas: Document = {
        "GatewayRefusal": {
            "type": "object",
            "description": "A refusal by the gateway itself, before a function is called",
            "properties": {"message": {"type": "string"}},
            "required": ["message"],
            "example": {"message": "Unauthorized"},
        },
    }
    for app in (catalog, ingest, retrieve, compare):
        part = app.openapi()
        for path, operations in part["paths"].items():
            paths.setdefault(path, {}).update(operations)
        _merge(schemas, part["components"]["schemas"])
    for path, operations in paths.items():
        for method in _METHODS & operations.keys():
            _complete(path, operations[method])
            _name_tenant(schemas, operations[method])
    _complete_examples(schemas)
    for schema in schemas.values():
        _describe_members(schema)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Weft",
            "version": catalog.version,
            "description": (
                "A retrieval backend. The tenant is a claim of the verified token; a body may name `tenant` as well, "
                "and then it must agree. Unknown fields and query parameters are refused."
            ),
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def _complete_examples(schemas: Document) -> None:
    """Puts the models' examples back whole and in their order.

    pydantic sorts an example's members by name, and FastAPI leaves out those that are null.
    """
    models: list[type[BaseModel]] = [Problem, *_subclasses(Model)]
    for model in models:
        schema = schemas.get(re.sub(r"\W", "_", model.__name__), {})
        extra = model.model_config.get("json_schema_extra")
        if callable(extra):
            extra(schema, model)  # type: ignore[call-arg]  # every such function of ours takes both
        elif extra and schema:
            schema.update(extra)


def _describe_members(schema: Document) -> None:
    """Moves the ``Attributes:`` of a model's docstring to the descriptions of the schema's members."""
    meaning, _, attributes = schema.get("description", "").replace("``", "`").partition("\n\nAttributes:\n")
    if meaning:
        schema["description"] = re.sub(r"(?<!\n)\n(?!\n)", " ", meaning)
    for names, text in _ATTRIBUTE.findall(attributes):
        for name in names.split(", "):
            if member := schema["properties"].get(name):
                member.setdefault("description", " ".join(text.split()))


def _subclasses(kind: type[Model]) -> Iterator[type[Model]]:
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)


def _merge(schemas: Document, more: Document) -> None:
    for name, schema in more.items():
        if schemas.setdefault(name, schema) != schema:
            raise ValueError(f"Two schemas are called {name}")


def _complete(path: str, operation: Document) -> None:
    """Adds the gateway's refusals and the token to an operation, and removes 422, which no function answers."""
    responses = operation["responses"]
    responses.pop("422", None)
    operation["security"] = [] if path in _OPEN else [{"token": []}]
    for status, description in _GATEWAY_REFUSALS.items():
        if status == "401" and path in _OPEN:
            continue
        answer = responses.setdefault(status, {"description": description, "content": {}})
        schema = {"$ref": "#/components/schemas/GatewayRefusal"}
        content = answer["content"].setdefault("application/json", {"schema": schema})
        if content["schema"] != schema:
            content["schema"] = {"anyOf": [content["schema"], schema]}
    operation["responses"] = dict(sorted(responses.items()))


def _name_tenant(schemas: Document, operation: Document) -> None:
    """Adds the member ``tenant``, which every body may have.

    The models do not have it: `core.http.route` compares it with the token and removes it before a model reads the
    body.
    """
    for content in operation.get("requestBody", {}).get("content", {}).values():
        body = schemas[content["schema"]["$ref"].rpartition("/")[2]]
        body["properties"]["tenant"] = {
            "type": "string",
            "description": "The tenant of the token; any other is refused",
        }


def text() -> str:
    """Writes the document as it is committed."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    PATH.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()

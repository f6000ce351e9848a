"""Errors as ``application/problem+json`` (RFC 9457)."""

import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from core.http.request import request_id
from core.model.errors import InvalidArgument, MethodNotAllowed, RouteNotFound, WeftError
from core.powertools import describe, logger

MEDIA_TYPE = "application/problem+json"
INTERNAL_ERROR = "internal_error"
_LONGEST_FIELD = 128
_MOST_PROBLEMS = 5
_MEMBER = re.compile(r"<\w+\.\w+: ('\w+')>")
"""How an enumeration's member looks in pydantic's messages; callers know its value alone."""


def codes() -> list[str]:
    """Every code that an answer can have."""
    return sorted({error.code for error in _kinds(WeftError) if hasattr(error, "code")} | {INTERNAL_ERROR})


def _kinds(kind: type[WeftError]) -> Iterator[type[WeftError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _kinds(child)


def _optional(description: str) -> Any:
    return Field(default=None, exclude_if=lambda value: value is None, description=description)


EXAMPLE_PROBLEM: dict[str, Any] = {
    "type": "urn:weft:error:empty_content",
    "title": "Empty content",
    "status": 400,
    "detail": "There is nothing to ingest",
    "code": "empty_content",
    "field": "content",
}


class Problem(BaseModel):
    """What went wrong and what to do about it. Members that a code does not need are absent."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"example": EXAMPLE_PROBLEM})

    type: str = Field(description="`urn:weft:error:` and the code")
    title: str
    status: int
    detail: str
    code: str = Field(json_schema_extra={"enum": list[Any](codes())})
    field: str | None = _optional("The part of the call that is wrong")
    limit: int | None = _optional("The limit that was passed")
    document_id: str | None = _optional("The document that holds this content already")
    chunk_id: str | None = _optional("The chunk that is gone")
    retry_after_s: int | None = _optional("Try again after so many seconds")
    uploads: str | None = _optional("Where larger content can go")
    request_id: str | None = _optional("Names the request in the operator's log")


def problem_of(error: WeftError) -> Problem:
    """The problem that an error is to a caller."""
    return Problem(
        type=f"urn:weft:error:{error.code}",
        title=error.title,
        status=error.status,
        detail=error.detail,
        code=error.code,
        **error.extras,
    )


def problem_response(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """An answer that is a problem."""
    headers = dict(headers or {})
    if problem.retry_after_s is not None:
        headers["retry-after"] = str(problem.retry_after_s)
    return Response(
        problem.model_dump_json(),
        status_code=problem.status,
        headers=headers,
        media_type=MEDIA_TYPE,
    )


def invalid_input(errors: Sequence[Any], *, skip: int = 0) -> InvalidArgument:
    """What a model refused, without a word of what was sent.

    Args:
        errors: as pydantic lists them.
        skip: how many leading parts of each place are not the caller's ("body", "query").
    """
    places = [(_place(item["loc"][skip:]), _MEMBER.sub(r"\1", item["msg"])) for item in errors[:_MOST_PROBLEMS]]
    detail = "; ".join(f"{place}: {message}" if place else message for place, message in places)
    return InvalidArgument(detail, field=places[0][0] or "body")


def _place(parts: Sequence[str | int]) -> str:
    return ".".join(str(part) for part in parts)[:_LONGEST_FIELD].encode(errors="replace").decode()


async def refuse_weft_error(_: Request, error: Exception) -> Response:
    """An error of the engine's own."""
    if not isinstance(error, WeftError):
        raise error
    return problem_response(problem_of(error))


async def refuse_input(_: Request, error: Exception) -> Response:
    """What FastAPI would answer with 422."""
    if not isinstance(error, RequestValidationError):
        raise error
    return problem_response(problem_of(invalid_input(error.errors(), skip=1)))


async def refuse_route(request: Request, error: Exception) -> Response:
    """Unknown routes and methods."""
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        problem = problem_of(MethodNotAllowed("The route does not have this method"))
        return problem_response(problem, headers={"allow": ", ".join(sorted(_methods(request)))})
    if error.status_code == HTTPStatus.NOT_FOUND:
        return problem_response(problem_of(RouteNotFound("No such route")))
    return unexpected(request, error)


def _methods(request: Request) -> set[str]:
    routes = (route for route in request.app.routes if isinstance(route, APIRoute))
    return {method for route in routes if route.path_regex.match(request.url.path) for method in route.methods or ()}


def unexpected(request: Request, error: Exception) -> Response:
    """Anything else: whole in the log, and to the caller only the request's ID."""
    name = request_id(request)
    logger.error("Unexpected error", extra={"request_id": name, "error": describe(error)})
    return problem_response(
        Problem(
            type=f"urn:weft:error:{INTERNAL_ERROR}",
            title="Internal error",
            status=500,
            detail="Something went wrong on our side; the request's ID names it in the log",
            code=INTERNAL_ERROR,
            request_id=name,
        )
    )

"""Turns every error into ``application/problem+json`` (RFC 9457)."""

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
_MAX_FIELD_CHARACTERS = 128
_MAX_PROBLEMS = 5
_ENUM_MEMBER = re.compile(r"<\w+\.\w+: ('\w+')>")
"""A member of an enumeration as pydantic's messages write it. Callers know only the value in quotes."""


def codes() -> list[str]:
    """Lists every code that an answer can have."""
    return sorted({error.code for error in _subclasses(WeftError) if hasattr(error, "code")} | {INTERNAL_ERROR})


def _subclasses(kind: type[WeftError]) -> Iterator[type[WeftError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)


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
    """An error: what went wrong, and what to do about it. Members that an error does not need are absent."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"example": EXAMPLE_PROBLEM})

    type: str = Field(description="`urn:weft:error:` followed by the code")
    title: str = Field(description="The code in words")
    status: int = Field(description="The HTTP status")
    detail: str = Field(description="What is wrong, in a sentence")
    code: str = Field(description="The stable name of the error", json_schema_extra={"enum": list[Any](codes())})
    field: str | None = _optional("The member or parameter of the call that is wrong")
    limit: int | None = _optional("The limit that was exceeded")
    document_id: str | None = _optional("The document that holds the content already, or that failed")
    chunk_id: str | None = _optional("The chunk that is gone")
    retry_after_s: int | None = _optional("Call again after this number of seconds")
    uploads: str | None = _optional("The path that creates an upload, for larger content")
    request_id: str | None = _optional("The ID of the request in the log of the service")


def problem_of(error: WeftError) -> Problem:
    """Describes an error as a problem."""
    return Problem(
        type=f"urn:weft:error:{error.code}",
        title=error.title,
        status=error.status,
        detail=error.detail,
        code=error.code,
        **error.extras,
    )


def problem_response(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """Answers with a problem, and with the header ``Retry-After`` where the problem says when to call again."""
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
    """Describes what a model refused, without repeating anything that was sent.

    Args:
        errors: the errors as pydantic lists them.
        skip: how many leading parts of each place are not the caller's words ("body", "query").
    """
    places = [(_place(item["loc"][skip:]), _ENUM_MEMBER.sub(r"\1", item["msg"])) for item in errors[:_MAX_PROBLEMS]]
    detail = "; ".join(f"{place}: {message}" if place else message for place, message in places)
    return InvalidArgument(detail, field=places[0][0] or "body")


def _place(parts: Sequence[str | int]) -> str:
    return ".".join(str(part) for part in parts)[:_MAX_FIELD_CHARACTERS].encode(errors="replace").decode()


async def refuse_weft_error(_: Request, error: Exception) -> Response:
    """Answers an error that the engine raised."""
    if not isinstance(error, WeftError):
        raise error
    return problem_response(problem_of(error))


async def refuse_input(_: Request, error: Exception) -> Response:
    """Answers input that a model refused. FastAPI alone would answer 422."""
    if not isinstance(error, RequestValidationError):
        raise error
    return problem_response(problem_of(invalid_input(error.errors(), skip=1)))


async def refuse_route(request: Request, error: Exception) -> Response:
    """Answers an unknown route or an unknown method of a route."""
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
    """Answers an unexpected error with the request's ID alone. The log has the whole error."""
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

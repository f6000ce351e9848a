"""The errors and unfinished answers in an endpoint's description (``responses=``)."""

from collections.abc import Iterable
from typing import Any

from core.http.problem import INTERNAL_ERROR, MEDIA_TYPE
from core.model.base import Model
from core.model.errors import InvalidArgument, NotConfigured, TenantRequired, Unavailable, WeftError

PROBLEM_SCHEMA = {"$ref": "#/components/schemas/Problem"}
Answers = dict[int | str, dict[str, Any]]

_ALWAYS = (InvalidArgument, TenantRequired, NotConfigured, Unavailable)


def problems(*errors: type[WeftError], always: Iterable[type[WeftError]] = _ALWAYS) -> Answers:
    """Describes the errors that an endpoint can answer, by status.

    Args:
        errors: the errors of this endpoint.
        always: the errors that every call can meet.
    """
    answers: Answers = {}
    for error in (*errors, *always):
        answer = answers.setdefault(error.status, _answer())
        answer["content"][MEDIA_TYPE]["examples"][error.code] = _example(error)
    for answer in answers.values():
        answer["description"] = ", ".join(answer["content"][MEDIA_TYPE]["examples"])
    answers[500] = _answer(f"{INTERNAL_ERROR}: `request_id` names the request in the log of the service")
    return answers


def unfinished(model: type[Model]) -> Answers:
    """Describes the answer 202 of a deletion whose time ran out before everything was removed."""
    return {
        202: {
            "model": model,
            "description": "The time ran out. The counts say what is removed so far; the sweep removes the rest.",
        }
    }


def _answer(description: str = "") -> dict[str, Any]:
    return {"description": description, "content": {MEDIA_TYPE: {"schema": PROBLEM_SCHEMA, "examples": {}}}}


def _example(error: type[WeftError]) -> dict[str, Any]:
    meaning = (error.__doc__ or "").split("\n")[0].replace("``", "`")
    value = {
        "type": f"urn:weft:error:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": meaning,
        "code": error.code,
    }
    return {"summary": meaning, "value": value}

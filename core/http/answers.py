"""What an endpoint's description says of the errors it can answer."""

from collections.abc import Iterable
from typing import Any

from core.http.problem import INTERNAL_ERROR, MEDIA_TYPE
from core.model.base import Model
from core.model.errors import InvalidArgument, NotConfigured, TenantRequired, Unavailable, WeftError

PROBLEM_SCHEMA = {"$ref": "#/components/schemas/Problem"}
Answers = dict[int | str, dict[str, Any]]

_ALWAYS = (InvalidArgument, TenantRequired, NotConfigured, Unavailable)


def problems(*errors: type[WeftError], always: Iterable[type[WeftError]] = _ALWAYS) -> Answers:
    """The errors named, and those that every call can meet, by status."""
    answers: Answers = {}
    for error in (*errors, *always):
        answer = answers.setdefault(error.status, _answer())
        answer["content"][MEDIA_TYPE]["examples"][error.code] = _example(error)
    for answer in answers.values():
        answer["description"] = ", ".join(answer["content"][MEDIA_TYPE]["examples"])
    answers[500] = _answer(f"{INTERNAL_ERROR}: `request_id` names the request in the operator's log")
    return answers


def unfinished(model: type[Model]) -> Answers:
    """The answer of a call whose time was over before its work."""
    return {202: {"model": model, "description": "Begun; the sweep finishes it. The counts are what is gone."}}


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

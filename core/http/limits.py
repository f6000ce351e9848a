"""Answers stop at a size: lists end their page early, rankings lose hits from the end and say so."""

import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from core.model.base import Model
from core.model.errors import PayloadTooLarge
from core.model.hit import CompareResult, Hit, Reason, ReasonCode, RetrieveResult
from core.model.page import Page, PageRequest

T = TypeVar("T")
AnyHit = TypeVar("AnyHit", bound=Hit)
AnyModel = TypeVar("AnyModel", bound=Model)


def answer_size(model: Model) -> int:
    """Bytes that an answer takes inside a function's own answer, which is JSON again: quotes and line ends
    are escaped twice there, and some runtimes escape every character beyond ASCII."""
    return len(json.dumps(model.model_dump_json()))


def fit_page(limit: int, request: PageRequest, fetch: Callable[[PageRequest], Page[T]]) -> Page[T]:
    """A page that fits into ``limit`` bytes: asked for again with half as many items until it does.

    One item alone always fits: every text of the interface has a limit of its own.
    """
    page = fetch(request)
    while len(page.items) > 1 and answer_size(page) > limit:
        request = request.model_copy(update={"limit": len(page.items) // 2})
        page = fetch(request)
    return page


def fit_retrieval(limit: int, result: RetrieveResult) -> RetrieveResult:
    """The hits that fit into ``limit`` bytes, best first. A context stays whole: its citations say where it is from.

    Raises:
        PayloadTooLarge: the context alone does not fit.
    """
    if answer_size(result) <= limit:
        return result
    empty = result.model_copy(update={"hits": [], "reason": _cut_reason(len(result.hits))})
    if result.context is not None:
        refuse_too_large(limit, empty)
    hits, _ = _take(result.hits, limit - answer_size(empty))
    return empty.model_copy(update={"hits": hits})


def fit_comparison(limit: int, result: CompareResult) -> CompareResult:
    """The hits that fit into ``limit`` bytes, then what was left out, as far as it fits too."""
    if answer_size(result) <= limit:
        return result
    empty = result.model_copy(update={"hits": [], "left_out": [], "reason": _cut_reason(len(result.hits))})
    hits, room = _take(result.hits, limit - answer_size(empty))
    left_out, _ = _take(result.left_out, room) if len(hits) == len(result.hits) else ([], 0)
    return empty.model_copy(update={"hits": hits, "left_out": left_out})


def refuse_too_large(limit: int, answer: AnyModel) -> AnyModel:
    """An answer that cannot be cut.

    Raises:
        PayloadTooLarge: it does not fit into ``limit`` bytes.
    """
    if answer_size(answer) > limit:
        raise PayloadTooLarge(f"The answer would be larger than {limit} bytes; ask for less", limit=limit)
    return answer


def _take(hits: Sequence[AnyHit], room: int) -> tuple[list[AnyHit], int]:
    taken: list[AnyHit] = []
    for hit in hits:
        room -= answer_size(hit)
        if room < 0:
            break
        taken.append(hit)
    return taken, room


def _cut_reason(found: int) -> Reason:
    return Reason(
        code=ReasonCode.ANSWER_TOO_LARGE,
        detail="The hits do not fit into one answer; ask for fewer, or for smaller chunks",
        found=found,
    )

"""Cuts answers to the largest size: a listing ends its page early, and a ranking loses hits from its end and says so.

A Lambda function can answer with at most 6 MB, and the setting ``answer_bytes`` stays below that.
"""

import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from core.model.base import Model
from core.model.comparison import CompareResult
from core.model.errors import PayloadTooLarge
from core.model.hit import Hit, Reason, ReasonCode, RetrieveResult
from core.model.page import Page, PageRequest

T = TypeVar("T")
AnyHit = TypeVar("AnyHit", bound=Hit)
AnyModel = TypeVar("AnyModel", bound=Model)


def answer_size(model: Model) -> int:
    """Counts the bytes that an answer takes inside the function's own answer.

    That answer is JSON again. Quotes and line ends are escaped twice there, and some runtimes escape every character
    beyond ASCII, so the upper bound is counted.
    """
    return len(json.dumps(model.model_dump_json()))


def fit_page(limit: int, request: PageRequest, fetch: Callable[[PageRequest], Page[T]]) -> Page[T]:
    """Fetches a page that fits into ``limit`` bytes. While a page does not fit, half as many items are fetched.

    A page of one item always fits, because every text of the interface has a limit of its own.
    """
    page = fetch(request)
    while len(page.items) > 1 and answer_size(page) > limit:
        request = request.model_copy(update={"limit": len(page.items) // 2})
        page = fetch(request)
    return page


def fit_retrieval(limit: int, result: RetrieveResult) -> RetrieveResult:
    """Cuts a retrieve's answer to the best hits that fit into ``limit`` bytes.

    A context is never cut: its citations say where its text is from, also without the hits.

    Raises:
        PayloadTooLarge: the context alone does not fit.
    """
    if answer_size(result) <= limit:
        return result
    empty = result.model_copy(update={"hits": [], "reason": _cut_reason(len(result.hits))})
    if result.context is not None:
        refuse_too_large(limit, empty)
    hits, _ = _first_that_fit(result.hits, limit - answer_size(empty))
    return empty.model_copy(update={"hits": hits})


def fit_comparison(limit: int, result: CompareResult) -> CompareResult:
    """Cuts a comparison to the best hits that fit into ``limit`` bytes, followed by the left-out hits that fit."""
    if answer_size(result) <= limit:
        return result
    empty = result.model_copy(update={"hits": [], "left_out": [], "reason": _cut_reason(len(result.hits))})
    hits, room = _first_that_fit(result.hits, limit - answer_size(empty))
    left_out, _ = _first_that_fit(result.left_out, room) if len(hits) == len(result.hits) else ([], 0)
    return empty.model_copy(update={"hits": hits, "left_out": left_out})


def refuse_too_large(limit: int, answer: AnyModel) -> AnyModel:
    """Returns an answer that cannot be cut, if the answer fits.

    Raises:
        PayloadTooLarge: the answer does not fit into ``limit`` bytes.
    """
    if answer_size(answer) > limit:
        raise PayloadTooLarge(f"The answer would be larger than {limit} bytes; ask for less", limit=limit)
    return answer


def _first_that_fit(hits: Sequence[AnyHit], room: int) -> tuple[list[AnyHit], int]:
    """Returns the first hits that fit into ``room`` bytes, and the bytes that are left (below 0: a hit did not fit)."""
    fitting: list[AnyHit] = []
    for hit in hits:
        room -= answer_size(hit)
        if room < 0:
            break
        fitting.append(hit)
    return fitting, room


def _cut_reason(found: int) -> Reason:
    return Reason(
        code=ReasonCode.ANSWER_TOO_LARGE,
        detail="The hits do not fit into one answer; ask for fewer, or for smaller chunks",
        found=found,
    )

"""Why an answer has fewer than top_k hits."""

from collections.abc import Callable
from itertools import islice

from core.model.filter import Filter, wanted
from core.model.hit import Reason, ReasonCode
from core.model.tenant import Tenant
from core.parts import Parts
from core.retrieval.ranking import Order
from core.retrieval.scope import Scope

MAX_VALUES_LOOKED_UP = 16


def reason_of(parts: Parts, tenant: Tenant, scope: Scope, order: Order, hits: int, *, bounded: bool) -> Reason | None:
    """The first that applies; None when there are top_k hits.

    Args:
        hits: how many there are.
        bounded: the search gave up refilling.
    """
    if hits >= scope.top_k:
        return None
    if hits < min(len(order.scored), scope.top_k) and scope.query.min_score is not None and order.fallback is None:
        cut = [score for _, score in order.scored if score < scope.query.min_score]
        if cut:
            detail = f"The best score that was cut is {max(cut):.4g}; lower min_score to see more"
            return Reason(code=ReasonCode.BELOW_MIN_SCORE, detail=detail, best_score=max(cut))
    if bounded:
        detail = "Too much was replaced while this ran; ask again"
        return Reason(code=ReasonCode.REFILL_BOUND, detail=detail)
    return _filter_reason(parts, tenant, scope) or _stock_reason(parts, tenant, scope, hits)


def _filter_reason(parts: Parts, tenant: Tenant, scope: Scope) -> Reason | None:
    """What the filter has to do with a short answer; None: nothing."""
    if scope.filter is None:
        return None
    matching = _matching(parts, tenant, scope)
    fulfilling = matching(scope.filter)
    filtered = matching(None) - fulfilling
    if filtered <= 0:
        return None
    if not fulfilling:
        for one in islice(wanted(scope.filter), MAX_VALUES_LOOKED_UP):
            if not matching(one):
                detail = f"No chunk has the attribute {one.field!r} with the value that the filter asks for"
                return Reason(code=ReasonCode.UNKNOWN_ATTRIBUTE_VALUE, detail=detail, attribute=one.field)
    detail = f"The filter leaves out {filtered} chunks"
    return Reason(code=ReasonCode.FILTERED_OUT, detail=detail, filtered=filtered)


def _matching(parts: Parts, tenant: Tenant, scope: Scope) -> Callable[[Filter | None], int]:
    """How many records of all spaces fulfil a filter."""
    store = parts.vector_store()
    return lambda filter: sum(store.matching(tenant, one.space, one.collection_ids, filter) for one in scope.spaces)


def _stock_reason(parts: Parts, tenant: Tenant, scope: Scope, hits: int) -> Reason:
    """What there is, or is not yet, to be found."""
    counts = parts.collections.counts(tenant, scope.collection_ids).values()
    working = sum(one.working for one in counts)
    if working:
        detail = f"Documents still being ingested: {working}"
        return Reason(code=ReasonCode.STILL_INGESTING, detail=detail, in_progress=working)
    if not any(one.documents for one in counts):
        return Reason(code=ReasonCode.NO_DOCUMENTS, detail="There is no document to search")
    detail = f"There are no more than {hits} chunks"
    return Reason(code=ReasonCode.FEWER_THAN_TOP_K, detail=detail)

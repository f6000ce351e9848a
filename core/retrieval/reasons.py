"""Why an answer has fewer than top_k hits."""

from collections.abc import Sequence
from itertools import islice

from core.analysis.terms import query_terms
from core.model.filter import Filter, wanted
from core.model.hit import Hit, Reason, ReasonCode
from core.model.tenant import Tenant
from core.parts import Parts
from core.retrieval.ranking import Order
from core.retrieval.scope import Scope
from core.vectors.types import TextQuery

MAX_VALUES_LOOKED_UP = 16


def reason_of(
    parts: Parts, tenant: Tenant, scope: Scope, order: Order, hits: Sequence[Hit], *, bounded: bool
) -> Reason | None:
    """None when there are top_k hits; else the first that applies: what min_score cut, a search that gave up, what
    the filter leaves out, what is still being ingested, and what is not there.

    Args:
        bounded: the search gave up refilling.
    """
    if len(hits) >= scope.top_k:
        return None
    return _score_reason(order) or _search_reason(bounded) or _stock_reason(parts, tenant, scope, order, hits)


def _score_reason(order: Order) -> Reason | None:
    """What min_score cut, which is the next best: the searches found it, and nothing better is missing."""
    if order.least is None:
        return None
    cut = [score for _, score in order.scored if score < order.least]
    if not cut:
        return None
    detail = f"The best score that was cut is {max(cut):.4g}; lower min_score to see more"
    return Reason(code=ReasonCode.BELOW_MIN_SCORE, detail=detail, best_score=max(cut))


def _search_reason(bounded: bool) -> Reason | None:
    if not bounded:
        return None
    return Reason(code=ReasonCode.REFILL_BOUND, detail="Too much was replaced while this ran; ask again")


def _stock_reason(parts: Parts, tenant: Tenant, scope: Scope, order: Order, hits: Sequence[Hit]) -> Reason:
    """What there is, or is not yet, to be found: the searches found all of it that the filter leaves."""
    counts = parts.collections.counts(tenant, scope.collection_ids).values()
    # Only where vectors have no weight is something found that is not ranked.
    wordless = len(order.signals) > len(hits)
    if not wordless or _has_words_elsewhere(parts, tenant, scope, len(hits)):
        filtered = _filter_reason(parts, tenant, scope, hits, sum(one.chunks for one in counts))
        if filtered is not None:
            return filtered
    working = sum(one.working for one in counts)
    if working:
        detail = f"Documents still being ingested: {working}"
        return Reason(code=ReasonCode.STILL_INGESTING, detail=detail, in_progress=working)
    if not hits and not any(one.documents for one in counts):
        return Reason(code=ReasonCode.NO_DOCUMENTS, detail="There is no document to search")
    what = "have a word of the question, and vectors have no weight" if wordless else "are there"
    return Reason(code=ReasonCode.FEWER_THAN_TOP_K, detail=f"No more than {len(hits)} chunks {what}")


def _has_words_elsewhere(parts: Parts, tenant: Tenant, scope: Scope, found: int) -> bool:
    """Whether more chunks than were found have a word of the question, if no filter is asked for."""
    if scope.filter is None:
        return False
    terms, store = query_terms(scope.query.query), parts.vector_store()
    queries = [(one.space, TextQuery(terms, one.collection_ids, found + 1)) for one in scope.spaces]
    return sum(len(store.search_text(tenant, space, query)) for space, query in queries) > found


def _filter_reason(parts: Parts, tenant: Tenant, scope: Scope, hits: Sequence[Hit], served: int) -> Reason | None:
    """What the filter has to do with a short answer; None: nothing.

    Args:
        hits: all chunks that fulfil it, and have a word of the question where that is needed.
        served: how many chunks there are, by the counters.
    """
    if scope.filter is None:
        return None
    store = parts.vector_store()

    def matching(filter: Filter | None) -> int:
        return sum(store.matching(tenant, one.space, one.collection_ids, filter) for one in scope.spaces)

    # The counters know nothing of damage, and the store's records are also of what is not served.
    filtered = min(
        served - sum(hit.hydrated for hit in hits),
        matching(None) - matching(scope.filter),
    )
    if filtered <= 0:
        return None
    if not hits:
        for one in islice(wanted(scope.filter), MAX_VALUES_LOOKED_UP):
            if not matching(one):
                detail = f"No chunk has the attribute {one.field!r} with the value that the filter asks for"
                return Reason(code=ReasonCode.UNKNOWN_ATTRIBUTE_VALUE, detail=detail, attribute=one.field)
    detail = f"The filter leaves out {filtered} chunks"
    return Reason(code=ReasonCode.FILTERED_OUT, detail=detail, filtered=filtered)

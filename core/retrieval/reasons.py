"""Finds the reason why an answer has fewer than top_k hits."""

from collections.abc import Sequence
from itertools import islice

from core.analysis.terms import query_terms
from core.metadata.collections import Collections
from core.model.filter import Filter, equalities
from core.model.hit import Hit, Reason, ReasonCode
from core.model.tenant import Tenant
from core.retrieval.ranking import RankedMatches
from core.retrieval.scope import Scope
from core.vectors.types import TextQuery, VectorStore

MAX_VALUES_LOOKED_UP = 16


class Reasons:
    """Finds reasons."""

    def __init__(self, collections: Collections, vectors: VectorStore) -> None:
        self._collections = collections
        self._vectors = vectors

    def reason(
        self, tenant: Tenant, scope: Scope, ranked: RankedMatches, hits: Sequence[Hit], *, bounded: bool
    ) -> Reason | None:
        """Returns the reason why there are fewer than top_k hits; None when there are top_k.

        The reasons are tried in this order: min_score has cut matches, the search has given up refilling, the filter
        has left chunks out, documents are still being ingested, and there are no more chunks.

        Args:
            bounded: whether the search has given up refilling.
        """
        if len(hits) >= scope.top_k:
            return None
        return _score_reason(ranked) or _search_reason(bounded) or self._stock_reason(tenant, scope, ranked, hits)

    def _stock_reason(self, tenant: Tenant, scope: Scope, ranked: RankedMatches, hits: Sequence[Hit]) -> Reason:
        """Returns the reason of an answer whose searches have found every chunk that the filter leaves."""
        counts = self._collections.counts(tenant, scope.collection_ids).values()
        # A match is left unranked only when vectors have no weight and the chunk has no word of the query.
        wordless = len(ranked.signals) > len(hits)
        if not wordless or self._has_words_elsewhere(tenant, scope, len(hits)):
            filtered = self._filter_reason(tenant, scope, hits, sum(count.chunks for count in counts))
            if filtered is not None:
                return filtered
        working = sum(count.working for count in counts)
        if working:
            detail = f"Documents still being ingested: {working}"
            return Reason(code=ReasonCode.STILL_INGESTING, detail=detail, in_progress=working)
        if not hits and not any(count.documents for count in counts):
            return Reason(code=ReasonCode.NO_DOCUMENTS, detail="There is no document to search")
        what = "have a word of the question, and vectors have no weight" if wordless else "are there"
        return Reason(code=ReasonCode.FEWER_THAN_TOP_K, detail=f"No more than {len(hits)} chunks {what}")

    def _has_words_elsewhere(self, tenant: Tenant, scope: Scope, hits: int) -> bool:
        """Tells whether, without the filter, more chunks have a word of the query than there are hits."""
        if scope.filter is None:
            return False
        terms = query_terms(scope.query.query)
        matches = [
            self._vectors.search_text(tenant, space.space, TextQuery(terms, space.collection_ids, hits + 1))
            for space in scope.spaces
        ]
        return sum(map(len, matches)) > hits

    def _filter_reason(self, tenant: Tenant, scope: Scope, hits: Sequence[Hit], served: int) -> Reason | None:
        """Returns the reason of an answer that the filter has made short; None when it has left no chunk out.

        Args:
            hits: every chunk that fulfils the filter, and has a word of the query where that is needed.
            served: how many chunks the collections serve, by their counters.
        """
        if scope.filter is None:
            return None
        # The counters do not know of damaged documents, and the store also counts records that are not served.
        filtered = min(
            served - sum(hit.hydrated for hit in hits),
            self._matching(tenant, scope, None) - self._matching(tenant, scope, scope.filter),
        )
        if filtered <= 0:
            return None
        if not hits:
            for comparison in islice(equalities(scope.filter), MAX_VALUES_LOOKED_UP):
                if not self._matching(tenant, scope, comparison):
                    detail = f"No chunk has the attribute {comparison.field!r} with the value that the filter asks for"
                    code = ReasonCode.UNKNOWN_ATTRIBUTE_VALUE
                    return Reason(code=code, detail=detail, attribute=comparison.field)
        detail = f"The filter leaves out {filtered} chunks"
        return Reason(code=ReasonCode.FILTERED_OUT, detail=detail, filtered=filtered)

    def _matching(self, tenant: Tenant, scope: Scope, filter: Filter | None) -> int:
        """Counts the records of the scope's collections that fulfil a filter."""
        counts = (self._vectors.matching(tenant, space.space, space.collection_ids, filter) for space in scope.spaces)
        return sum(counts)


def _score_reason(ranked: RankedMatches) -> Reason | None:
    """Returns the reason of matches that min_score has cut. They are the next best, so nothing better is missing."""
    if ranked.min_score is None:
        return None
    cut = [score for _, score in ranked.scored if score < ranked.min_score]
    if not cut:
        return None
    detail = f"The best score that was cut is {max(cut):.4g}; lower min_score to see more"
    return Reason(code=ReasonCode.BELOW_MIN_SCORE, detail=detail, best_score=max(cut))


def _search_reason(bounded: bool) -> Reason | None:
    if not bounded:
        return None
    return Reason(code=ReasonCode.REFILL_BOUND, detail="Too much was replaced while this ran; ask again")

"""Retrieve and compare: a question in, ranked chunks out, and why there are not more."""

from dataclasses import dataclass
from functools import partial
from itertools import islice

from core.metadata.rows import CollectionRow
from core.model.collection import CollectionState, VectorSpace
from core.model.errors import InvalidArgument, NotConfigured
from core.model.filter import Filter, fields_of, parse_filter, wanted
from core.model.hit import (
    CompareHit,
    CompareResult,
    Hit,
    Reason,
    ReasonCode,
    RetrieveQuery,
    RetrieveResult,
    ScoreKind,
)
from core.model.ids import CollectionId
from core.model.tenant import Tenant
from core.parts import Parts
from core.retrieval.search import Found, search
from core.vectors.types import VectorQuery

DEFAULT_TOP_K = 10
MAX_TOP_K = 100
MAX_QUERY_CHARACTERS = 8192
MIN_WINDOW = 50
MAX_VALUES_LOOKED_UP = 16


@dataclass(frozen=True)
class _Scope:
    """Where a question is asked. ``space`` is None when the tenant has no collection."""

    rows: list[CollectionRow]
    space: VectorSpace | None
    filter: Filter | None

    @property
    def collection_ids(self) -> list[CollectionId]:
        return [row.id for row in self.rows]


class RetrievalService:
    """Answers questions of one tenant."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def retrieve(self, tenant: Tenant, query: RetrieveQuery) -> RetrieveResult:
        """The top_k chunks nearest to the question, of what is served.

        Raises:
            InvalidArgument: the question is blank or too long, top_k is over 100, or the filter is none
                (`core.model.filter.parse_filter`) or asks for an attribute that no document ever carried.
            CollectionNotFound: a named collection that the tenant lacks; nothing was embedded.
            NotConfigured, Unavailable: the embedder or a store.
        """
        top_k = _top_k(query)
        with self._parts.timed("retrieve"), _Hooks(self._parts, tenant, query):
            scope = self._scope(tenant, query)
            found = self._search(tenant, scope, query, top_k)
            hits = _above(query.min_score, found.hits)
            return RetrieveResult(
                hits=hits,
                score=ScoreKind.COSINE,
                strategy=query.strategy,
                reason=self._reason(tenant, scope, found, hits, top_k),
            )

    def compare(self, tenant: Tenant, query: RetrieveQuery) -> CompareResult:
        """The final ranking beside the raw vector ranking of a wider window, max(3 · top_k, 50).

        Both come from one search: a plain vector search is the only strategy, so they cannot disagree.

        Raises:
            As `retrieve`.
        """
        top_k = _top_k(query)
        window = max(3 * top_k, MIN_WINDOW)
        with self._parts.timed("compare"), _Hooks(self._parts, tenant, query):
            scope = self._scope(tenant, query)
            start = self._parts.clock.monotonic()
            found = self._search(tenant, scope, query, window)
            milliseconds = (self._parts.clock.monotonic() - start) * 1000
            hits = _above(query.min_score, found.hits)[:top_k]
            return CompareResult(
                hits=[_compared(hit) for hit in hits],
                left_out=[],
                window=window,
                vector_matches=len(found.hits),
                best_vector_score=found.hits[0].score if found.hits else 0.0,
                reordered=False,
                same_search=True,
                score=ScoreKind.COSINE,
                strategy=query.strategy,
                retriever_ms=milliseconds,
                vector_ms=milliseconds,
                reason=self._reason(tenant, scope, found, hits, top_k),
            )

    def _scope(self, tenant: Tenant, query: RetrieveQuery) -> _Scope:
        asked = None if query.filter is None else parse_filter(query.filter)
        if query.collections is not None:
            rows = [self._parts.collection(tenant, one) for one in query.collections]
        else:
            every = self._parts.collections.all(tenant)
            rows = [row for row in every if row.state == CollectionState.ACTIVE]
        spaces = {VectorSpace(model=row.embedding_model, dimensions=row.embedding_dims): None for row in rows}
        if len(spaces) > 1:
            raise InvalidArgument(
                "The tenant's collections have different embedding models; name one collection",
                field="collections",
            )
        scope = _Scope(rows, next(iter(spaces), None), asked)
        self._check_fields(tenant, scope)
        return scope

    def _check_fields(self, tenant: Tenant, scope: _Scope) -> None:
        """A field that nothing can match is a mistake, also where it would not matter."""
        fields = fields_of(scope.filter) if scope.filter else ()
        unknown = self._parts.fields.unknown(tenant, scope.collection_ids, fields)
        if unknown:
            raise InvalidArgument(f"No document here has the attribute {unknown[0]!r}", field="filter")

    def _search(self, tenant: Tenant, scope: _Scope, query: RetrieveQuery, limit: int) -> Found:
        self._parts.vector_store()
        if not self._parts.embedders:
            raise NotConfigured("No embedder is configured")
        if scope.space is None:
            return Found([])
        embedder = self._parts.embedder(scope.space.model)
        vector = self._parts.embed(embedder, [query.query])[0]
        asked = VectorQuery(vector, scope.collection_ids, limit, filter=scope.filter)
        return search(self._parts, tenant, scope.space, asked)

    def _reason(self, tenant: Tenant, scope: _Scope, found: Found, hits: list[Hit], top_k: int) -> Reason | None:
        if len(hits) >= top_k:
            return None
        if len(hits) < min(len(found.hits), top_k):
            best = found.hits[len(hits)].score
            detail = f"The best score that was cut is {best:.4f}; lower min_score to see more"
            return Reason(code=ReasonCode.BELOW_MIN_SCORE, detail=detail, best_score=best)
        if found.bounded:
            detail = "Too much was replaced while this ran; ask again"
            return Reason(code=ReasonCode.REFILL_BOUND, detail=detail)
        return self._filter_reason(tenant, scope) or self._stock_reason(tenant, scope, hits)

    def _filter_reason(self, tenant: Tenant, scope: _Scope) -> Reason | None:
        """What the filter has to do with a short answer; None: nothing."""
        if scope.filter is None or scope.space is None:
            return None
        store = self._parts.vector_store()
        matching = partial(store.matching, tenant, scope.space, scope.collection_ids)
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

    def _stock_reason(self, tenant: Tenant, scope: _Scope, hits: list[Hit]) -> Reason:
        """What there is, or is not yet, to be found."""
        counts = self._parts.collections.counts(tenant, scope.collection_ids).values()
        working = sum(one.working for one in counts)
        if working:
            detail = f"Documents still being ingested: {working}"
            return Reason(code=ReasonCode.STILL_INGESTING, detail=detail, in_progress=working)
        if not any(one.documents for one in counts):
            return Reason(code=ReasonCode.NO_DOCUMENTS, detail="There is no document to search")
        detail = f"There are no more than {len(hits)} chunks"
        return Reason(code=ReasonCode.FEWER_THAN_TOP_K, detail=detail)


def _top_k(query: RetrieveQuery) -> int:
    """Checks a question and answers how many hits it wants."""
    if not query.query.strip():
        raise InvalidArgument("The query is blank", field="query")
    if len(query.query) > MAX_QUERY_CHARACTERS:
        raise InvalidArgument(
            f"A query is at most {MAX_QUERY_CHARACTERS} characters", field="query", limit=MAX_QUERY_CHARACTERS
        )
    if query.top_k > MAX_TOP_K:
        raise InvalidArgument(f"top_k is at most {MAX_TOP_K}", field="top_k", limit=MAX_TOP_K)
    return query.top_k if query.top_k > 0 else DEFAULT_TOP_K


def _above(min_score: float | None, hits: list[Hit]) -> list[Hit]:
    return hits if min_score is None else [hit for hit in hits if hit.score >= min_score]


def _compared(hit: Hit) -> CompareHit:
    return CompareHit(**dict(hit), vector_rank=hit.rank, vector_score=hit.score)


class _Hooks:
    """Fires retrieval_started, then retrieval_completed or retrieval_failed, once a call."""

    def __init__(self, parts: Parts, tenant: Tenant, query: RetrieveQuery) -> None:
        self._parts = parts
        self._details = {"tenant": tenant, "strategy": query.strategy, "collections": query.collections}

    def __enter__(self) -> None:
        self._parts.extensions.fire("retrieval_started", **self._details)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None:
            self._parts.extensions.fire("retrieval_completed", **self._details)
        else:
            self._parts.extensions.fire("retrieval_failed", **self._details, error=error)

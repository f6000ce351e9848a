"""Retrieve: a question in, ranked chunks out, and why there are not more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from core.analysis.terms import query_terms
from core.embedding.types import Vector
from core.model.errors import InvalidArgument
from core.model.hit import RetrieveResult
from core.model.ids import ChunkId
from core.model.query import RetrieveQuery, Strategy
from core.model.tenant import Tenant
from core.parts import Parts
from core.retrieval.ranking import Matches, Order, rank
from core.retrieval.reasons import reason_of
from core.retrieval.scope import Scope, Space, settle_scope
from core.retrieval.search import Ask, Chosen, Found, Search, hit
from core.vectors.types import TextQuery, VectorMatch, VectorQuery


@dataclass(frozen=True)
class Hits:
    """An order, and those in it that become hits.

    Attributes:
        found: of each space.
        ids: of the hits, best first.
    """

    found: list[Matches]
    order: Order
    ids: list[ChunkId]

    @property
    def wanted(self) -> list[VectorMatch]:
        return [self.matches[one] for one in self.ids]

    @cached_property
    def matches(self) -> dict[ChunkId, VectorMatch]:
        """All that was found."""
        return {match.chunk_id: match for one in self.found for match in (*one.by_terms, *one.by_vector)}


def retrieve(parts: Parts, tenant: Tenant, query: RetrieveQuery, deadline: float | None = None) -> RetrieveResult:
    """The top_k chunks that answer a question best by its strategy, of what is served.

    Args:
        deadline: monotonic seconds of the engine's clock; None: it takes what it takes.

    Raises:
        InvalidArgument, CollectionNotFound: as `core.retrieval.scope.settle_scope`; nothing was embedded.
        NotConfigured, Unavailable: the embedder, the reranker or a store.
    """
    with parts.timed("retrieve"), asked(parts, tenant, query):
        scope = settle_scope(parts, tenant, query, deadline)
        found = find(parts, tenant, scope, scope.depth, lambda matches: choose(parts, scope, matches))
        order, scores = found.chosen.order, dict(found.chosen.order.scored)
        read = [match for match in found.chosen.wanted if match.chunk_id in found.bodies]
        hits = [
            hit(
                place,
                scores[match.chunk_id],
                match,
                found.bodies[match.chunk_id],
                order.signals[match.chunk_id] if scope.options.explain else None,
            )
            for place, match in enumerate(read, start=1)
        ]
        return RetrieveResult(
            hits=hits,
            score=order.kind,
            strategy=scope.strategy,
            options=scope.options,
            models=scope.models,
            reason=reason_of(parts, tenant, scope, order, hits, bounded=found.bounded),
            fallback=order.fallback,
        )


def choose(parts: Parts, scope: Scope, found: list[Matches]) -> Hits:
    """The strategy's order of what was found, and the best of it."""
    order = rank(scope, found, lambda texts: parts.rerank(scope.query.query, texts, scope.deadline))
    ids = [chunk_id for chunk_id, score in order.scored if order.least is None or score >= order.least]
    return Hits(found, order, ids[: scope.top_k])


def find(
    parts: Parts, tenant: Tenant, scope: Scope, depth: int, chosen: Callable[[list[Matches]], Chosen]
) -> Found[Chosen]:
    """Embeds the question once for each model, and searches each space by what the strategy needs.

    Args:
        depth: how many matches each search is asked for by vector.
        chosen: what is made of what was found, space by space.
    """
    asks: list[Ask] = []
    by_terms = scope.finder is Strategy.HYBRID
    terms = query_terms(scope.query.query) if by_terms else []
    for space in scope.spaces:
        vectors = VectorQuery(
            _embedded(parts, scope, space),
            space.collection_ids,
            depth,
            filter=scope.filter,
            with_vectors=scope.finder is Strategy.MMR,
        )
        asks.append(Ask(space.space, vectors))
        if by_terms:
            asks.append(Ask(space.space, TextQuery(terms, space.collection_ids, scope.depth, filter=scope.filter)))

    def split(lists: list[list[VectorMatch]]) -> Chosen:
        terms = lists[1::2] if by_terms else [[] for _ in lists]
        vectors = lists[::2] if by_terms else lists
        return chosen([Matches(*pair) for pair in zip(vectors, terms, strict=True)])

    return Search(parts, tenant, asks, split, scope.deadline).run()


def _embedded(parts: Parts, scope: Scope, space: Space) -> Vector:
    """The question's vector."""
    try:
        [vector] = parts.embed(parts.embedder_of(space.space), [scope.query.query])
    except InvalidArgument as error:
        raise InvalidArgument(
            f"The query cannot be embedded: {error.detail}", **{**error.extras, "field": "query"}
        ) from error
    return vector


@contextmanager
def asked(parts: Parts, tenant: Tenant, query: RetrieveQuery) -> Iterator[None]:
    """Fires retrieval_started, then retrieval_completed or retrieval_failed, once a call."""
    details = {"tenant": tenant, "strategy": query.strategy, "collections": query.collections}
    parts.extensions.fire("retrieval_started", **details)
    try:
        yield
    except BaseException as error:
        parts.extensions.fire("retrieval_failed", **details, error=error)
        raise
    parts.extensions.fire("retrieval_completed", **details)

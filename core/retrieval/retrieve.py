"""Retrieve: returns the chunks that answer a query best, and says why there are not more."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from core.analysis.terms import query_terms
from core.embedding.embedders import Embedders
from core.model.errors import InvalidArgument
from core.model.hit import RetrieveResult
from core.model.ids import ChunkId
from core.model.query import RetrieveQuery, Strategy
from core.model.tenant import Tenant
from core.model.vector import Vector
from core.observe import Observer
from core.reranking.measured import require_reranker
from core.reranking.types import Reranker
from core.retrieval.ranking import Matches, RankedMatches, rank
from core.retrieval.reasons import Reasons
from core.retrieval.scope import Scope, ScopeResolver, Space
from core.retrieval.search import Searcher, SearchResult, Selected, SpaceQuery, hit
from core.vectors.types import TextQuery, VectorMatch, VectorQuery


@dataclass(frozen=True)
class TopMatches:
    """A ranking and the best of it.

    Attributes:
        matches: the matches of each vector space.
        chunk_ids: the chunks that become hits, best first.
    """

    matches: list[Matches]
    ranked: RankedMatches
    chunk_ids: list[ChunkId]

    @property
    def candidates(self) -> list[VectorMatch]:
        """The matches that become hits, best first."""
        return [self.by_id[chunk_id] for chunk_id in self.chunk_ids]

    @cached_property
    def by_id(self) -> dict[ChunkId, VectorMatch]:
        """Every match, by its chunk."""
        return {match.chunk_id: match for matches in self.matches for match in (*matches.by_terms, *matches.by_vector)}


class RankedSearch:
    """Embeds a query, searches by the means that its strategy needs, and ranks the matches."""

    def __init__(self, searcher: Searcher, embedders: Embedders, reranker: Reranker | None) -> None:
        self._searcher = searcher
        self._embedders = embedders
        self._reranker = reranker

    def search(
        self, tenant: Tenant, scope: Scope, depth: int, select: Callable[[list[Matches]], Selected]
    ) -> SearchResult[Selected]:
        """Embeds the query once for each model and searches each vector space.

        Args:
            depth: how many matches each search by vector asks for.
            select: makes a selection of the matches of each space.

        Raises:
            InvalidArgument: the model cannot take the query.
            NotConfigured, Unavailable: the embedder or a store refuses or does not answer.
        """
        queries: list[SpaceQuery] = []
        by_terms = scope.finder is Strategy.HYBRID
        terms = query_terms(scope.query.query) if by_terms else []
        for space in scope.spaces:
            vector_query = VectorQuery(
                self._embed(scope, space),
                space.collection_ids,
                depth,
                filter=scope.filter,
                with_vectors=scope.finder is Strategy.MMR,
            )
            queries.append(SpaceQuery(space.space, vector_query))
            if by_terms:
                text_query = TextQuery(terms, space.collection_ids, scope.depth, filter=scope.filter)
                queries.append(SpaceQuery(space.space, text_query))

        def select_by_space(lists: list[list[VectorMatch]]) -> Selected:
            terms = lists[1::2] if by_terms else [[] for _ in lists]
            vectors = lists[::2] if by_terms else lists
            return select([Matches(*pair) for pair in zip(vectors, terms, strict=True)])

        return self._searcher.search(tenant, queries, select_by_space, scope.deadline)

    def top_matches(self, scope: Scope, matches: list[Matches]) -> TopMatches:
        """Ranks matches by the scope's strategy and takes the best.

        Raises:
            NotConfigured, Unavailable: the reranker, when the query allows no fallback.
        """
        ranked = rank(scope, matches, lambda texts: self._rerank(scope, texts))
        chunk_ids = [
            chunk_id for chunk_id, score in ranked.scored if ranked.min_score is None or score >= ranked.min_score
        ]
        return TopMatches(matches, ranked, chunk_ids[: scope.top_k])

    def _rerank(self, scope: Scope, texts: Sequence[str]) -> list[float]:
        return require_reranker(self._reranker).rerank(scope.query.query, texts, scope.deadline)

    def _embed(self, scope: Scope, space: Space) -> Vector:
        embedder = self._embedders.of_space(space.space)
        try:
            [vector] = self._embedders.embed(embedder, [scope.query.query])
        except InvalidArgument as error:
            raise InvalidArgument(
                f"The query cannot be embedded: {error.detail}", **{**error.extras, "field": "query"}
            ) from error
        return vector


class RetrieveService:
    """Answers queries with hits."""

    def __init__(
        self, scopes: ScopeResolver, ranked_search: RankedSearch, reasons: Reasons, observer: Observer
    ) -> None:
        self._scopes = scopes
        self._ranked_search = ranked_search
        self._reasons = reasons
        self._observer = observer

    def retrieve(self, tenant: Tenant, query: RetrieveQuery, deadline: float | None = None) -> RetrieveResult:
        """Returns the top_k served chunks that answer a query best by its strategy.

        Args:
            deadline: monotonic seconds of the engine's clock. No search and no reranking begins after it. None: no
                limit.

        Raises:
            InvalidArgument, CollectionNotFound: as `ScopeResolver.resolve` says. Nothing was embedded.
            NotConfigured, Unavailable: the embedder, the reranker or a store refuses or does not answer.
        """
        with self._observer.timed("retrieve"), retrieval_hooks(self._observer, tenant, query):
            scope = self._scopes.resolve(tenant, query, deadline)
            result = self._ranked_search.search(
                tenant, scope, scope.depth, lambda matches: self._ranked_search.top_matches(scope, matches)
            )
            ranked, scores = result.selected.ranked, dict(result.selected.ranked.scored)
            readable = [match for match in result.selected.candidates if match.chunk_id in result.rows]
            hits = [
                hit(
                    place,
                    scores[match.chunk_id],
                    match,
                    result.rows[match.chunk_id],
                    ranked.signals[match.chunk_id] if scope.options.explain else None,
                )
                for place, match in enumerate(readable, start=1)
            ]
            return RetrieveResult(
                hits=hits,
                score=ranked.kind,
                strategy=scope.strategy,
                options=scope.options,
                models=scope.models,
                reason=self._reasons.reason(tenant, scope, ranked, hits, bounded=result.bounded),
                fallback=ranked.fallback,
            )


@contextmanager
def retrieval_hooks(observer: Observer, tenant: Tenant, query: RetrieveQuery) -> Iterator[None]:
    """Calls the hook ``retrieval_started``, then ``retrieval_completed`` or ``retrieval_failed``, once a call."""
    details = {"tenant": tenant, "strategy": query.strategy, "collections": query.collections}
    observer.fire("retrieval_started", **details)
    try:
        yield
    except BaseException as error:
        observer.fire("retrieval_failed", **details, error=error)
        raise
    observer.fire("retrieval_completed", **details)

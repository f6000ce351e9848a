"""The scope of a query: what is searched and how it is ranked. Decided before anything is embedded."""

import unicodedata
from dataclasses import dataclass

from core.embedding.embedders import Embedders
from core.metadata.collections import Collections
from core.metadata.fields import Fields
from core.metadata.rows import CollectionRow
from core.model.collection import CollectionState
from core.model.errors import InvalidArgument
from core.model.filter import Filter, fields_of, parse_filter
from core.model.ids import CollectionId
from core.model.query import RetrieveOptions, RetrieveQuery, ScoreKind, Strategy
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.ranking.fusion import highest_fused_score
from core.reranking.measured import require_reranker
from core.reranking.types import Reranker
from core.vectors.types import VectorStore
from core.vectors.unconfigured import require_vector_store

DEFAULT_TOP_K = 10
MAX_TOP_K = 100
MAX_QUERY_CHARACTERS = 8192
MIN_POOL = 20
MIN_FUSED = 50
_INVISIBLE = {"Cc", "Cf", "Zs", "Zl", "Zp"}


@dataclass(frozen=True)
class Space:
    """A vector space, and the collections that are searched in it."""

    space: VectorSpace
    collection_ids: list[CollectionId]


@dataclass(frozen=True)
class Scope:
    """A valid query with everything that it leaves to defaults.

    Attributes:
        spaces: the vector spaces to search; none when the tenant has no collection.
        filter: the parsed filter; None: every chunk may match.
        top_k: how many hits are returned, 1 to 100.
        strategy: the strategy that ranks the matches.
        deadline: monotonic seconds. No search and no reranking begins after it. None: no limit.
    """

    query: RetrieveQuery
    spaces: list[Space]
    filter: Filter | None
    top_k: int
    strategy: Strategy
    deadline: float | None = None

    @property
    def options(self) -> RetrieveOptions:
        """The query's options."""
        return self.query.options

    @property
    def collection_ids(self) -> list[CollectionId]:
        """The collections that are searched, of all vector spaces."""
        return [collection_id for space in self.spaces for collection_id in space.collection_ids]

    @property
    def models(self) -> list[str]:
        """The embedding models of the vector spaces."""
        return [space.space.model for space in self.spaces]

    @property
    def finder(self) -> Strategy:
        """The strategy that finds the candidates: for ``rerank``, its first stage; else the strategy itself."""
        return self.options.first_stage if self.strategy is Strategy.RERANK else self.strategy

    @property
    def pool(self) -> int:
        """How many candidates maximal marginal relevance and rerankers choose from."""
        return max(3 * self.top_k, MIN_POOL)

    @property
    def depth(self) -> int:
        """How many matches of each search take part in the ranking."""
        if self.finder is Strategy.HYBRID:
            return max(3 * self.top_k, MIN_FUSED)
        return self.top_k if self.strategy is Strategy.SIMILARITY else self.pool

    def kind(self, strategy: Strategy) -> ScoreKind:
        """Returns what a score of a strategy means for this query."""
        match strategy:
            case Strategy.MMR:
                return ScoreKind.MMR_RELEVANCE
            case Strategy.RERANK if not self.options.fuse:
                return ScoreKind.RERANK
            case Strategy.SIMILARITY if len(self.spaces) <= 1:
                return ScoreKind.COSINE
            case _:
                return ScoreKind.RRF


class ScopeResolver:
    """Validates queries and resolves their scopes."""

    def __init__(
        self,
        collections: Collections,
        fields: Fields,
        embedders: Embedders,
        vectors: VectorStore,
        reranker: Reranker | None,
    ) -> None:
        self._collections = collections
        self._fields = fields
        self._embedders = embedders
        self._vectors = vectors
        self._reranker = reranker

    def resolve(self, tenant: Tenant, query: RetrieveQuery, deadline: float | None = None) -> Scope:
        """Validates a query and finds the collections that it searches. Nothing is embedded.

        Args:
            deadline: monotonic seconds. No search and no reranking begins after it. None: no limit.

        Raises:
            InvalidArgument: the query is blank or too long, top_k is over 100, min_score is out of the score's range,
                the filter is malformed or names an attribute that no document of the collections has ever carried, or
                the strategy cannot be used over several embedding models.
            CollectionNotFound: the tenant lacks a collection that the query names.
            NotConfigured: the embedder, the vector store or the reranker that the query needs is not configured.
        """
        _validate_query(query)
        top_k = query.top_k if query.top_k > 0 else DEFAULT_TOP_K
        parsed = None if query.filter is None else parse_filter(query.filter)
        rows = self._rows(tenant, query)
        spaces = _spaces(rows)
        strategy = query.strategy or _default_strategy(rows, len(spaces))
        scope = Scope(query, spaces, parsed, top_k, strategy, deadline)
        self._validate_strategy(scope)
        _validate_min_score(scope)
        self._validate_filter(tenant, scope)
        return scope

    def _rows(self, tenant: Tenant, query: RetrieveQuery) -> list[CollectionRow]:
        if query.collections is not None:
            return [
                self._collections.active(tenant, collection_id) for collection_id in dict.fromkeys(query.collections)
            ]
        return [row for row in self._collections.all(tenant) if row.state == CollectionState.ACTIVE]

    def _validate_strategy(self, scope: Scope) -> None:
        require_vector_store(self._vectors)
        self._embedders.require_any()
        for space in scope.spaces:
            self._embedders.of_space(space.space)
        if scope.strategy is Strategy.RERANK:
            require_reranker(self._reranker)
        if scope.finder is Strategy.MMR and len(scope.spaces) > 1:
            raise InvalidArgument(
                "The collections have different embedding models, whose vectors cannot be compared; name collections "
                "of one model, or ask for similarity or hybrid",
                field="strategy",
            )

    def _validate_filter(self, tenant: Tenant, scope: Scope) -> None:
        """Refuses a filter on an attribute that no document can match, also where the filter would not need it."""
        names = fields_of(scope.filter) if scope.filter else ()
        unknown = self._fields.unknown(tenant, scope.collection_ids, names)
        if unknown:
            raise InvalidArgument(f"No document here has the attribute {unknown[0]!r}", field="filter")


def _validate_query(query: RetrieveQuery) -> None:
    if all(unicodedata.category(character) in _INVISIBLE for character in query.query):
        raise InvalidArgument("The query is blank: it has no visible character", field="query")
    if len(query.query) > MAX_QUERY_CHARACTERS:
        raise InvalidArgument(
            f"A query is at most {MAX_QUERY_CHARACTERS} characters", field="query", limit=MAX_QUERY_CHARACTERS
        )
    if query.top_k > MAX_TOP_K:
        raise InvalidArgument(f"top_k is at most {MAX_TOP_K}", field="top_k", limit=MAX_TOP_K)


def _spaces(rows: list[CollectionRow]) -> list[Space]:
    """Groups collections by vector space. The spaces are sorted, so that no order of collections changes an answer."""
    collection_ids: dict[VectorSpace, list[CollectionId]] = {}
    for row in rows:
        collection_ids.setdefault(row.space, []).append(row.id)
    ordered = sorted(collection_ids, key=lambda space: (space.model, space.dimensions))
    return [Space(space, collection_ids[space]) for space in ordered]


def _default_strategy(rows: list[CollectionRow], spaces: int) -> Strategy:
    """Returns the collections' own strategy where all have the same and it can be used over all of them."""
    defaults = {row.retrieval_strategy for row in rows}
    if len(defaults) != 1 or (defaults == {Strategy.MMR} and spaces > 1):
        return Strategy.SIMILARITY
    return defaults.pop()


def _validate_min_score(scope: Scope) -> None:
    kind, least = scope.kind(scope.strategy), scope.query.min_score
    match kind:
        case ScoreKind.COSINE | ScoreKind.MMR_RELEVANCE:
            low, high = -1.0, 1.0
        case ScoreKind.RERANK:
            low, high = 0.0, 1.0
        case ScoreKind.RRF:
            low, high = 0.0, highest_fused_score(_weights(scope), scope.options.rrf_k)
    if least is not None and not low <= least <= high:
        raise InvalidArgument(
            f"min_score of the kind {kind} is {low} to {high}", field="min_score", lowest=low, highest=high
        )


def _weights(scope: Scope) -> list[float]:
    """Returns the weights of the rankings in which one chunk can stand, in the final fusion."""
    if scope.strategy is Strategy.RERANK:
        return [1.0, 1.0]
    if scope.strategy is Strategy.HYBRID:
        return [scope.options.weights.vector, scope.options.weights.bm25]
    return [1.0]

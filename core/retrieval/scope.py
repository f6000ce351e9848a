"""Where a question is asked, and how: everything that is settled before it is embedded."""

import unicodedata
from dataclasses import dataclass

from core.metadata.rows import CollectionRow
from core.model.collection import CollectionState, VectorSpace
from core.model.errors import InvalidArgument, NotConfigured
from core.model.filter import Filter, fields_of, parse_filter
from core.model.ids import CollectionId
from core.model.query import RetrieveOptions, RetrieveQuery, ScoreKind, Strategy
from core.model.tenant import Tenant
from core.parts import Parts
from core.ranking.fusion import highest

DEFAULT_TOP_K = 10
MAX_TOP_K = 100
MAX_QUERY_CHARACTERS = 8192
MIN_POOL = 20
MIN_FUSED = 50
_INVISIBLE = {"Cc", "Cf", "Zs", "Zl", "Zp"}


@dataclass(frozen=True)
class Space:
    """A vector space, and the collections to be searched there."""

    space: VectorSpace
    collection_ids: list[CollectionId]


@dataclass(frozen=True)
class Scope:
    """A question that can be answered.

    Attributes:
        spaces: none when the tenant has no collection.
        top_k: 1 to 100.
        strategy: as it will be used.
        deadline: monotonic seconds; no search and no reranking begins after it. None: whenever.
    """

    query: RetrieveQuery
    spaces: list[Space]
    filter: Filter | None
    top_k: int
    strategy: Strategy
    deadline: float | None = None

    @property
    def options(self) -> RetrieveOptions:
        return self.query.options

    @property
    def collection_ids(self) -> list[CollectionId]:
        return [one for space in self.spaces for one in space.collection_ids]

    @property
    def models(self) -> list[str]:
        return [space.space.model for space in self.spaces]

    @property
    def finder(self) -> Strategy:
        """The strategy that finds what is ranked: of ``rerank``, its first stage."""
        return self.options.first_stage if self.strategy is Strategy.RERANK else self.strategy

    @property
    def pool(self) -> int:
        """How many candidates maximal marginal relevance and rerankers choose from."""
        return max(3 * self.top_k, MIN_POOL)

    @property
    def depth(self) -> int:
        """How many matches of one search take part in the ranking."""
        if self.finder is Strategy.HYBRID:
            return max(3 * self.top_k, MIN_FUSED)
        return self.top_k if self.strategy is Strategy.SIMILARITY else self.pool

    def kind(self, strategy: Strategy) -> ScoreKind:
        """What a score by a strategy means here."""
        match strategy:
            case Strategy.MMR:
                return ScoreKind.MMR_RELEVANCE
            case Strategy.RERANK if not self.options.fuse:
                return ScoreKind.RERANK
            case Strategy.SIMILARITY if len(self.spaces) <= 1:
                return ScoreKind.COSINE
            case _:
                return ScoreKind.RRF


def settle_scope(parts: Parts, tenant: Tenant, query: RetrieveQuery, deadline: float | None = None) -> Scope:
    """Checks a question and finds what it is asked of. Nothing is embedded.

    Raises:
        InvalidArgument: the question is blank or too long, top_k is over 100, min_score is out of the score's range,
            the filter is none or asks for an attribute that no document ever carried, or the strategy cannot be used
            over several embedding models.
        CollectionNotFound: a named collection that the tenant lacks.
        NotConfigured: a part that is needed is not there.
    """
    _check_query(query)
    top_k = query.top_k if query.top_k > 0 else DEFAULT_TOP_K
    asked = None if query.filter is None else parse_filter(query.filter)
    rows = _rows(parts, tenant, query)
    spaces = _spaces(rows)
    scope = Scope(query, spaces, asked, top_k, query.strategy or _default(rows, len(spaces)), deadline)
    _check_strategy(parts, scope)
    _check_min_score(scope)
    _check_fields(parts, tenant, scope)
    return scope


def _check_query(query: RetrieveQuery) -> None:
    if all(unicodedata.category(character) in _INVISIBLE for character in query.query):
        raise InvalidArgument("The query is blank: it has no visible character", field="query")
    if len(query.query) > MAX_QUERY_CHARACTERS:
        raise InvalidArgument(
            f"A query is at most {MAX_QUERY_CHARACTERS} characters", field="query", limit=MAX_QUERY_CHARACTERS
        )
    if query.top_k > MAX_TOP_K:
        raise InvalidArgument(f"top_k is at most {MAX_TOP_K}", field="top_k", limit=MAX_TOP_K)


def _rows(parts: Parts, tenant: Tenant, query: RetrieveQuery) -> list[CollectionRow]:
    if query.collections is not None:
        return [parts.collection(tenant, one) for one in dict.fromkeys(query.collections)]
    return [row for row in parts.collections.all(tenant) if row.state == CollectionState.ACTIVE]


def _spaces(rows: list[CollectionRow]) -> list[Space]:
    """The spaces in order of their models' names, so that no order of collections changes an answer."""
    found: dict[VectorSpace, list[CollectionId]] = {}
    for row in rows:
        found.setdefault(row.space, []).append(row.id)
    return [Space(space, found[space]) for space in sorted(found, key=lambda one: (one.model, one.dimensions))]


def _default(rows: list[CollectionRow], spaces: int) -> Strategy:
    """The collections' own strategy, where they agree and it can be used over all of them."""
    defaults = {row.retrieval_strategy for row in rows}
    if len(defaults) != 1 or (defaults == {Strategy.MMR} and spaces > 1):
        return Strategy.SIMILARITY
    return defaults.pop()


def _check_strategy(parts: Parts, scope: Scope) -> None:
    parts.vector_store()
    if not parts.embedders:
        raise NotConfigured("No embedder is configured")
    for one in scope.spaces:
        parts.embedder_of(one.space)
    if scope.strategy is Strategy.RERANK:
        parts.need_reranker()
    if scope.finder is Strategy.MMR and len(scope.spaces) > 1:
        raise InvalidArgument(
            "The collections have different embedding models, whose vectors cannot be compared; name collections of "
            "one model, or ask for similarity or hybrid",
            field="strategy",
        )


def _check_min_score(scope: Scope) -> None:
    kind, least = scope.kind(scope.strategy), scope.query.min_score
    match kind:
        case ScoreKind.COSINE | ScoreKind.MMR_RELEVANCE:
            low, high = -1.0, 1.0
        case ScoreKind.RERANK:
            low, high = 0.0, 1.0
        case ScoreKind.RRF:
            low, high = 0.0, highest(_weights(scope), scope.options.rrf_k)
    if least is not None and not low <= least <= high:
        raise InvalidArgument(
            f"min_score of the kind {kind} is {low} to {high}", field="min_score", lowest=low, highest=high
        )


def _weights(scope: Scope) -> list[float]:
    """Of the rankings in which one chunk can be, in the final fusion."""
    if scope.strategy is Strategy.RERANK:
        return [1.0, 1.0]
    if scope.strategy is Strategy.HYBRID:
        return [scope.options.weights.vector, scope.options.weights.bm25]
    return [1.0]


def _check_fields(parts: Parts, tenant: Tenant, scope: Scope) -> None:
    """A field that nothing can match is a mistake, also where it would not matter."""
    fields = fields_of(scope.filter) if scope.filter else ()
    unknown = parts.fields.unknown(tenant, scope.collection_ids, fields)
    if unknown:
        raise InvalidArgument(f"No document here has the attribute {unknown[0]!r}", field="filter")

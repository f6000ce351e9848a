"""VectorStore: tenant-filtered search, by vector and by terms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from core.model.chunk import AttributeValue
from core.model.component import Component, TenantFilter
from core.model.filter import Filter
from core.model.ids import ChunkId, CollectionId
from core.model.tenant import Tenant
from core.model.vector import Vector, VectorSpace

UNIT_TOLERANCE = 1e-4
"""How far from one the length of a vector may be."""

MAX_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class VectorRecord:
    """A vector and what is stored beside it.

    Attributes:
        source_id, source_key: both there or both absent.
        attributes: what a filter can ask for.
        terms: of the text, as often as they occur (`core.analysis.terms`).
    """

    chunk_id: ChunkId
    collection_id: CollectionId
    source_id: str | None
    source_key: str | None
    text: str
    vector: Vector
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    terms: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """A search.

    Attributes:
        vector: of unit length.
        collection_ids: only these; of none, nothing is found.
        limit: at most this many matches, 1 to 10,000.
        exclude_generations: matches of these (``ChunkId.generation``) are left out inside the search.
        filter: only records whose attributes fulfil it, inside the search.
        with_vectors: matches bring their vectors.

    Raises:
        ValueError: the limit is out of range.
    """

    vector: Vector
    collection_ids: Sequence[CollectionId]
    limit: int
    exclude_generations: Sequence[str] = ()
    filter: Filter | None = None
    with_vectors: bool = False

    def __post_init__(self) -> None:
        _check_limit(self.limit)


@dataclass(frozen=True, slots=True)
class TextQuery:
    """A search by terms. Of none, nothing is found.

    Attributes:
        terms: of the question, each once; scores are added in this order.
        collection_ids, limit, exclude_generations, filter: as a `VectorQuery` has them.

    Raises:
        ValueError: the limit is out of range, or a term is there twice.
    """

    terms: Sequence[str]
    collection_ids: Sequence[CollectionId]
    limit: int
    exclude_generations: Sequence[str] = ()
    filter: Filter | None = None

    def __post_init__(self) -> None:
        _check_limit(self.limit)
        if len(set(self.terms)) < len(self.terms):
            raise ValueError("a term is there twice")


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIMIT:
        raise ValueError(f"limit is 1 to {MAX_LIMIT}: {limit}")


@dataclass(frozen=True, slots=True)
class VectorMatch:
    """A record that was found.

    Attributes:
        score: of a search by vector, the cosine of the two, −1 to 1; of a search by terms, BM25, above 0.
        vector: in float32, when it was asked for.
    """

    chunk_id: ChunkId
    tenant: Tenant
    collection_id: CollectionId
    source_id: str | None
    source_key: str | None
    text: str
    score: float
    vector: Vector | None = None


class VectorStore(Protocol):
    """Vectors of many tenants. Every function takes the tenant, and touches nothing of another's.

    The score of a search by vector depends on nothing but the two. All raise ``Unavailable`` when the store throttles
    or does not answer, and ``ValueError`` for a vector of other dimensions or not of unit length.
    """

    def prepare(self, space: VectorSpace) -> None:
        """Makes the place for a space's vectors if it is not there, and proves its tenant filter."""
        ...

    def write(self, tenant: Tenant, space: VectorSpace, records: Sequence[VectorRecord]) -> None:
        """Writes records, replacing those of the same chunk. They are searchable when this returns."""
        ...

    def delete(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> int:
        """Deletes records; those that are not there are no error. Answers how many there were."""
        ...

    def search(self, tenant: Tenant, space: VectorSpace, query: VectorQuery) -> list[VectorMatch]:
        """The nearest records, best first; equal scores in order of chunk ID."""
        ...

    def search_text(self, tenant: Tenant, space: VectorSpace, query: TextQuery) -> list[VectorMatch]:
        """The records with the best scores by BM25, best first; equal ones in order of chunk ID. Exact.

        The statistics are of all records that the tenant has in the collections, whatever the filter says and
        whichever generations are left out: so a score depends on no other tenant, nor on the filter.
        """
        ...

    def present(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> set[ChunkId]:
        """Those of the chunks that have a record."""
        ...

    def scan(
        self, tenant: Tenant, space: VectorSpace, collection_id: CollectionId, after: ChunkId | None, limit: int
    ) -> list[ChunkId]:
        """The collection's first ``limit`` records in order of chunk ID, beyond ``after``."""
        ...

    def count(self, tenant: Tenant, space: VectorSpace) -> int:
        """How many records the tenant has."""
        ...

    def matching(
        self, tenant: Tenant, space: VectorSpace, collection_ids: Sequence[CollectionId], filter: Filter | None
    ) -> int:
        """How many records the collections have whose attributes fulfil the filter; None: all of them."""
        ...

    def tenant_filter(self) -> TenantFilter:
        """Whether the exact tenant filter has been proven."""
        ...

    def ping(self) -> None:
        """Returns when the store answers."""
        ...

    def describe(self) -> Component: ...

    def close(self) -> None:
        """Lets go of files and connections."""
        ...

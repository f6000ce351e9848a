"""The vector store that OpenSearch is."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

from core.clock import Clock
from core.model.component import Component, TenantFilter
from core.model.errors import ConfigurationError, NotConfigured, NotYetSearchable, Unavailable
from core.model.filter import Filter
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.ranking.bm25 import Statistics, score
from core.vectors.opensearch import query as queries
from core.vectors.opensearch.client import Client, IndexMissing, Refusal
from core.vectors.opensearch.index import Dialect, IndexOptions, KnnEngine, alias_of, definition, prove
from core.vectors.opensearch.query import Json, check_hit
from core.vectors.opensearch.writes import Operation, as_stored, batches, deleting, indexing
from core.vectors.types import MAX_LIMIT, TextQuery, VectorMatch, VectorQuery, VectorRecord

PAGE = 1_000
"""Chunks asked for by ID, or listed, in one request."""
TIE_GROWTH = 8
SEARCHABLE_S = 15.0
"""How long a collection may take to show a write: it does so every 10 seconds."""
FIRST_LOOK_S = 0.05
LONGEST_LOOK_S = 1.0

Item = TypeVar("Item")


class OpenSearchVectorStore:
    """A ``VectorStore`` in OpenSearch. Thread-safe; many processes may share the indexes.

    The first use of a space makes its index, if need be, and proves the tenant filter. Every function raises
    ``NotConfigured`` where ``prepare`` would raise ``ConfigurationError``.

    A score is made of the two vectors alone, in float32: equal ones may differ from those of another server in the
    seventh digit. With ``KnnEngine.LUCENE``, and in a collection, which records are found is approximate.
    """

    def __init__(self, client: Client, options: IndexOptions, clock: Clock) -> None:
        self._client = client
        self._options = options
        self._clock = clock
        self._is_serverless = options.dialect is Dialect.SERVERLESS
        self._preparing = Lock()
        self._proven: set[str] = set()

    def prepare(self, space: VectorSpace) -> None:
        """Makes the space's index together with its alias, or takes the one that is there, and proves it.

        Raises:
            ConfigurationError: the index fails the proof, or the server refuses the credentials or is none.
        """
        try:
            self._prove(space)
        except NotConfigured as error:
            raise ConfigurationError(error.detail) from error

    def write(self, tenant: Tenant, space: VectorSpace, records: Sequence[VectorRecord]) -> None:
        """Writes records in requests of bounded size; when it raises, some may be written."""
        write_id = f"{self._clock.random.getrandbits(64):016x}" if self._is_serverless else None
        operations = [indexing(tenant, space, record, write_id) for record in records]
        if not operations:
            return
        with self._alias(space) as alias:
            self._send(tenant, alias, operations)
            if write_id is not None:
                written = len({operation.id for operation in operations})
                body = queries.how_many_of_write(tenant, write_id)
                self._wait_until(lambda: self._count(tenant, alias, body) >= written)

    def delete(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> int:
        """Deletes by ID. After an answer that was lost and asked for again, the number may be too low."""
        if not chunk_ids:
            return 0
        with self._alias(space) as alias:
            results = self._send(tenant, alias, [deleting(tenant, chunk_id) for chunk_id in chunk_ids])
            if self._is_serverless:
                for page in _pages(chunk_ids):
                    self._wait_until_gone(tenant, alias, queries.how_many_among(tenant, page))
        return sum(result["result"] == "deleted" for result in results)

    def search(self, tenant: Tenant, space: VectorSpace, query: VectorQuery) -> list[VectorMatch]:
        vector = as_stored(query.vector, space)
        if not query.collection_ids:
            return []
        ef_search = None if self._is_serverless or self._options.engine is KnnEngine.FAISS else self._options.ef_search
        with self._alias(space) as alias:
            hits = self._best_hits(
                tenant,
                alias,
                query.limit,
                lambda size: queries.nearest(tenant, vector, query, size, ef_search=ef_search),
            )
        return _ranked([_match(tenant, hit, cosine(hit["_score"])) for hit in hits], query.limit)

    def search_text(self, tenant: Tenant, space: VectorSpace, query: TextQuery) -> list[VectorMatch]:
        """The statistics first, then what scores best by them. The server's scores have seven digits: what it finds
        is scored again."""
        if not query.collection_ids or not query.terms:
            return []
        with self._alias(space) as alias:
            answer = self._client.search(tenant, alias, queries.statistics(tenant, query))
            statistics = queries.read_statistics(query, answer)
            hits = self._best_hits(
                tenant, alias, query.limit, lambda size: queries.best(tenant, query, statistics, size)
            )
        return _ranked([_match(tenant, hit, _bm25(query, statistics, hit)) for hit in hits], query.limit)

    def present(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> set[ChunkId]:
        with self._alias(space) as alias:
            return {
                chunk_id
                for page in _pages(chunk_ids)
                for chunk_id in self._chunk_ids(tenant, alias, queries.among(tenant, page))
            }

    def scan(
        self, tenant: Tenant, space: VectorSpace, collection_id: CollectionId, after: ChunkId | None, limit: int
    ) -> list[ChunkId]:
        found: list[ChunkId] = []
        with self._alias(space) as alias:
            while (size := min(limit - len(found), PAGE)) > 0:
                page = self._chunk_ids(tenant, alias, queries.in_order(tenant, collection_id, after, size))
                found += page
                if len(page) < size:
                    break
                after = page[-1]
        return found

    def count(self, tenant: Tenant, space: VectorSpace) -> int:
        with self._alias(space) as alias:
            return self._count(tenant, alias, queries.how_many(tenant))

    def matching(
        self, tenant: Tenant, space: VectorSpace, collection_ids: Sequence[CollectionId], filter: Filter | None
    ) -> int:
        with self._alias(space) as alias:
            return self._count(tenant, alias, queries.how_many_match(tenant, collection_ids, filter))

    def tenant_filter(self) -> TenantFilter:
        return TenantFilter.VERIFIED if self._proven else TenantFilter.UNVERIFIED

    def ping(self) -> None:
        # That there is no such index is an answer too.
        self._client.index(self._options.prefix)

    def describe(self) -> Component:
        if self._is_serverless:
            kind = "serverless, approximate"
        else:
            kind = "faiss, exact" if self._options.engine is KnnEngine.FAISS else "lucene, approximate"
        return Component(name="opensearch", type=kind, configured=True)

    def close(self) -> None:
        """Lets go of the connections."""
        self._client.close()

    def _best_hits(self, tenant: Tenant, alias: str, limit: int, body: Callable[[int], Json]) -> list[Json]:
        """Hits among which the best ``limit`` are. One more is asked for, and more while the limit cuts through
        equal scores, since the server's order among those is none."""
        size = min(limit + 1, MAX_LIMIT)
        while True:
            hits: list[Json] = self._client.search(tenant, alias, body(size))["hits"]["hits"]
            if size == MAX_LIMIT or not _cuts_through_a_tie(hits, limit, size):
                return hits
            size = min(size * TIE_GROWTH, MAX_LIMIT)

    def _prove(self, space: VectorSpace) -> str:
        """The alias of a space, once its index has been proven."""
        alias = alias_of(self._options, space)
        if alias not in self._proven:
            with self._preparing:
                if alias not in self._proven:
                    prove(self._options, space, self._found_or_made(alias, space))
                    if self._is_serverless:
                        self._prove_ids(alias)
                    self._proven.add(alias)
        return alias

    @contextmanager
    def _alias(self, space: VectorSpace) -> Iterator[str]:
        """A proven alias for the block."""
        try:
            alias = self._prove(space)
        except ConfigurationError as error:
            raise NotConfigured(str(error)) from error
        try:
            yield alias
        except IndexMissing as error:
            # Someone has deleted it. The next call makes it anew.
            self._proven.discard(alias)
            raise Unavailable("The vector index is gone and will be made again") from error

    def _found_or_made(self, alias: str, space: VectorSpace) -> Json:
        """What the alias stands for. Many functions may start at once: one makes the index, all find it."""
        found = self._client.index(alias)
        if found is None:
            name = f"{alias}-1"
            try:
                self._client.create_index(name, definition(self._options, space))
            except Refusal as refusal:
                raise ConfigurationError(
                    f"OpenSearch does not make the index {name} ({refusal.kind}): it needs the k-NN plugin, and "
                    "WEFT_OPENSEARCH_DIALECT says whether it is a domain or a NextGen collection"
                ) from refusal
            found = self._client.index(alias) or self._client.index(name)
        if found is None:
            raise Unavailable("The vector index is being made")
        return found

    def _prove_ids(self, alias: str) -> None:
        """Writes a record that a strict mapping refuses: a collection that takes no IDs refuses those first.

        Raises:
            ConfigurationError: IDs are not taken.
        """
        tenant, chunk_id = Tenant("weft"), ChunkId.of(DocumentId.new(0, 0), 1, 0)
        fields = {queries.TENANT: str(tenant), "chunk_id": str(chunk_id), "unknown": ""}
        try:
            self._client.bulk(tenant, alias, [Operation(queries.record_id(tenant, chunk_id), fields)], wait=False)
        except Refusal as refusal:
            if refusal.kind == "strict_dynamic_mapping_exception":
                return
        raise ConfigurationError(
            "OpenSearch Serverless: the collection does not take IDs of records; make it a NextGen collection"
        )

    def _send(self, tenant: Tenant, alias: str, operations: Sequence[Operation]) -> list[Json]:
        return [
            result
            for batch in batches(operations)
            for result in self._client.bulk(tenant, alias, batch, wait=not self._is_serverless)
        ]

    def _wait_until_gone(self, tenant: Tenant, alias: str, body: Json) -> None:
        self._wait_until(lambda: self._count(tenant, alias, body) == 0)

    def _wait_until(self, is_searchable: Callable[[], bool]) -> None:
        """Looks until searches see a write: reads by ID would show it at once, and prove nothing."""
        deadline = self._clock.monotonic() + SEARCHABLE_S
        pause = FIRST_LOOK_S
        while not is_searchable():
            if self._clock.monotonic() + pause > deadline:
                raise NotYetSearchable("The vector store has not made the write searchable yet")
            self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_LOOK_S)

    def _count(self, tenant: Tenant, alias: str, body: Json) -> int:
        count: int = self._client.search(tenant, alias, body)["hits"]["total"]["value"]
        return count

    def _chunk_ids(self, tenant: Tenant, alias: str, body: Json) -> list[ChunkId]:
        hits = self._client.search(tenant, alias, body)["hits"]["hits"]
        return [ChunkId(check_hit(tenant, hit)["chunk_id"]) for hit in hits]


def _pages(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (items[start : start + PAGE] for start in range(0, len(items), PAGE))


def _cuts_through_a_tie(hits: Sequence[Json], limit: int, size: int) -> bool:
    """Whether records that were not answered may have the score of the last one within the limit."""
    return len(hits) == size and hits[limit - 1]["_score"] == hits[-1]["_score"]


def _ranked(matches: Sequence[VectorMatch], limit: int) -> list[VectorMatch]:
    return sorted(matches, key=lambda match: (-match.score, match.chunk_id))[:limit]


def _match(tenant: Tenant, hit: Json, score: float) -> VectorMatch:
    fields = check_hit(tenant, hit)
    return VectorMatch(
        chunk_id=ChunkId(fields["chunk_id"]),
        tenant=Tenant(fields[queries.TENANT]),
        collection_id=CollectionId(fields["collection_id"]),
        source_id=fields.get("source_id"),
        source_key=fields.get("source_key"),
        text=fields["text"],
        score=score,
        vector=array("f", fields["vector"]).tolist() if "vector" in fields else None,
    )


def _bm25(query: TextQuery, statistics: Statistics, hit: Json) -> float:
    terms = hit["_source"]["terms"].split()
    return score(query.terms, statistics, Counter(terms), len(terms))


def cosine(score: float) -> float:
    """The cosine of two unit vectors, −1 to 1, from k-NN's score for their inner product.

    Source: OpenSearch, Spaces: innerproduct is 1 + p for p ≥ 0, and 1 / (1 − p) below.
    """
    product = score - 1.0 if score >= 1.0 else 1.0 - 1.0 / score
    return min(max(product, -1.0), 1.0)

"""Searches the vector store and keeps only matches that are served now.

A search finds records of any version. Afterwards one consistent read says which versions are served. Matches of other
versions are hidden, and the search is repeated without their generations (a *refill*), so that a version on its way in
or out takes no place from what is served.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Generic, Protocol, TypeVar

from core.clock import Clock
from core.metadata.collections import Collections
from core.metadata.documents import Documents
from core.model.chunk import Chunk
from core.model.document import DocumentSummary
from core.model.errors import Unavailable
from core.model.hit import Hit, Signals
from core.model.ids import ChunkId
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.observe import Observer
from core.protocol.served import Served
from core.vectors.types import TextQuery, VectorMatch, VectorQuery, VectorStore

MAX_ROUNDS = 5
"""How often a search is repeated. An answer that is still short then has the reason ``refill_bound``."""
MIN_REFILL = 50
"""How many matches a repeated search asks for at least."""


@dataclass(frozen=True)
class SpaceQuery:
    """One search of one vector space."""

    space: VectorSpace
    query: VectorQuery | TextQuery


class Selection(Protocol):
    """A selection from the matches of all searches. The chunks of its candidates are read from the metadata store."""

    @property
    def candidates(self) -> Sequence[VectorMatch]:
        """The matches that may become hits."""
        ...


Selected = TypeVar("Selected", bound=Selection)


@dataclass(frozen=True)
class HitRows:
    """The rows of a match. A match without a chunk is an orphan: the vector store alone knows it."""

    chunk: Chunk | None
    document: DocumentSummary | None


@dataclass(frozen=True)
class SearchResult(Generic[Selected]):
    """The outcome of a search.

    Attributes:
        rows: the rows of the selection's candidates. A candidate that is missing could not be read and is no hit.
        bounded: whether the search gave up refilling, so that there may be more.
        vector_seconds: how long the searches by vector took.
    """

    selected: Selected
    rows: dict[ChunkId, HitRows]
    bounded: bool
    vector_seconds: float


@dataclass(frozen=True)
class _Round:
    """One pass of every query, and which of its matches are served.

    Attributes:
        served: the served matches of each query, best first.
        cut: for each query, whether the store may have more matches.
        hidden: for each generation that is not served, one match of it.
        serving: the generations that the sources of the matches, and of hidden matches, serve.
    """

    served: list[list[VectorMatch]]
    cut: list[bool]
    hidden: dict[str, VectorMatch]
    serving: set[str]


class Searcher:
    """Searches for the served matches of queries."""

    def __init__(
        self,
        documents: Documents,
        collections: Collections,
        served: Served,
        vectors: VectorStore,
        observer: Observer,
        clock: Clock,
    ) -> None:
        self.documents = documents
        self.collections = collections
        self.served = served
        self.vectors = vectors
        self.observer = observer
        self.clock = clock

    def search(
        self,
        tenant: Tenant,
        queries: Sequence[SpaceQuery],
        select: Callable[[list[list[VectorMatch]]], Selected],
        deadline: float | None,
    ) -> SearchResult[Selected]:
        """Searches until every query has as many served matches as its limit, or all that exist.

        Each round stands for itself: its matches are checked against one consistent read, so they never mix two
        versions of a source.

        Args:
            select: makes a selection of the matches: one list a query, best first and at most the query's limit.
            deadline: monotonic seconds. No search begins after it. None: no limit.

        Raises:
            Unavailable: a store does not answer, or the deadline has come.
        """
        return _Search(self, tenant, queries, select, deadline).run()


class _Search(Generic[Selected]):
    """The state of one call of `Searcher.search`.

    Attributes:
        _hidden: for each generation that later rounds leave out, one match of it.
        _lost: matches without a row that are no orphans. No later round shows them.
    """

    def __init__(
        self,
        searcher: Searcher,
        tenant: Tenant,
        queries: Sequence[SpaceQuery],
        select: Callable[[list[list[VectorMatch]]], Selected],
        deadline: float | None,
    ) -> None:
        self._searcher = searcher
        self._tenant = tenant
        self._queries = queries
        self._select = select
        self._deadline = deadline
        self._hidden: dict[str, VectorMatch] = {}
        self._lost: set[ChunkId] = set()
        self._vector_seconds = 0.0

    def run(self) -> SearchResult[Selected]:
        limits = [query.query.limit for query in self._queries]
        for rounds_left in reversed(range(MAX_ROUNDS)):
            round_ = self._round(limits)
            hidden, serving, incomplete = round_.hidden, round_.serving, self._is_incomplete(round_)
            if not incomplete or not rounds_left:
                result, vanished, replacing = self._read_rows(round_)
                candidates = {match.chunk_id for match in result.selected.candidates}
                incomplete |= bool(vanished or self._lost & candidates)
                if not incomplete or not rounds_left:
                    return replace(result, bounded=incomplete)
                hidden, serving = hidden | vanished, (serving - vanished.keys()) | replacing
            all_hidden = self._hidden | hidden
            self._hidden = {name: match for name, match in all_hidden.items() if name not in serving}
            limits = [max(2 * limit, MIN_REFILL) for limit in limits]
        raise AssertionError("the last round returns")

    def _is_incomplete(self, round_: _Round) -> bool:
        """Tells whether another round may find more, where a query has fewer served matches than its limit.

        Hidden matches are reason enough to search again, because what has replaced them may be searchable by now. A
        generation that an earlier round has hidden, because its document was not ready then, may be served by now.
        """
        changing = bool(round_.hidden or self._hidden.keys() & round_.serving)
        return any(
            len(served) < query.query.limit and (cut or changing)
            for query, served, cut in zip(self._queries, round_.served, round_.cut, strict=True)
        )

    def _round(self, limits: Sequence[int]) -> _Round:
        lists = [self._matches(query, limit) for query, limit in zip(self._queries, limits, strict=True)]
        versions = self._searcher.served.versions_of(
            self._tenant, [*chain.from_iterable(lists), *self._hidden.values()]
        )
        hidden = {match.chunk_id.generation: match for match in chain.from_iterable(lists) if versions.hides(match)}
        served = [
            [match for match in matches if match.chunk_id.generation not in hidden and match.chunk_id not in self._lost]
            for matches in lists
        ]
        cut = [len(matches) == limit for matches, limit in zip(lists, limits, strict=True)]
        return _Round(served, cut, hidden, versions.generations())

    def _matches(self, query: SpaceQuery, limit: int) -> list[VectorMatch]:
        store, clock = self._searcher.vectors, self._searcher.clock
        bounded = replace(query.query, limit=limit, exclude_generations=sorted(self._hidden))
        start = clock.monotonic()
        if self._deadline is not None and start >= self._deadline:
            raise Unavailable("The answer takes longer than one call may")
        with self._searcher.observer.timed("vectors_search"):
            if isinstance(bounded, VectorQuery):
                matches = store.search(self._tenant, query.space, bounded)
                self._vector_seconds += clock.monotonic() - start
            else:
                matches = store.search_text(self._tenant, query.space, bounded)
        for match in matches:
            if match.tenant != self._tenant:
                raise RuntimeError("the vector store answered with another tenant's record")
        return matches

    def _read_rows(self, round_: _Round) -> tuple[SearchResult[Selected], dict[str, VectorMatch], set[str]]:
        """Selects from a round's matches and reads the rows of the selected candidates.

        Returns:
            The result; for each generation that is no longer served by now, one match of it; and the generations
            that are served in its place.
        """
        lists = [served[: query.query.limit] for query, served in zip(self._queries, round_.served, strict=True)]
        selected = self._select(lists)
        candidates = {match.chunk_id: match for match in selected.candidates}
        chunks, infos = self._searcher.documents.chunks_and_infos(self._tenant, list(candidates))
        rows = {
            chunk_id: HitRows(chunks[chunk_id], infos[chunk_id.document_id].summary())
            for chunk_id in candidates
            if chunk_id in chunks and chunk_id.document_id in infos
        }
        missing = [match for chunk_id, match in candidates.items() if chunk_id not in rows]
        # Between the two reads a version can have been replaced and purged.
        versions = self._searcher.served.versions_of(self._tenant, missing)
        vanished = {match.chunk_id.generation: match for match in missing if versions.hides(match)}
        orphans = self._orphans([match for match in missing if match.chunk_id.generation not in vanished])
        rows.update(dict.fromkeys(orphans, HitRows(None, None)))
        self._lost |= {match.chunk_id for match in missing} - orphans
        if orphans:
            self._searcher.observer.record("orphaned_hits", len(orphans), "Count")
        result = SearchResult(selected, rows, bounded=False, vector_seconds=self._vector_seconds)
        return result, vanished, versions.generations()

    def _orphans(self, without_rows: Sequence[VectorMatch]) -> set[ChunkId]:
        """Returns those of the matches without rows that are kept as orphans: matches without a source, in a
        collection that is not being deleted."""
        unkeyed = [match for match in without_rows if match.source_id is None]
        collections = {match.collection_id for match in unkeyed}
        active = {
            collection_id
            for collection_id in collections
            if self._searcher.collections.is_active(self._tenant, collection_id)
        }
        return {match.chunk_id for match in unkeyed if match.collection_id in active}


def hit(rank: int, score: float, match: VectorMatch, rows: HitRows, signals: Signals | None = None) -> Hit:
    """Makes a hit of a match, as callers see it."""
    return Hit(
        rank=rank,
        score=score,
        hydrated=rows.chunk is not None,
        orphaned=rows.chunk is None,
        chunk=rows.chunk or _orphan(match),
        document=rows.document,
        signals=signals,
    )


def _orphan(match: VectorMatch) -> Chunk:
    return Chunk(
        id=match.chunk_id,
        document_id=match.chunk_id.document_id,
        collection_id=match.collection_id,
        index=match.chunk_id.chunk_index,
        text=match.text,
        start_index=0,
        end_index=len(match.text),
        char_count=len(match.text),
    )

"""Searches whose matches are what is served now, read back whole."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Generic, Protocol, TypeVar

from core.metadata.rows import Head, Source
from core.model.chunk import Chunk
from core.model.collection import VectorSpace
from core.model.document import DocumentSummary
from core.model.errors import Unavailable
from core.model.hit import Hit, Signals
from core.model.ids import ChunkId, CollectionId, DocumentId, generation
from core.model.tenant import Tenant
from core.parts import Parts
from core.retrieval.visibility import is_current, is_ready
from core.vectors.types import TextQuery, VectorMatch, VectorQuery

MAX_SEARCHES = 5
MIN_REFILL = 50


@dataclass(frozen=True)
class Ask:
    """One search of one space."""

    space: VectorSpace
    query: VectorQuery | TextQuery


class Choice(Protocol):
    """What is made of the matches of all searches. ``wanted`` is to be read back whole."""

    @property
    def wanted(self) -> Sequence[VectorMatch]: ...


Chosen = TypeVar("Chosen", bound=Choice)


@dataclass(frozen=True)
class Body:
    """A match read back. Without a chunk, it is an orphan: the vector store alone knows it."""

    chunk: Chunk | None
    document: DocumentSummary | None


@dataclass(frozen=True)
class Found(Generic[Chosen]):
    """What the searches found.

    Attributes:
        bodies: of what was wanted. One that is missing could not be read back, and is no hit.
        bounded: the search gave up refilling; there may be more.
        vector_seconds: how long the searches by vector took.
    """

    chosen: Chosen
    bodies: dict[ChunkId, Body]
    bounded: bool
    vector_seconds: float


@dataclass(frozen=True)
class _Round:
    """One search of every ask and what became of the matches.

    Attributes:
        served: of each ask, best first.
        cut: of each ask, whether there may be more.
        hidden: by generation that is not served, one match of it.
        serving: generations that the sources of the matches, and of what was left out, serve.
    """

    served: list[list[VectorMatch]]
    cut: list[bool]
    hidden: dict[str, VectorMatch]
    serving: set[str]


class Search(Generic[Chosen]):
    """Searches whose matches are what is served now, read back whole.

    Matches that are not served are left out, and the searches run again without their generations, so that a
    version on its way in or out takes no place from what is served. Each round stands for itself: its matches
    are of one consistent read, so they never mix two versions of a source.

    Args:
        choose: of each ask's matches, best first and at most its limit, in the order of the asks.
        deadline: monotonic seconds; no search begins after it. None: whenever.
    """

    def __init__(
        self,
        parts: Parts,
        tenant: Tenant,
        asks: Sequence[Ask],
        choose: Callable[[list[list[VectorMatch]]], Chosen],
        deadline: float | None,
    ) -> None:
        self._deadline = deadline
        self._parts = parts
        self._tenant = tenant
        self._asks = asks
        self._choose = choose
        self._hidden: dict[str, VectorMatch] = {}
        self._lost: set[ChunkId] = set()
        self._vector_seconds = 0.0

    def run(self) -> Found[Chosen]:
        """Each ask's best served matches, or all there are, and what is made of them."""
        limits = [ask.query.limit for ask in self._asks]
        for left in reversed(range(MAX_SEARCHES)):
            one = self._round(limits)
            hidden, serving, unsettled = one.hidden, one.serving, self._incomplete(one)
            if not unsettled or not left:
                found, vanished, came = self._read_back(one)
                unsettled |= bool(vanished or self._lost.intersection(match.chunk_id for match in found.chosen.wanted))
                if not unsettled or not left:
                    return replace(found, bounded=unsettled)
                hidden, serving = hidden | vanished, (serving - vanished.keys()) | came
            known = self._hidden | hidden
            self._hidden = {name: match for name, match in known.items() if name not in serving}
            limits = [max(2 * limit, MIN_REFILL) for limit in limits]
        raise AssertionError("the last round returns")

    def _incomplete(self, one: _Round) -> bool:
        """Whether another round may find more where a search was short.

        Hidden matches are reason enough to look again: what replaced them may have come since. So is what was left
        out, on its way in, and is what its source serves by now.
        """
        changing = bool(one.hidden or self._hidden.keys() & one.serving)
        return any(
            len(served) < ask.query.limit and (cut or changing)
            for ask, served, cut in zip(self._asks, one.served, one.cut, strict=True)
        )

    def _round(self, limits: Sequence[int]) -> _Round:
        lists = [self._matches(ask, limit) for ask, limit in zip(self._asks, limits, strict=True)]
        state = _State.read(self._parts, self._tenant, [*chain.from_iterable(lists), *self._hidden.values()])
        hidden = {match.chunk_id.generation: match for match in chain.from_iterable(lists) if state.hides(match)}
        served = [
            [match for match in matches if match.chunk_id.generation not in hidden and match.chunk_id not in self._lost]
            for matches in lists
        ]
        cut = [len(matches) == limit for matches, limit in zip(lists, limits, strict=True)]
        return _Round(served, cut, hidden, state.serving())

    def _matches(self, ask: Ask, limit: int) -> list[VectorMatch]:
        store, clock = self._parts.vector_store(), self._parts.clock
        query = replace(ask.query, limit=limit, exclude_generations=sorted(self._hidden))
        start = clock.monotonic()
        if self._deadline is not None and start >= self._deadline:
            raise Unavailable("The answer takes longer than one call may")
        with self._parts.timed("vectors_search"):
            if isinstance(query, VectorQuery):
                matches = store.search(self._tenant, ask.space, query)
                self._vector_seconds += clock.monotonic() - start
            else:
                matches = store.search_text(self._tenant, ask.space, query)
        for match in matches:
            if match.tenant != self._tenant:
                raise RuntimeError("the vector store answered with another tenant's record")
        return matches

    def _read_back(self, one: _Round) -> tuple[Found[Chosen], dict[str, VectorMatch], set[str]]:
        """What is made of a round, what of it turns out to be served no more, and what is served in its place."""
        lists = [served[: ask.query.limit] for ask, served in zip(self._asks, one.served, strict=True)]
        chosen = self._choose(lists)
        wanted = {match.chunk_id: match for match in chosen.wanted}
        chunks, infos = self._parts.documents.chunks_and_infos(self._tenant, list(wanted))
        bodies = {
            one: Body(chunks[one], infos[one.document_id].summary())
            for one in wanted
            if one in chunks and one.document_id in infos
        }
        missing = [match for one, match in wanted.items() if one not in bodies]
        # Between the two reads a version can have been replaced and purged.
        now = _State.read(self._parts, self._tenant, missing)
        hidden = {match.chunk_id.generation: match for match in missing if now.hides(match)}
        orphans = self._orphans([match for match in missing if match.chunk_id.generation not in hidden])
        bodies.update(dict.fromkeys(orphans, Body(None, None)))
        self._lost |= {match.chunk_id for match in missing} - orphans
        if orphans:
            self._parts.metrics.record("orphaned_hits", len(orphans), "Count")
        found = Found(chosen, bodies, bounded=False, vector_seconds=self._vector_seconds)
        return found, hidden, now.serving()

    def _orphans(self, lost: Sequence[VectorMatch]) -> set[ChunkId]:
        """Those of the matches without a row that are kept: without a source, in a collection that is not being
        deleted."""
        loose = [match for match in lost if match.source_id is None]
        collections = {match.collection_id for match in loose}
        active = {one for one in collections if self._parts.is_active(self._tenant, one)}
        return {match.chunk_id for match in loose if match.collection_id in active}


@dataclass(frozen=True)
class _State:
    """What sources and documents serve, read after the search.

    Attributes:
        marked: unkeyed documents without a row where a mark says that they were removed.
    """

    sources: dict[tuple[CollectionId, str], Source]
    heads: dict[DocumentId, Head]
    marked: set[DocumentId]

    @classmethod
    def read(cls, parts: Parts, tenant: Tenant, matches: Sequence[VectorMatch]) -> "_State":
        keyed = {(match.collection_id, match.source_id) for match in matches if match.source_id is not None}
        unkeyed = {match.chunk_id.document_id for match in matches if match.source_id is None}
        sources, heads = parts.documents.serving(tenant, sorted(keyed), sorted(unkeyed))
        marked = {one for one in unkeyed if one not in heads and parts.documents.gone(tenant, one)}
        return cls(sources, heads, marked)

    def serving(self) -> set[str]:
        """The generations that the sources serve."""
        currents = [source.current for source in self.sources.values() if source.current is not None]
        return {generation(one.document_id, one.attempt) for one in currents}

    def hides(self, match: VectorMatch) -> bool:
        """Whether a match is of something that is not served.

        An unkeyed one without any row is kept, as an orphan, unless its document is known to be removed.
        """
        if match.source_id is not None:
            return not is_current(self.sources.get((match.collection_id, match.source_id)), match.chunk_id)
        document_id = match.chunk_id.document_id
        head = self.heads.get(document_id)
        if head is None:
            return document_id in self.marked
        return not is_ready(head, match.chunk_id)


def hit(rank: int, score: float, match: VectorMatch, body: Body, signals: Signals | None = None) -> Hit:
    """A match as callers see it."""
    return Hit(
        rank=rank,
        score=score,
        hydrated=body.chunk is not None,
        orphaned=body.chunk is None,
        chunk=body.chunk or _orphan(match),
        document=body.document,
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

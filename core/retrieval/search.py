"""A vector search whose matches are what is served now, read back whole."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.metadata.rows import Head, Source
from core.model.chunk import Chunk
from core.model.collection import VectorSpace
from core.model.document import DocumentSummary
from core.model.hit import Hit
from core.model.ids import ChunkId, CollectionId, DocumentId, generation
from core.model.tenant import Tenant
from core.parts import Parts
from core.retrieval.visibility import is_current, is_ready
from core.vectors.types import VectorMatch, VectorQuery

MAX_SEARCHES = 5
MIN_REFILL = 50


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        hits: served, best first, ranked from 1.
        bounded: the search gave up refilling; there may be more.
    """

    hits: list[Hit]
    bounded: bool = False


@dataclass(frozen=True)
class _Round:
    """One search and what became of its matches.

    Attributes:
        hidden: by generation that is not served, one match of it.
        serving: generations that the sources of the matches, and of what was left out, serve.
    """

    hits: list[Hit]
    hidden: dict[str, VectorMatch]
    serving: set[str]
    matches: int


def search(parts: Parts, tenant: Tenant, space: VectorSpace, query: VectorQuery) -> Found:
    """The ``query.limit`` nearest chunks that are served, or all there are.

    Matches that are not served are left out, and the search runs again without their generations, so that a
    version on its way in or out takes no place from what is served. Each round stands for itself: its hits
    are of one consistent read, so they never mix two versions of a source.
    """
    hidden: dict[str, VectorMatch] = {}
    asked = query.limit
    hits: list[Hit] = []
    for _ in range(MAX_SEARCHES):
        without = replace(query, limit=asked, exclude_generations=sorted(hidden))
        one = _search_once(parts, tenant, space, without, list(hidden.values()))
        hits = one.hits[: query.limit]
        # Hidden matches are reason enough to look again: what replaced them may have come since. So is what was
        # left out, on its way in, and is what its source serves by now.
        again = one.hidden or one.matches == asked or hidden.keys() & one.serving
        if len(hits) == query.limit or not again:
            return Found(hits)
        hidden = {name: match for name, match in (hidden | one.hidden).items() if name not in one.serving}
        asked = max(2 * asked, MIN_REFILL)
    return Found(hits, bounded=True)


def _search_once(
    parts: Parts, tenant: Tenant, space: VectorSpace, query: VectorQuery, left_out: Sequence[VectorMatch]
) -> _Round:
    matches = _matches(parts, tenant, space, query)
    state = _State.read(parts, tenant, [*matches, *left_out])
    served = [match for match in matches if not state.hides(match)]
    chunks, infos = parts.documents.chunks_and_infos(tenant, [match.chunk_id for match in served])
    missing = [match for match in served if match.chunk_id not in chunks or match.chunk_id.document_id not in infos]
    # Between the two reads a version can have been replaced and purged.
    now = _State.read(parts, tenant, missing) if missing else state
    hidden = [match for match in matches if state.hides(match)] + [match for match in missing if now.hides(match)]
    orphans = _orphans(parts, tenant, [match for match in missing if not now.hides(match)])
    absent = {match.chunk_id for match in missing}
    hits: list[Hit] = []
    for match in served:
        if match.chunk_id not in absent:
            info = infos[match.chunk_id.document_id]
            hits.append(_hit(len(hits) + 1, match, chunks[match.chunk_id], info.summary()))
        elif match.chunk_id in orphans:
            hits.append(_hit(len(hits) + 1, match, None, None))
    if orphans:
        parts.metrics.record("orphaned_hits", len(orphans), "Count")
    return _Round(
        hits=hits,
        hidden={match.chunk_id.generation: match for match in hidden},
        serving=state.serving() | now.serving(),
        matches=len(matches),
    )


def _orphans(parts: Parts, tenant: Tenant, lost: Sequence[VectorMatch]) -> set[ChunkId]:
    """Those of the matches without a row that are kept: without a source, in a collection that is not being deleted."""
    loose = [match for match in lost if match.source_id is None]
    active = {one for one in {match.collection_id for match in loose} if parts.is_active(tenant, one)}
    return {match.chunk_id for match in loose if match.collection_id in active}


def _matches(parts: Parts, tenant: Tenant, space: VectorSpace, query: VectorQuery) -> list[VectorMatch]:
    with parts.timed("vectors_search"):
        matches = parts.vector_store().search(tenant, space, query)
    for match in matches:
        if match.tenant != tenant:
            raise RuntimeError("the vector store answered with another tenant's record")
    return matches


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


def _hit(rank: int, match: VectorMatch, chunk: Chunk | None, document: DocumentSummary | None) -> Hit:
    return Hit(
        rank=rank,
        score=match.score,
        hydrated=chunk is not None,
        orphaned=chunk is None,
        chunk=chunk or _orphan(match),
        document=document,
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

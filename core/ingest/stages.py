"""The stages of an ingest: load, split, embed, write.

Load and split work on one document and yield *segments*, pieces of a document small enough to be held in memory and
written at once. Embed and write take segments of any number of documents: texts of several documents go to the model in
one batch, and their chunks to the stores in one request. Before each piece of work every document's hold is checked,
and after it a heartbeat is sent where one is due.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from core.analysis.terms import document_terms
from core.embedding.embedders import Embedders
from core.ingest.hold import DocumentHold
from core.ingest.plan import Plan
from core.loading.types import LoadedText
from core.metadata.documents import Documents
from core.metadata.rows import Head
from core.model.chunk import Chunk
from core.model.errors import NotYetSearchable
from core.model.vector import Vector
from core.observe import Observer
from core.splitting.chunking import chunk_document
from core.vectors.types import VectorRecord, VectorStore

EMBED_AT_ONCE = 64
"""How many texts go to the model at once. Between two batches the time is checked and a heartbeat may be sent."""
WRITE_AT_ONCE = 500
"""How many chunks are written to the vector store at once."""

Piece = TypeVar("Piece")


@dataclass
class Segment:
    """Consecutive chunks of one document on their way through the stages.

    Attributes:
        chunks: at most ``WRITE_AT_ONCE``, in the document's order. Each has an ID.
        vectors: one a chunk, from the stage that embeds.
    """

    plan: Plan
    hold: DocumentHold
    chunks: Sequence[Chunk]
    vectors: list[Vector] = field(default_factory=list)


class Stages:
    """Runs the stages.

    Args:
        wait_for_searches: whether a write that searches do not see yet is an error. It is none where a queue brings
            the document back later.
    """

    def __init__(
        self,
        documents: Documents,
        embedders: Embedders,
        vectors: VectorStore,
        observer: Observer,
        *,
        wait_for_searches: bool,
    ) -> None:
        self._documents = documents
        self._embedders = embedders
        self._vectors = vectors
        self._observer = observer
        self._wait_for_searches = wait_for_searches

    def load(self, plan: Plan) -> LoadedText:
        """Reads a document's content as text.

        Raises:
            EmptyContent, UnsupportedMediaType: the content cannot be read.
        """
        return plan.loader.load(plan.input.content, plan.charset)

    def split(self, plan: Plan, hold: DocumentHold, loaded: LoadedText) -> list[Segment]:
        """Splits a text into chunks.

        Returns:
            At least one segment.

        Raises:
            EmptyContent, PayloadTooLarge: the text has no chunk, or too many.
        """
        chunks = chunk_document(
            loaded,
            document_id=hold.head.document_id,
            attempt=hold.head.attempt,
            collection_id=hold.head.collection_id,
            origin=plan.input.source or plan.input.source_key or "",
            attributes=plan.input.attributes,
            splitter=plan.splitter,
            size=plan.collection.chunk_size,
            overlap=plan.collection.chunk_overlap,
            counter=plan.embedder.counter,
        )
        return [
            Segment(plan, hold, chunks[start : start + WRITE_AT_ONCE]) for start in range(0, len(chunks), WRITE_AT_ONCE)
        ]

    def embed(self, segments: Sequence[Segment]) -> None:
        """Embeds the chunks of segments, in batches that reach across segments of one model.

        Raises:
            HoldLost: a document no longer belongs to its attempt.
            InvalidArgument, NotConfigured, Unavailable: the model, or the time of a call is over.
        """
        chunks = [(segment, chunk) for segment in segments for chunk in segment.chunks]
        for batch in _batches(chunks, EMBED_AT_ONCE, lambda pair: pair[0].hold.head.space):
            holds = _holds(segment for segment, _ in batch)
            for hold in holds:
                hold.check_time()
            vectors = self._embedders.embed(batch[0][0].plan.embedder, [chunk.text for _, chunk in batch])
            for (segment, _), vector in zip(batch, vectors, strict=True):
                segment.vectors.append(vector)
            for hold in holds:
                hold.heartbeat_if_due()

    def write(self, segments: Sequence[Segment]) -> bool:
        """Writes the chunk rows of segments and then their vectors. Segments are written together where they fit.

        Returns:
            Whether searches see all vectors. If not, everything is written, and the documents are finished later.

        Raises:
            HoldLost: a document no longer belongs to its attempt.
            Unavailable: a store does not answer, or the time of a call is over.
        """
        searchable = True
        for group in _groups(segments):
            searchable &= self._write(group)
        return searchable

    def _write(self, group: Sequence[Segment]) -> bool:
        holds = _holds(group)
        head = group[0].hold.head

        def check_time() -> None:
            for hold in holds:
                hold.check_time()

        chunks = [chunk for segment in group for chunk in segment.chunks]
        records = [record for segment in group for record in _records(segment)]
        self._documents.write_chunks(head.tenant, chunks, before=check_time)
        check_time()
        searchable = True
        try:
            with self._observer.timed("vectors_write"):
                self._vectors.write(head.tenant, head.space, records)
        except NotYetSearchable:
            if self._wait_for_searches:
                raise
            searchable = False
        for hold in holds:
            hold.heartbeat_if_due()
        return searchable


def vector_records(
    head: Head, source_key: str | None, chunks: Sequence[Chunk], vectors: Sequence[Vector]
) -> list[VectorRecord]:
    """Makes the vector store's records of a document's chunks and their vectors, in order."""
    return [
        VectorRecord(
            chunk_id=chunk.id,
            collection_id=head.collection_id,
            source_id=head.source_id,
            source_key=source_key,
            text=chunk.text,
            vector=vector,
            attributes=chunk.attributes,
            terms=document_terms(chunk.text),
        )
        for chunk, vector in zip(chunks, vectors, strict=True)
        if chunk.id is not None
    ]


def _records(segment: Segment) -> list[VectorRecord]:
    return vector_records(segment.hold.head, segment.plan.input.source_key, segment.chunks, segment.vectors)


def _holds(segments: Iterator[Segment] | Sequence[Segment]) -> list[DocumentHold]:
    """Lists each hold of the segments once."""
    return list({id(segment.hold): segment.hold for segment in segments}.values())


def _batches(pieces: Sequence[Piece], size: int, key: Callable[[Piece], Hashable]) -> Iterator[list[Piece]]:
    """Cuts pieces into batches of at most `size` neighbours that have the same key."""
    for _, neighbours in groupby(pieces, key=key):
        batch = list(neighbours)
        yield from (batch[start : start + size] for start in range(0, len(batch), size))


def _groups(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Groups neighbouring segments of one tenant and vector space, at most ``WRITE_AT_ONCE`` chunks a group."""
    group: list[Segment] = []
    for segment in segments:
        if group and not _fits(group, segment):
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


def _fits(group: Sequence[Segment], segment: Segment) -> bool:
    head, other = group[0].hold.head, segment.hold.head
    together = sum(len(member.chunks) for member in group) + len(segment.chunks)
    return (head.tenant, head.space) == (other.tenant, other.space) and together <= WRITE_AT_ONCE

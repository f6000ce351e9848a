"""A loaded text, cut into the chunks of one document."""

import json
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from core.loading.front_matter import MAX_ATTRIBUTES
from core.loading.pages import page_at
from core.loading.types import Heading, LoadedText
from core.model.chunk import Attributes, Chunk, Lineage
from core.model.errors import EmptyContent, PayloadTooLarge
from core.model.ids import MAX_CHUNKS, ChunkId, CollectionId, DocumentId
from core.splitting.counting import TokenCounter
from core.splitting.types import Splitter

MAX_ATTRIBUTES_BYTES = 64 * 1024
MAX_GAP = 1024


def chunk_document(
    loaded: LoadedText,
    *,
    document_id: DocumentId,
    attempt: int,
    collection_id: CollectionId,
    origin: str,
    attributes: Attributes,
    splitter: Splitter,
    size: int,
    overlap: int,
    counter: TokenCounter,
) -> list[Chunk]:
    """The chunks of one attempt at a document, in order.

    Args:
        attempt: 1 to 15; part of the chunks' ids.
        origin: where the document came from; empty: not said.
        attributes: the caller's; they win over what the document says of itself. Of that, as much is kept as
            makes 64 attributes and 64 KiB together: they are stored with every chunk.
        size, overlap: tokens of ``counter``.

    Raises:
        EmptyContent: nothing to make a chunk of.
        PayloadTooLarge: more chunks than a document's ids can number (1,048,576).
        InvalidArgument: size or overlap out of range.
    """
    spans = splitter.split(loaded, size, overlap, counter)
    if not spans:
        raise EmptyContent("Nothing is left of the document after loading")
    if len(spans) > MAX_CHUNKS:
        raise PayloadTooLarge(f"The document makes more than {MAX_CHUNKS} chunks", limit=MAX_CHUNKS)
    trails = _Trails(loaded.headings)
    merged = _merge(attributes, loaded.attributes)
    chunks: list[Chunk] = []
    for index, (start, end) in enumerate(spans):
        text = loaded.text[start:end]
        chunks.append(
            Chunk(
                text=text,
                start_index=start,
                end_index=end,
                char_count=end - start,
                context=trails.at(start),
                page=page_at(loaded.pages, start),
                origin=origin or None,
                attributes=merged,
                id=ChunkId.of(document_id, attempt, index),
                document_id=document_id,
                collection_id=collection_id,
                index=index,
                token_count=counter.count(text),
                lineage=Lineage.from_split(document_id, index, len(spans), splitter.name),
                gap=_gap(loaded.text, chunks[-1].end_index, start) if chunks else None,
            )
        )
    return chunks


def _gap(text: str, start: int, end: int) -> str | None:
    return text[start:end] if 0 < end - start <= MAX_GAP else None


def _merge(given: Attributes, found: Attributes) -> dict[str, Any]:
    merged = dict(given)
    room = MAX_ATTRIBUTES_BYTES - _size(given)
    for name, value in found.items():
        if name in given:
            continue
        room -= _size({name: value})
        if room < 0 or len(merged) == MAX_ATTRIBUTES:
            break
        merged[name] = value
    return merged


def _size(attributes: Attributes) -> int:
    return len(json.dumps(attributes, ensure_ascii=False).encode())


class _Trails:
    """The headings that apply at each place: of every level the last one, unless a higher one came since."""

    def __init__(self, headings: Sequence[Heading]) -> None:
        self._starts = [heading.start_index for heading in headings]
        self._trails: list[str] = []
        open_headings: list[Heading] = []
        for heading in headings:
            open_headings = [other for other in open_headings if other.level < heading.level]
            open_headings.append(heading)
            self._trails.append(" > ".join(other.title for other in open_headings))

    def at(self, place: int) -> str | None:
        """The trail at a place, outermost first; a heading applies from its own first character on."""
        number = bisect_right(self._starts, place)
        return self._trails[number - 1] if number else None

"""Makes the chunks of one document from its loaded text."""

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
"""The most bytes that the attributes of a document may have together, as JSON."""
MAX_GAP = 1024
"""The longest text between two chunks that is kept with the second chunk, in code points."""


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
    """Returns the chunks that one attempt makes of a document, in order.

    Args:
        loaded: the text of the document.
        attempt: the number of the attempt, 1 to 15. The chunks' ids contain it.
        origin: where the document came from; empty when the caller does not say.
        attributes: the caller's attributes. The document's own attributes are added as far as all together are at
            most 64 attributes and 64 KiB, because they are stored with every chunk. Where both have a name, the
            caller's value stays.
        splitter: cuts the text.
        size: the most tokens of a chunk.
        overlap: the most tokens that a chunk shares with the chunk before it.
        counter: counts the tokens.

    Raises:
        EmptyContent: the text is nothing but white space.
        PayloadTooLarge: the text makes more chunks than the ids of a document can number (1,048,576).
        InvalidArgument: ``size`` or ``overlap`` is out of range.
    """
    spans = splitter.split(loaded, size, overlap, counter)
    if not spans:
        raise EmptyContent("Nothing is left of the document after loading")
    if len(spans) > MAX_CHUNKS:
        raise PayloadTooLarge(f"The document makes more than {MAX_CHUNKS} chunks", limit=MAX_CHUNKS)
    trails = _HeadingTrails(loaded.headings)
    all_attributes = _merge_attributes(attributes, loaded.attributes)
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
                attributes=all_attributes,
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


def _gap(text: str, previous_end: int, start: int) -> str | None:
    """Returns the text between two chunks; None when there is none, or more than ``MAX_GAP`` code points."""
    return text[previous_end:start] if 0 < start - previous_end <= MAX_GAP else None


def _merge_attributes(callers: Attributes, documents: Attributes) -> dict[str, Any]:
    """Returns the caller's attributes, with as many of the document's own as the limits leave room for."""
    merged = dict(callers)
    room = MAX_ATTRIBUTES_BYTES - _json_size(callers)
    for name, value in documents.items():
        if name in callers:
            continue
        room -= _json_size({name: value})
        if room < 0 or len(merged) == MAX_ATTRIBUTES:
            break
        merged[name] = value
    return merged


def _json_size(attributes: Attributes) -> int:
    return len(json.dumps(attributes, ensure_ascii=False).encode())


class _HeadingTrails:
    """Says of any offset in a text which headings the offset is under: the open heading of every level.

    A heading is open from its own start to the next heading of the same level or a higher level.
    """

    def __init__(self, headings: Sequence[Heading]) -> None:
        self._starts = [heading.start_index for heading in headings]
        self._trails: list[str] = []
        open_headings: list[Heading] = []
        for heading in headings:
            open_headings = [outer for outer in open_headings if outer.level < heading.level]
            open_headings.append(heading)
            self._trails.append(" > ".join(open_heading.title for open_heading in open_headings))

    def at(self, offset: int) -> str | None:
        """Returns the titles of the open headings, outermost first; None before the first heading."""
        headings_before = bisect_right(self._starts, offset)
        return self._trails[headings_before - 1] if headings_before else None

"""A chunk: a piece of a document's text, with exact character offsets and lineage."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Protocol, Self, runtime_checkable

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    ValidationError,
)

from core.model.base import Model, with_example
from core.model.ids import (
    EXAMPLE_CHUNK_ID,
    EXAMPLE_COLLECTION_ID,
    EXAMPLE_DOCUMENT_ID,
    ChunkId,
    CollectionId,
    DocumentId,
)

MAX_CHUNK_BYTES = 32 * 1024
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1

MAX_NAME_BYTES = 128
MAX_TEXT_BYTES = 1024
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def check_attribute_name(name: str) -> str:
    """The name of an attribute: 1 to 128 bytes of UTF-8, without control characters.

    Raises:
        ValueError: it is none; says why.
    """
    if not 1 <= _utf8_length(name) <= MAX_NAME_BYTES:
        raise ValueError(f"an attribute's name is 1 to {MAX_NAME_BYTES} bytes of UTF-8")
    if _CONTROL.search(name):
        raise ValueError("an attribute's name has no control characters")
    return name


def check_attribute_text(text: str) -> str:
    """A text in an attribute: at most 1,024 bytes of UTF-8.

    Raises:
        ValueError: it is longer, or holds half of a surrogate pair.
    """
    if _utf8_length(text) > MAX_TEXT_BYTES:
        raise ValueError(f"a text in an attribute is at most {MAX_TEXT_BYTES} bytes of UTF-8")
    return text


def _utf8_length(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise ValueError("half of a surrogate pair is no text") from error


AttributeText = Annotated[StrictStr, StringConstraints(max_length=MAX_TEXT_BYTES), AfterValidator(check_attribute_text)]


def _plain(value: Any) -> Any:
    """A date is kept as JSON has it: RFC 3339 with its zone. An integer too long is refused, before it is rounded."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a date needs a time zone")
        return value.isoformat()
    if isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER:
        raise ValueError("an integer has at most 64 bits")
    return value


AttributeValue = Annotated[
    StrictBool
    | StrictInt
    | Annotated[StrictFloat, Field(allow_inf_nan=False)]
    | AttributeText
    | Annotated[list[AttributeText], Field(max_length=64)],
    BeforeValidator(_plain),
]
AttributeName = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_NAME_BYTES), AfterValidator(check_attribute_name)
]
Attributes = Annotated[dict[AttributeName, AttributeValue], Field(max_length=64)]


class Lineage(Model):
    """Which parent a chunk came from, which split made it and which chunkers ran over it since.

    Attributes:
        parent_id: the document, or the chunk that was split again.
        chunk_index: place within the parent's split, from 0.
        total_chunks: how many chunks the parent's split made: "chunk 3 of 12".
        splitter: the splitter's stable name.
        chunker_chain: names of the chunkers that ran after the split, in order.
    """

    parent_id: DocumentId | ChunkId
    chunk_index: int = Field(ge=0)
    total_chunks: int = Field(ge=1)
    splitter: str
    chunker_chain: tuple[str, ...] = ()

    @classmethod
    def from_split(cls, parent_id: DocumentId | ChunkId, chunk_index: int, total_chunks: int, splitter: str) -> Self:
        """What a splitter stamps onto each child; the chain starts empty."""
        return cls(
            parent_id=parent_id,
            chunk_index=chunk_index,
            total_chunks=total_chunks,
            splitter=splitter,
        )

    def push_chunker(self, chunker: str) -> Self:
        """The lineage with one more chunker at the end of its chain."""
        return self.model_copy(update={"chunker_chain": (*self.chunker_chain, chunker)})


@runtime_checkable
class ChunkLike(Protocol):
    """What another library's chunk needs to have."""

    text: str
    start_index: int
    end_index: int


@runtime_checkable
class IntoChunk(Protocol):
    """What can make a Chunk of itself."""

    def to_chunk(self) -> "Chunk": ...


EXAMPLE_CHUNK: dict[str, Any] = {
    "text": "A loom holds the warp threads under tension.",
    "start_index": 9,
    "end_index": 53,
    "char_count": 44,
    "context": "Looms",
    "origin": "https://example.org/looms.md",
    "attributes": {"lang": "en", "year": 2024},
    "id": EXAMPLE_CHUNK_ID,
    "document_id": EXAMPLE_DOCUMENT_ID,
    "collection_id": EXAMPLE_COLLECTION_ID,
    "index": 3,
    "token_count": 9,
    "lineage": {
        "parent_id": EXAMPLE_DOCUMENT_ID,
        "chunk_index": 3,
        "total_chunks": 12,
        "splitter": "markdown",
        "chunker_chain": [],
    },
}


class Chunk(Model):
    """A segment of text of a document.

    Attributes:
        text: the text; ``loaded_text[start_index:end_index]`` for every chunk that a splitter made.
        start_index, end_index: Unicode code points of the loaded text.
        char_count: code points in this chunk.
        context: the heading trail at this place, outermost first, joined by " > ".
        page: number, from 1, of the page on which the chunk starts, where the loader knows of pages.
        origin: where the parent document came from.
        attributes: values to filter by; the document's, overridden by the chunk's own. {} when there are none.
        id, document_id, collection_id: absent until the chunk belongs to a stored document.
        index: number among the document's leaves, from 0.
        token_count: by the collection's counter.
        lineage: absent until a split made it.
        gap: what stands between the chunk before and this one, when the split left something out there (white space
            of at most 1,024 characters). With it, neighbours join to exactly the document's text. Kept out of answers.
    """

    model_config = with_example(EXAMPLE_CHUNK)

    text: str
    start_index: int = Field(ge=0)
    end_index: int = Field(ge=0)
    char_count: int = Field(ge=0)
    context: str | None = None
    page: int | None = Field(default=None, ge=1)
    origin: str | None = None
    attributes: dict[str, Any] = Field(default_factory=dict)
    id: ChunkId | None = None
    document_id: DocumentId | None = None
    collection_id: CollectionId | None = None
    index: int | None = Field(default=None, ge=0)
    token_count: int | None = Field(default=None, ge=0)
    lineage: Lineage | None = None
    gap: str | None = Field(default=None, exclude=True)

    @classmethod
    def from_any(cls, chunk: Any) -> "Chunk":
        """A Chunk of another library's chunk, for example chonkie's.

        An object with a callable ``to_chunk`` answers for itself. Otherwise ``text``, ``start_index`` and
        ``end_index`` are needed; ``char_count``, ``context``, ``origin`` and ``attributes`` are read when present.

        Raises:
            TypeError: neither form, a field of another type, or ``to_chunk`` returned something else.
        """
        if isinstance(chunk, Chunk):
            return chunk
        kind = type(chunk).__name__
        if callable(getattr(chunk, "to_chunk", None)):
            made = chunk.to_chunk()
            if not isinstance(made, Chunk):
                raise TypeError(f"{kind}.to_chunk() returned {type(made).__name__}, not Chunk")
            return made
        if not isinstance(chunk, ChunkLike):
            raise TypeError(f"{kind} has no text, start_index and end_index, and no to_chunk()")
        count = getattr(chunk, "char_count", None)
        attributes = getattr(chunk, "attributes", None)
        try:
            return cls(
                text=chunk.text,
                start_index=chunk.start_index,
                end_index=chunk.end_index,
                char_count=len(chunk.text) if count is None else count,
                context=getattr(chunk, "context", None),
                origin=getattr(chunk, "origin", None),
                attributes=dict(attributes) if isinstance(attributes, Mapping) else {},
            )
        except (ValidationError, TypeError) as error:
            raise TypeError(f"{kind} has a field of another type than a chunk's") from error

"""Chunks: pieces of a document's text with exact character offsets, their lineage, and the attributes to filter by."""

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
"""The longest text of a chunk in bytes of UTF-8, however few tokens the text has."""

# -- attributes --------------------------------------------------------------------------------------------------------

MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1
MAX_NAME_BYTES = 128
MAX_TEXT_BYTES = 1024
_CONTROL_CHARACTER = re.compile("[\x00-\x1f\x7f-\x9f]")


def validate_attribute_name(name: str) -> str:
    """Returns an attribute's name if it is 1 to 128 bytes of UTF-8 without control characters.

    Raises:
        ValueError: the name has another form; the message says which rule it breaks.
    """
    if not 1 <= _utf8_length(name) <= MAX_NAME_BYTES:
        raise ValueError(f"an attribute's name is 1 to {MAX_NAME_BYTES} bytes of UTF-8")
    if _CONTROL_CHARACTER.search(name):
        raise ValueError("an attribute's name has no control characters")
    return name


def validate_attribute_text(text: str) -> str:
    """Returns a text of an attribute if it is at most 1,024 bytes of UTF-8.

    Raises:
        ValueError: the text is longer, or holds half of a surrogate pair.
    """
    if _utf8_length(text) > MAX_TEXT_BYTES:
        raise ValueError(f"a text in an attribute is at most {MAX_TEXT_BYTES} bytes of UTF-8")
    return text


def _utf8_length(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise ValueError("half of a surrogate pair is not a character") from error


AttributeText = Annotated[
    StrictStr, StringConstraints(max_length=MAX_TEXT_BYTES), AfterValidator(validate_attribute_text)
]


def _attribute_value(value: Any) -> Any:
    """Turns a date into RFC 3339 text with its zone, as JSON has it.

    An integer of more than 64 bits is refused here, before pydantic could round it to a float.
    """
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
    BeforeValidator(_attribute_value),
]
AttributeName = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_NAME_BYTES), AfterValidator(validate_attribute_name)
]
Attributes = Annotated[dict[AttributeName, AttributeValue], Field(max_length=64)]


# -- lineage -----------------------------------------------------------------------------------------------------------


class Lineage(Model):
    """A lineage says from which parent a chunk was split, by which splitter, and which chunkers ran on the chunk since.

    Attributes:
        parent_id: The ID of the document that was split, or of the chunk that was split again.
        chunk_index: The chunk's place among the chunks of the same split, from 0.
        total_chunks: How many chunks that split made, so that "chunk 3 of 12" can be shown.
        splitter: The stable name of the splitter.
        chunker_chain: The names of the chunkers that ran after the split, in order.
    """

    parent_id: DocumentId | ChunkId
    chunk_index: int = Field(ge=0)
    total_chunks: int = Field(ge=1)
    splitter: str
    chunker_chain: tuple[str, ...] = ()

    @classmethod
    def from_split(cls, parent_id: DocumentId | ChunkId, chunk_index: int, total_chunks: int, splitter: str) -> Self:
        """Makes the lineage that a splitter gives to each chunk of a split. Its chunker chain is empty."""
        return cls(
            parent_id=parent_id,
            chunk_index=chunk_index,
            total_chunks=total_chunks,
            splitter=splitter,
        )

    def push_chunker(self, chunker: str) -> Self:
        """Returns this lineage with a chunker's name added to the end of the chain."""
        return self.model_copy(update={"chunker_chain": (*self.chunker_chain, chunker)})


# -- chunks ------------------------------------------------------------------------------------------------------------


@runtime_checkable
class ChunkLike(Protocol):
    """The members that another library's chunk must have so that `Chunk.from_any` can read it."""

    text: str
    start_index: int
    end_index: int


@runtime_checkable
class IntoChunk(Protocol):
    """An object of another library that can turn itself into a Chunk."""

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
    """A chunk is a piece of a document's text, with the exact place of the piece in the document.

    Attributes:
        text: The text of the chunk. For every chunk that a splitter made it is ``loaded_text[start_index:end_index]``.
        start_index: Where the chunk starts in the document's loaded text, in Unicode code points.
        end_index: Where the chunk ends in the document's loaded text, in Unicode code points.
        char_count: The number of code points in the chunk.
        context: The headings above the chunk, outermost first, joined by " > ".
        page: The number of the page on which the chunk starts, from 1, where the loader knows of pages.
        origin: Where the document came from.
        attributes: Values to filter by: the document's, overridden by the chunk's own. {} when there are none.
        id, document_id, collection_id: Null until the chunk belongs to a stored document.
        index: The chunk's number among the document's chunks, from 0.
        token_count: The number of tokens, by the collection's token counter.
        lineage: Which split made the chunk; null until a split did.
        gap: The white space between the previous chunk and this chunk that the split left out, at most 1,024
            characters. With it, neighbouring chunks join to exactly the document's text. It is not part of answers.
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
        """Makes a Chunk of another library's chunk, for example chonkie's.

        An object with a callable ``to_chunk`` converts itself. Any other object needs ``text``, ``start_index`` and
        ``end_index``; its ``char_count``, ``context``, ``origin`` and ``attributes`` are read when it has them.

        Raises:
            TypeError: the object has neither form, a field has another type, or ``to_chunk`` returned no Chunk.
        """
        if isinstance(chunk, Chunk):
            return chunk
        kind = type(chunk).__name__
        if callable(getattr(chunk, "to_chunk", None)):
            converted = chunk.to_chunk()
            if not isinstance(converted, Chunk):
                raise TypeError(f"{kind}.to_chunk() returned {type(converted).__name__}, not Chunk")
            return converted
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

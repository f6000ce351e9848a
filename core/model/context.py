"""Contexts: texts that are built of hits within a token budget, with a citation for each marker."""

from typing import Annotated, Any

from pydantic import Field, StrictInt

from core.model.base import Model
from core.model.ids import EXAMPLE_CHUNK_ID, EXAMPLE_DOCUMENT_ID, ChunkId, DocumentId

MAX_EXPAND = 10
"""The most chunks that can be added on each side of a hit."""


class ChunkRef(Model):
    """A reference to a chunk of an earlier ranking, by the chunk's ID."""

    chunk_id: ChunkId


class AssembleOptions(Model):
    """Options for building a context."""

    max_tokens: StrictInt = Field(
        default=0,
        le=10_000_000,
        description="The most tokens of the whole context, header and markers included; 0 or less means 4096",
    )
    token_counter: str = Field(
        default="chars/4",
        min_length=1,
        max_length=256,
        description=(
            "How tokens are counted: `chars/4`, an estimate, or the name of an embedding model of the engine that has "
            "a tokenizer"
        ),
    )
    expand: Annotated[StrictInt, Field(ge=0, le=MAX_EXPAND)] = Field(
        default=0,
        description="How many chunks before and after each hit are added, from the same version of its document",
    )


class Citation(Model):
    """A citation says where the text behind one marker of a context came from.

    Attributes:
        marker: The number n of the marker ``[n]`` in the context.
        chunk_id: The best hit among the chunks behind the marker.
        chunk_ids: All chunks behind the marker, in document order: the hits that are joined there, and the neighbours
            that were added.
        source: Where the document came from; the source key when no source was given.
        context: The headings above the best hit.
        page: The page on which the text starts, where the loader knows of pages.
        start_index: Where the text starts in the document's loaded text, in code points; null for an orphaned hit,
            whose place in the document is not known.
        end_index: Where the text ends in the document's loaded text, in code points; null for an orphaned hit.
    """

    marker: int
    chunk_id: ChunkId
    chunk_ids: list[ChunkId]
    document_id: DocumentId
    source: str
    title: str
    context: str | None
    page: int | None
    start_index: int | None
    end_index: int | None


EXAMPLE_CONTEXT: dict[str, Any] = {
    "context": "Relevant context:\n\n[1] A loom holds the warp threads under tension.",
    "total_tokens": 17,
    "max_tokens": 2000,
    "included": [0],
    "first_excluded": -1,
    "token_counter": "chars/4",
    "citations": [
        {
            "marker": 1,
            "chunk_id": EXAMPLE_CHUNK_ID,
            "chunk_ids": [EXAMPLE_CHUNK_ID],
            "document_id": EXAMPLE_DOCUMENT_ID,
            "source": "https://example.org/looms.md",
            "title": "Looms",
            "context": "Looms",
            "page": None,
            "start_index": 9,
            "end_index": 53,
        }
    ],
}


class AssembledContext(Model):
    """A text of hits within a token budget, with its citations.

    Attributes:
        context: The text, ready for a prompt.
        total_tokens: The number of tokens of the whole text.
        max_tokens: The token budget.
        included: The positions, from 0, of the hits that have a marker: marker [n] is hit included[n-1]. A hit that is
            joined to another hit's text has no marker of its own: that citation's ``chunk_ids`` name it.
        first_excluded: The first position whose chunk is not in the context; -1 when every chunk is.
        token_counter: How tokens were counted.
        citations: One citation for each marker, in order.
    """

    context: str
    total_tokens: int
    max_tokens: int
    included: list[int]
    first_excluded: int
    token_counter: str
    citations: list[Citation]

"""The context that is built from a ranking, with its citations."""

from typing import Annotated, Any

from pydantic import Field, StrictInt

from core.model.base import Model
from core.model.ids import EXAMPLE_CHUNK_ID, EXAMPLE_DOCUMENT_ID, ChunkId, DocumentId

MAX_EXPAND = 10


class ChunkRef(Model):
    """A chunk by its ID, as an earlier ranking gave it."""

    chunk_id: ChunkId


class AssembleOptions(Model):
    """How a context is built.

    Attributes:
        max_tokens: of the whole context, its header and markers included; zero or less: 4096.
        token_counter: how tokens are counted: ``chars/4``, an estimate, or a counter of the engine's embedders.
        expand: how many chunks before and after each hit are added, from the same version of its document.
    """

    max_tokens: StrictInt = Field(default=0, le=10_000_000, description="0 or less: 4096")
    token_counter: str = Field(
        default="chars/4",
        min_length=1,
        max_length=256,
        description="chars/4, an estimate, or the name of an embedding model whose tokenizer runs here",
    )
    expand: Annotated[StrictInt, Field(ge=0, le=MAX_EXPAND)] = Field(
        default=0, description="How many chunks before and after each hit are added"
    )


class Citation(Model):
    """What a marker stands for: ``text[start_index:end_index]`` of the document's loaded text, in code points.

    Attributes:
        chunk_id: the best hit that stands there.
        chunk_ids: all chunks that stand there, in the document's order: the hits that are together under the marker,
            and their neighbours.
        source: where the document came from; its key, where that is not said.
        context: the headings above the best hit.
        page: on which the text starts, where the loader knows of pages.
        start_index, end_index: null for a hit that is orphaned, for nothing tells its place in the document.
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
    """A context within a token budget.

    Attributes:
        total_tokens: the count of the whole context.
        included: 0-based positions of the hits that made it in, in order; marker [n] is hit included[n-1]. A hit that
            stands under another's marker has no number of its own: the citation's ``chunk_ids`` name it.
        first_excluded: the first position whose chunk is not in the context; -1 when all are.
        token_counter: how tokens were counted.
    """

    context: str
    total_tokens: int
    max_tokens: int
    included: list[int]
    first_excluded: int
    token_counter: str
    citations: list[Citation]

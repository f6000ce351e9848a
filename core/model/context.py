"""The context that is built from a ranking, with its citations."""

from core.model.base import Model
from core.model.hit import Hit
from core.model.ids import ChunkId, DocumentId


class ChunkRef(Model):
    """A chunk by its ID, as an earlier ranking gave it."""

    chunk_id: ChunkId


class Citation(Model):
    """What a marker stands for. Offsets are code points of the document's loaded text."""

    marker: int
    chunk_id: ChunkId
    document_id: DocumentId
    source: str
    title: str
    context: str | None
    start_index: int
    end_index: int


class AssembledContext(Model):
    """A context within a token budget.

    Attributes:
        included: 0-based positions of the hits that made it in, in order; marker [n] is hit included[n-1].
        first_excluded: the first position not included; -1 when all were.
        token_counter: how tokens were counted.
    """

    context: str
    total_tokens: int
    max_tokens: int
    included: list[int]
    first_excluded: int
    token_counter: str
    citations: list[Citation]


class AssembledRefs(Model):
    """A context and the hits it was built from."""

    context: AssembledContext
    hits: list[Hit]

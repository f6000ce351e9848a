"""Chunks that are nothing but their IDs, and the numbers that rankings are made of."""

from hypothesis import strategies as st

from core.model.ids import ChunkId, DocumentId

DOCUMENT = DocumentId.new(1_780_000_000_000, 1)


def chunk(number: int) -> ChunkId:
    """IDs are in the order of their numbers."""
    return ChunkId.of(DOCUMENT, 1, number)


ids = st.integers(0, 30).map(chunk)
orders = st.lists(ids, unique=True, max_size=20)

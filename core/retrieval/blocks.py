"""Blocks: the hits and neighbours that stand under one marker of a context, as one piece of a document's text."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from core.model.chunk import Chunk
from core.model.hit import Hit
from core.model.ids import MAX_CHUNKS, ChunkId


@dataclass(frozen=True)
class Block:
    """Consecutive chunks of one version of a document.

    Attributes:
        position: the position of the best hit in the block.
        hit: the best hit.
        chunk_id: the best hit's chunk.
        chunks: the block's chunks in the document's order. Each has an ID.
    """

    position: int
    hit: Hit
    chunk_id: ChunkId
    chunks: tuple[Chunk, ...]

    @cached_property
    def ids(self) -> list[ChunkId]:
        """The IDs of the block's chunks."""
        return [chunk.id for chunk in self.chunks if chunk.id is not None]

    @cached_property
    def pieces(self) -> list[str]:
        """The text that each chunk adds. Joined, they are the document's text from the block's start to its end."""
        return [self.chunks[0].text, *(_added(*pair) for pair in pairwise(self.chunks))]

    def meets(self, other: "Block", *, adjacent: bool) -> bool:
        """Tells whether two blocks share a chunk or, with `adjacent`, follow on one another.

        An orphaned hit has no known place in its document, so its block meets no other.
        """
        if self.hit.orphaned or other.hit.orphaned or self.chunk_id.generation != other.chunk_id.generation:
            return False
        first, second = sorted((self, other), key=lambda block: block.ids[0].chunk_index)
        apart = second.ids[0].chunk_index - first.ids[-1].chunk_index
        return apart <= 0 or (adjacent and apart == 1 and follows(first.chunks[-1], second.chunks[0]))

    def joined(self, other: "Block") -> "Block":
        """Joins two blocks into one, at the place of the better hit."""
        better = min(self, other, key=lambda block: block.position)
        chunks = {chunk.id: chunk for block in (self, other) for chunk in block.chunks}
        ordered = sorted(chunks.values(), key=lambda chunk: chunk.id or "")
        return replace(better, chunks=tuple(ordered))


def with_block(blocks: Sequence[Block], added: Block, *, adjacent: bool) -> list[Block]:
    """Adds a block to blocks and joins it with every block that it meets. Returns the blocks by position."""
    others = []
    for block in blocks:
        if block.meets(added, adjacent=adjacent):
            added = block.joined(added)
        else:
            others.append(block)
    return sorted((*others, added), key=lambda block: block.position)


def _added(before: Chunk, chunk: Chunk) -> str:
    """Returns the text that a chunk adds behind the chunk before: the text between them and the part not shared."""
    return (chunk.gap or "") + chunk.text[max(0, before.end_index - chunk.start_index) :]


def follows(before: Chunk, chunk: Chunk) -> bool:
    """Tells whether the text between two chunks is known, so that they can stand in one block."""
    apart = chunk.start_index - before.end_index
    return apart <= 0 or len(chunk.gap or "") == apart


def around(chunk: Chunk, chunk_id: ChunkId, expand: int, known: Mapping[ChunkId, Chunk]) -> tuple[Chunk, ...]:
    """Returns a chunk with its neighbours, as far as these are known and follow on one another."""
    ids = neighbours(chunk_id, expand)
    place = ids.index(chunk_id)
    run = deque([known.get(chunk_id, chunk)])
    for neighbour in reversed(ids[:place]):
        if (before := known.get(neighbour)) is None or not follows(before, run[0]):
            break
        run.appendleft(before)
    for neighbour in ids[place + 1 :]:
        if (after := known.get(neighbour)) is None or not follows(run[-1], after):
            break
        run.append(after)
    return tuple(run)


def neighbours(chunk_id: ChunkId, expand: int) -> list[ChunkId]:
    """Lists a chunk and the possible chunks up to `expand` places before and after it, in the document's order."""
    places = range(max(0, chunk_id.chunk_index - expand), min(MAX_CHUNKS, chunk_id.chunk_index + expand + 1))
    return [ChunkId.of(chunk_id.document_id, chunk_id.attempt, place) for place in places]

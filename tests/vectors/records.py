"""Vectors and records for tests of vector stores. Everything follows from its arguments."""

import math
import random
from collections.abc import Sequence

from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.vector import Vector
from core.vectors.types import VectorRecord


def unit(*numbers: float) -> Vector:
    """The direction of these numbers."""
    length = math.sqrt(math.fsum(number * number for number in numbers))
    return [number / length for number in numbers]


def direction(seed: int, dimensions: int) -> Vector:
    """One of many directions, spread evenly."""
    chance = random.Random(seed)
    return unit(*(chance.gauss(0.0, 1.0) for _ in range(dimensions)))


def collection_id(number: int) -> CollectionId:
    return CollectionId.new(number, 0)


def chunk_id(index: int, *, document: int = 1, attempt: int = 1) -> ChunkId:
    return ChunkId.of(DocumentId.new(document, 0), attempt, index)


def record(
    chunk: ChunkId, vector: Vector, *, collection: int = 1, text: str = "text", terms: Sequence[str] = ()
) -> VectorRecord:
    """A record without a source."""
    return VectorRecord(
        chunk_id=chunk,
        collection_id=collection_id(collection),
        source_id=None,
        source_key=None,
        text=text,
        vector=vector,
        terms=terms,
    )

"""Chunks as the vector store keeps them."""

from collections.abc import Sequence

from core.analysis.terms import document_terms
from core.embedding.types import Vector
from core.metadata.rows import Head
from core.model.chunk import Chunk
from core.vectors.types import VectorRecord


def vector_records(
    head: Head, source_key: str | None, chunks: Sequence[Chunk], vectors: Sequence[Vector]
) -> list[VectorRecord]:
    """The records of a document's chunks and their vectors, in order."""
    return [
        VectorRecord(
            chunk_id=chunk.id,
            collection_id=head.collection_id,
            source_id=head.source_id,
            source_key=source_key,
            text=chunk.text,
            vector=vector,
            attributes=chunk.attributes,
            terms=document_terms(chunk.text),
        )
        for chunk, vector in zip(chunks, vectors, strict=True)
        if chunk.id is not None
    ]

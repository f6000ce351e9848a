"""Embeds chunks of a ready document again and writes their vectors over the existing ones, under the same IDs."""

from collections.abc import Sequence

from core.clock import Lifetime
from core.embedding.embedders import Embedders
from core.ingest.stages import EMBED_AT_ONCE, vector_records
from core.metadata.jobs import TakenOverError
from core.metadata.rows import Head
from core.model.chunk import Chunk
from core.protocol.served import Served
from core.vectors.types import VectorStore


class Reembedding:
    """Embeds chunks again."""

    def __init__(self, embedders: Embedders, vectors: VectorStore, served: Served) -> None:
        self._embedders = embedders
        self._vectors = vectors
        self._served = served

    def reembed(self, head: Head, source_key: str | None, chunks: Sequence[Chunk], lifetime: Lifetime) -> bool:
        """Embeds chunks of a ready document and overwrites their vectors.

        The document's row is read again afterwards. When the document is no longer ready under that attempt, the
        vectors that this call has written are deleted again.

        Args:
            lifetime: began before `head` was read. Nothing is written after its end.

        Returns:
            Whether the document was ready to the end.

        Raises:
            NotConfigured: the collection's embedder is not configured.
            TakenOverError: the writer's life is over, and the lease of its job with it. Another worker goes on.
        """
        embedder = self._embedders.of_space(head.space)
        for start in range(0, len(chunks), EMBED_AT_ONCE):
            batch = chunks[start : start + EMBED_AT_ONCE]
            vectors = self._embedders.embed(embedder, [chunk.text for chunk in batch])
            if lifetime.is_over():
                raise TakenOverError
            self._vectors.write(head.tenant, head.space, vector_records(head, source_key, batch, vectors))
        if self._served.is_still_ready(head):
            return True
        self._vectors.delete(head.tenant, head.space, [chunk.id for chunk in chunks if chunk.id is not None])
        return False

"""A corpus in an engine: ingested whole, and asked by any strategy."""

from typing import Any

from core.clock import SystemClock
from core.embedding.types import Embedder
from core.engine import Engine
from core.metadata.dynamo import Table
from core.model.collection import NewCollection
from core.model.document import DocumentState
from core.model.errors import WeftError
from core.model.ingest import IngestInput
from core.model.query import RetrieveOptions, RetrieveQuery, Strategy
from core.model.tenant import Tenant
from core.parts import Parts
from core.reranking.types import Reranker
from core.settings import Settings
from core.text.analysis import query_terms
from core.text.loaders import Loaders
from core.text.splitters import Splitters
from core.vectors.types import TextQuery, VectorStore
from tests.quality.corpora import Corpus
from tests.support.command import progress
from tests.support.dynamodb import LargeDynamoDB

TABLE = "weft-quality"
AT_ONCE = 8
"""Documents: on OpenSearch they wait for one refresh together."""
ENDLESS = 1e9


class Searched:
    """A corpus that can be asked. Rankings are of documents, each at the place of its best chunk.

    Args:
        vectors: it may hold other corpora: each is a tenant of its own.

    Attributes:
        chunks: how many the documents have together.
    """

    def __init__(
        self, corpus: Corpus, vectors: VectorStore, embedder: Embedder, reranker: Reranker | None = None
    ) -> None:
        client: Any = LargeDynamoDB()
        clock = SystemClock()
        self._parts = Parts(
            settings=Settings(table=TABLE, embedder="none", vectors="none", ingest_concurrency=AT_ONCE),
            clock=clock,
            table=Table(client, TABLE, clock),
            loaders=Loaders(),
            splitters=Splitters(),
            embedders={embedder.space.model: embedder},
            vectors=vectors,
            reranker=reranker,
        )
        self._engine = Engine(self._parts)
        self._vectors = vectors
        self._tenant = Tenant(corpus.name)
        self._collection = self._engine.collections.create(self._tenant, NewCollection(name=corpus.name))
        self.chunks = self._ingest(corpus)

    def ranking(
        self, question: str, strategy: Strategy, top_k: int, options: RetrieveOptions | None = None
    ) -> list[str]:
        """The documents of the answer to a question."""
        query = RetrieveQuery(
            query=question,
            collections=[self._collection.id],
            top_k=top_k,
            strategy=strategy,
            options=options or RetrieveOptions(),
        )
        hits = self._engine.retrieve(self._tenant, query).hits
        return _once([hit.document.source_key if hit.document else None for hit in hits])

    def by_terms(self, question: str, limit: int) -> list[str]:
        """The documents that BM25 alone finds, asked of the store."""
        query = TextQuery(query_terms(question), [self._collection.id], limit)
        matches = self._vectors.search_text(self._tenant, self._collection.space, query)
        return _once([match.source_key for match in matches])

    def _ingest(self, corpus: Corpus) -> int:
        """Ingests every document under its ID; how many chunks there are."""
        given = [
            IngestInput(collection_id=self._collection.id, content=text.encode(), source_key=name)
            for name, text in corpus.documents.items()
        ]
        chunks = 0
        for start in progress(range(0, len(given), AT_ONCE), f"Ingesting {corpus.name}"):
            for one in self._engine.ingest.batch(self._tenant, given[start : start + AT_ONCE], ENDLESS):
                if isinstance(one, WeftError):
                    raise one
                assert one.state is DocumentState.READY, "every document is ready when its ingest ends"
                chunks += one.chunk_count
        return chunks


def _once(found: list[str | None]) -> list[str]:
    if None in found:
        raise RuntimeError("a hit has no source")
    return list(dict.fromkeys(one for one in found if one is not None))

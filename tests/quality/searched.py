"""A corpus in an engine: ingested whole, and asked by any strategy."""

from core.analysis.terms import query_terms
from core.embedding.types import Embedder
from core.model.collection import NewCollection
from core.model.document import DocumentState
from core.model.ingest import IngestInput
from core.model.query import RetrieveOptions, RetrieveQuery, Strategy
from core.model.tenant import Tenant
from core.reranking.types import Reranker
from core.settings import Settings
from core.vectors.types import TextQuery, VectorStore
from tests.quality.corpora import Corpus
from tests.support.clock import ManualClock
from tests.support.command import progress
from tests.support.dynamodb import LargeDynamoDB
from tests.support.engines import make_engine

TABLE = "weft-quality"
ENDLESS = 1e9


class Searched:
    """A corpus that can be asked. Rankings are of documents, each at the place of its best chunk.

    Equal scores come in order of chunk ID, so identifiers are the same each time: a ranking can be repeated.

    Args:
        vectors: it may hold other corpora: each is a tenant of its own.

    Attributes:
        chunks: how many the documents have together.
    """

    def __init__(
        self, corpus: Corpus, vectors: VectorStore, embedder: Embedder, reranker: Reranker | None = None
    ) -> None:
        settings = Settings(table=TABLE, embedder="none", vectors="none")
        self._engine = make_engine(LargeDynamoDB(), vectors, [embedder], ManualClock(), settings, reranker=reranker)
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
        """Ingests every document under its ID, one after the other; how many chunks there are."""
        chunks = 0
        for name, text in progress(corpus.documents.items(), f"Ingesting {corpus.name}", len(corpus.documents)):
            given = IngestInput(collection_id=self._collection.id, content=text.encode(), source_key=name)
            result = self._engine.ingest.ingest(self._tenant, given, ENDLESS)
            assert result.state is DocumentState.READY, "every document is ready when its ingest ends"
            chunks += result.chunk_count
        return chunks


def _once(found: list[str | None]) -> list[str]:
    if None in found:
        raise RuntimeError("a hit has no source")
    return list(dict.fromkeys(one for one in found if one is not None))

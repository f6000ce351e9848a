"""A corpus in a vector store alone, for searches by terms: every document is one record."""

from core.analysis.terms import document_terms, query_terms
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.vectors.types import TextQuery, VectorRecord, VectorStore
from tests.quality.corpora import Corpus

SPACE = VectorSpace(model="none", dimensions=2)
A_WRITE = 500
"""Records at once."""


class Indexed:
    """A corpus that can be searched by terms.

    Args:
        store: it may hold other corpora: each is a tenant of its own.
    """

    def __init__(self, corpus: Corpus, store: VectorStore) -> None:
        self._store = store
        self._tenant = Tenant(corpus.name)
        self._collection = CollectionId.new(0, 0)
        records = [
            VectorRecord(
                chunk_id=ChunkId.of(DocumentId.new(number, 0), 1, 0),
                collection_id=self._collection,
                source_id=name,
                source_key=name,
                text=text,
                vector=[1.0, 0.0],
                terms=document_terms(text),
            )
            for number, (name, text) in enumerate(corpus.documents.items())
        ]
        store.prepare(SPACE)
        for start in range(0, len(records), A_WRITE):
            store.write(self._tenant, SPACE, records[start : start + A_WRITE])

    def ranking(self, question: str, limit: int) -> list[str]:
        """The documents that BM25 finds, best first."""
        query = TextQuery(query_terms(question), [self._collection], limit)
        return [str(match.source_key) for match in self._store.search_text(self._tenant, SPACE, query)]

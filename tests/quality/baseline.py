"""BM25 as another library has it: bm25s with the stemmers of PyStemmer, on the same texts."""

import bm25s
import Stemmer

from core.ranking.bm25 import K1, B
from tests.quality.corpora import Corpus

_STEMMERS = {"en": "english", "es": "spanish"}
_PAIRS = r"(?=(\w\w))"
"""bm25s takes a run without spaces for one word. Given pairs of characters, it is a match for Chinese too."""


class Baseline:
    """A corpus, indexed."""

    def __init__(self, corpus: Corpus) -> None:
        self._language = corpus.language
        self._ids = list(corpus.documents)
        self._index = bm25s.BM25(k1=K1, b=B)
        self._index.index(self._terms(list(corpus.documents.values())), show_progress=False)

    def ranking(self, question: str, limit: int) -> list[str]:
        """The documents that answer a question best, best first."""
        [terms] = self._terms([question])
        if not terms:
            return []
        count = min(limit, len(self._ids))
        found, scores = self._index.retrieve([terms], k=count, show_progress=False)
        return [self._ids[number] for number, score in zip(found[0], scores[0], strict=True) if score > 0]

    def _terms(self, texts: list[str]) -> list[list[str]]:
        stemmer = _STEMMERS.get(self._language)
        tokens: list[list[str]] = bm25s.tokenize(
            texts,
            stopwords=self._language if stemmer else None,
            stemmer=Stemmer.Stemmer(stemmer) if stemmer else None,
            return_ids=False,
            show_progress=False,
            **({} if stemmer else {"token_pattern": _PAIRS}),
        )
        return tokens

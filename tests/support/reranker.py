"""A reranker for tests: no model, the same scores everywhere, and as slow as its clock says."""

import threading
from collections.abc import Sequence

from core.clock import Clock
from core.inference.validation import validate_query
from core.model.component import Component
from core.model.errors import Unavailable
from core.reranking.types import end_of_call


def word_overlap(query: str, text: str) -> float:
    """The share of the query's words that the text has, whatever their order and case."""
    words = set(query.casefold().split())
    return len(words & set(text.casefold().split())) / len(words)


class WordOverlapReranker:
    """A text is relevant as far as it has the words of the query.

    Attributes:
        calls: the query and the texts of each call, failures included.
        failure: raised by the next calls, until it is None again.
    """

    def __init__(self, clock: Clock, name: str = "word-overlap", seconds: float = 10.0) -> None:
        self.name = name
        self.calls: list[tuple[str, list[str]]] = []
        self.failure: Exception | None = None
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()

    def rerank(self, query: str, texts: Sequence[str], deadline: float | None = None) -> list[float]:
        with self._lock:
            self.calls.append((query, list(texts)))
            if self.failure is not None:
                raise self.failure
        validate_query(query)
        end = end_of_call(self._clock, self._seconds, deadline)
        scores = []
        for text in texts:
            if self._clock.monotonic() >= end:
                raise Unavailable("The reranker of the test is slow")
            scores.append(word_overlap(query, text))
        return scores

    def describe(self) -> Component:
        return Component(name=self.name, type="word-overlap", configured=True)

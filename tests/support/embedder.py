"""An embedder for tests: no model, no waiting, the same vectors everywhere."""

import hashlib
import threading
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from core.embedding.types import Embeddings, describe_embedder
from core.inference.validation import validate_texts
from core.model.component import Component
from core.model.vector import VectorSpace, unit_vector
from core.splitting.counting import TokenCounter


@lru_cache(maxsize=100_000)
def _word_vector(word: str, dimensions: int) -> npt.NDArray[np.float64]:
    """Numbers from -127.5 to 127.5, none of them zero, that depend on the word alone."""
    digest = hashlib.shake_256(word.encode()).digest(dimensions)
    return np.frombuffer(digest, dtype=np.uint8).astype(np.float64) - 127.5


class WordCounter:
    """A token is whatever stands between white space."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


class HashedEmbedder:
    """Texts are alike when they share words, whatever their order and case.

    Attributes:
        embedded: every text that was embedded, in order of the calls.
        calls: how often ``embed`` was called, failures included.
        failure: raised by the next calls, until it is None again.
    """

    def __init__(self, name: str = "hashed-words", dimensions: int = 64, max_tokens: int = 512) -> None:
        self.space = VectorSpace(model=name, dimensions=dimensions)
        self.max_tokens = max_tokens
        self.counter: TokenCounter = WordCounter()
        self.embedded: list[str] = []
        self.calls = 0
        self.failure: Exception | None = None
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Embeddings:
        with self._lock:
            self.calls += 1
            if self.failure is not None:
                raise self.failure
        tokens = [self.counter.count(text) for text in texts]
        validate_texts(texts, tokens, self.max_tokens)
        with self._lock:
            self.embedded.extend(texts)
        return Embeddings([self._vector(text) for text in texts], sum(tokens))

    def describe(self) -> Component:
        return describe_embedder(self, "hashed")

    def _vector(self, text: str) -> list[float]:
        words = (_word_vector(word, self.space.dimensions) for word in text.casefold().split())
        return unit_vector(sum(words, start=np.zeros(self.space.dimensions)).tolist())

"""Models whose answers are kept in a file, so that a second run asks them nothing again."""

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.embedding.types import Embedder, Embeddings
from core.model.component import Component
from core.reranking.types import Reranker

Numbers = NDArray[np.float64]


class Kept:
    """Numbers by text, of any number of models. Safe for threads.

    Args:
        path: the file; None: they are kept as long as this process lives.
    """

    def __init__(self, path: Path | None) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._rows = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
        self._rows.execute("CREATE TABLE IF NOT EXISTS kept (name BLOB PRIMARY KEY, numbers BLOB) WITHOUT ROWID")

    def __call__(
        self, names: Sequence[tuple[str, ...]], make: Callable[[list[int]], Sequence[Numbers]]
    ) -> list[Numbers]:
        """The numbers of each name.

        Args:
            make: of the places of those that are not kept yet.
        """
        keys = [hashlib.sha256("\0".join(name).encode()).digest() for name in names]
        numbers = [self._read(key) for key in keys]
        missing = [place for place, one in enumerate(numbers) if one is None]
        if missing:
            for place, made in zip(missing, make(missing), strict=True):
                numbers[place] = made
                with self._lock:
                    self._rows.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (keys[place], made.tobytes()))
        return [one for one in numbers if one is not None]

    def _read(self, key: bytes) -> Numbers | None:
        with self._lock:
            row = self._rows.execute("SELECT numbers FROM kept WHERE name = ?", (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0], dtype=np.float64)

    def close(self) -> None:
        self._rows.close()


class KeptEmbedder:
    """An embedder that is asked once for each text.

    Attributes:
        live: it is asked each time.
    """

    def __init__(self, embedder: Embedder, kept: Kept) -> None:
        self.live = False
        self.space = embedder.space
        self.max_tokens = embedder.max_tokens
        self.counter = embedder.counter
        self._embedder = embedder
        self._kept = kept

    def embed(self, texts: Sequence[str]) -> Embeddings:
        if self.live:
            return self._embedder.embed(texts)

        def make(places: list[int]) -> list[Numbers]:
            return [np.array(one) for one in self._embedder.embed([texts[place] for place in places]).vectors]

        vectors = self._kept([(self.space.model, text) for text in texts], make)
        return Embeddings([vector.tolist() for vector in vectors], sum(map(self.counter.count, texts)))

    def describe(self) -> Component:
        return self._embedder.describe()


class KeptReranker:
    """A reranker that is asked once for each pair.

    Attributes:
        live: it is asked each time.
    """

    def __init__(self, reranker: Reranker, kept: Kept) -> None:
        self.live = False
        self.name = reranker.name
        self._reranker = reranker
        self._kept = kept

    def rerank(self, query: str, texts: Sequence[str], deadline: float | None = None) -> list[float]:
        if self.live:
            return self._reranker.rerank(query, texts, deadline)

        def make(places: list[int]) -> list[Numbers]:
            scores = self._reranker.rerank(query, [texts[place] for place in places], deadline)
            return [np.array([score]) for score in scores]

        return [float(one[0]) for one in self._kept([(self.name, query, text) for text in texts], make)]

    def describe(self) -> Component:
        return self._reranker.describe()

"""Unit vectors to be found by, and questions about them: drawn, and the same for the same seed."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.embedding.types import Embeddings
from core.model.component import Component
from core.model.vector import VectorSpace
from core.splitting.counting import TokenCounter
from tests.support.embedder import WordCounter

DIMENSIONS = 256
A_CLUSTER = 100
"""Vectors that share a centre, on average."""
SPREAD = 0.8
"""How far a vector lies from its centre, which is 1 from the origin: neighbours then have cosines of 0.6 or so."""
WORDS_A_CHUNK = 8

Points = NDArray[np.float32]


def draw(kind: str, count: int, questions: int, seed: int) -> tuple[Points, Points]:
    """So many vectors and questions, rows × dimensions, of unit length and of one distribution.

    Args:
        kind: ``random``: uniform on the sphere. ``clustered``: a mixture of Gaussians.
    """
    generator = np.random.default_rng(seed)
    points = generator.standard_normal((count + questions, DIMENSIONS), dtype=np.float32)
    if kind == "clustered":
        centres = _unit(generator.standard_normal((max(count // A_CLUSTER, 1), DIMENSIONS), dtype=np.float32))
        points *= SPREAD / np.sqrt(DIMENSIONS)
        points += centres[generator.integers(len(centres), size=len(points))]
    points = _unit(points)
    return points[:count], points[count:]


def _unit(points: Points) -> Points:
    unit: Points = points / np.linalg.norm(points, axis=1, keepdims=True)
    return unit


def text_of(kind: str, number: int) -> str:
    """The text that stands for a vector: ``chunk``, or for a question: ``question``. As long as a chunk may be."""
    return f"{kind} {number} is one of those drawn here"


def number_of(text: str) -> int:
    """The number in a text."""
    return int(text.split()[1])


class DrawnEmbedder:
    """Knows the vectors of the texts that `text_of` makes."""

    def __init__(self, points: Points, questions: Points) -> None:
        self._points = {"chunk": points, "question": questions}
        self.space = VectorSpace(model="drawn", dimensions=DIMENSIONS)
        self.max_tokens = 512
        self.counter: TokenCounter = WordCounter()

    def embed(self, texts: Sequence[str]) -> Embeddings:
        vectors = [self._points[text.split()[0]][number_of(text)].tolist() for text in texts]
        return Embeddings(vectors, WORDS_A_CHUNK * len(texts))

    def describe(self) -> Component:
        return Component(name=self.space.model, type="drawn", configured=True, dimensions=DIMENSIONS)

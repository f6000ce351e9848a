"""Embedder: the stage that makes vectors of texts."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from core.model.component import Component
from core.model.vector import Vector, VectorSpace
from core.splitting.counting import TokenCounter


class Embeddings(NamedTuple):
    """Vectors in the order of their texts, and the tokens that the model read for them."""

    vectors: list[Vector]
    input_tokens: int


class Embedder(Protocol):
    """One embedding model.

    Attributes:
        space: the model's name, as collections record it, and its dimensions.
        max_tokens: the longest text, in tokens of ``counter``, that it takes without an error.
        counter: how its tokens are counted, or estimated.
    """

    space: VectorSpace
    max_tokens: int
    counter: TokenCounter

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """Vectors of unit length. Nothing is cut silently.

        Raises:
            InvalidArgument: a text is longer than the model takes.
            Unavailable: the model throttles or times out.
        """
        ...

    def describe(self) -> Component: ...

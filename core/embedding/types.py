"""Embedder: the stage that makes vectors of texts."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from core.model.component import Component
from core.model.vector import Vector, VectorSpace
from core.splitting.counting import TokenCounter


class Embeddings(NamedTuple):
    """The answer of an embedder.

    Attributes:
        vectors: one vector for each text, in the order of the texts.
        input_tokens: how many tokens the model read for all texts together.
    """

    vectors: list[Vector]
    input_tokens: int


class Embedder(Protocol):
    """An embedding model. Thread-safe.

    Attributes:
        space: the space of the vectors: the model's name, as collections record it, and the number of dimensions.
        max_tokens: the length of the longest text that the model takes, in tokens of ``counter``.
        counter: counts a text's tokens as the model does, or estimates their number.
    """

    space: VectorSpace
    max_tokens: int
    counter: TokenCounter

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """Embeds texts whole: a text is refused when it is too long, and never truncated.

        Raises:
            InvalidArgument: a text is blank, or longer than the model takes. Split it into shorter texts.
            NotConfigured: the model refuses for a reason that only the operator can correct.
            Unavailable: the model is throttled, or it does not answer. Try again later.
        """
        ...

    def describe(self) -> Component:
        """Returns what clients are told about this embedder."""
        ...


def describe_embedder(embedder: Embedder, kind: str) -> Component:
    """Returns the description of an embedder.

    Args:
        kind: how the embedder runs its model, for example ``onnx``.
    """
    return Component(
        name=embedder.space.model,
        type=kind,
        configured=True,
        dimensions=embedder.space.dimensions,
        max_tokens=embedder.max_tokens,
    )

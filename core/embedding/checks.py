"""What every embedder asks of its texts and promises of its vectors."""

import math
from collections.abc import Sequence

from core.model.errors import InvalidArgument
from core.model.vector import Vector


def check_texts(texts: Sequence[str], tokens: Sequence[int], max_tokens: int) -> None:
    """Refuses what cannot be embedded whole, before anything is embedded.

    Args:
        tokens: the length of each text.
        max_tokens: the longest that the model takes.

    Raises:
        InvalidArgument: a text is blank or too long. The message tells its place and length, and nothing of its words.
    """
    for place, (text, length) in enumerate(zip(texts, tokens, strict=True), start=1):
        if not text.strip():
            raise InvalidArgument(f"Text {place} of {len(texts)} is blank; there is nothing to embed")
        if length > max_tokens:
            raise InvalidArgument(
                f"Text {place} of {len(texts)} has {length} tokens; the embedding model takes at most {max_tokens}",
                limit=max_tokens,
            )


def unit(values: Sequence[float]) -> Vector:
    """The vector of length 1 with the same direction.

    Raises:
        ValueError: the values have no direction: all are zero, or one is not finite.
    """
    length = math.sqrt(sum(value * value for value in values))
    if length == 0 or not math.isfinite(length):
        raise ValueError("The embedding model answered with a vector that has no direction")
    return [value / length for value in values]

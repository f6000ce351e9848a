"""Vectors of texts, and the spaces in which vectors can be compared."""

import math
from collections.abc import Sequence

from pydantic import Field

from core.model.base import Model

Vector = list[float]
"""A text as an embedding model describes it: one number per dimension of its space. Its length is 1."""


class VectorSpace(Model):
    """An embedding model with its number of dimensions. Only vectors of the same space can be compared."""

    model: str
    dimensions: int = Field(ge=1, le=16_000)


def unit_vector(values: Sequence[float]) -> Vector:
    """Returns the vector of length 1 that has the same direction as an embedding model's answer.

    Raises:
        ValueError: the answer has no direction, because all of its numbers are 0 or one is not finite.
    """
    length = math.sqrt(sum(value * value for value in values))
    if length == 0 or not math.isfinite(length):
        raise ValueError("The embedding model answered with a vector that has no direction")
    return [value / length for value in values]

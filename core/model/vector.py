"""Vectors of texts, and the spaces in which vectors can be compared."""

from pydantic import Field

from core.model.base import Model

Vector = list[float]
"""A text as an embedding model describes it: one number per dimension of its space. Its length is 1."""


class VectorSpace(Model):
    """An embedding model with its number of dimensions. Only vectors of the same space can be compared."""

    model: str
    dimensions: int = Field(ge=1, le=16_000)

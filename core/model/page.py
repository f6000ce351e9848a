"""Pages of a listing."""

from enum import StrEnum
from typing import Generic, TypeVar

from pydantic import Field

from core.model.base import Model

T = TypeVar("T")


class Order(StrEnum):
    """By time of creation."""

    NEWEST = "newest"
    OLDEST = "oldest"


class PageRequest(Model):
    """Which page of a listing.

    Attributes:
        limit: at most this many items, 1 to 100.
        token: the ``next_page_token`` of the page before, of the same tenant and the same query.
        total: whether to count all items as well.
    """

    limit: int = Field(default=20, ge=1, le=100)
    token: str | None = Field(default=None, max_length=4096)
    order: Order = Order.NEWEST
    total: bool = False


class Page(Model, Generic[T]):
    """One page. ``total`` is there when it was asked for."""

    items: list[T]
    next_page_token: str | None = None
    total: int | None = None

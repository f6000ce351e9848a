"""Pages of a listing, and which page a caller asks for."""

from enum import StrEnum
from typing import Generic, TypeVar

from pydantic import Field

from core.model.base import Model

T = TypeVar("T")


class Order(StrEnum):
    """The order of a listing, by time of creation."""

    NEWEST = "newest"
    OLDEST = "oldest"


class PageRequest(Model):
    """A request for one page of a listing.

    Attributes:
        limit: The most items of the page, 1 to 100.
        token: The ``next_page_token`` of the previous page, for the same tenant and query; None: the first page.
        order: Newest or oldest first.
        total: Whether all items of the listing are counted as well.
    """

    limit: int = Field(default=20, ge=1, le=100)
    token: str | None = Field(default=None, max_length=4096)
    order: Order = Order.NEWEST
    total: bool = False


class Page(Model, Generic[T]):
    """One page of a listing.

    Attributes:
        next_page_token: The token of the next page; None on the last page.
        total: The number of all items of the listing, if the request asked for it.
    """

    items: list[T]
    next_page_token: str | None = None
    total: int | None = None

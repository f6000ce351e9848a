"""Pages of a text, where form feeds end them."""

from bisect import bisect_right
from collections.abc import Sequence

_FORM_FEED = "\f"


def find_pages(text: str) -> tuple[int, ...]:
    """Where each page of a text starts, in code points; empty for a text without form feeds (U+000C)."""
    ends = [place for place, character in enumerate(text) if character == _FORM_FEED] if _FORM_FEED in text else []
    return (0, *(end + 1 for end in ends)) if ends else ()


def page_at(pages: Sequence[int], place: int) -> int | None:
    """The number, from 1, of the page at a place: 1 and the form feeds before it. None for a text without pages."""
    return bisect_right(pages, place) or None

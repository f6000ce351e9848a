"""The pages of a text whose pages end with form feeds."""

from bisect import bisect_right
from collections.abc import Sequence

_FORM_FEED = "\f"


def find_pages(text: str) -> tuple[int, ...]:
    """Returns the offset, in code points, at which each page of a text starts.

    Every form feed (U+000C) ends a page. The result is empty for a text without form feeds.
    """
    if _FORM_FEED not in text:
        return ()
    ends = [offset for offset, character in enumerate(text) if character == _FORM_FEED]
    return (0, *(end + 1 for end in ends))


def page_at(pages: Sequence[int], offset: int) -> int | None:
    """Returns the number, from 1, of the page that contains an offset of the text.

    Args:
        pages: where each page starts, as ``find_pages`` returns it. The result is None when this is empty.
        offset: a place in the text, in code points.
    """
    return bisect_right(pages, offset) or None

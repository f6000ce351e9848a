"""Grapheme clusters: what a reader takes for one character (Unicode Standard Annex 29)."""

from bisect import bisect_right, insort

import regex

_USUAL_LENGTH = 32
_CLUSTER = regex.compile(r"\X")


class Graphemes:
    """Where the graphemes of one text begin. Remembers boundaries, so that asking along a text stays linear."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._known = [0]
        self._last = (0, 0)

    def around(self, place: int) -> tuple[int, int]:
        """The grapheme that ``place`` stands inside of, as its start and end; ``(place, place)`` between two."""
        if self._is_certain(place):
            return place, place
        if not self._last[0] < place < self._last[1]:
            self._last = self._find(place)
        start, end = self._last
        return (start, end) if place < end else (place, place)

    def _is_certain(self, place: int) -> bool:
        """Whether a boundary shows without its surroundings: between ASCII characters there always is one,
        but between CR and LF."""
        if place <= 0 or place >= len(self._text):
            return True
        pair = self._text[place - 1 : place + 1]
        return pair.isascii() and pair != "\r\n"

    def _find(self, place: int) -> tuple[int, int]:
        """The grapheme that holds the character before ``place``."""
        floor = self._known[bisect_right(self._known, place - 1) - 1]
        start = place - 1
        while start > floor and not self._is_certain(start):
            start -= 1
        while (end := self._end(start)) < place:
            start = end
        insort(self._known, start)
        return start, end

    def _end(self, start: int) -> int:
        """Where the grapheme that begins at ``start`` ends. ``\\X`` looks back over all flags before it, so that it is
        shown nothing else of the text."""
        width = _USUAL_LENGTH
        while True:
            piece = self._text[start : start + width]
            length = len(_CLUSTER.match(piece)[0])
            if length < width or start + width >= len(self._text):
                return start + length
            width *= 4

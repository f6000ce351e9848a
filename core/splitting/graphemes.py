"""Finds grapheme clusters: the sequences of code points that a reader sees as one character.

Unicode Standard Annex 29 defines them. Examples are a letter with its combining marks, a flag and an emoji family.
"""

from bisect import bisect_right, insort

import regex

_USUAL_LENGTH = 32
_CLUSTER = regex.compile(r"\X")


class Graphemes:
    """Says of any offset in one text which grapheme the offset is inside of.

    An object of this class remembers the boundaries that it finds. So the time of many calls along a text grows
    linearly with the text's length.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        # Starts of graphemes, in order. The search for a grapheme goes back no further than the nearest of them.
        self._known_starts = [0]
        self._last_grapheme = (0, 0)

    def around(self, offset: int) -> tuple[int, int]:
        """Returns the start and end of the grapheme that an offset is inside of.

        For an offset between two graphemes, the result is ``(offset, offset)``.
        """
        if self._is_plain_boundary(offset):
            return offset, offset
        if not self._last_grapheme[0] < offset < self._last_grapheme[1]:
            self._last_grapheme = self._grapheme_before(offset)
        start, end = self._last_grapheme
        return (start, end) if offset < end else (offset, offset)

    def _is_plain_boundary(self, offset: int) -> bool:
        """Returns whether the two characters around an offset are enough to tell that a grapheme ends there.

        There is a boundary between any two ASCII characters, except between CR and LF.
        """
        if offset <= 0 or offset >= len(self._text):
            return True
        pair = self._text[offset - 1 : offset + 1]
        return pair.isascii() and pair != "\r\n"

    def _grapheme_before(self, offset: int) -> tuple[int, int]:
        """Returns the start and end of the grapheme that contains the character before an offset."""
        floor = self._known_starts[bisect_right(self._known_starts, offset - 1) - 1]
        start = offset - 1
        while start > floor and not self._is_plain_boundary(start):
            start -= 1
        while (end := self._end_of(start)) < offset:
            start = end
        insort(self._known_starts, start)
        return start, end

    def _end_of(self, start: int) -> int:
        """Returns the end of the grapheme that begins at an offset.

        ``\\X`` looks back over all flags before the place where it matches. A slice of the text from the grapheme's
        start leaves nothing to look back over.
        """
        width = _USUAL_LENGTH
        while True:
            piece = self._text[start : start + width]
            length = len(_CLUSTER.match(piece)[0])
            if length < width or start + width >= len(self._text):
                return start + length
            width *= 4

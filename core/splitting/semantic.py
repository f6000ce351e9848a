"""The splitter over the library semantic-text-splitter."""

from collections.abc import Callable, Iterator
from typing import Protocol

from semantic_text_splitter import MarkdownSplitter, TextSplitter

from core.loading.types import LoadedText
from core.model.chunk import MAX_CHUNK_BYTES
from core.model.errors import InvalidArgument
from core.splitting.counting import TokenCounter
from core.splitting.graphemes import Graphemes
from core.splitting.types import Span

Measure = Callable[[str], int]

WINDOW = 128 * 1024
"""How much of a text, in code points, the library sees at once: it measures all that is left for every chunk."""


class _Library(Protocol):
    def chunk_indices(self, text: str) -> list[tuple[int, str]]: ...


class SemanticSplitter:
    """A splitter over semantic-text-splitter: the largest units of meaning that fit, neighbours merged.

    The library cuts at the boundaries that it knows (headings, blocks, lines, sentences, words). What it does not
    promise is done here: no cut inside a grapheme, no blank span, no white space at the ends, and time that grows
    with the text's length.
    """

    def __init__(self, name: str, kind: type[TextSplitter] | type[MarkdownSplitter]) -> None:
        self.name = name
        self._kind = kind

    def split(self, text: LoadedText, size: int, overlap: int, counter: TokenCounter) -> list[Span]:
        """Spans in order of start; each holds something that the ones before it do not.

        Args:
            size: most tokens of a span, from 1.
            overlap: most tokens that a span shares with the one before, from 0, below ``size``.

        Raises:
            InvalidArgument: size or overlap out of range.
        """
        if size < 1 or not 0 <= overlap < size:
            raise InvalidArgument("The overlap is 0 or more and smaller than the size", field="chunk_overlap")
        measure = _measure(counter, size)
        library = self._kind.from_callback(measure, size, overlap=overlap, trim=False)
        return list(_Cut(text.text, size, measure, library).spans())


def _measure(counter: TokenCounter, size: int) -> Measure:
    """Tokens, or the share of a chunk's bytes in tokens where that is more.

    A text measures at most ``size`` exactly when it has at most that many tokens and at most MAX_CHUNK_BYTES. What
    is over in bytes is not tokenized.
    """

    def measure(text: str) -> int:
        by_bytes = -(-len(text.encode()) * size // MAX_CHUNK_BYTES)
        return by_bytes if by_bytes > size else max(by_bytes, counter.count(text))

    return measure


class _Cut:
    """One text being cut."""

    def __init__(self, text: str, size: int, measure: Measure, library: _Library) -> None:
        self._text = text
        self._size = size
        self._measure = measure
        self._library = library
        self._graphemes = Graphemes(text)
        self._covered = 0

    def spans(self) -> Iterator[Span]:
        for raw in self._windows():
            yield from self._mend(raw)

    def _windows(self) -> Iterator[Span]:
        """The library's spans of the whole text, found window by window.

        A span that reaches a window's end could have been longer, so the next window starts at its start.
        """
        start, width = 0, self._width(0)
        while start < len(self._text):
            end = min(start + width, len(self._text))
            found = self._raw(start, end)
            if end == len(self._text):
                yield from found
                return
            kept = [span for span in found if span.end_index < end]
            rest = found[len(kept)].start_index
            if rest > start:
                yield from kept
                start, width = rest, self._width(rest)
            else:
                width *= 2

    def _width(self, start: int) -> int:
        """Where a run without white space is long, less is seen at once: the library looks for the words of such a
        run anew for every chunk."""
        longest = max(map(len, self._text[start : start + WINDOW].split()), default=0)
        return WINDOW if longest <= 32 * self._size else min(WINDOW, 32 * self._size)

    def _raw(self, start: int, end: int) -> list[Span]:
        return [
            Span(start + place, start + place + len(piece))
            for place, piece in self._library.chunk_indices(self._text[start:end])
        ]

    def _mend(self, raw: Span) -> Iterator[Span]:
        """The span with its ends between graphemes, without white space at its ends; cut again when that, or
        a count that is not monotonic, makes it too large."""
        span = self._trim(self._snap(raw))
        if span.end_index <= max(self._covered, span.start_index):
            return
        parts = [span]
        if self._measure(self._text[span.start_index : span.end_index]) > self._size:
            parts = self._raw(*span)
        if len(parts) > 1:
            for part in parts:
                yield from self._mend(part)
            return
        self._covered = span.end_index
        yield span

    def _snap(self, span: Span) -> Span:
        """Ends move back to a grapheme's start. A start does too, unless the spans before hold that grapheme; and
        an end moves on where nothing would be left."""
        first, after = self._grapheme(span.start_index)
        start = after if after <= self._covered else first
        before, last = self._grapheme(span.end_index)
        return Span(start, before if before > start else last)

    def _grapheme(self, place: int) -> tuple[int, int]:
        """The grapheme around a place; one that is too large for a span is none."""
        start, end = self._graphemes.around(place)
        fits = start == end or self._measure(self._text[start:end]) <= self._size
        return (start, end) if fits else (place, place)

    def _trim(self, span: Span) -> Span:
        piece = self._text[span.start_index : span.end_index]
        start = span.end_index - len(piece.lstrip())
        end = span.start_index + len(piece.rstrip())
        if start >= end:
            return Span(span.start_index, span.start_index)
        return Span(self._grapheme(start)[0], self._grapheme(end)[1])

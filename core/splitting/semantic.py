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

WINDOW_LENGTH = 128 * 1024
"""How much of a text, in code points, the library sees at a time.

For every chunk, the library measures all of the text that is left. Windows bound the time that this takes.
"""

_Measure = Callable[[str], int]


class _LibrarySplitter(Protocol):
    def chunk_indices(self, text: str) -> list[tuple[int, str]]: ...


class SemanticSplitter:
    """Cuts a text into the largest units of meaning that fit into a span, and joins neighbours that fit together.

    The library cuts at the boundaries that it knows: headings, blocks, lines, sentences and words. This class adds what
    the library does not promise: no cut is inside a grapheme, no span is blank, no span begins or ends with white
    space, and the time grows with the length of the text.
    """

    def __init__(self, name: str, kind: type[TextSplitter] | type[MarkdownSplitter]) -> None:
        self.name = name
        self._kind = kind

    def split(self, loaded: LoadedText, size: int, overlap: int, counter: TokenCounter) -> list[Span]:
        """Returns the spans of a loaded text, in the order of their starts.

        Each span contains text that no span before it contains.

        Args:
            loaded: the text to cut.
            size: the most tokens that a span may have, from 1.
            overlap: the most tokens that a span may share with the span before it; from 0, smaller than ``size``.
            counter: counts the tokens.

        Raises:
            InvalidArgument: ``size`` or ``overlap`` is out of range.
        """
        if not 0 <= overlap < size:
            raise InvalidArgument("The overlap is 0 or more and smaller than the size", field="chunk_overlap")
        measure = _measure(counter, size)
        library_splitter = self._kind.from_callback(measure, size, overlap=overlap, trim=False)
        return list(_TextCut(loaded.text, size, measure, library_splitter).spans())


def _measure(counter: TokenCounter, size: int) -> _Measure:
    """Makes the function by which the library measures a text: one number for its tokens and its bytes.

    A text measures at most ``size`` exactly when it has at most ``size`` tokens and at most MAX_CHUNK_BYTES bytes. To
    save time, the tokens of a text with too many bytes are not counted.
    """

    def measure(text: str) -> int:
        by_bytes = -(-len(text.encode()) * size // MAX_CHUNK_BYTES)
        return by_bytes if by_bytes > size else max(by_bytes, counter.count(text))

    return measure


class _TextCut:
    """Cuts one text: takes the library's spans window by window, and repairs each of them."""

    def __init__(self, text: str, size: int, measure: _Measure, library_splitter: _LibrarySplitter) -> None:
        self._text = text
        self._size = size
        self._measure = measure
        self._library_splitter = library_splitter
        self._graphemes = Graphemes(text)
        # The end of the last span that was returned.
        self._covered = 0

    def spans(self) -> Iterator[Span]:
        for library_span in self._spans_of_all_windows():
            yield from self._repair(library_span)

    def _spans_of_all_windows(self) -> Iterator[Span]:
        """Yields the library's spans of the whole text.

        A span that reaches the end of its window might have been longer in a wider window. So the next window starts
        where that span starts.
        """
        start, width = 0, self._window_width(0)
        while start < len(self._text):
            end = min(start + width, len(self._text))
            spans = self._library_spans(start, end)
            if end == len(self._text):
                yield from spans
                return
            complete = [span for span in spans if span.end_index < end]
            next_start = spans[len(complete)].start_index
            if next_start > start:
                yield from complete
                start, width = next_start, self._window_width(next_start)
            else:
                width *= 2

    def _window_width(self, start: int) -> int:
        """Returns the length of the window that starts at an offset.

        A window is shorter where a run of text without white space is long: for every chunk, the library searches all
        of such a run for words again.
        """
        longest_run = max(map(len, self._text[start : start + WINDOW_LENGTH].split()), default=0)
        return WINDOW_LENGTH if longest_run <= 32 * self._size else min(WINDOW_LENGTH, 32 * self._size)

    def _library_spans(self, start: int, end: int) -> list[Span]:
        return [
            Span(start + offset, start + offset + len(piece))
            for offset, piece in self._library_splitter.chunk_indices(self._text[start:end])
        ]

    def _repair(self, library_span: Span) -> Iterator[Span]:
        """Yields a span of the library with its ends moved to where a chunk may end.

        The ends move to boundaries of graphemes, and inwards over white space. A span without text of its own is left
        out. A span that is too large is cut again: moved ends may make it too large, and so may a counter that counts
        fewer tokens for a longer text.
        """
        span = self._trim(self._move_to_graphemes(library_span))
        if span.end_index <= max(self._covered, span.start_index):
            return
        parts = [span]
        if self._measure(self._text[span.start_index : span.end_index]) > self._size:
            parts = self._library_spans(*span)
        if len(parts) > 1:
            for part in parts:
                yield from self._repair(part)
            return
        self._covered = span.end_index
        yield span

    def _move_to_graphemes(self, span: Span) -> Span:
        """Returns the span with both ends at boundaries of graphemes.

        An end inside a grapheme moves back to the grapheme's start, or forward to its end when nothing would be left
        of the span. A start moves back too, or forward when the spans before already contain the grapheme.
        """
        grapheme_start, grapheme_end = self._grapheme(span.start_index)
        start = grapheme_end if grapheme_end <= self._covered else grapheme_start
        grapheme_start, grapheme_end = self._grapheme(span.end_index)
        return Span(start, grapheme_start if grapheme_start > start else grapheme_end)

    def _grapheme(self, offset: int) -> tuple[int, int]:
        """Returns the start and end of the grapheme that an offset is inside of.

        A grapheme that is too large for a span may be cut anywhere, so then the result is ``(offset, offset)``, as for
        an offset between two graphemes.
        """
        start, end = self._graphemes.around(offset)
        fits = start == end or self._measure(self._text[start:end]) <= self._size
        return (start, end) if fits else (offset, offset)

    def _trim(self, span: Span) -> Span:
        """Returns the span without white space at its ends, but with whole graphemes. The span may become empty."""
        piece = self._text[span.start_index : span.end_index]
        start = span.end_index - len(piece.lstrip())
        end = span.start_index + len(piece.rstrip())
        if start >= end:
            return Span(span.start_index, span.start_index)
        return Span(self._grapheme(start)[0], self._grapheme(end)[1])

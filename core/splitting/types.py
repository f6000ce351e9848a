"""What splitters take and make: a loaded text in, spans of bounded size out."""

from typing import NamedTuple, Protocol

from core.loading.types import LoadedText
from core.splitting.counting import TokenCounter


class Span(NamedTuple):
    """A piece of a text: ``text[start_index:end_index]``, in code points, never empty."""

    start_index: int
    end_index: int


class Splitter(Protocol):
    """Cuts a loaded text into spans of at most ``size`` tokens."""

    name: str

    def split(self, text: LoadedText, size: int, overlap: int, counter: TokenCounter) -> list[Span]:
        """Spans in order of start. No span is blank, over ``size`` tokens or over 32 KiB, or ends inside a
        grapheme, unless one grapheme alone is larger."""
        ...

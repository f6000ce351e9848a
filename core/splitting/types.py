"""The protocol of every splitter, and the spans into which a splitter cuts a loaded text."""

from typing import NamedTuple, Protocol

from core.loading.types import LoadedText
from core.splitting.counting import TokenCounter


class Span(NamedTuple):
    """A piece of a text, ``text[start_index:end_index]``. Both offsets are in code points. A span is never empty."""

    start_index: int
    end_index: int


class Splitter(Protocol):
    """Cuts a loaded text into spans of a bounded number of tokens.

    Attributes:
        name: the splitter's stable name, which is the chunk strategy by which collections choose the splitter. The
            lineage of a chunk and the fingerprint of a document contain the name.
    """

    name: str

    def split(self, loaded: LoadedText, size: int, overlap: int, counter: TokenCounter) -> list[Span]:
        """Returns the spans of a loaded text, in the order of their starts.

        Every character that is not white space is in a span. No span is blank, begins or ends inside a grapheme, or
        is larger than ``size`` tokens or 32 KiB. Only a grapheme that is itself larger than that is cut.

        Args:
            loaded: the text to cut.
            size: the most tokens that a span may have, from 1.
            overlap: the most tokens that a span may share with the span before it; from 0, smaller than ``size``.
            counter: counts the tokens.

        Raises:
            InvalidArgument: ``size`` or ``overlap`` is out of range.
        """
        ...

"""The stages between bytes and chunks."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from core.model.base import Model
from core.model.chunk import Attributes


class Heading(NamedTuple):
    """A heading of a loaded text: where its line starts (code points), its level from 1, its words."""

    start_index: int
    level: int
    title: str


class LoadedText(Model):
    """What a loader makes of bytes: the text that every offset counts in.

    Attributes:
        headings: in order of place.
        title: the document's own title, when it has one.
        attributes: what the document says of itself (front matter).
        pages: where each page starts (code points); empty: the loader knows of none.
    """

    text: str
    headings: tuple[Heading, ...] = ()
    title: str = ""
    attributes: Attributes = {}
    pages: tuple[int, ...] = ()


class Span(NamedTuple):
    """A piece of a text: ``text[start_index:end_index]``, in code points, never empty."""

    start_index: int
    end_index: int


class Loader(Protocol):
    """Makes text of the bytes of some media types."""

    name: str
    media_types: Sequence[str]

    def check(self, content: bytes, charset: str | None) -> None:
        """Refuses, before anything is written, bytes that ``load`` is known to refuse.

        Raises:
            UnsupportedMediaType: not of this type, or not valid in the encoding it declares.
            EmptyContent: nothing but white space.
        """
        ...

    def load(self, content: bytes, charset: str | None) -> LoadedText:
        """The text.

        Raises:
            UnsupportedMediaType, EmptyContent: as above.
        """
        ...


class TokenCounter(Protocol):
    """Counts tokens as one model does, or estimates them."""

    name: str

    def count(self, text: str) -> int:
        """Tokens of a text, without any that a model adds around it."""
        ...


class Splitter(Protocol):
    """Cuts a loaded text into spans of at most ``size`` tokens."""

    name: str

    def split(self, text: LoadedText, size: int, overlap: int, counter: TokenCounter) -> list[Span]:
        """Spans in order of start. No span is blank, over ``size`` tokens or over 32 KiB, or ends inside a
        grapheme, unless one grapheme alone is larger."""
        ...

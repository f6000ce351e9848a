"""What loaders take and make: bytes in, a loaded text out."""

from collections.abc import Mapping, Sequence
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


class Loader(Protocol):
    """Makes text of the bytes of some media types."""

    name: str
    media_types: Sequence[str]
    """The media types that the loader reads, in lower case."""
    suffixes: Mapping[str, str]
    """The media type, one of ``media_types``, by each file suffix that stands for it: ``{".md": "text/markdown"}``."""

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

"""The protocol of every loader, and the loaded text that a loader makes of a content's bytes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from core.model.base import Model
from core.model.chunk import Attributes


class Heading(NamedTuple):
    """A heading of a loaded text.

    Attributes:
        start_index: where the heading's line starts, in code points of the loaded text.
        level: the rank of the heading, from 1 for the highest.
        title: the words of the heading, without markup.
    """

    start_index: int
    level: int
    title: str


class LoadedText(Model):
    """The text that a loader makes of a content's bytes. All offsets of chunks, headings and pages refer to this text.

    Attributes:
        text: the text itself.
        headings: the headings of the text, in the order in which they occur.
        title: the title that the document gives itself; empty when the document gives none.
        attributes: the attributes that the document gives itself (the front matter of Markdown).
        pages: the offset, in code points, at which each page starts; empty when the loader knows of no pages.
    """

    text: str
    headings: tuple[Heading, ...] = ()
    title: str = ""
    attributes: Attributes = {}
    pages: tuple[int, ...] = ()


class Loader(Protocol):
    """Turns the bytes of some media types into text.

    Attributes:
        name: the loader's stable name. The fingerprint of a document contains the name.
        media_types: the media types that the loader reads, in lower case.
        suffixes: the media type for each file suffix, both in lower case: ``{".md": "text/markdown"}``.
    """

    name: str
    media_types: Sequence[str]
    suffixes: Mapping[str, str]

    def check(self, content: bytes, charset: str | None) -> None:
        """Refuses content that ``load`` would refuse, as far as a quick look can tell.

        An ingest calls this method before it writes anything.

        Args:
            content: the bytes of the document.
            charset: the charset that the caller declares; None when the caller declares none.

        Raises:
            UnsupportedMediaType: the content is not of this media type, or not valid in its declared charset.
            EmptyContent: the content is nothing but white space.
        """
        ...

    def load(self, content: bytes, charset: str | None) -> LoadedText:
        """Returns the text of the content, with what the loader knows about the text.

        Args:
            content: the bytes of the document.
            charset: the charset that the caller declares; None when the caller declares none.

        Raises:
            UnsupportedMediaType: the content cannot be read as this media type.
            EmptyContent: the document has no text.
        """
        ...

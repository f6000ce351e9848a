"""Which loader reads what."""

from collections.abc import Iterable, Sequence
from email.message import Message
from pathlib import PurePosixPath

from core.loading.decoding import decode
from core.loading.markdown import MarkdownLoader
from core.loading.pages import find_pages
from core.loading.types import LoadedText, Loader
from core.model.component import Component
from core.model.errors import UnsupportedMediaType

GENERIC_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""What a store says of an object whose type nobody declared."""

_BY_SUFFIX = {
    ".txt": "text/plain",
    ".text": "text/plain",
    ".log": "text/plain",
    ".rst": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
}
# Text by name, of which a reader would see mostly markup or cells.
_NOT_PLAIN = frozenset(
    {"text/csv", "text/enriched", "text/richtext", "text/rtf", "text/tab-separated-values", "text/xml"}
)


class TextLoader:
    """Plain text: decoded, without its byte order mark, and nothing else changed. Form feeds end pages."""

    name = "text"
    media_types: Sequence[str] = ("text/plain", "text/*")

    def check(self, content: bytes, charset: str | None) -> None:
        decode(content, charset)

    def load(self, content: bytes, charset: str | None) -> LoadedText:
        text = decode(content, charset)
        return LoadedText(text=text, pages=find_pages(text))


class HtmlLoader:
    """HTML as Markdown with ATX headings. What is not shown (scripts, styles) and navigation are left out;
    of an image its alternative text remains."""

    name = "html"
    media_types: Sequence[str] = ("text/html", "application/xhtml+xml")

    def check(self, content: bytes, charset: str | None) -> None:
        from core.loading.html_to_markdown import decode_page  # noqa: PLC0415 - slow to import, and most functions read no page

        decode_page(content, charset)

    def load(self, content: bytes, charset: str | None) -> LoadedText:
        from core.loading.html_to_markdown import load_page  # noqa: PLC0415 - as above

        return load_page(content, charset)


class Loaders:
    """The loaders by media type. ``text/*`` stands for every text type without a loader of its own that is
    plainly text; CSV, RTF and XML are not."""

    def __init__(self, loaders: Iterable[Loader] = (TextLoader(), MarkdownLoader(), HtmlLoader())) -> None:
        parts = tuple(loaders)
        self._by_type: dict[str, Loader] = {media_type: loader for loader in parts for media_type in loader.media_types}

    @property
    def content_types(self) -> list[str]:
        """The media types that are read."""
        return list(self._by_type)

    def find(self, source_type: str) -> tuple[Loader, str | None]:
        """The loader of a media type, and the charset that it declares.

        Args:
            source_type: a media type, in any case, with an optional ``charset`` parameter.

        Raises:
            UnsupportedMediaType: no loader reads it; the message lists what is read.
        """
        media_type = source_type.partition(";")[0].strip().lower()
        loader = self._by_type.get(media_type)
        if loader is None and media_type.startswith("text/") and media_type not in _NOT_PLAIN | {"text/"}:
            loader = self._by_type.get("text/*")
        if loader is None or media_type == "text/*":
            raise UnsupportedMediaType(f"No loader reads this source type; {self._supported()}")
        return loader, _charset(source_type)

    def guess(self, file_name: str) -> str:
        """The media type that a file's name says: for an object that declares none (``GENERIC_TYPES``).

        Raises:
            UnsupportedMediaType: the ending is unknown; the message lists what is read.
        """
        media_type = _BY_SUFFIX.get(PurePosixPath(file_name).suffix.lower())
        if media_type is None or media_type not in self._by_type:
            raise UnsupportedMediaType(
                f"The content declares no type, and its name ends in none of {', '.join(_BY_SUFFIX)}; "
                f"{self._supported()}"
            )
        return media_type

    def describe(self) -> Component:
        return Component(name="loaders", type="media_type", configured=True, content_types=self.content_types)

    def _supported(self) -> str:
        return f"supported are {', '.join(self.content_types)}"


def _charset(source_type: str) -> str | None:
    header = Message()
    header["Content-Type"] = source_type
    return header.get_content_charset() or None

"""The loader of plain text."""

from collections.abc import Mapping, Sequence

from core.loading.decoding import decode
from core.loading.pages import find_pages
from core.loading.types import LoadedText


class TextLoader:
    """Decodes plain text, removes its byte order mark and changes nothing else. Form feeds end pages."""

    name = "text"
    media_types: Sequence[str] = ("text/plain", "text/*")
    suffixes: Mapping[str, str] = dict.fromkeys((".txt", ".text", ".log", ".rst"), "text/plain")

    def check(self, content: bytes, charset: str | None) -> None:
        """Decodes the content once, so that content which cannot be decoded is refused before anything is written."""
        decode(content, charset)

    def load(self, content: bytes, charset: str | None) -> LoadedText:
        """Decodes the content."""
        text = decode(content, charset)
        return LoadedText(text=text, pages=find_pages(text))

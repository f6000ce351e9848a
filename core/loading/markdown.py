"""The loader of Markdown. ``front_matter`` and ``headings`` do the work."""

from collections.abc import Mapping, Sequence

from core.loading.decoding import decode
from core.loading.front_matter import take_front_matter
from core.loading.headings import find_headings
from core.loading.pages import find_pages
from core.loading.types import LoadedText
from core.model.errors import EmptyContent


class MarkdownLoader:
    """Decodes Markdown, removes its front matter and changes nothing else.

    All offsets refer to the text after the front matter. Form feeds end pages.
    """

    name = "markdown"
    media_types: Sequence[str] = ("text/markdown", "text/x-markdown")
    suffixes: Mapping[str, str] = {".md": "text/markdown", ".markdown": "text/markdown"}

    def check(self, content: bytes, charset: str | None) -> None:
        """Decodes the content once, so that content which cannot be decoded is refused before anything is written."""
        decode(content, charset)

    def load(self, content: bytes, charset: str | None) -> LoadedText:
        """Decodes the content, and takes its front matter and its headings."""
        text, title, attributes = take_front_matter(decode(content, charset))
        if not text.strip():
            raise EmptyContent("Nothing is left of the document but its front matter")
        return LoadedText(
            text=text, headings=find_headings(text), title=title, attributes=attributes, pages=find_pages(text)
        )

"""The loader of HTML pages. ``html_to_markdown`` does the work."""

from collections.abc import Mapping, Sequence

from core.loading.types import LoadedText


class HtmlLoader:
    """Reads an HTML page as Markdown with ATX headings (``# Title``).

    The loader leaves out navigation and what a browser does not show (scripts, styles). Of an image the loader keeps
    the alternative text.
    """

    name = "html"
    media_types: Sequence[str] = ("text/html", "application/xhtml+xml")
    suffixes: Mapping[str, str] = {".html": "text/html", ".htm": "text/html", ".xhtml": "application/xhtml+xml"}

    # The libraries that read HTML are slow to import, and most functions never read a page. So the methods import them.

    def check(self, content: bytes, charset: str | None) -> None:
        """Decodes the content once, so that content which cannot be decoded is refused before anything is written."""
        from core.loading.html_to_markdown import decode_page  # noqa: PLC0415

        decode_page(content, charset)

    def load(self, content: bytes, charset: str | None) -> LoadedText:
        """Reads the page as Markdown, with its title and its headings."""
        from core.loading.html_to_markdown import load_page  # noqa: PLC0415

        return load_page(content, charset)

"""HTML, read as Markdown."""

import re
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.dammit import EncodingDetector
from bs4.exceptions import ParserRejectedMarkup
from markdownify import ATX, MarkdownConverter

from core.loading.decoding import decode
from core.loading.markdown import MAX_TITLE, find_headings
from core.loading.types import LoadedText
from core.model.errors import EmptyContent, UnsupportedMediaType

MAX_DEPTH = 200
MAX_INDENT_DEPTH = 32
MAX_NUMBERED_ITEMS = 1000

_NOT_CONTENT = frozenset({"canvas", "iframe", "nav", "noscript", "script", "style", "svg", "template", "title"})
_INDENTING = ("blockquote", "ol", "ul", "dl")
_ENDS_PARAGRAPH = (
    *("address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figcaption", "figure"),
    *("footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p", "pre"),
    *("section", "table", "ul"),
)
# An element whose end tag may be left out ends before these, unless one of the scope's stands between
# (html.spec.whatwg.org, 13.1.2.4 Optional tags).
_ENDS: dict[str, tuple[set[str], set[str]]] = {
    "li": ({"li"}, {"ul", "ol", "menu"}),
    "dt": ({"dt", "dd"}, {"dl"}),
    "dd": ({"dt", "dd"}, {"dl"}),
    "td": ({"td", "th"}, {"table"}),
    "th": ({"td", "th"}, {"table"}),
    "tr": ({"tr"}, {"table"}),
    "tbody": ({"thead", "tbody"}, {"table"}),
    "tfoot": ({"thead", "tbody"}, {"table"}),
    "option": ({"option"}, {"select"}),
    **{name: ({"p"}, {"button", "table", "li", "td", "th", "dd"}) for name in _ENDS_PARAGRAPH},
}


def load_page(content: bytes, charset: str | None) -> LoadedText:
    """A page as Markdown.

    Raises:
        UnsupportedMediaType: it cannot be read as HTML, or is nested too deep.
        EmptyContent: nothing of it is shown.
    """
    try:
        soup = _Soup(_DOCTYPE + _terminated(decode_page(content, charset)), "html.parser")
        title = " ".join(soup.title.get_text().split())[:MAX_TITLE] if soup.title else ""
        _simplify(soup)
        text = _CONVERTER.process_tag(soup)
    except ParserRejectedMarkup as error:
        raise UnsupportedMediaType("The content is not HTML that can be read") from error
    except RecursionError as error:
        raise _too_deep() from error
    if not text.strip():
        raise EmptyContent("Nothing is left of the page but what is not shown")
    return LoadedText(text=text, headings=find_headings(text), title=title)


def decode_page(content: bytes, charset: str | None) -> str:
    """By the charset that the caller declares, else by the page's own."""
    declared = charset or EncodingDetector.find_declared_encoding(content, is_html=True)
    if declared and declared.lower().startswith("utf-16") and not charset:
        declared = "utf-8"  # A declaration that can be read byte by byte is not in UTF-16.
    return decode(content, declared)


def _too_deep() -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"The page is nested too deep: at most {MAX_DEPTH} elements, {MAX_INDENT_DEPTH} of them lists or quotations"
    )


# Says that what follows is content and not the name of a file, about which BeautifulSoup would warn.
_DOCTYPE = "<!doctype html>"
_LONG_SPACE = re.compile(r"([ \t\r\n]{256})[ \t\r\n]+")
_COMMENT_END = re.compile(r"--\s*>")


def _terminated(html: str) -> str:
    """Markup whose end never comes, written as text.

    ``html.parser`` looks for each such end through all that follows, which takes quadratic time. A marked section
    (``<![``) and an instruction (``<?``) are bogus comments in HTML; the parser takes them for SGML's and XML's.
    """
    html = html.replace("<![", "<!").replace("<?", "<!")
    last = html.rfind(">") + 1
    html = html[:last] + html[last:].replace("<", "&lt;")
    last = max((match.start() for match in _COMMENT_END.finditer(html)), default=0)
    return html[:last] + html[last:].replace("<!--", "&lt;!--")


class _Soup(BeautifulSoup):
    """A tree whose elements end where HTML says, of bounded depth."""

    def handle_starttag(self, name: str, *args: Any, **kwargs: Any) -> Tag | None:
        ended, scope = _ENDS.get(name, (set(), set()))
        if any(self.open_tag_counter.get(other) for other in ended):
            self._end(ended, scope)
        indents = sum(self.open_tag_counter.get(other, 0) for other in _INDENTING)
        if len(self.tagStack) > MAX_DEPTH or indents > MAX_INDENT_DEPTH:
            raise _too_deep()
        return super().handle_starttag(name, *args, **kwargs)

    def endData(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802  # The name is the library's.
        """Shortens long runs of white space, at which the converter takes quadratic time."""
        self.current_data = [_LONG_SPACE.sub(r"\1", "".join(self.current_data))] if self.current_data else []
        super().endData(*args, **kwargs)

    def _end(self, ended: set[str], scope: set[str]) -> None:
        for depth, tag in enumerate(reversed(self.tagStack)):
            if tag.name in ended:
                self.endData()
                for _ in range(depth + 1):
                    self.popTag()
                return
            if tag.name in scope:
                return


def _simplify(soup: BeautifulSoup) -> None:
    """Takes out what the converter would multiply."""
    for cell in soup.find_all(["td", "th"], colspan=True):
        del cell["colspan"]
    for numbered in soup.find_all("ol"):
        if len(numbered.contents) > MAX_NUMBERED_ITEMS:
            numbered.name = "ul"  # The converter counts all items before each.


class _Converter(MarkdownConverter):
    """Leaves out what is not content."""

    def process_tag(self, node: Tag, parent_tags: set[str] | None = None) -> str:
        if node.name in _NOT_CONTENT:
            return ""
        if node.name == "img":
            return str(node.get("alt") or "")
        return str(super().process_tag(node, parent_tags))  # type: ignore[misc]  # The stub leaves it out.


# Escapes would stand in the text that is searched and cited: snake_case, not snake\_case.
_CONVERTER = _Converter(heading_style=ATX, escape_asterisks=False, escape_underscores=False)

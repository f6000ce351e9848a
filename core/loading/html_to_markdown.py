"""Turns HTML pages into Markdown.

BeautifulSoup parses the page, and markdownify writes the tree as Markdown. This module adds the rules of HTML that the
parser does not know, and bounds on time and depth: both libraries take quadratic time for some pages.
"""

import re
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.dammit import EncodingDetector
from bs4.exceptions import ParserRejectedMarkup
from markdownify import ATX, MarkdownConverter

from core.loading.decoding import decode
from core.loading.front_matter import MAX_TITLE
from core.loading.headings import find_headings
from core.loading.types import LoadedText
from core.model.errors import EmptyContent, UnsupportedMediaType

MAX_DEPTH = 200
"""How many elements may be open at one place of a page. The converter calls itself once for each."""
MAX_INDENT_DEPTH = 32
"""How many lists and quotations may be open at one place of a page. Each indents all of its lines."""
MAX_NUMBERED_ITEMS = 1000
"""The longest numbered list that keeps its numbers, in nodes. A longer list becomes a bulleted list."""

_NOT_CONTENT = frozenset({"canvas", "iframe", "nav", "noscript", "script", "style", "svg", "template", "title"})
_INDENTING = ("blockquote", "ol", "ul", "dl")
_ENDS_PARAGRAPH = (
    *("address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figcaption", "figure"),
    *("footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p", "pre"),
    *("section", "table", "ul"),
)
# For each start tag: the elements that the tag ends although their end tag was left out, and the elements that protect
# what is outside of them from being ended (html.spec.whatwg.org, 13.1.2.4 Optional tags).
_IMPLIED_ENDS: dict[str, tuple[set[str], set[str]]] = {
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
# BeautifulSoup takes a short text without markup for a file name and warns. A doctype shows it that the text is a page.
_DOCTYPE = "<!doctype html>"
_LONG_SPACE = re.compile(r"([ \t\r\n]{256})[ \t\r\n]+")
_COMMENT_END = re.compile(r"--\s*>")


def load_page(content: bytes, charset: str | None) -> LoadedText:
    """Returns an HTML page as Markdown, with its title and headings.

    Args:
        content: the bytes of the page.
        charset: the charset that the caller declares; None when the caller declares none.

    Raises:
        UnsupportedMediaType: the content cannot be decoded or read as HTML, or its elements are nested too deep.
        EmptyContent: a browser would show nothing of the page.
    """
    try:
        soup = _Soup(_DOCTYPE + _close_markup(decode_page(content, charset)), "html.parser")
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
    """Decodes a page by the charset that the caller declares, or else by the charset that the page declares.

    Raises:
        UnsupportedMediaType: the page is not valid in that charset.
        EmptyContent: the page is nothing but white space.
    """
    page_charset = charset or EncodingDetector.find_declared_encoding(content, is_html=True)
    if page_charset and page_charset.lower().startswith("utf-16") and not charset:
        page_charset = (
            "utf-8"  # The detector reads single bytes. A page in UTF-16 has no declaration that it could read.
        )
    return decode(content, page_charset)


def _too_deep() -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"The page is nested too deep: at most {MAX_DEPTH} elements, {MAX_INDENT_DEPTH} of them lists or quotations"
    )


def _close_markup(html: str) -> str:
    """Escapes markup that never ends, so that the parser reads that markup as text.

    ``html.parser`` looks for the missing end of each such piece in all of the text that follows, which takes quadratic
    time. HTML treats marked sections (``<![``) and processing instructions (``<?``) as comments; the parser treats
    them as SGML and XML, so both are rewritten as the start of a comment.
    """
    html = html.replace("<![", "<!").replace("<?", "<!")
    last_end = html.rfind(">") + 1
    html = html[:last_end] + html[last_end:].replace("<", "&lt;")
    last_end = max((match.start() for match in _COMMENT_END.finditer(html)), default=0)
    return html[:last_end] + html[last_end:].replace("<!--", "&lt;!--")


class _Soup(BeautifulSoup):
    """A tree of bounded depth, in which elements without an end tag end where HTML says."""

    def handle_starttag(self, name: str, *args: Any, **kwargs: Any) -> Tag | None:
        ended, protecting = _IMPLIED_ENDS.get(name, (set(), set()))
        if any(self.open_tag_counter.get(ended_name) for ended_name in ended):
            self._end_innermost(ended, protecting)
        indents = sum(self.open_tag_counter.get(indenting, 0) for indenting in _INDENTING)
        if len(self.tagStack) > MAX_DEPTH or indents > MAX_INDENT_DEPTH:
            raise _too_deep()
        return super().handle_starttag(name, *args, **kwargs)

    def endData(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802  # The library chose this name.
        """Shortens long runs of white space, for which the converter would take quadratic time."""
        self.current_data = [_LONG_SPACE.sub(r"\1", "".join(self.current_data))] if self.current_data else []
        super().endData(*args, **kwargs)

    def _end_innermost(self, ended: set[str], protecting: set[str]) -> None:
        """Ends the innermost open element of ``ended``, unless an element of ``protecting`` is open inside of it."""
        for depth, tag in enumerate(reversed(self.tagStack)):
            if tag.name in ended:
                self.endData()
                for _ in range(depth + 1):
                    self.popTag()
                return
            if tag.name in protecting:
                return


def _simplify(soup: BeautifulSoup) -> None:
    """Removes markup for which the converter would write much text or take quadratic time."""
    # The converter writes an empty cell for every column that a cell spans.
    for cell in soup.find_all(["td", "th"], colspan=True):
        del cell["colspan"]
    # To number an item, the converter counts all items before the item.
    for numbered_list in soup.find_all("ol"):
        if len(numbered_list.contents) > MAX_NUMBERED_ITEMS:
            numbered_list.name = "ul"


class _Converter(MarkdownConverter):
    """Writes a tree as Markdown, without the elements that are not content. An image becomes its alternative text."""

    def process_tag(self, node: Tag, parent_tags: set[str] | None = None) -> str:
        if node.name in _NOT_CONTENT:
            return ""
        if node.name == "img":
            return str(node.get("alt") or "")
        return str(super().process_tag(node, parent_tags))  # type: ignore[misc]  # The library's stub lacks the method.


# Markdown escapes would become part of the text that is searched and cited: snake\_case instead of snake_case.
_CONVERTER = _Converter(heading_style=ATX, escape_asterisks=False, escape_underscores=False)

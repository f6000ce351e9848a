"""Markdown: front matter, and headings with their places."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import islice, pairwise
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pydantic import TypeAdapter, ValidationError

from core.loading.decoding import decode
from core.loading.pages import find_pages
from core.loading.types import Heading, LoadedText
from core.model.chunk import AttributeName, Attributes, AttributeValue
from core.model.errors import EmptyContent

MAX_FRONT_MATTER = 64 * 1024
MAX_FRONT_MATTER_DEPTH = 16
MAX_ATTRIBUTES = 64
MAX_TITLE = 1024
MAX_HEADING = 256

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?\r?\n)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_LINE_END = re.compile(r"\r\n?|\n")
# Headings need the blocks of a document, and the inline markup of the headings alone.
_BLOCKS = MarkdownIt("commonmark").disable("inline")
_INLINE = MarkdownIt("commonmark")
# Besides its own errors, PyYAML lets pass what Python raises at a value that does not fit its tag.
_YAML_ERRORS = (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

_ATTRIBUTE: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[AttributeName, AttributeValue])


class MarkdownLoader:
    """Markdown as it is. Front matter is taken off: offsets count in the text that follows it. Form feeds end pages."""

    name = "markdown"
    media_types: Sequence[str] = ("text/markdown", "text/x-markdown")
    suffixes: Mapping[str, str] = {".md": "text/markdown", ".markdown": "text/markdown"}

    def check(self, content: bytes, charset: str | None) -> None:
        decode(content, charset)

    def load(self, content: bytes, charset: str | None) -> LoadedText:
        text, title, attributes = take_front_matter(decode(content, charset))
        if not text.strip():
            raise EmptyContent("Nothing is left of the document but its front matter")
        return LoadedText(
            text=text, headings=find_headings(text), title=title, attributes=attributes, pages=find_pages(text)
        )


def take_front_matter(text: str) -> tuple[str, str, Attributes]:
    """The text after its front matter, the title and the attributes that the front matter gives.

    Front matter is a YAML mapping between ``---`` lines at the very start, of at most 64 Ki characters. Its
    ``title`` becomes the title. Of the rest the first 64 values that an attribute can have become attributes, dates
    as ISO 8601 text; other values are left out. What is not such a mapping, or has aliases, is text like any other.
    """
    match = _FRONT_MATTER.match(text, 0, MAX_FRONT_MATTER)
    if not match:
        return text, "", {}
    try:
        values = _read_yaml(match[1])
    except _YAML_ERRORS:
        return text, "", {}
    if not isinstance(values, dict):
        return text, "", {}
    title = values.pop("title", "")
    found = islice(_attributes(values), MAX_ATTRIBUTES)
    return text[match.end() :], title[:MAX_TITLE] if isinstance(title, str) else "", dict(found)


def _read_yaml(text: str) -> Any:
    """Nothing nested deep and no aliases: PyYAML takes quadratic time and exponential memory for them."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_FRONT_MATTER_DEPTH or isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError
    return yaml.safe_load(text)


def _attributes(values: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        plain = value.isoformat() if isinstance(value, date) else value
        try:
            yield from _ATTRIBUTE.validate_python({name: plain}).items()
        except ValidationError:
            continue


def find_headings(text: str) -> tuple[Heading, ...]:
    """The headings of a Markdown text by CommonMark, in order of place.

    Those inside of a fence, a quotation or a list are not the document's own and are left out.
    """
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    tokens = _BLOCKS.parse(text)
    return tuple(
        Heading(starts[token.map[0]], int(token.tag[1:]), title)
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map and (title := _plain(inline.content))
    )


def _plain(markup: str) -> str:
    """The words of a heading, without inline markup, cut at 256 characters."""
    # Inline parsing of hostile markup is slower than linear, so it sees a few lines' worth at most.
    words = " ".join("".join(_words(_INLINE.parseInline(markup[: 4 * MAX_HEADING]))).split())
    return words if len(words) <= MAX_HEADING else words[: MAX_HEADING - 1] + "…"


def _words(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.children is not None:
            yield from _words(token.children)
        elif token.type in ("softbreak", "hardbreak"):
            yield " "
        elif token.type != "html_inline":
            yield token.content

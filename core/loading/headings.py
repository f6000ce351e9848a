"""Finds the headings of a Markdown text, with their places."""

import re
from collections.abc import Iterator
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from core.loading.types import Heading

MAX_HEADING = 256
"""The longest title of a heading, in characters. A longer title is cut and ends with an ellipsis."""

_LINE_END = re.compile(r"\r\n?|\n")
# Parsing the inline markup of a whole document would be wasted: only the markup of the headings is needed.
_BLOCK_PARSER = MarkdownIt("commonmark").disable("inline")
_INLINE_PARSER = MarkdownIt("commonmark")


def find_headings(text: str) -> tuple[Heading, ...]:
    """Returns the headings of a Markdown text as CommonMark defines them, in the order in which they occur.

    Headings inside a code fence, a quotation or a list do not structure the document, so they are left out. So are
    headings without words.
    """
    line_starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    tokens = _BLOCK_PARSER.parse(text)
    return tuple(
        Heading(line_starts[token.map[0]], int(token.tag[1:]), title)
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map and (title := _title(inline.content))
    )


def _title(markup: str) -> str:
    """Returns the words of a heading without their inline markup, cut to ``MAX_HEADING`` characters."""
    # The inline parser takes more than linear time for hostile markup, so it sees a few lines' worth of text at most.
    title = " ".join("".join(_words(_INLINE_PARSER.parseInline(markup[: 4 * MAX_HEADING]))).split())
    return title if len(title) <= MAX_HEADING else title[: MAX_HEADING - 1] + "…"


def _words(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.children is not None:
            yield from _words(token.children)
        elif token.type in ("softbreak", "hardbreak"):
            yield " "
        elif token.type != "html_inline":
            yield token.content

"""The HTML loader makes Markdown of what a page shows, with the page's title and headings."""

import pytest

from core.loading.html import HtmlLoader
from core.loading.html_to_markdown import MAX_DEPTH
from core.loading.types import LoadedText
from core.model.errors import EmptyContent, UnsupportedMediaType

HIDDEN_NAMES = ("script", "style", "noscript", "template", "svg", "nav", "iframe", "canvas")
NOT_SHOWN = "".join(f"<{name}>gone</{name}>" for name in HIDDEN_NAMES)
NESTING = ("<div>", "<b>", "<blockquote>", "<ul><li>", "<table><tr><td>", "<span>")
UNFINISHED = ("<", "<a ", "<a/", "<!--", "<!", "</", "<?", "<![CDATA[", "<![if x]>", "<a x='", "&", "&#", "<script>")


def load(html: str, encoding: str = "utf-8", charset: str | None = None) -> LoadedText:
    return HtmlLoader().load(html.encode(encoding), charset)


def test_a_page_becomes_markdown_with_title_and_headings() -> None:
    loaded = load(
        "<html><head><title> A &amp;\n B </title></head><body><h1>Top <em>level</em></h1>"
        "<p>Some <b>bold</b> <a href='http://x.y'>link</a>.</p><h2>Sub</h2><p>More.</p></body></html>"
    )
    assert loaded.title == "A & B"
    assert loaded.text == "# Top *level*\n\nSome **bold** [link](http://x.y).\n\n## Sub\n\nMore."
    assert [(loaded.text[start:].split("\n")[0], level, title) for start, level, title in loaded.headings] == [
        ("# Top *level*", 1, "Top level"),
        ("## Sub", 2, "Sub"),
    ]


SHOWN = {
    "what is not shown is left out": ("<p>seen</p>" + NOT_SHOWN + "<!-- gone --><title>gone</title>", "seen"),
    "alternative text of an image": ("<p>a <img src='data:image/png;base64,AAAA' alt='red cat'> b</p>", "a red cat b"),
    "no escapes": ("<p>snake_case and 2*3*4</p>", "snake_case and 2*3*4"),
    "no end tags in lists": ("<ul><li>1<li>2<ul><li>deep</ul><li>3</ul>", "* 1\n* 2\n  + deep\n* 3"),
    "no end tags of paragraphs": ("<p>one<p>two<h2>Sub</h2>", "one\n\ntwo\n\n## Sub"),
    "no end tags in tables": ("<table><tr><th>k<th>v<tr><td>a<td>b</table>", "| k | v |\n| --- | --- |\n| a | b |"),
    "tag without end is text": ("<p>1 < 2 and <a href='x", "1 < 2 and <a href='x"),
    "comment without end is text": ("<p>seen <!-- never closed", "seen <!-- never closed"),
    "the greatest depth": ("<span>" * (MAX_DEPTH - 1) + "deep", "deep"),
    "unclosed paragraphs are not nested": ("<p>word" * 1000, "\n\n".join(["word"] * 1000)),
    "a long list loses its numbers": ("<ol>" + "<li>item" * 2000 + "</ol>", "\n".join(["* item"] * 2000)),
    "a long run of spaces": ("<p>a" + " " * 50_000 + "b</p>", "a b"),
    "a long run of escaped spaces": ("<p>a" + "&#32;" * 50_000 + "b</p>", "a b"),
    "a long run of line ends": ("<p>a" + "\n" * 50_000 + "b</p>", "a\nb"),
}


@pytest.mark.parametrize(("html", "text"), SHOWN.values(), ids=SHOWN)
def test_a_page_becomes_the_text_that_a_reader_sees(html: str, text: str) -> None:
    assert load(html).text == text


def test_preformatted_text_keeps_its_lines_and_contains_no_heading() -> None:
    loaded = load("<h1>T</h1><pre><code>def f():\n    # comment\n</code></pre>")
    assert "def f():\n    # comment\n" in loaded.text
    assert [heading.title for heading in loaded.headings] == ["T"]


@pytest.mark.parametrize(
    ("head", "encoding", "charset"),
    [
        ('<meta charset="iso-8859-1">', "latin-1", None),
        ('<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">', "cp1252", None),
        ('<meta charset="shift_jis">', "shift_jis", None),
        ('<?xml version="1.0" encoding="iso-8859-1"?>', "latin-1", None),
        ('<meta charset="utf-16">', "utf-8", None),
        ("", "utf-8", None),
        ('<meta charset="utf-8">', "latin-1", "iso-8859-1"),
    ],
)
def test_a_page_is_decoded_by_the_callers_charset_or_its_own(head: str, encoding: str, charset: str | None) -> None:
    words = "漢字" if encoding == "shift_jis" else "café"
    assert load(f"{head}<p>{words}</p>", encoding, charset).text.endswith(words)


def test_a_page_in_an_undeclared_encoding_or_that_shows_nothing_is_refused() -> None:
    with pytest.raises(UnsupportedMediaType, match="declare its encoding"):
        load("<p>café</p>", "latin-1")
    with pytest.raises(EmptyContent):
        load("<script>only()</script><p> </p>")


@pytest.mark.parametrize(("tags", "times"), [("<span>", MAX_DEPTH + 1), *((tags, 100_000) for tags in NESTING)])
def test_a_page_that_is_nested_too_deep_is_refused(tags: str, times: int) -> None:
    with pytest.raises(UnsupportedMediaType, match="nested too deep"):
        load("x" + tags * times)


@pytest.mark.parametrize("end", ["", ">", "-->", "'>"])
@pytest.mark.parametrize("piece", [*UNFINISHED, "<img alt=a>"])
def test_hostile_markup_is_loaded_or_refused_as_a_problem_of_the_content(piece: str, end: str) -> None:
    try:
        load("text " + piece * 5_000 + end)
    except (UnsupportedMediaType, EmptyContent):
        return


def test_cells_that_span_columns_do_not_multiply_the_text() -> None:
    assert len(load("<table><tr>" + "<td colspan=1000>a</td>" * 100 + "</table>").text) < 5000

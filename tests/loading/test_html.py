"""HTML is read as Markdown: what a reader sees, with its headings."""

import pytest

from core.loading.html import HtmlLoader
from core.loading.html_to_markdown import MAX_DEPTH
from core.loading.types import LoadedText
from core.model.errors import EmptyContent, UnsupportedMediaType


def load(html: str) -> LoadedText:
    return HtmlLoader().load(html.encode(), None)


def test_a_page_becomes_markdown_with_title_and_headings() -> None:
    loaded = load(
        "<html><head><title> A &amp;\n B </title></head><body><h1>Top <em>level</em></h1>"
        "<p>Some <b>bold</b> <a href='http://x.y'>link</a>.</p><h2>Sub</h2><p>More.</p></body></html>"
    )
    assert loaded.title == "A & B"
    assert loaded.text == "# Top *level*\n\nSome **bold** [link](http://x.y).\n\n## Sub\n\nMore."
    assert [(loaded.text[place:].split("\n")[0], level, title) for place, level, title in loaded.headings] == [
        ("# Top *level*", 1, "Top level"),
        ("## Sub", 2, "Sub"),
    ]


def test_what_is_not_shown_and_navigation_are_left_out() -> None:
    hidden = ["script", "style", "noscript", "template", "svg", "nav", "iframe", "canvas"]
    html = "<p>seen</p>" + "".join(f"<{name}>gone</{name}>" for name in hidden) + "<!-- gone --><title>gone</title>"
    assert load(html).text == "seen"


def test_of_an_image_its_alternative_text_remains() -> None:
    assert load("<p>a <img src='data:image/png;base64,AAAA' alt='red cat'> b</p>").text == "a red cat b"


def test_text_has_no_escapes() -> None:
    assert load("<p>snake_case and 2*3*4</p>").text == "snake_case and 2*3*4"


def test_preformatted_text_keeps_its_lines_and_holds_no_heading() -> None:
    loaded = load("<h1>T</h1><pre><code>def f():\n    # comment\n</code></pre>")
    assert "def f():\n    # comment\n" in loaded.text
    assert [heading.title for heading in loaded.headings] == ["T"]


def test_end_tags_may_be_left_out() -> None:
    assert load("<ul><li>one<li>two<ul><li>deep</ul><li>three</ul>").text == "* one\n* two\n  + deep\n* three"
    assert load("<p>one<p>two<h2>Sub</h2>").text == "one\n\ntwo\n\n## Sub"
    assert load("<table><tr><th>k<th>v<tr><td>a<td>b</table>").text == "| k | v |\n| --- | --- |\n| a | b |"


def test_a_page_of_many_unclosed_paragraphs_is_not_deep() -> None:
    assert load("<p>word" * 1000).text.split() == ["word"] * 1000


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="iso-8859-1">', "latin-1"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">', "cp1252"),
        ('<meta charset="shift_jis">', "shift_jis"),
        ('<?xml version="1.0" encoding="iso-8859-1"?>', "latin-1"),
        ('<meta charset="utf-16">', "utf-8"),
        ("", "utf-8"),
    ],
)
def test_the_page_declares_its_encoding(head: str, encoding: str) -> None:
    words = "漢字" if encoding == "shift_jis" else "café"
    assert HtmlLoader().load(f"{head}<p>{words}</p>".encode(encoding), None).text.endswith(words)


def test_the_callers_charset_outweighs_the_pages() -> None:
    assert HtmlLoader().load('<meta charset="utf-8"><p>café</p>'.encode("latin-1"), "iso-8859-1").text == "café"


def test_an_undeclared_encoding_is_refused() -> None:
    with pytest.raises(UnsupportedMediaType, match="declare its encoding"):
        HtmlLoader().load("<p>café</p>".encode("latin-1"), None)


def test_a_page_that_shows_nothing_is_empty() -> None:
    with pytest.raises(EmptyContent):
        load("<script>only()</script><p> </p>")


@pytest.mark.parametrize("tag", ["<div>", "<b>", "<blockquote>", "<ul><li>", "<table><tr><td>", "<span>"])
def test_a_hundred_thousand_nested_tags_are_a_typed_error(tag: str) -> None:
    with pytest.raises(UnsupportedMediaType, match="nested too deep"):
        load("x" + tag * 100_000)


@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<a ",
        "<a/",
        "<!--",
        "<!",
        "</",
        "<?",
        "<![CDATA[",
        "<![if x]>",
        "<a x='",
        "&",
        "&#",
        "<script>",
        "<img alt=a>",
    ],
)
def test_hostile_markup_loads_or_is_a_typed_error(piece: str) -> None:
    for end in ("", ">", "-->", "'>"):
        try:
            load("text " + piece * 5_000 + end)
        except (UnsupportedMediaType, EmptyContent):
            continue


def test_the_depth_that_is_allowed_is_read_and_more_is_not() -> None:
    assert load("<span>" * (MAX_DEPTH - 1) + "deep").text == "deep"
    with pytest.raises(UnsupportedMediaType):
        load("<span>" * (MAX_DEPTH + 1) + "deep")


def test_markup_that_never_ends_is_text() -> None:
    assert load("<p>1 < 2 and <a href='x").text == "1 < 2 and <a href='x"
    assert load("<p>seen <!-- never closed").text == "seen <!-- never closed"


@pytest.mark.parametrize("space", [" ", "\n", "&#32;"])
def test_long_runs_of_white_space_are_one(space: str) -> None:
    assert load(f"<p>a{space * 50_000}b</p>").text.split() == ["a", "b"]


def test_a_long_numbered_list_keeps_its_items() -> None:
    assert load("<ol>" + "<li>item" * 2000 + "</ol>").text.count("item") == 2000


def test_wide_cells_do_not_multiply() -> None:
    assert len(load("<table><tr>" + "<td colspan=1000>a</td>" * 100 + "</table>").text) < 5000

"""The headings of Markdown are found as CommonMark defines them, each with its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.loading.headings import MAX_HEADING, find_headings


def test_headings_are_found_with_their_line_level_and_title() -> None:
    text = (
        "# One\n\nTwo\nlines\n===\n\n  ## Three ##\n\n```\n# not\n```\n\n    # code\n\n"
        "#not\n\n> # quoted\n\n- # listed\n\nFour\n---\n"
    )
    headings = find_headings(text)
    assert [(text[start:].split("\n", maxsplit=1)[0], level, title) for start, level, title in headings] == [
        ("# One", 1, "One"),
        ("Two", 1, "Two lines"),
        ("  ## Three ##", 2, "Three"),
        ("Four", 2, "Four"),
    ]


def test_the_place_of_a_heading_is_counted_in_code_points() -> None:
    text = "👩‍🚀 漢字\n\n# Über\n"
    assert find_headings(text) == ((text.index("#"), 1, "Über"),)


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# A `code` and *em* and **strong**", "A code and em and strong"),
        ("# A [link](http://x.y) and ![image](u)", "A link and image"),
        ("# Q&amp;A <b>bold</b> \\* star", "Q&A bold * star"),
        ("# snake_case_name", "snake_case_name"),
        pytest.param("# " + "word " * 1000, ("word " * 1000)[: MAX_HEADING - 1] + "…", id="a long title is cut"),
    ],
)
def test_a_title_is_the_words_of_its_heading_without_inline_markup(line: str, title: str) -> None:
    assert find_headings(line) == ((0, 1, title),)


def test_a_heading_without_words_is_left_out() -> None:
    assert find_headings("#\n\ntext\n\n## <br>\n") == ()


@pytest.mark.parametrize("piece", ["[", "> ", "- ", "*a ", "`a", "# [", "<a ", "![", "[a]: ", "***"])
def test_the_headings_of_hostile_markdown_are_searched_without_an_error(piece: str) -> None:
    find_headings("x\n\n" + piece * 20_000)


@given(st.text(st.sampled_from("# \n\r=-`>*é👩‍🚀ab"), max_size=80))
def test_every_heading_starts_at_the_start_of_a_line(text: str) -> None:
    for heading in find_headings(text):
        assert heading.start_index == 0 or text[heading.start_index - 1] in "\r\n"
        assert text[heading.start_index :].strip()

"""Markdown stays as it is; its front matter and its headings are understood."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.loading.markdown import MAX_HEADING, MarkdownLoader, find_headings
from core.loading.types import LoadedText
from core.model.errors import EmptyContent


def load(text: str) -> LoadedText:
    return MarkdownLoader().load(text.encode(), None)


def test_front_matter_becomes_title_and_attributes_and_leaves_the_text() -> None:
    loaded = load("---\ntitle: The guide\nlang: en\nyear: 2024\ndraft: false\ntags: [a, b]\n---\n# One\n")
    assert loaded.text == "# One\n"
    assert loaded.title == "The guide"
    assert loaded.attributes == {"lang": "en", "year": 2024, "draft": False, "tags": ["a", "b"]}
    assert loaded.headings == ((0, 1, "One"),)


def test_a_date_in_front_matter_becomes_text() -> None:
    loaded = load("---\nday: 2024-05-01\nat: 2024-05-01T10:00:00+02:00\n---\nx")
    assert loaded.attributes == {"day": "2024-05-01", "at": "2024-05-01T10:00:00+02:00"}


def test_values_that_no_attribute_can_have_are_left_out() -> None:
    loaded = load(f"---\nmap: {{a: 1}}\nnone:\nmixed: [a, 1]\nnan: .nan\nlong: {'x' * 1025}\n1: a\nok: yes\n---\nx")
    assert loaded.attributes == {"ok": True}


def test_at_most_64_attributes_are_taken() -> None:
    names = [f"n{number}" for number in range(70)]
    loaded = load("---\n" + "".join(f"{name}: 1\n" for name in names) + "---\nx")
    assert list(loaded.attributes) == names[:64]


@pytest.mark.parametrize(
    "text",
    [
        "---\na: [\n---\nx",
        "---\njust words\n---\nx",
        "---\n- a\n---\nx",
        "---\na: 1\nnever closed",
        "\n---\na: 1\n---\nx",
        "---\na: 2024-99-99\n---\nx",
        "---\na: !!python/object/apply:os.system ['true']\n---\nx",
        "---\na: !!int ''\n---\nx",
        "---\na: !!bool x\n---\nx",
        "---\na: !!timestamp x\n---\nx",
        "---\n? [a]\n: 1\n---\nx",
        f"---\na: {'[' * 50_000}\n---\nx",
        "---\n\n---\nx",
    ],
)
def test_malformed_front_matter_is_text(text: str) -> None:
    loaded = load(text)
    assert (loaded.text, loaded.attributes) == (text, {})


@pytest.mark.parametrize("value", ["[{0}, {0}]", "{{<<: [{0}, {0}]}}"])
def test_front_matter_with_aliases_that_multiply_is_text(value: str) -> None:
    lines = ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} " + value.format(f"*a{n - 1}") for n in range(1, 40)]
    text = "---\n" + "\n".join(lines) + "\n---\nx"
    assert load(text).text == text


def test_nothing_but_front_matter_is_empty() -> None:
    with pytest.raises(EmptyContent):
        load("---\na: 1\n---\n \n")


def test_windows_line_ends_stay_and_offsets_count_them() -> None:
    loaded = load("---\r\na: 1\r\n---\r\n# One\r\n\r\ntext\r\n\r\n## Two\r\n")
    assert loaded.text == "# One\r\n\r\ntext\r\n\r\n## Two\r\n"
    assert loaded.headings == ((0, 1, "One"), (17, 2, "Two"))


def test_headings_are_found_as_commonmark_has_them() -> None:
    text = (
        "# One\n\nTwo\nlines\n===\n\n  ## Three ##\n\n```\n# not\n```\n\n    # code\n\n"
        "#not\n\n> # quoted\n\n- # listed\n\nFour\n---\n"
    )
    assert [(heading.level, heading.title) for heading in find_headings(text)] == [
        (1, "One"),
        (1, "Two lines"),
        (2, "Three"),
        (2, "Four"),
    ]
    assert [text[heading.start_index :].split("\n", maxsplit=1)[0] for heading in find_headings(text)] == [
        "# One",
        "Two",
        "  ## Three ##",
        "Four",
    ]


def test_a_heading_after_characters_of_several_bytes_is_counted_in_code_points() -> None:
    text = "👩‍🚀 漢字\n\n# Über\n"
    assert find_headings(text) == ((text.index("#"), 1, "Über"),)


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# A `code` and *em* and **strong**", "A code and em and strong"),
        ("# A [link](http://x.y) and ![image](u)", "A link and image"),
        ("# Q&amp;A <b>bold</b> \\* star", "Q&A bold * star"),
        ("# snake_case_name", "snake_case_name"),
    ],
)
def test_a_title_is_the_words_without_inline_markup(line: str, title: str) -> None:
    assert find_headings(line) == ((0, 1, title),)


def test_a_heading_without_words_is_none() -> None:
    assert find_headings("#\n\ntext\n\n## <br>\n") == ()


def test_a_long_heading_is_cut() -> None:
    (heading,) = find_headings("# " + "word " * 1000)
    assert len(heading.title) == MAX_HEADING
    assert heading.title.endswith("…")


@pytest.mark.parametrize("piece", ["[", "> ", "- ", "*a ", "`a", "# [", "<a ", "![", "[a]: ", "***"])
def test_hostile_markdown_loads(piece: str) -> None:
    load("x\n\n" + piece * 20_000)


@given(st.text(st.sampled_from("# \n\r=-`>*é👩‍🚀ab"), max_size=80))
def test_every_heading_starts_a_line(text: str) -> None:
    for heading in find_headings(text):
        assert heading.start_index == 0 or text[heading.start_index - 1] in "\r\n"
        assert text[heading.start_index :].strip()

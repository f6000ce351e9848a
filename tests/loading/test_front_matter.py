"""The Markdown loader takes the front matter off a text and makes a title and attributes of it."""

import pytest

from core.loading.front_matter import MAX_FRONT_MATTER_DEPTH
from core.loading.markdown import MarkdownLoader
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


def test_front_matter_gives_at_most_64_valid_attributes_with_dates_as_text() -> None:
    dates = {"day": "2024-05-01", "at": "2024-05-01T10:00:00+02:00"}
    assert load("---\n" + "".join(f"{name}: {date}\n" for name, date in dates.items()) + "---\nx").attributes == dates
    invalid = f"map: {{a: 1}}\nnone:\nmixed: [a, 1]\nnan: .nan\nlong: {'x' * 1025}\n1: a\n"
    assert load(f"---\n{invalid}ok: yes\n---\nx").attributes == {"ok": True}
    names = [f"n{number}" for number in range(70)]
    assert list(load("---\n" + "".join(f"{name}: 1\n" for name in names) + "---\nx").attributes) == names[:64]


def multiplied_by_aliases(value: str) -> str:
    """Front matter whose values double 39 times when a reader follows its aliases."""
    lines = ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} " + value.format(f"*a{n - 1}") for n in range(1, 40)]
    return "---\n" + "\n".join(lines) + "\n---\nx"


@pytest.mark.parametrize(
    "text",
    [
        *(f"---\na: {value}\n---\nx" for value in ("[", "2024-99-99", "!!int ''", "!!bool x", "!!timestamp x")),
        *(f"---\n{yaml}\n---\nx" for yaml in ("just words", "- a", "? [a]\n: 1", "")),
        "---\na: !!python/object/apply:os.system ['true']\n---\nx",
        *("---\na: 1\nnever closed", "\n---\na: 1\n---\nx"),
        f"---\na: {'[' * MAX_FRONT_MATTER_DEPTH}{']' * MAX_FRONT_MATTER_DEPTH}\n---\nx",
        pytest.param(f"---\na: {'[' * 50_000}\n---\nx", id="nested deep"),
        pytest.param(multiplied_by_aliases("[{0}, {0}]"), id="lists multiplied by aliases"),
        pytest.param(multiplied_by_aliases("{{<<: [{0}, {0}]}}"), id="mappings multiplied by aliases"),
    ],
)
def test_malformed_or_hostile_front_matter_stays_in_the_text(text: str) -> None:
    loaded = load(text)
    assert (loaded.text, loaded.title, loaded.attributes) == (text, "", {})


def test_a_document_of_nothing_but_front_matter_is_refused_as_empty_content() -> None:
    with pytest.raises(EmptyContent):
        load("---\na: 1\n---\n \n")


def test_windows_line_ends_stay_in_the_text_and_offsets_count_them() -> None:
    loaded = load("---\r\na: 1\r\n---\r\n# One\r\n\r\ntext\r\n\r\n## Two\r\n")
    assert loaded.text == "# One\r\n\r\ntext\r\n\r\n## Two\r\n"
    assert loaded.headings == ((0, 1, "One"), (17, 2, "Two"))

"""Spans: exact, bounded, whole graphemes, nothing lost."""

from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from core.loading.headings import find_headings
from core.loading.types import LoadedText
from core.model.chunk import MAX_CHUNK_BYTES
from core.model.errors import InvalidArgument
from core.splitting.counting import CharsPerFour, TokenCounter
from core.splitting.semantic import WINDOW
from core.splitting.splitters import Splitters
from core.splitting.types import Span


class Words:
    """One token a word, however long, as a word-piece model has it for words that it does not know."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


class Pieces:
    """Not monotonic: a word of up to eight characters is a token for each, a longer one is one unknown token."""

    name = "pieces"

    def count(self, text: str) -> int:
        return sum(len(word) if len(word) <= 8 else 1 for word in text.split())


COUNTERS = (CharsPerFour(), Words(), Pieces())
NAMES = ("recursive", "markdown")
PARTS = [
    *("word ", "a", ". ", "\n", "\r\n", "\n\n", "\r", "  ", "\t", "\u2003", "\x1c", "\u200b"),
    *("# ", "## H\n", "- ", "> ", "```\n", "*", "**", "`", "[a](b)", "|a|b|\n", "---\n", "1. "),
    *("é", "e\u0301", " \u0301", "\n\u0301", "*\u0301", "漢字", "仮名", "สวัสดี", "안녕", "\u1100\u1161\u11a8"),
    *("👩‍🚀", "👨‍👩‍👧‍👦", "👍🏽", "🇩🇪", "🇫🇷🇯", "1️⃣", "\u200d", "\ufe0f", "क्षि", "\u0600", "שלום", "a\u0315\u035f" * 5),
]
texts = st.lists(st.sampled_from(PARTS) | st.text(max_size=5), max_size=60).map("".join)


def split(text: str, size: int, overlap: int, counter: TokenCounter, name: str = "recursive") -> list[Span]:
    return Splitters().find(name).split(LoadedText(text=text), size, overlap, counter)


def pieces(text: str, *, size: int, overlap: int = 0, name: str = "recursive") -> list[str]:
    return [text[start:end] for start, end in split(text, size, overlap, CharsPerFour(), name)]


def assert_whole(text: str, spans: list[Span], size: int, overlap: int, counter: TokenCounter) -> None:
    """Everything that a splitter promises of its spans."""
    graphemes = [match.span() for match in regex.finditer(r"\X", text)]
    inside = {place: (start, end) for start, end in graphemes for place in range(start + 1, end)}
    covered = 0
    for start, end in spans:
        piece = text[start:end]
        assert piece.strip(), f"span {start}:{end} is blank"
        assert len(piece.encode()) <= MAX_CHUNK_BYTES
        assert counter.count(piece) <= size or len(piece) == 1, f"{piece!r} is over {size} tokens"
        assert end > covered, f"span {start}:{end} holds nothing new"
        assert not text[covered:start].strip(), f"{text[covered:start]!r} is in no span"
        assert counter.count(text[start:covered]) <= overlap, f"{text[start:covered]!r} is over {overlap} tokens"
        for place in {start, end} & inside.keys():
            first, last = inside[place]
            whole = text[first:last]
            too_large = counter.count(whole) > size or len(whole.encode()) > MAX_CHUNK_BYTES
            assert too_large, f"{place} is inside of {whole!r}"
        covered = end
    assert not text[covered:].strip(), f"{text[covered:]!r} is in no span"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
@given(text=texts, size=st.integers(1, 24), share=st.floats(0, 0.99))
def test_spans_of_any_text_are_exact_and_whole(
    name: str, counter: TokenCounter, text: str, size: int, share: float
) -> None:
    overlap = int(size * share)
    spans = split(text, size, overlap, counter, name)
    assert_whole(text, spans, size, overlap, counter)
    assert spans == split(text, size, overlap, counter, name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
@pytest.mark.parametrize(
    "piece",
    [
        *("a", "word ", "漢", "สวัสดี", "한글", "\u1100\u1161\u11a8", "e\u0301", "\u0301", "👨‍👩‍👧‍👦", "🇩🇪", "क्षि"),
        *("\u0600 a", "*a*\u0301", "a\r\n", "- a\n", "> a\n", "|a|b|\n", "[", "`a", "# a\n\nb\n\n", "\n", " "),
    ],
)
def test_a_long_text_of_one_kind_is_cut_in_bounded_time(piece: str, counter: TokenCounter, name: str) -> None:
    # The check of this test looks back over all flags before each, so it takes fewer.
    text = piece * ((8_000 if piece == "🇩🇪" else 40_000) // len(piece))
    assert_whole(text, split(text, 100, 10, counter, name), 100, 10, counter)


def test_a_text_longer_than_what_is_seen_at_once_is_cut_as_if_it_were_seen_whole() -> None:
    text = "".join(f"# Section {number}\n\n" + "Some words of it. " * 40 + "\n\n" for number in range(400))
    assert len(text) > 2 * WINDOW
    spans = split(text, 300, 0, CharsPerFour(), "markdown")
    assert_whole(text, spans, 300, 0, CharsPerFour())
    assert {text[start:].split(" ", 1)[0] for start, _ in spans} == {"#"}


def test_one_token_of_300_kilobytes_is_cut_by_bytes() -> None:
    text = "x" * 300_000
    spans = split(text, 100, 0, Words())
    assert_whole(text, spans, 100, 0, Words())
    assert len(spans) == 10


def test_a_grapheme_larger_than_a_span_is_cut_between_characters() -> None:
    text = "e" + "\u0301" * 1000
    assert "".join(pieces(text, size=10)) == text


def test_spans_end_where_meaning_does() -> None:
    text = "First sentence here. Second sentence here.\n\nAnother paragraph."
    assert pieces(text, size=6) == ["First sentence here.", "Second sentence here.", "Another paragraph."]


def test_markdown_is_cut_at_its_headings() -> None:
    text = "# One\n\nShort.\n\n# Two\n\nAlso short.\n\n# Three\n\nThe last."
    assert pieces(text, size=8, name="markdown") == [
        "# One\n\nShort.",
        "# Two\n\nAlso short.",
        "# Three\n\nThe last.",
    ]
    assert len(find_headings(text)) == 3


@pytest.mark.parametrize("name", NAMES)
def test_neighbours_overlap_when_asked_to(name: str) -> None:
    text = " ".join(f"word{number}" for number in range(500))
    spans = split(text, 50, 10, CharsPerFour(), name)
    shared = [text[after.start_index : before.end_index] for before, after in pairwise(spans)]
    assert all(20 <= len(piece) <= 40 for piece in shared)


def test_a_text_that_fits_is_one_span_without_white_space_at_its_ends() -> None:
    assert split("\n\n  all of it \n", 10, 5, CharsPerFour()) == [Span(4, 13)]


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_a_blank_text_has_no_spans(text: str) -> None:
    assert split(text, 10, 5, CharsPerFour()) == []


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 10), (10, 11), (10, -1), (-5, -6)])
def test_an_overlap_must_be_smaller_than_the_size(size: int, overlap: int) -> None:
    with pytest.raises(InvalidArgument):
        split("text", size, overlap, CharsPerFour())


def test_an_unknown_strategy_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InvalidArgument, match="recursive, markdown"):
        Splitters().find("semantics")


def test_the_splitters_describe_themselves() -> None:
    assert Splitters().names == ["recursive", "markdown"]
    assert Splitters().describe().configured


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("👩‍🚀", 1), ("漢" * 9, 3)])
def test_the_estimate_is_code_points_by_four_rounded_up(text: str, tokens: int) -> None:
    assert CharsPerFour().count(text) == tokens

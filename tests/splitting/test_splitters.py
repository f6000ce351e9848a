"""The spans of a splitter are exact, bounded and made of whole graphemes, and they lose no text."""

from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from core.loading.types import LoadedText
from core.model.chunk import MAX_CHUNK_BYTES
from core.model.errors import InvalidArgument
from core.splitting.counting import CharsPerFour, TokenCounter
from core.splitting.semantic import WINDOW_LENGTH
from core.splitting.splitters import Splitters
from core.splitting.types import Span


class Words:
    """Counts every word as one token, however long, as a word-piece model counts words that it does not know."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


class ShortWords:
    """Counts a token for each character of a word, but one token for a word of more than eight characters.

    So a longer text may have fewer tokens.
    """

    name = "short words"

    def count(self, text: str) -> int:
        return sum(len(word) if len(word) <= 8 else 1 for word in text.split())


with_each_splitter = pytest.mark.parametrize("name", ["recursive", "markdown"])
COUNTERS: list[TokenCounter] = [CharsPerFour(), Words(), ShortWords()]
with_each_counter = pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
PIECES = [
    *("word ", "a", ". ", "\n", "\r\n", "\n\n", "\r", "  ", "\t", "\u2003", "\x1c", "\u200b"),
    *("# ", "## H\n", "- ", "> ", "```\n", "*", "**", "`", "[a](b)", "|a|b|\n", "---\n", "1. "),
    *("é", "e\u0301", " \u0301", "\n\u0301", "*\u0301", "漢字", "仮名", "สวัสดี", "안녕", "\u1100\u1161\u11a8"),
    *("👩‍🚀", "👨‍👩‍👧‍👦", "👍🏽", "🇩🇪", "🇫🇷🇯", "1️⃣", "\u200d", "\ufe0f", "क्षि", "\u0600", "שלום", "a\u0315\u035f" * 5),
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=60).map("".join)
REPEATED = [
    *("a", "word ", "漢", "สวัสดี", "한글", "\u1100\u1161\u11a8", "e\u0301", "\u0301", "👨‍👩‍👧‍👦", "🇩🇪", "क्षि"),
    *("\u0600 a", "*a*\u0301", "a\r\n", "- a\n", "> a\n", "|a|b|\n", "[", "`a", "# a\n\nb\n\n", "\n", " "),
]


def split(text: str, size: int, overlap: int, counter: TokenCounter, name: str = "recursive") -> list[Span]:
    return Splitters().find(name).split(LoadedText(text=text), size, overlap, counter)


def assert_exact_and_whole(text: str, spans: list[Span], size: int, overlap: int, counter: TokenCounter) -> None:
    """Asserts everything that a splitter promises of its spans."""
    graphemes = [match.span() for match in regex.finditer(r"\X", text)]
    grapheme_around = {offset: (start, end) for start, end in graphemes for offset in range(start + 1, end)}
    covered = 0
    for start, end in spans:
        piece = text[start:end]
        assert piece.strip(), f"span {start}:{end} is blank"
        assert len(piece.encode()) <= MAX_CHUNK_BYTES
        assert counter.count(piece) <= size or len(piece) == 1, f"{piece!r} is over {size} tokens"
        assert end > covered, f"span {start}:{end} contains nothing new"
        assert not text[covered:start].strip(), f"{text[covered:start]!r} is in no span"
        assert counter.count(text[start:covered]) <= overlap, f"{text[start:covered]!r} is over {overlap} tokens"
        for offset in {start, end} & grapheme_around.keys():
            first, last = grapheme_around[offset]
            grapheme = text[first:last]
            too_large = counter.count(grapheme) > size or len(grapheme.encode()) > MAX_CHUNK_BYTES
            assert too_large, f"offset {offset} is inside the grapheme {grapheme!r}"
        covered = end
    assert not text[covered:].strip(), f"{text[covered:]!r} is in no span"


@with_each_splitter
@with_each_counter
@given(text=texts, size=st.integers(1, 24), share=st.floats(0, 0.99))
def test_spans_of_any_text_are_exact(name: str, counter: TokenCounter, text: str, size: int, share: float) -> None:
    overlap = int(size * share)
    spans = split(text, size, overlap, counter, name)
    assert_exact_and_whole(text, spans, size, overlap, counter)
    assert spans == split(text, size, overlap, counter, name)


@with_each_splitter
@with_each_counter
@pytest.mark.parametrize("piece", REPEATED)
def test_a_long_text_of_one_repeated_piece_is_cut_in_bounded_time(piece: str, counter: TokenCounter, name: str) -> None:
    # The assertions below look back over all flags before each flag, so a text of flags is shorter.
    text = piece * ((8_000 if piece == "🇩🇪" else 40_000) // len(piece))
    assert_exact_and_whole(text, split(text, 100, 10, counter, name), 100, 10, counter)


def test_a_text_longer_than_a_window_is_cut_at_the_same_boundaries_as_a_short_text() -> None:
    text = "".join(f"# Section {number}\n\n" + "Some words of it. " * 40 + "\n\n" for number in range(400))
    assert len(text) > 2 * WINDOW_LENGTH
    spans = split(text, 300, 0, CharsPerFour(), "markdown")
    assert_exact_and_whole(text, spans, 300, 0, CharsPerFour())
    assert {text[start:].split(" ", 1)[0] for start, _ in spans} == {"#"}


def test_a_single_token_of_300_kilobytes_is_cut_by_its_bytes() -> None:
    text = "x" * 300_000
    spans = split(text, 100, 0, Words())
    assert_exact_and_whole(text, spans, 100, 0, Words())
    assert len(spans) == 10


def test_spans_end_where_a_unit_of_meaning_ends_and_leave_out_white_space() -> None:
    def pieces(text: str, size: int, name: str = "recursive") -> list[str]:
        return [text[start:end] for start, end in split(text, size, 0, CharsPerFour(), name)]

    sentences = ["First sentence here.", "Second sentence here.", "Another paragraph."]
    sections = ["# One\n\nShort.", "# Two\n\nAlso short.", "# Three\n\nThe last."]
    assert pieces("{} {}\n\n{}".format(*sentences), 6) == sentences
    assert pieces("\n\n".join(sections), 8, "markdown") == sections
    assert pieces("\n\n  all of it \n", 10) == ["all of it"]
    assert pieces("", 10) == pieces(" \n\t", 10) == []


def test_a_grapheme_larger_than_a_span_is_cut_between_code_points() -> None:
    assert split("e" + "\u0301" * 79, 10, 0, CharsPerFour()) == [Span(0, 40), Span(40, 80)]


@with_each_splitter
def test_neighbouring_spans_share_text_when_an_overlap_is_set(name: str) -> None:
    text = " ".join(f"word{number}" for number in range(500))
    spans = split(text, 50, 10, CharsPerFour(), name)
    shared = [text[after.start_index : before.end_index] for before, after in pairwise(spans)]
    assert all(20 <= len(piece) <= 40 for piece in shared)


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 10), (10, 11), (10, -1), (-5, -6)])
def test_an_overlap_that_is_not_smaller_than_the_size_is_refused(size: int, overlap: int) -> None:
    with pytest.raises(InvalidArgument):
        split("text", size, overlap, CharsPerFour())


def test_an_unknown_strategy_is_refused_with_the_names_of_the_splitters() -> None:
    with pytest.raises(InvalidArgument, match="recursive, markdown"):
        Splitters().find("semantics")
    assert (Splitters().describe().name, Splitters().describe().configured) == ("recursive, markdown", True)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("👩‍🚀", 1), ("漢" * 9, 3)])
def test_the_estimate_is_code_points_by_four_rounded_up(text: str, tokens: int) -> None:
    assert CharsPerFour().count(text) == tokens

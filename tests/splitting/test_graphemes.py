"""Where a reader sees one character end and the next begin."""

from random import Random

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from core.splitting.graphemes import Graphemes

PARTS = ["a", "\r\n", "\r", "\n", "\u0301", "👩‍🚀", "🇩🇪", "🇫", "\u200d", "\u1100\u1161", "क्षि", "\u0600", "漢", "1️⃣"]


@given(st.lists(st.sampled_from(PARTS) | st.characters(), max_size=80).map("".join), st.randoms())
def test_every_place_is_found_in_any_order(text: str, random: Random) -> None:
    graphemes = Graphemes(text)
    expected = {place: (place, place) for place in range(len(text) + 1)}
    for match in regex.finditer(r"\X", text):
        expected.update({place: match.span() for place in range(match.start() + 1, match.end())})
    places = list(expected)
    random.shuffle(places)
    assert {place: graphemes.around(place) for place in places} == expected


@pytest.mark.parametrize(("text", "place"), [("\r\n", 1), ("e\u0301", 1), ("🇩🇪🇫🇷", 3), ("👩‍🚀", 2)])
def test_a_place_inside_of_a_grapheme_is_told_its_ends(text: str, place: int) -> None:
    start, end = Graphemes(text).around(place)
    assert start < place < end


def test_one_grapheme_may_be_very_long() -> None:
    text = "e" + "\u0301" * 100_000
    assert Graphemes(text).around(50_000) == (0, len(text))

"""The grapheme around any offset of a text is the one that Unicode defines."""

from random import Random

import regex
from hypothesis import example, given
from hypothesis import strategies as st

from core.splitting.graphemes import Graphemes

PIECES = ["a", "\r\n", "\r", "\n", "\u0301", "👩‍🚀", "🇩🇪", "🇫", "\u200d", "\u1100\u1161", "क्षि", "\u0600", "漢", "1️⃣"]


@given(st.lists(st.sampled_from(PIECES) | st.characters(), max_size=80).map("".join), st.randoms())
@example("\r\ne\u0301🇩🇪🇫🇷👩‍🚀", Random(7))
def test_the_grapheme_around_every_offset_is_found_in_any_order(text: str, random: Random) -> None:
    graphemes = Graphemes(text)
    expected = {offset: (offset, offset) for offset in range(len(text) + 1)}
    for match in regex.finditer(r"\X", text):
        expected.update({offset: match.span() for offset in range(match.start() + 1, match.end())})
    offsets = list(expected)
    random.shuffle(offsets)
    assert {offset: graphemes.around(offset) for offset in offsets} == expected


def test_a_grapheme_may_be_very_long() -> None:
    text = "e" + "\u0301" * 100_000
    assert Graphemes(text).around(50_000) == (0, len(text))

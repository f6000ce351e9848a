"""Whether a text that is made of pieces stays within a number of tokens, without counting it whole each time."""

from collections import Counter
from collections.abc import Sequence
from functools import cache

from core.splitting.counting import TokenCounter

SLACK = 4
"""By how many tokens a piece may count for more or for less where it meets others. Tokenizers join at most the letters
around a seam, and the seams of a context are white space but for those inside an overlap."""


class TokenBudget:
    """A limit on the tokens of a text.

    A piece is counted once. The sum over the pieces, corrected by what it missed at the last true count, decides where
    it is further from the limit than pieces that are new since then can account for; else the whole is counted.
    """

    def __init__(self, counter: TokenCounter, limit: int) -> None:
        self._counter = counter
        self._limit = limit
        self._alone = cache(counter.count)
        self._known: Counter[str] = Counter()
        self._missed = 0

    def fits(self, pieces: Sequence[str]) -> bool:
        """Whether the joined pieces have at most as many tokens as the limit."""
        estimate = self._sum(pieces) + self._missed
        doubt = SLACK * self._unlike_known(pieces)
        if abs(estimate - self._limit) > doubt:
            return estimate < self._limit
        return self.count(pieces) <= self._limit

    def count(self, pieces: Sequence[str]) -> int:
        """The tokens of the joined pieces, counted as one text."""
        tokens = self._counter.count("".join(pieces))
        self._known, self._missed = Counter(pieces), tokens - self._sum(pieces)
        return tokens

    def _sum(self, pieces: Sequence[str]) -> int:
        return sum(map(self._alone, pieces))

    def _unlike_known(self, pieces: Sequence[str]) -> int:
        now = Counter(pieces)
        return (now - self._known).total() + (self._known - now).total()

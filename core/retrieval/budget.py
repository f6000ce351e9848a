"""Tells whether a text that is made of pieces stays within a number of tokens, without counting it whole each time."""

from collections import Counter
from collections.abc import Sequence
from functools import cache

from core.splitting.counting import TokenCounter

SLACK = 4
"""By how many tokens the count of a piece may change where it meets another piece.

A tokenizer joins at most the letters around a seam, and nearly all seams of a context are white space.
"""


class TokenBudget:
    """A limit on the tokens of a text.

    Each piece is counted once. The sum of the counts, corrected by the error that it had at the last true count, is an
    estimate. Where the estimate is further from the limit than the pieces that are new since then can change it,
    the estimate decides. Otherwise the whole text is counted.
    """

    def __init__(self, counter: TokenCounter, limit: int) -> None:
        self._counter = counter
        self._limit = limit
        self._alone = cache(counter.count)
        self._known: Counter[str] = Counter()
        self._missed = 0

    def fits(self, pieces: Sequence[str]) -> bool:
        """Tells whether the joined pieces have at most as many tokens as the limit."""
        estimate = self._sum(pieces) + self._missed
        doubt = SLACK * self._unlike_known(pieces)
        if abs(estimate - self._limit) > doubt:
            return estimate < self._limit
        return self.count(pieces) <= self._limit

    def count(self, pieces: Sequence[str]) -> int:
        """Counts the tokens of the joined pieces as one text."""
        tokens = self._counter.count("".join(pieces))
        self._known, self._missed = Counter(pieces), tokens - self._sum(pieces)
        return tokens

    def _sum(self, pieces: Sequence[str]) -> int:
        return sum(map(self._alone, pieces))

    def _unlike_known(self, pieces: Sequence[str]) -> int:
        now = Counter(pieces)
        return (now - self._known).total() + (self._known - now).total()

"""Counting tokens: the protocol of every token counter, and a counter that needs no model."""

from typing import Protocol


class TokenCounter(Protocol):
    """Counts the tokens of a text exactly as a model does, or estimates their number.

    Attributes:
        name: the counter's stable name.
    """

    name: str

    def count(self, text: str) -> int:
        """Returns the number of tokens of a text, without the tokens that a model adds around every text."""
        ...


class CharsPerFour:
    """Estimates one token for every four code points, rounded up. English text usually has about that many."""

    name = "chars/4"

    def count(self, text: str) -> int:
        """Counts a quarter of the text's code points, rounded up."""
        return (len(text) + 3) // 4

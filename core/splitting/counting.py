"""Counting tokens: the protocol of every token counter, and a counter that needs no model."""

from typing import Protocol


class TokenCounter(Protocol):
    """Counts tokens as one model does, or estimates them."""

    name: str

    def count(self, text: str) -> int:
        """Tokens of a text, without any that a model adds around it."""
        ...


class CharsPerFour:
    """An estimate: a token for every four code points, rounded up, as is usual for English text."""

    name = "chars/4"

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4

"""Token counters that need no model."""


class CharsPerFour:
    """An estimate: a token for every four code points, rounded up, as is usual for English text."""

    name = "chars/4"

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4

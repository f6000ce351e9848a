"""BM25 in one place: every store takes its numbers from here, so that they agree to the last digit.

Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), section 3, in Lucene's
form: without the constant factor k1 + 1, and with an inverse document frequency that is never negative.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

K1 = 1.2
"""How soon more of the same term adds little."""
B = 0.75
"""How far a record's length counts."""

Number = TypeVar("Number")


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the scores of one question depend on beside the record itself.

    Attributes:
        records: how many there are.
        total_length: the number of their terms together.
        containing: by term, how many records have it.
    """

    records: int
    total_length: int
    containing: Mapping[str, int]

    @property
    def average_length(self) -> float:
        """In terms; 1 where there is none, so that it can be divided by."""
        return self.total_length / self.records if self.total_length else 1.0

    def idf(self, term: str) -> float:
        """The inverse document frequency, above 0."""
        containing = self.containing.get(term, 0)
        return math.log(1.0 + (self.records - containing + 0.5) / (containing + 0.5))


def share(idf: float, frequency: Number, length: Number, average_length: float) -> Number:
    """What one term adds to a record's score.

    Args:
        frequency, length: how often the record has the term, and how many terms it has; two numbers, or two arrays
            of float64 of the same shape.
    """
    # Both types have the same operators, which the type checker cannot be told.
    tf: float = frequency  # type: ignore[assignment]
    size: float = length  # type: ignore[assignment]
    return idf * tf / (tf + K1 * (1.0 - B + B * size / average_length))  # type: ignore[return-value]


def score(terms: Sequence[str], statistics: Statistics, frequencies: Mapping[str, int], length: int) -> float:
    """A record's score for a question's terms, added in their order. 0: it has none of them.

    Args:
        frequencies: how often the record has each of its terms.
        length: how many terms it has.
    """
    total = 0.0
    for term in terms:
        frequency = frequencies.get(term, 0)
        if frequency:
            total += share(statistics.idf(term), float(frequency), float(length), statistics.average_length)
    return total

"""BM25: the score of a record for the terms of a query.

Every vector store computes its scores by the functions of this module, so that the scores of all stores agree to the
last digit.

Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), section 3. The formula is
in the form that Lucene uses: without the constant factor k1 + 1, and with an inverse document frequency that is never
negative.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

K1 = 1.2
"""How soon further occurrences of the same term stop raising the score: a larger value means later."""
B = 0.75
"""How much a record's length lowers its score: from 0, not at all, to 1."""

Number = TypeVar("Number")


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures about all records of a search, on which every record's score depends.

    Attributes:
        records: the number of records.
        total_length: the number of terms that the records have together.
        containing: for each term of the query, the number of records that contain the term.
    """

    records: int
    total_length: int
    containing: Mapping[str, int]

    @property
    def average_length(self) -> float:
        """The average number of terms of a record; 1 when no record has terms, because the formula divides by it."""
        return self.total_length / self.records if self.total_length else 1.0

    def idf(self, term: str) -> float:
        """Returns the inverse document frequency of a term, which is above 0: the rarer the term, the higher."""
        containing = self.containing.get(term, 0)
        return math.log(1.0 + (self.records - containing + 0.5) / (containing + 0.5))


def term_score(idf: float, frequency: Number, length: Number, average_length: float) -> Number:
    """Returns how much a term adds to the score of a record, or of each record of an array.

    Args:
        idf: the term's inverse document frequency.
        frequency: how often the term occurs in the record. A number, or an array of float64 with a number per record.
        length: how many terms the record has. Of the same type and shape as ``frequency``.
        average_length: the average number of terms of a record.
    """
    # Numbers and arrays have the same operators, but the type checker cannot be told so.
    tf: float = frequency  # type: ignore[assignment]
    size: float = length  # type: ignore[assignment]
    return idf * tf / (tf + K1 * (1.0 - B + B * size / average_length))  # type: ignore[return-value]


def score(terms: Sequence[str], statistics: Statistics, frequencies: Mapping[str, int], length: int) -> float:
    """Returns the score of a record: the sum of its terms' scores, added in the order of the query's terms.

    The score is 0 when the record has no term of the query, and above 0 otherwise.

    Args:
        terms: the terms of the query, each of them once.
        statistics: figures about all records of the search.
        frequencies: how often each term occurs in the record.
        length: how many terms the record has.
    """
    total = 0.0
    for term in terms:
        frequency = frequencies.get(term, 0)
        if frequency:
            total += term_score(statistics.idf(term), float(frequency), float(length), statistics.average_length)
    return total

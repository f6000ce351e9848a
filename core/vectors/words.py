"""BM25 among the records of one tenant and space, held in memory."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.ranking.bm25 import Statistics, term_score
from core.vectors.postings import Postings


@dataclass(frozen=True, slots=True)
class Words:
    """The terms of a matrix's rows. Never changed once made.

    SQLite's own full-text index ranks by statistics of all its rows, so of all tenants; these are the tenant's own.

    Attributes:
        lengths: how many terms each row has.
    """

    postings: Postings
    lengths: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Sequence[Sequence[str]]) -> Self:
        """The terms of rows, in their order."""
        return cls(Postings.empty(), np.empty(0)).merged(np.empty(0, dtype=np.intp), rows)

    @property
    def size_bytes(self) -> int:
        return self.postings.size_bytes + self.lengths.nbytes

    def merged(self, kept: NDArray[np.intp], added: Sequence[Sequence[str]]) -> Self:
        """The kept rows in their order, then new ones."""
        lengths = np.array([len(terms) for terms in added], dtype=np.float64)
        postings = self.postings.merged(kept, [Counter(terms) for terms in added])
        return type(self)(postings, np.concatenate([self.lengths[kept], lengths]))

    def scores(self, terms: Sequence[str], within: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Every row's score by BM25 for a question's terms; 0 where it has none of them.

        Args:
            within: the rows that the statistics are of.
        """
        found = {term: self.postings.of(term) for term in terms}
        containing = {term: int(np.count_nonzero(within[rows])) for term, (rows, _) in found.items()}
        statistics = Statistics(int(np.count_nonzero(within)), int(self.lengths[within].sum()), containing)
        scores = np.zeros(len(self.lengths))
        for term, (rows, counts) in found.items():
            added = term_score(
                statistics.idf(term), counts.astype(np.float64), self.lengths[rows], statistics.average_length
            )
            scores[rows] += added
        return scores

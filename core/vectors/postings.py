"""Which rows of a matrix have which terms, held in memory."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

_TERM_BYTES = 128
"""About what a term takes."""


@dataclass(frozen=True, slots=True)
class Postings:
    """An inverted index. Never changed once made.

    Attributes:
        row_count: how many rows there are, with terms or without.
        terms: each once, in order of code points.
        starts: where each term's rows start, and at last where they all end: one more than there are terms.
        rows: numbers of rows, term by term.
    """

    row_count: int
    terms: list[str]
    starts: NDArray[np.intp]
    rows: NDArray[np.intp]

    @classmethod
    def empty(cls) -> Self:
        return cls(0, [], np.zeros(1, dtype=np.intp), np.empty(0, dtype=np.intp))

    @property
    def size_bytes(self) -> int:
        return self.rows.nbytes + self.starts.nbytes + _TERM_BYTES * len(self.terms)

    def with_any(self, terms: Iterable[str]) -> NDArray[np.bool_]:
        """Which rows have one of the terms."""
        found = np.zeros(self.row_count, dtype=np.bool_)
        for term in terms:
            if _holds(self.terms, term):
                place = bisect_left(self.terms, term)
                found[self._rows(place, place + 1)] = True
        return found

    def between(self, low: str, high: str, *, includes_low: bool, includes_high: bool) -> NDArray[np.bool_]:
        """Which rows have a term between two."""
        first = (bisect_left if includes_low else bisect_right)(self.terms, low)
        beyond = (bisect_right if includes_high else bisect_left)(self.terms, high)
        found = np.zeros(self.row_count, dtype=np.bool_)
        found[self._rows(first, beyond)] = True
        return found

    def _rows(self, first: int, beyond: int) -> NDArray[np.intp]:
        return self.rows[self.starts[first] : self.starts[beyond]]

    def merged(self, kept: NDArray[np.intp], added: Sequence[Sequence[str]]) -> Self:
        """The kept rows in their order, then new ones with these terms, each once a row."""
        numbers = np.full(self.row_count, -1, dtype=np.intp)
        numbers[kept] = np.arange(len(kept))
        rows = numbers[self.rows]
        codes = np.repeat(np.arange(len(self.terms)), np.diff(self.starts))[rows >= 0]
        # Terms without rows go, and the codes of the others close up.
        used = np.flatnonzero(np.bincount(codes, minlength=len(self.terms)))
        codes = np.searchsorted(used, codes)
        left = self.terms if len(used) == len(self.terms) else [self.terms[code] for code in used]
        # New terms are put in, and the codes of the others make room.
        wanted = {term for one in added for term in one}
        new = sorted(term for term in wanted if not _holds(left, term))
        places = np.array([bisect_left(left, term) for term in new], dtype=np.intp)
        codes += np.searchsorted(places, codes, side="right")
        terms = np.insert(np.array(left, dtype=object), places, np.array(new, dtype=object)).tolist() if new else left
        code_of = {term: bisect_left(terms, term) for term in wanted}

        counts = [len(one) for one in added]
        added_rows = np.repeat(np.arange(len(kept), len(kept) + len(added)), counts)
        codes = np.concatenate([codes, np.array([code_of[term] for one in added for term in one], dtype=np.intp)])
        order = np.argsort(codes, kind="stable")
        return type(self)(
            row_count=len(kept) + len(added),
            terms=terms,
            starts=np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(terms)))]),
            rows=np.concatenate([rows[rows >= 0], added_rows])[order],
        )


def _holds(terms: list[str], term: str) -> bool:
    place = bisect_left(terms, term)
    return place < len(terms) and terms[place] == term

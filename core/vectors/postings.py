"""Which rows of a matrix have which terms, and how often, held in memory."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
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
        counts: how often that row has that term.
    """

    row_count: int
    terms: list[str]
    starts: NDArray[np.intp]
    rows: NDArray[np.intp]
    counts: NDArray[np.int32]

    @classmethod
    def empty(cls) -> Self:
        return cls(0, [], np.zeros(1, dtype=np.intp), np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int32))

    @property
    def size_bytes(self) -> int:
        return self.rows.nbytes + self.counts.nbytes + self.starts.nbytes + _TERM_BYTES * len(self.terms)

    def with_any(self, terms: Iterable[str]) -> NDArray[np.bool_]:
        """Which rows have one of the terms."""
        found = np.zeros(self.row_count, dtype=np.bool_)
        for term in terms:
            found[self.rows[self._place(term)]] = True
        return found

    def of(self, term: str) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """The rows that have the term, each once, and how often they have it."""
        place = self._place(term)
        return self.rows[place], self.counts[place]

    def between(self, low: str, high: str, *, includes_low: bool, includes_high: bool) -> NDArray[np.bool_]:
        """Which rows have a term between two."""
        first = (bisect_left if includes_low else bisect_right)(self.terms, low)
        beyond = (bisect_right if includes_high else bisect_left)(self.terms, high)
        found = np.zeros(self.row_count, dtype=np.bool_)
        found[self.rows[self.starts[first] : self.starts[beyond]]] = True
        return found

    def _place(self, term: str) -> slice:
        """Where a term's rows are."""
        if not _holds(self.terms, term):
            return slice(0, 0)
        place = bisect_left(self.terms, term)
        return slice(self.starts[place], self.starts[place + 1])

    def merged(self, kept: NDArray[np.intp], added: Sequence[Mapping[str, int]]) -> Self:
        """The kept rows in their order, then new ones with these terms, and how often they have them."""
        numbers = np.full(self.row_count, -1, dtype=np.intp)
        numbers[kept] = np.arange(len(kept))
        rows = numbers[self.rows]
        stays = rows >= 0
        codes = np.repeat(np.arange(len(self.terms)), np.diff(self.starts))[stays]
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

        added_rows = np.repeat(np.arange(len(kept), len(kept) + len(added)), [len(one) for one in added])
        added_counts = np.array([count for one in added for count in one.values()], dtype=np.int32)
        codes = np.concatenate([codes, np.array([code_of[term] for one in added for term in one], dtype=np.intp)])
        order = np.argsort(codes, kind="stable")
        return type(self)(
            row_count=len(kept) + len(added),
            terms=terms,
            starts=np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(terms)))]),
            rows=np.concatenate([rows[stays], added_rows])[order],
            counts=np.concatenate([self.counts[stays], added_counts])[order],
        )


def _holds(terms: list[str], term: str) -> bool:
    place = bisect_left(terms, term)
    return place < len(terms) and terms[place] == term

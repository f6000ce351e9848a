"""Exact nearest neighbours among the vectors of one tenant and space, held in memory."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.vectors.attributes import AllOf, AnyOf, AttributeTerms, Condition, Name, TermRange, Terms, Without
from core.vectors.postings import Postings
from core.vectors.words import Words

_BLOCK_ROWS = 2048
_FEW = 8
"""One row in this many is few enough to be copied out before the product."""
_ROW_BYTES = 256
"""About what a row takes beside its vector: an ID and two codes."""


class ChangedRow(NamedTuple):
    """A row that was written since a matrix was made. ``vector``: little-endian float32; ``terms``: between spaces."""

    chunk_id: str
    collection_id: str
    generation: str
    vector: bytes
    attributes: AttributeTerms = AttributeTerms((), ())
    terms: str = ""


@dataclass(frozen=True, slots=True)
class Labels:
    """One name a row, as numbers: ``numbers`` of the names, and the rows' ``codes``."""

    numbers: dict[str, int]
    codes: NDArray[np.int32]

    def one_of(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Which rows have one of the names."""
        wanted = np.zeros(len(self.numbers), dtype=np.bool_)
        wanted[[self.numbers[name] for name in names if name in self.numbers]] = True
        return wanted[self.codes]

    def merged(self, kept: NDArray[np.intp], names: Iterable[str]) -> Self:
        """The kept rows, then new ones of these names."""
        numbers = dict(self.numbers)
        added = [numbers.setdefault(name, len(numbers)) for name in names]
        return type(self)(numbers, np.concatenate([self.codes[kept], np.array(added, dtype=np.int32)]))


@dataclass(frozen=True, slots=True)
class Matrix:
    """The vectors of one tenant and space at one version. Never changed once made.

    Attributes:
        version: of the tenant and space in the file; 0 for the empty one.
        chunk_ids: of the rows, in no order.
        vectors: rows × dimensions, of unit length.
        words: None until they are first asked for: many a tenant never searches by them.
    """

    version: int
    chunk_ids: list[str]
    vectors: NDArray[np.float32]
    collections: Labels
    generations: Labels
    attribute_names: Postings
    attribute_terms: Postings
    words: Words | None = None

    @classmethod
    def empty(cls, dimensions: int) -> Self:
        nothing = Labels({}, np.empty(0, dtype=np.int32))
        return cls(
            0,
            [],
            np.empty((0, dimensions), dtype=np.float32),
            nothing,
            nothing,
            Postings.empty(),
            Postings.empty(),
        )

    @property
    def size_bytes(self) -> int:
        postings = self.attribute_names.size_bytes + self.attribute_terms.size_bytes
        postings += self.words.size_bytes if self.words else 0
        return self.vectors.nbytes + _ROW_BYTES * len(self.chunk_ids) + postings

    def merged(self, version: int, present: set[str], changed: Sequence[ChangedRow]) -> Self:
        """The matrix at a later version.

        Args:
            present: the chunks that there are at that version.
            changed: all that was written since this matrix's version.

        Raises:
            ValueError: a stored vector is not 4 × dimensions bytes long.
        """
        dimensions = self.vectors.shape[1]
        if any(len(row.vector) != 4 * dimensions for row in changed):
            raise ValueError(f"A stored vector is not {4 * dimensions} bytes long")
        stays = present.difference(row.chunk_id for row in changed)
        kept = np.array([row for row, chunk_id in enumerate(self.chunk_ids) if chunk_id in stays], dtype=np.intp)
        vectors = np.empty((len(kept) + len(changed), dimensions), dtype=np.float32)
        # Clipping lets numpy write into the target without a buffer of the same size.
        np.take(self.vectors, kept, axis=0, out=vectors[: len(kept)], mode="clip")
        added = np.frombuffer(b"".join(row.vector for row in changed), dtype="<f4")
        vectors[len(kept) :] = added.reshape(-1, dimensions)
        return type(self)(
            version=version,
            chunk_ids=[self.chunk_ids[row] for row in kept] + [row.chunk_id for row in changed],
            vectors=vectors,
            collections=self.collections.merged(kept, (row.collection_id for row in changed)),
            generations=self.generations.merged(kept, (row.generation for row in changed)),
            attribute_names=self.attribute_names.merged(kept, [_once(row.attributes.names) for row in changed]),
            attribute_terms=self.attribute_terms.merged(kept, [_once(row.attributes.values) for row in changed]),
            words=self.words and self.words.merged(kept, [row.terms.split() for row in changed]),
        )

    def with_words(self, terms: Mapping[str, str]) -> Self:
        """The matrix with its words.

        Args:
            terms: of every chunk, between spaces.
        """
        return replace(self, words=Words.of([terms[chunk_id].split() for chunk_id in self.chunk_ids]))

    def fulfilling(self, condition: Condition) -> NDArray[np.bool_]:
        """Which rows fulfil a condition on their attributes."""
        match condition:
            case Name(term):
                return self.attribute_names.with_any([term])
            case Terms(terms):
                return self.attribute_terms.with_any(terms)
            case TermRange(low, high, includes_low, includes_high):
                return self.attribute_terms.between(low, high, includes_low=includes_low, includes_high=includes_high)
            case Without(part):
                return ~self.fulfilling(part)
            case AllOf(parts):
                return self._reduced(np.logical_and, parts)
            case AnyOf(parts):
                return self._reduced(np.logical_or, parts)

    def _reduced(self, join: np.ufunc, parts: Iterable[Condition]) -> NDArray[np.bool_]:
        found = np.full(len(self.chunk_ids), join.identity, dtype=np.bool_)
        for part in parts:
            join(found, self.fulfilling(part), out=found)
        return found

    def best(
        self, terms: Sequence[str], within: NDArray[np.bool_], selected: NDArray[np.bool_], limit: int
    ) -> list[tuple[int, float]]:
        """Rows that have some of the terms, and their scores by BM25, best first, equal ones in order of chunk ID.

        Args:
            within: which rows the statistics are of.
            selected: which rows may be found.
            limit: at most this many, 1 or more.

        Raises:
            ValueError: the matrix is without its words.
        """
        if self.words is None:
            raise ValueError("The matrix is without its words")
        scores = self.words.scores(terms, within)
        rows = np.flatnonzero(selected & (scores > 0.0))
        if len(rows) > limit:
            rows = rows[scores[rows] >= np.partition(scores[rows], -limit)[-limit]]
        return self._ranked(rows, scores[rows])[:limit]

    def nearest(self, query: NDArray[np.float32], selected: NDArray[np.bool_], limit: int) -> list[tuple[int, float]]:
        """Rows and their cosines with the query, best first, equal ones in order of chunk ID.

        A fast product narrows the rows down; its last digits depend on a row's place and neighbours. What is left is
        scored anew in a way that depends on nothing but the two vectors.

        Args:
            query: of unit length.
            selected: which rows may be found.
            limit: at most this many, 1 or more.
        """
        rows = np.flatnonzero(selected)
        if len(rows) > limit:
            few = len(rows) * _FEW < len(selected)
            fast = self.vectors[rows] @ query if few else (self.vectors @ query)[rows]
            worst = float(np.partition(fast, -limit)[-limit])
            rows = rows[fast >= worst - _margin(len(query))]
        return self._ranked(rows, cosines(self.vectors[rows], query))[:limit]

    def _ranked(self, rows: NDArray[np.intp], scores: NDArray[np.float64]) -> list[tuple[int, float]]:
        found = zip(rows.tolist(), scores.tolist(), strict=True)
        return sorted(found, key=lambda one: (-one[1], self.chunk_ids[one[0]]))


def _once(terms: Iterable[str]) -> dict[str, int]:
    return dict.fromkeys(terms, 1)


def _margin(dimensions: int) -> float:
    """How far below the fast product's limit-th score a row of the exact result can lie.

    In float32 a product of n terms and unit vectors is off by at most n·2⁻²⁴ in whatever order it is added (Higham,
    Accuracy and Stability of Numerical Algorithms, section 3.1). Two products are compared. Twice that, for
    lengths that are only about one.
    """
    return (dimensions + 8) * 2.0**-22


def cosines(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float64]:
    """Cosines of unit vectors (rows × dimensions) with one, −1 to 1.

    The same two vectors give the same digits whatever stands beside them, on every machine: products of two float32
    are exact in float64, and they are added one by one in a fixed tree, never by a library's own order.
    """
    scores = np.empty(len(vectors))
    for start in range(0, len(vectors), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        scores[block] = _folded(vectors[block].astype(np.float64) * query.astype(np.float64))
    return np.clip(scores, -1.0, 1.0)


def _folded(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of each row: its second half is added onto its first until one column is left."""
    while (width := terms.shape[1]) > 1:
        half = (width + 1) // 2
        terms[:, : width - half] += terms[:, half:]
        terms = terms[:, :half]
    return terms[:, 0]


class MatrixCache:
    """The matrices used last, up to a number of bytes; the very last one is kept at any size."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._lock = Lock()
        self._matrices: OrderedDict[tuple[str, str, int], Matrix] = OrderedDict()
        self._bytes = 0

    def get(self, key: tuple[str, str, int]) -> Matrix | None:
        """The matrix of a tenant, model and dimensions, if it is here."""
        with self._lock:
            if key in self._matrices:
                self._matrices.move_to_end(key)
            return self._matrices.get(key)

    def put(self, key: tuple[str, str, int], matrix: Matrix) -> None:
        """Keeps a matrix in place of the key's earlier one."""
        with self._lock:
            earlier = self._matrices.pop(key, None)
            self._bytes += matrix.size_bytes - (earlier.size_bytes if earlier else 0)
            self._matrices[key] = matrix
            while self._bytes > self._capacity and len(self._matrices) > 1:
                _, evicted = self._matrices.popitem(last=False)
                self._bytes -= evicted.size_bytes

    def clear(self) -> None:
        with self._lock:
            self._matrices.clear()
            self._bytes = 0

"""The exact search in memory."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.vectors.matrix import ChangedRow, Matrix, MatrixCache, cosines


def directions(rows: int, dimensions: int, seed: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).standard_normal((rows, dimensions))
    unit: NDArray[np.float32] = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    return unit


def changed(vectors: NDArray[np.float32], first: int = 0) -> list[ChangedRow]:
    return [ChangedRow(f"{first + row:06}", "c", "g", vector.tobytes()) for row, vector in enumerate(vectors)]


def matrix_of(vectors: NDArray[np.float32]) -> Matrix:
    rows = changed(vectors)
    return Matrix.empty(vectors.shape[1]).merged(1, {row.chunk_id for row in rows}, rows)


def everything(matrix: Matrix) -> NDArray[np.bool_]:
    return np.ones(len(matrix.chunk_ids), dtype=np.bool_)


@given(st.integers(1, 40), st.integers(1, 400), st.integers(0, 1_000))
def test_a_score_has_the_same_digits_alone_and_among_others(rows: int, dimensions: int, seed: int) -> None:
    vectors, query = directions(rows, dimensions, seed), directions(1, dimensions, seed + 1)[0]
    together = cosines(vectors, query)
    alone = [cosines(vectors[row : row + 1], query)[0] for row in range(rows)]
    assert together.tolist() == alone
    assert cosines(vectors[::-1], query).tolist() == alone[::-1]


@given(st.integers(1, 50), st.integers(0, 1_000))
def test_a_score_is_the_cosine_to_fifteen_digits(dimensions: int, seed: int) -> None:
    [vector], [query] = directions(1, dimensions, seed), directions(1, dimensions, seed + 1)
    exact = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(vector, query, strict=True))
    assert math.isclose(cosines(vector[np.newaxis], query)[0], max(-1, min(1, exact)), abs_tol=1e-15)


def test_more_rows_than_a_block_are_scored_as_one() -> None:
    vectors, query = directions(5_000, 3, 1), directions(1, 3, 2)[0]
    assert cosines(vectors, query).tolist() == [cosines(vectors[row : row + 1], query)[0] for row in range(5_000)]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 300), st.integers(1, 64), st.integers(1, 50), st.integers(0, 1_000))
def test_narrowing_down_loses_no_match(rows: int, dimensions: int, limit: int, seed: int) -> None:
    vectors, query = directions(rows, dimensions, seed), directions(1, dimensions, seed + 1)[0]
    # The best rows are near twins: their order is decided beyond the digits of the fast product.
    twins, best = vectors[rows // 2 :], query + directions(1, dimensions, seed + 2)[0] / 2
    twins[:] = np.nextafter(best / np.linalg.norm(best), np.sign(twins), dtype=np.float32)
    matrix = matrix_of(vectors)
    scored = zip(range(rows), cosines(vectors, query).tolist(), strict=True)
    expected = sorted(scored, key=lambda match: (-match[1], match[0]))[:limit]
    assert matrix.nearest(query, everything(matrix), limit) == expected


def test_a_later_version_keeps_what_stayed_drops_what_went_and_takes_what_changed() -> None:
    vectors = directions(4, 8, 1)
    matrix = matrix_of(vectors[:3])
    later = matrix.merged(2, {"000000", "000002", "000003"}, changed(vectors[2:][::-1], first=2))
    assert later.chunk_ids == ["000000", "000002", "000003"]
    assert later.vectors.tolist() == vectors[[0, 3, 2]].tolist()
    assert matrix.chunk_ids == ["000000", "000001", "000002"]


def test_a_stored_vector_of_another_length_is_an_error() -> None:
    wrong = [ChangedRow("a", "c", "g", bytes(12)), ChangedRow("b", "c", "g", bytes(20))]
    with pytest.raises(ValueError, match="not 16 bytes"):
        Matrix.empty(4).merged(1, {"a", "b"}, wrong)


class TestCache:
    def test_the_matrix_used_longest_ago_leaves_first(self) -> None:
        matrix = matrix_of(directions(10, 4, 1))
        cache = MatrixCache(2 * matrix.size_bytes)
        a, b, c = ("a", "m", 4), ("b", "m", 4), ("c", "m", 4)
        cache.put(a, matrix)
        cache.put(b, matrix)
        cache.get(a)
        cache.put(c, matrix)
        assert [cache.get(key) is not None for key in (a, b, c)] == [True, False, True]

    def test_a_matrix_in_place_of_another_frees_its_bytes(self) -> None:
        matrix = matrix_of(directions(10, 4, 1))
        cache = MatrixCache(2 * matrix.size_bytes)
        for key in [("a", "m", 4)] * 5 + [("b", "m", 4)]:
            cache.put(key, matrix)
        assert cache.get(("a", "m", 4)) is matrix

    def test_one_matrix_is_kept_at_any_size(self) -> None:
        matrix = matrix_of(directions(10, 4, 1))
        cache = MatrixCache(1)
        cache.put(("a", "m", 4), matrix)
        assert cache.get(("a", "m", 4)) is matrix

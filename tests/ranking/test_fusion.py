"""Reciprocal rank fusion: a sum of shares, whatever the rankings are made of."""

from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from core.model.ids import ChunkId
from core.ranking.fusion import Ranking, best_first, fuse, highest_fused_score
from tests.ranking.ids import chunk, orders

weights = st.sampled_from([0.0, 0.5, 1.0, 3.0]) | st.floats(0, 1000, allow_subnormal=False)
rankings = st.lists(st.builds(Ranking, orders, weights), max_size=4)
constants = st.integers(1, 10_000)


@given(rankings, constants)
def test_a_score_is_the_sum_of_weight_by_constant_and_rank(given_rankings: list[Ranking], k: int) -> None:
    exact: dict[ChunkId, Fraction] = {}
    for ranking in given_rankings:
        for rank, one in enumerate(ranking.chunk_ids, start=1):
            if ranking.weight:
                exact[one] = exact.get(one, Fraction()) + Fraction(ranking.weight) / (k + rank)
    fused = dict(fuse(given_rankings, k))
    assert fused.keys() == exact.keys(), "a ranking without weight brings nothing in"
    assert all(abs(Fraction(score) - exact[one]) <= exact[one] * Fraction(1, 2**50) for one, score in fused.items())


@given(rankings, constants)
def test_the_best_come_first_and_equal_ones_in_order_of_their_ids(given_rankings: list[Ranking], k: int) -> None:
    fused = fuse(given_rankings, k)
    for (one, score), (other, lower) in pairwise(fused):
        assert score > lower or (score == lower and one < other)


@given(orders, constants, st.floats(0.001, 1000))
def test_one_ranking_alone_keeps_its_order(order: list[ChunkId], k: int, weight: float) -> None:
    assert [one for one, _ in fuse([Ranking(order, weight), Ranking([chunk(99)], 0.0)], k)] == order


@given(st.lists(orders, max_size=4), constants)
def test_no_score_is_above_the_highest(lists: list[list[ChunkId]], k: int) -> None:
    top = [chunk(40)]
    given_rankings = [Ranking(top + order, float(weight)) for weight, order in enumerate(lists, start=1)]
    bound = highest_fused_score([ranking.weight for ranking in given_rankings], k)
    fused = fuse(given_rankings, k)
    assert all(score <= bound for _, score in fused)
    assert [score for one, score in fused if one == chunk(40)] == ([bound] if lists else []), "and it is reached"


def test_the_figures_of_the_paper() -> None:
    first, second = [chunk(1), chunk(2)], [chunk(2), chunk(3)]
    assert fuse([Ranking(first), Ranking(second)], 60) == [
        (chunk(2), 1 / 62 + 1 / 61),
        (chunk(1), 1 / 61),
        (chunk(3), 1 / 62),
    ]
    assert fuse([Ranking(first, 0.5), Ranking(second, 2.0)], 1)[0] == (chunk(2), 0.5 / 3 + 2.0 / 2)
    assert fuse([], 60) == []


def test_equal_scores_are_in_order_of_the_ids_however_they_came() -> None:
    assert best_first([(chunk(3), 1.0), (chunk(1), 1.0), (chunk(2), 2.0)]) == [
        (chunk(2), 2.0),
        (chunk(1), 1.0),
        (chunk(3), 1.0),
    ]

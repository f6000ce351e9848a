"""Maximal marginal relevance: greedy by definition, and an order that its figures alone give again."""

import math
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.ids import ChunkId
from core.ranking.mmr import (
    MmrCandidate,
    MmrResult,
    dot_product,
    marginal_relevance,
    maximal_marginal_relevance,
    ranking_key,
)
from tests.ranking.ids import chunk

lambdas = st.sampled_from([0.0, 0.3, 0.7, 1.0]) | st.floats(0, 1)
directions = st.tuples(*[st.sampled_from([-1.0, 0.0, 0.5, 1.0])] * 3).filter(any)


@dataclass(frozen=True)
class Asked:
    candidates: list[MmrCandidate]
    weight: float
    count: int


@st.composite
def questions(draw: st.DrawFn) -> Asked:
    """Few directions, so that there are equal ones, and opposite ones."""
    numbers = draw(st.lists(st.integers(0, 30), unique=True, max_size=10))
    scores = st.sampled_from([-0.5, 0.0, 0.25, 1.0]) | st.floats(-1, 1)
    candidates = [MmrCandidate(chunk(number), draw(scores), unit(draw(directions))) for number in numbers]
    return Asked(candidates, draw(lambdas), draw(st.integers(0, 12)))


def unit(direction: tuple[float, ...]) -> list[float]:
    length = math.sqrt(sum(one * one for one in direction))
    return [one / length for one in direction]


def rank(asked: Asked) -> list[MmrResult]:
    return maximal_marginal_relevance(asked.candidates, asked.weight, asked.count)


def cosine(one: MmrCandidate, other: MmrCandidate) -> float:
    return dot_product(one.vector, other.vector)


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), max_size=1024))
def test_a_dot_product_is_the_sum_of_the_products(pairs: list[tuple[float, float]]) -> None:
    one, other = [first for first, _ in pairs], [second for _, second in pairs]
    exact = math.fsum(a * b for a, b in pairs)
    assert dot_product(one, other) == pytest.approx(exact, abs=1e-12)


@given(questions())
def test_it_is_what_the_definition_gives(asked: Asked) -> None:
    left, taken = list(asked.candidates), list[MmrCandidate]()

    def penalty(one: MmrCandidate) -> float:
        return max([0.0, *(cosine(one, other) for other in taken)])

    def worth(one: MmrCandidate) -> float:
        return asked.weight * one.score - (1 - asked.weight) * penalty(one)

    def place(one: MmrCandidate) -> tuple[float, float, ChunkId]:
        return -worth(one), -one.score, one.chunk_id

    expected = []
    while left and len(taken) < asked.count:
        best = min(left, key=place)
        expected.append((best.chunk_id, worth(best), penalty(best)))
        taken.append(best)
        left.remove(best)
    expected += [(one.chunk_id, worth(one), penalty(one)) for one in sorted(left, key=place)]
    assert [(one.chunk_id, one.value, one.penalty) for one in rank(asked)] == expected


@given(questions())
def test_every_candidate_is_there_once_with_its_own_cosine(asked: Asked) -> None:
    given_scores = {one.chunk_id: one.score for one in asked.candidates}
    ranked = rank(asked)
    assert {one.chunk_id: one.score for one in ranked} == given_scores
    assert len(ranked) == len(given_scores)


@given(questions())
def test_values_fall_and_the_figures_alone_give_the_order_again(asked: Asked) -> None:
    ranked = rank(asked)
    assert all(one.value >= other.value for one, other in pairwise(ranked))
    assert all(one.value == marginal_relevance(one.score, one.penalty, asked.weight) for one in ranked)
    assert sorted(ranked, key=ranking_key) == ranked


@given(questions())
def test_a_penalty_names_what_it_is_against(asked: Asked) -> None:
    candidates = {one.chunk_id: one for one in asked.candidates}
    ranked = rank(asked)
    for place, one in enumerate(ranked):
        before = [other.chunk_id for other in ranked[: min(place, asked.count)]]
        if one.against is None:
            assert one.penalty == 0
        else:
            assert one.against in before
            assert one.penalty == cosine(candidates[one.chunk_id], candidates[one.against]) > 0


@given(questions())
def test_lambda_1_is_relevance_alone(asked: Asked) -> None:
    ranked = maximal_marginal_relevance(asked.candidates, 1.0, asked.count)
    by_score = sorted(asked.candidates, key=lambda one: (-one.score, one.chunk_id))
    assert [one.chunk_id for one in ranked] == [one.chunk_id for one in by_score]


@given(questions())
def test_lambda_0_is_difference_alone(asked: Asked) -> None:
    ranked = maximal_marginal_relevance(asked.candidates, 0.0, asked.count)
    assert all(one.value == -one.penalty for one in ranked)
    assert ranked[:1] == [] or ranked[0].score == max(one.score for one in asked.candidates)


@pytest.mark.parametrize(
    ("weight", "expected"), [(1.0, [1, 2, 3]), (0.5, [1, 3, 2]), (0.0, [1, 3, 2])], ids=["all", "half", "none"]
)
def test_what_is_like_the_first_falls_behind(weight: float, expected: list[int]) -> None:
    candidates = [
        MmrCandidate(chunk(1), 0.9, [1.0, 0.0]),
        MmrCandidate(chunk(2), 0.85, unit((1.0, 0.1))),
        MmrCandidate(chunk(3), 0.4, [0.0, 1.0]),
    ]
    ranked = maximal_marginal_relevance(candidates, weight, 3)
    assert [one.chunk_id for one in ranked] == [chunk(number) for number in expected]


def test_equal_ones_are_in_order_of_their_ids() -> None:
    candidates = [MmrCandidate(chunk(number), 0.5, [1.0]) for number in (3, 1, 2)]
    assert [one.chunk_id for one in maximal_marginal_relevance(candidates, 0.7, 3)] == [chunk(1), chunk(2), chunk(3)]

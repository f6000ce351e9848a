"""Texts that are refused, and vectors of unit length."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.inference.validation import validate_texts
from core.model.errors import InvalidArgument
from core.model.vector import unit_vector


def test_a_text_of_exactly_the_limit_is_taken() -> None:
    validate_texts(["a text"], [10], 10)


def test_a_text_of_one_token_more_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="Text 1 of 1 has 11 tokens; the embedding model takes at most 10"):
        validate_texts(["a text"], [11], 10)


NUMBERS = st.floats(-1e100, 1e100).filter(lambda value: value == 0 or abs(value) > 1e-100)


@given(st.lists(NUMBERS, min_size=1, max_size=8).filter(any))
def test_a_unit_vector_has_length_one_and_the_same_signs(values: list[float]) -> None:
    vector = unit_vector(values)
    assert math.hypot(*vector) == pytest.approx(1.0)
    assert all(math.copysign(1, one) == math.copysign(1, other) for one, other in zip(vector, values, strict=True))


@pytest.mark.parametrize("values", [[0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_a_vector_without_a_direction_is_an_error(values: list[float]) -> None:
    with pytest.raises(ValueError, match="no direction"):
        unit_vector(values)

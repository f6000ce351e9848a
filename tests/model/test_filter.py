"""Filters: the tree that a mapping is parsed into, and the mappings that are refused."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from core.model.errors import InvalidArgument
from core.model.filter import And, Comparison, Filter, Not, Operator, Or, comparisons, fields_of, parse_filter
from tests.support.filters import filters


def eq(field: str, value: Any) -> Comparison:
    return Comparison(field, Operator.EQ, value)


def nested(depth: int) -> dict[str, Any]:
    """Nests a filter in ``not`` until it has that many levels."""
    mapping: dict[str, Any] = {"a": 1}
    for _ in range(depth - 1):
        mapping = {"not": mapping}
    return mapping


@pytest.mark.parametrize(
    ("mapping", "parsed"),
    [
        (
            {"year": {"gte": 2020, "lt": 2024}, "lang": {"in": ["en", "de"]}},
            And(
                (
                    Comparison("year", Operator.GTE, 2020),
                    Comparison("year", Operator.LT, 2024),
                    Comparison("lang", Operator.IN, ("en", "de")),
                )
            ),
        ),
        (
            {"a": 1, "or": [{"b": 2}, {"and": []}], "not": {"c": {"exists": True}}},
            And((eq("a", 1), Or((eq("b", 2), And(()))), Not(Comparison("c", Operator.EXISTS, value=True)))),
        ),
        ({}, And(())),
        ({"or": []}, Or(())),
        ({"a": datetime(2020, 1, 1, tzinfo=UTC)}, eq("a", "2020-01-01T00:00:00+00:00")),
    ],
    ids=[
        "fields and operators",
        "and, or, not beside fields",
        "empty",
        "empty or",
        "a date becomes text with its zone",
    ],
)
def test_a_mapping_is_parsed_into_the_tree_that_it_describes(mapping: dict[str, Any], parsed: Filter) -> None:
    assert parse_filter(mapping) == parsed


@given(mapping=filters)
def test_every_valid_filter_is_parsed_and_its_fields_are_those_of_its_comparisons(mapping: dict[str, Any]) -> None:
    parsed = parse_filter(mapping)
    assert {comparison.field for comparison in comparisons(parsed)} == fields_of(parsed)


WRONG = {
    "no mapping": ([], "mapping"),
    "an unknown operator": ({"a": {"between": [1, 2]}}, "'between'"),
    "an operator in capitals": ({"a": {"EQ": 1}}, "'EQ'"),
    "an operator that is no text": ({"a": {1: 1}}, "1 is no operator"),
    "an operator as long as a book": ({"a": {"x" * 10_000: 1}}, "no operator"),
    "no operator": ({"a": {}}, "'a' has no operator"),
    "a word of another language": ({"AND": [{"b": 1}]}, "takes a text"),
    "an empty name": ({"": 1}, "1 to 128 bytes"),
    "a name that is no text": ({1: 1}, "1 cannot be a field"),
    "a long name": ({"ü" * 65: 1}, "1 to 128 bytes"),
    "a control character in a name": ({"a\x1fb": 1}, "control"),
    "half of a surrogate pair in a name": ({"\ud800": 1}, "surrogate"),
    "nothing as a value": ({"a": None}, "takes"),
    "a list as a value": ({"a": [1]}, "takes"),
    "a list for eq": ({"a": {"eq": [1]}}, "takes"),
    "a mapping as a value": ({"a": {"eq": {"b": 1}}}, "takes"),
    "one value for in": ({"a": {"in": "en"}}, "a list"),
    "a mapping for nin": ({"a": {"nin": {"b": 1}}}, "a list"),
    "nothing inside in": ({"a": {"in": [1, None]}}, "takes"),
    "a list inside in": ({"a": {"in": [[1]]}}, "takes"),
    "too many values": ({"a": {"in": list(range(1001))}}, "1000"),
    "a text for exists": ({"a": {"exists": "true"}}, "true or false"),
    "a number for exists": ({"a": {"exists": 1}}, "true or false"),
    "an order of booleans": ({"a": {"gt": True}}, "no order"),
    "an integer beyond 64 bits": ({"a": 2**63}, "64 bits"),
    "a small integer beyond 64 bits": ({"a": {"lt": -(2**63) - 1}}, "64 bits"),
    "an infinite number": ({"a": float("inf")}, "finite"),
    "not a number": ({"a": {"in": [float("nan")]}}, "finite"),
    "a long text": ({"a": "ü" * 513}, "1024 bytes"),
    "a long text in a range": ({"a": {"lte": "ü" * 256 + "x"}}, "512 bytes"),
    "half of a surrogate pair": ({"a": "\ud800"}, "surrogate"),
    "a date without a zone": ({"a": datetime(2020, 1, 1)}, "its zone"),
    "a mapping for and": ({"and": {"a": 1}}, "a list of filters"),
    "a text for or": ({"or": "a"}, "a list of filters"),
    "a list for not": ({"not": [{"a": 1}]}, "mapping"),
    "a text among filters": ({"and": ["a"]}, "mapping"),
    "too many levels": (nested(9), "8 levels"),
    "too many levels of lists": ({"and": [{"or": [nested(7)]}]}, "8 levels"),
    "too many comparisons": ({"or": [{"a": {"gt": 1, "lt": 9}}] * 128 + [{"b": 1}]}, "256"),
}


@pytest.mark.parametrize(("mapping", "reason"), WRONG.values(), ids=WRONG)
def test_a_wrong_filter_is_refused_with_a_short_message_that_says_the_reason(mapping: Any, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=reason) as refused:
        parse_filter(mapping)
    assert refused.value.extras["field"] == "filter"
    assert len(refused.value.detail) < 500


@pytest.mark.parametrize("wrong", [{"a": {"near": 1}}, {"": 1}, {"a": None}])
def test_a_wrong_filter_inside_or_and_not_is_refused(wrong: dict[str, Any]) -> None:
    for mapping in ({"or": [{"a": 1}, wrong]}, {"not": wrong}):
        with pytest.raises(InvalidArgument):
            parse_filter(mapping)


def test_a_filter_exactly_at_each_limit_is_accepted() -> None:
    parse_filter(nested(8))
    parse_filter({"or": [{"a": {"gt": 1, "lt": 9}}] * 128})
    parse_filter({"a": {"in": list(range(1000))}, "n" * 128: "x" * 1024, "b": {"in": [2**63 - 1, -(2**63), 1e300]}})
    parse_filter({"a": {"gt": "ü" * 256}})


def test_a_filter_of_100000_levels_is_refused_like_any_other_that_is_too_deep() -> None:
    with pytest.raises(InvalidArgument, match="levels"):
        parse_filter(nested(100_000))

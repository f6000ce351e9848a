"""Terms sort as values do, stay within their tenant, and a compiled filter means what the filter means."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.model.filter import parse_filter
from core.model.tenant import Tenant
from core.vectors import attributes as module
from core.vectors.attributes import (
    AllOf,
    AnyOf,
    AttributeTerms,
    Condition,
    Name,
    TermRange,
    Terms,
    Without,
    attribute_terms,
    compile_filter,
)
from tests.support.filters import attributes, filters, holds, moments, numbers, questions, scalars, texts, typed

ACME, GLOBEX = Tenant("acme"), Tenant("globex")
LONGEST_TERM = 32_766
"""Bytes that an index takes."""


def fulfils(condition: Condition, terms: AttributeTerms) -> bool:
    """Whether a chunk with these terms fulfils the condition."""
    match condition:
        case AllOf(parts):
            return all(fulfils(part, terms) for part in parts)
        case AnyOf(parts):
            return any(fulfils(part, terms) for part in parts)
        case Without(part):
            return not fulfils(part, terms)
        case _:
            return meets(condition, terms)


def meets(leaf: Name | Terms | TermRange, terms: AttributeTerms) -> bool:
    match leaf:
        case Name(term):
            return term in terms.names
        case Terms(wanted):
            return not set(wanted).isdisjoint(terms.values)
        case TermRange(low, high, includes_low, includes_high):
            return any(
                (low < term or (includes_low and low == term)) and (term < high or (includes_high and term == high))
                for term in terms.values
            )


def leaves(condition: Condition) -> Iterator[Name | Terms | TermRange]:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from leaves(part)
        case Without(part):
            yield from leaves(part)
        case _:
            yield condition


def term(value: Any, name: str = "a", tenant: Tenant = ACME) -> str:
    [one] = attribute_terms(tenant, {name: value}).values
    return one


@settings(max_examples=400, deadline=None)
@given(question=questions())
def test_a_compiled_filter_means_what_the_filter_means(question: tuple[list[dict[str, Any]], dict[str, Any]]) -> None:
    rows, asked = question
    condition = compile_filter(ACME, parse_filter(asked))
    for row in rows:
        assert fulfils(condition, attribute_terms(ACME, row)) == holds(asked, row), row


@pytest.mark.parametrize("values", [numbers, moments, texts], ids=["numbers", "dates", "texts"])
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_terms_sort_as_their_values_do_by_code_point_and_by_byte(
    values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    one, other = data.draw(values, "one"), data.draw(values, "other")
    (kind, first), (other_kind, second) = typed(one), typed(other)
    assert (term(one) == term(other)) == (kind == other_kind and first == second)
    assert (term(one) < term(other)) == (term(one).encode() < term(other).encode())
    if kind == other_kind:
        assert (term(one) < term(other)) == (first < second)


@given(one=scalars, other=scalars)
def test_two_values_have_one_term_only_if_they_are_of_one_kind_and_equal(one: Any, other: Any) -> None:
    assert (term(one) == term(other)) == (typed(one) == typed(other))


def test_zero_has_one_term() -> None:
    assert term(0) == term(0.0) == term(-0.0)


def test_an_integer_beyond_the_floats_precision_is_not_the_float_below_it() -> None:
    assert term(2.0**53) == term(2**53) < term(2**53 + 1) < term(2.0**53 + 2)
    assert term(-(2.0**53) - 2) < term(-(2**53) - 1) < term(-(2.0**53))


@pytest.mark.parametrize("middle", [2**54, 2**60, 2**62, -(2**54), -(2**60), -(2**62), 0])
def test_integers_beside_a_float_that_holds_none_of_them_keep_their_order(middle: int) -> None:
    neighbours = [middle + distance for distance in range(-1100, 1100)]
    assert [term(one) for one in neighbours] == sorted({term(one) for one in neighbours})
    for one in neighbours:
        assert (term(one) < term(float(middle))) == (one < middle)


KINDS: list[Any] = [True, 1, -1.5, "2020-01-01T00:00:00Z", "2020", ""]


@pytest.mark.parametrize("held", KINDS)
@pytest.mark.parametrize("value", KINDS)
def test_values_of_two_kinds_are_neither_equal_nor_in_any_order(value: Any, held: Any) -> None:
    for word in ["eq"] if value is True else ["eq", "gt", "gte", "lt", "lte"]:
        asked = {"a": {word: value}}
        answer = fulfils(compile_filter(ACME, parse_filter(asked)), attribute_terms(ACME, {"a": held}))
        assert answer == holds(asked, {"a": held})
        assert not answer or typed(value)[0] == typed(held)[0]


def test_dates_are_instants_at_any_precision_and_a_leap_second_is_the_one_after() -> None:
    assert term("2020-01-01T00:00:00Z") == term("2020-01-01T01:00:00.000+01:00")
    assert term("2020-01-01T00:00:00.1Z") < term("2020-01-01T00:00:00." + "1" * 900 + "Z")
    assert term("2016-12-31T23:59:60Z") == term("2017-01-01T00:00:00Z")


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01",
        "2020-01-01T00:00:00",
        "2020-01-01T00:00Z",
        "2020-01-01 00:00:00Z",
        " 2020-01-01T00:00:00Z",
        "2020-01-01T00:00:00Z\n",
        "2020-02-30T00:00:00Z",
        "2020-01-01T24:00:00Z",
        "2020-01-01T00:60:00Z",
        "2020-01-01T00:00:61Z",
        "2020-01-01T00:00:00+24:00",
        "2020-01-01T00:00:00+0100",
        "2020-01-01T00:00:00.Z",
        "0000-01-01T00:00:00Z",
        "２０２０-01-01T00:00:00Z",
    ],
)
def test_what_is_not_a_whole_date_time_with_its_zone_is_a_text(text: str) -> None:
    assert term(text).endswith("\x1fs" + text)


@given(row=attributes)
def test_terms_are_unique_in_order_and_short_enough_for_an_index(row: dict[str, Any]) -> None:
    for terms in attribute_terms(ACME, {**row, "n" * 128: "😀" * 256}):
        assert list(terms) == sorted(set(terms))
        assert all(len(one.encode()) < LONGEST_TERM for one in terms)


def test_an_empty_list_has_a_name_and_no_value() -> None:
    assert attribute_terms(ACME, {"tags": []}) == AttributeTerms((_hash(ACME) + "tags",), ())


def _hash(tenant: Tenant) -> str:
    return hashlib.sha256(tenant.encode()).hexdigest()[:16]


def test_the_form_of_terms_is_fixed_since_indexes_hold_them() -> None:
    """Another form needs every index to be written anew."""
    row: dict[str, Any] = {"b": True, "d": "2020-01-01T00:00:00.50Z", "i": 7, "f": -1.5, "s": "Ü"}
    assert attribute_terms(ACME, row).values == tuple(
        _hash(ACME) + rest
        for rest in (
            "b\x1fb1",
            "d\x1fd063713520000.5",
            "f\x1fn4007ffffffffffff000",
            "i\x1fnc01c000000000000000",
            "s\x1fsÜ",
        )
    )


def crosses(row: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Whether anything that one tenant's filter asks for is met by another's terms."""
    theirs = attribute_terms(GLOBEX, row)
    return any(meets(leaf, theirs) for leaf in leaves(compile_filter(ACME, parse_filter(asked))))


@settings(max_examples=200, deadline=None)
@given(question=questions())
def test_another_tenants_terms_are_never_met(question: tuple[list[dict[str, Any]], dict[str, Any]]) -> None:
    rows, asked = question
    assert not any(crosses(row, asked) for row in rows)


@given(row=attributes, asked=filters)
def test_every_term_that_a_filter_names_is_the_tenants(row: dict[str, Any], asked: dict[str, Any]) -> None:
    own = _hash(ACME)
    for leaf in leaves(compile_filter(ACME, parse_filter(asked))):
        match leaf:
            case Name(one):
                assert one.startswith(own)
            case Terms(several):
                assert all(one.startswith(own) for one in several)
            case TermRange(low, high):
                assert low.startswith(own)
                assert high.startswith(own)
    for terms in attribute_terms(ACME, row):
        assert all(one.startswith(own) for one in terms)


@pytest.mark.parametrize("asked", [{"a": 1}, {"a": {"gte": 1}}, {"a": {"lte": 1}}, {"a": {"exists": True}}])
def test_terms_without_their_tenant_would_be_met_by_another(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    """The tests above see the tenant missing from a term."""
    assert not crosses({"a": 1}, asked)
    monkeypatch.setattr(module, "_prefix", lambda tenant, name: "0" * 16 + name)
    assert crosses({"a": 1}, asked)

"""The tenant: a checked name, and the one tenant that a call runs in."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.base import Model
from core.model.errors import InvalidArgument, TenantRequired
from core.model.tenant import Tenant, resolve_tenant

A, B = Tenant("a"), Tenant("b")
ALPHABET = "ABCZabcz0189._:@=+-"


@pytest.mark.parametrize(
    ("context", "explicit", "empty_is_none", "expected"),
    [
        (A, None, False, A),
        (A, "a", False, A),
        (A, "", True, A),
        (A, "b", False, InvalidArgument),
        (A, "b", True, InvalidArgument),
        (A, "", False, InvalidArgument),
        (None, "x", False, Tenant("x")),
        (None, "x", True, Tenant("x")),
        (None, "", False, TenantRequired),
        (None, "", True, TenantRequired),
        (None, None, False, TenantRequired),
        (None, None, True, TenantRequired),
        (None, "a#b", False, InvalidArgument),
        (A, "a ", False, InvalidArgument),
        (A, "A", False, InvalidArgument),
    ],
)
def test_the_table_of_section_3(
    context: Tenant | None, explicit: str | None, empty_is_none: bool, expected: Tenant | type[Exception]
) -> None:
    if isinstance(expected, Tenant):
        assert resolve_tenant(context, explicit, empty_is_none=empty_is_none) == expected
        return
    with pytest.raises(expected):
        resolve_tenant(context, explicit, empty_is_none=empty_is_none)


def test_a_conflict_of_tenants_does_not_repeat_either() -> None:
    with pytest.raises(InvalidArgument) as refused:
        resolve_tenant(Tenant("secret-one"), "secret-two")
    assert "secret" not in str(refused.value)


@given(st.text(ALPHABET, min_size=1, max_size=128))
def test_letters_digits_and_seven_signs_are_a_tenant(name: str) -> None:
    assert Tenant(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "a#b",
        "T#a",
        "a/b",
        "a\\b",
        "a\n",
        "\na",
        "a\x00",
        "a*",
        "a%",
        "a?b",
        "a&b",
        "[a b]",
        "ä",
        "٣",
        "a" * 129,
    ],
)
def test_a_name_that_could_reach_into_a_key_or_a_path_is_no_tenant(name: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Tenant(name)
    assert refused.value.extras == {"field": "tenant"}


@given(st.text(max_size=130))
def test_nothing_else_is_a_tenant(name: str) -> None:
    if re.fullmatch(r"[A-Za-z0-9._:@=+-]{1,128}", name, re.ASCII):
        assert Tenant(name) == name
        return
    with pytest.raises(InvalidArgument):
        Tenant(name)


def test_a_model_checks_its_tenant() -> None:
    class Body(Model):
        tenant: Tenant

    assert isinstance(Body.model_validate({"tenant": "acme"}).tenant, Tenant)
    with pytest.raises(InvalidArgument):
        Body.model_validate({"tenant": "a#b"})

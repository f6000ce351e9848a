"""Attributes as terms, and filters as conditions on terms: one way for every store.

A chunk's attributes become two sets of texts. A *name term* is 16 hex digits of the tenant's hash and the attribute's
name. A *value term* is that, a separator, a letter for the value's kind, and the value written so that terms sort as
values do, by code point and by bytes of UTF-8 alike. So equality is one term, a range of values is a range of terms,
every attribute of every tenant fits into the same two fields, and no range reaches beyond its attribute and tenant.
"""

import hashlib
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, TypeAlias

from core.model.chunk import AttributeValue
from core.model.filter import And, Comparison, Filter, Not, Operator, Or, Scalar
from core.model.tenant import Tenant

_SEPARATOR = "\x1f"
_BOOLEAN, _DATE, _NUMBER, _TEXT = "bdns"
_DAY_S = 86_400
_SIGN, _ALL_BITS = 1 << 63, (1 << 64) - 1
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)


class AttributeTerms(NamedTuple):
    """Terms of one chunk, each once, in order. ``names`` are of its attributes, ``values`` of what they hold."""

    names: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Name:
    """This is one of the chunk's name terms."""

    term: str


@dataclass(frozen=True, slots=True)
class Terms:
    """One of these is one of the chunk's value terms. They are unique and in order; of none, it never holds."""

    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TermRange:
    """One of the chunk's value terms lies between two, in order of code points. Both ends are always there."""

    low: str
    high: str
    includes_low: bool
    includes_high: bool


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds; of none, it holds for every chunk."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Some part holds; of none, it holds for no chunk."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Without:
    """The part does not hold."""

    part: "Condition"


Condition: TypeAlias = Name | Terms | TermRange | AllOf | AnyOf | Without


def attribute_terms(tenant: Tenant, attributes: Mapping[str, AttributeValue]) -> AttributeTerms:
    """The terms of a chunk's attributes."""
    names = {_prefix(tenant, name) for name in attributes}
    values = {
        _term(tenant, name, one)
        for name, value in attributes.items()
        for one in (value if isinstance(value, list) else [value])
    }
    return AttributeTerms(tuple(sorted(names)), tuple(sorted(values)))


def compile_filter(tenant: Tenant, asked: Filter) -> Condition:
    """What a tenant's filter asks of a chunk's terms. Every term in it is that tenant's own."""
    match asked:
        case Comparison():
            return _comparison(tenant, asked)
        case Not(part):
            return Without(compile_filter(tenant, part))
        case And(parts):
            return AllOf(tuple(compile_filter(tenant, part) for part in parts))
        case Or(parts):
            return AnyOf(tuple(compile_filter(tenant, part) for part in parts))


def _comparison(tenant: Tenant, asked: Comparison) -> Condition:
    if asked.operator is Operator.EXISTS:
        name = Name(_prefix(tenant, asked.field))
        return name if asked.value else Without(name)
    values = asked.value if isinstance(asked.value, tuple) else (asked.value,)
    terms = Terms(tuple(sorted({_term(tenant, asked.field, value) for value in values})))
    match asked.operator:
        case Operator.EQ | Operator.IN:
            return terms
        case Operator.NE | Operator.NIN:
            return Without(terms)
        case _:
            return _range(tenant, asked, terms.terms[0])


def _range(tenant: Tenant, asked: Comparison, term: str) -> TermRange:
    """From the value's term to an end of all terms of the same attribute and kind."""
    kind = len(_prefix(tenant, asked.field)) + len(_SEPARATOR)
    first = term[: kind + 1]
    beyond = term[:kind] + chr(ord(term[kind]) + 1)
    match asked.operator:
        case Operator.GT | Operator.GTE:
            return TermRange(term, beyond, asked.operator is Operator.GTE, includes_high=False)
        case _:
            return TermRange(first, term, includes_low=True, includes_high=asked.operator is Operator.LTE)


def _prefix(tenant: Tenant, name: str) -> str:
    """A name term. No two tenants share the beginnings of terms, so no range leaves its tenant."""
    return hashlib.sha256(tenant.encode()).hexdigest()[:16] + name


def _term(tenant: Tenant, name: str, value: Scalar) -> str:
    return _prefix(tenant, name) + _SEPARATOR + _sortable(value)


def _sortable(value: Scalar) -> str:
    """The letter of the value's kind, and the value so that it sorts among its kind."""
    if isinstance(value, bool):
        return f"{_BOOLEAN}{value:d}"
    if isinstance(value, int | float):
        return _NUMBER + _number(value)
    moment = _moment(value)
    return _TEXT + value if moment is None else _DATE + moment


def _number(value: int | float) -> str:
    """The greatest float64 that is not above the number, then how far the number is above it.

    The bits of floats sort as the floats do once those of negative ones are inverted and the sign bit of the others
    is set. An integer of 64 bits is less than 1,024 = 2⁶³⁻⁵³ above its float, so three hex digits hold the rest.
    """
    below = float(value)
    if below > value:
        below = math.nextafter(below, -math.inf)
    rest = int(value - int(below)) if isinstance(value, int) else 0
    # Zero has two forms, which are one number.
    [bits] = struct.unpack(">Q", struct.pack(">d", below or 0.0))
    bits = bits ^ _ALL_BITS if bits & _SIGN else bits | _SIGN
    return f"{bits:016x}{rest:03x}"


def _moment(text: str) -> str | None:
    """Seconds since the year 1 and their fraction, if the text is an RFC 3339 date-time; exact at any precision.

    A leap second is the second after it, as in POSIX. Fractions sort as text once their closing zeros are gone.
    """
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    day, hour, minute, second, fraction, sign, offset_hour, offset_minute = match.groups("0")
    try:
        days = date.fromisoformat(day).toordinal()
    except ValueError:
        return None
    seconds = days * _DAY_S + int(hour) * 3600 + int(minute) * 60 + int(second)
    offset = int(offset_hour) * 3600 + int(offset_minute) * 60
    seconds += offset if sign == "-" else -offset
    return f"{seconds:012d}.{fraction.rstrip('0')}"

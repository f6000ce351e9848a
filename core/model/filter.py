"""Filters by attributes: a mapping is parsed once, checked whole, and then a value like any other.

``{"year": {"gte": 2020, "lt": 2024}, "lang": {"in": ["en", "de"]}}``: fields side by side, and operators side by
side, must all hold. ``{"and": [filter, ...]}``, ``{"or": [filter, ...]}`` and ``{"not": filter}`` stand beside fields;
so an attribute called ``and``, ``or`` or ``not`` cannot be filtered by. ``{"lang": "en"}`` is short for
``{"lang": {"eq": "en"}}``. An empty mapping holds for everything, as does ``and`` of nothing; ``or`` of nothing never.

Values are booleans, numbers, dates (a text that is a whole RFC 3339 date-time with its zone) and other texts. Values
of two kinds are never equal, and neither is less: 1 is not "1", and true is not 1. Numbers compare exactly, dates as
instants, texts by code point. An attribute that is a list holds each of its elements: what is said of the attribute
holds when it does of any element. ``ne`` and ``nin`` are the contrary of ``eq`` and ``in``, so they hold for
chunks without the attribute as well.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from core.model.chunk import MAX_INTEGER, MIN_INTEGER, check_attribute_name, check_attribute_text
from core.model.errors import InvalidArgument

MAX_LEAVES = 256
MAX_DEPTH = 8
MAX_VALUES = 1000
MAX_BOUND_BYTES = 512
"""Of a text in a range: with its name it must stay below the 1,000 bytes to which Lucene follows a range's end."""
_SHOWN = 64

Scalar: TypeAlias = bool | int | float | str


class Operator(StrEnum):
    """What a comparison asks. ``exists`` takes true or false; ``in`` and ``nin`` a list; the rest one value."""

    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    IN = "in"
    NIN = "nin"
    EXISTS = "exists"


_ORDERED = {Operator.GT, Operator.GTE, Operator.LT, Operator.LTE}
_LISTS = {Operator.IN, Operator.NIN}
_OPERATORS = [operator.value for operator in Operator]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One field against a value: a tuple of values for ``in`` and ``nin``, a boolean for ``exists``."""

    field: str
    operator: Operator
    value: Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class And:
    """Every part holds; of none, it holds."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Some part holds; of none, it does not."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: "Filter"


Filter: TypeAlias = And | Or | Not | Comparison


def parse_filter(mapping: Mapping[str, Any]) -> Filter:
    """A filter of its mapping. The whole of it is checked; nothing in it is ever ignored.

    Raises:
        InvalidArgument: an unknown operator, a value that the operator does not take, a name that no attribute can
            have, over 256 comparisons, over 8 filters inside one another, over 1,000 values in a list, a text over
            1,024 bytes, or over 512 in a range, an integer beyond 64 bits. ``field`` is ``filter``.
    """
    parsed = _filter(mapping, depth=1)
    if sum(1 for _ in comparisons(parsed)) > MAX_LEAVES:
        raise _refusal(f"A filter has at most {MAX_LEAVES} comparisons", limit=MAX_LEAVES)
    return parsed


def comparisons(parsed: Filter) -> Iterator[Comparison]:
    """All comparisons of a filter, in order."""
    match parsed:
        case Comparison():
            yield parsed
        case Not(part):
            yield from comparisons(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from comparisons(part)


def wanted(parsed: Filter) -> Iterator[Comparison]:
    """The comparisons by ``eq`` and ``in`` that are not inside ``not``: values that chunks should have."""
    match parsed:
        case Comparison(operator=Operator.EQ | Operator.IN):
            yield parsed
        case And(parts) | Or(parts):
            for part in parts:
                yield from wanted(part)


def fields_of(parsed: Filter) -> frozenset[str]:
    """The names of all fields that a filter asks for."""
    return frozenset(one.field for one in comparisons(parsed))


def _filter(mapping: Any, depth: int) -> Filter:
    if not isinstance(mapping, Mapping):
        raise _refusal("A filter is a mapping of fields to what must hold for them")
    if depth > MAX_DEPTH:
        raise _refusal(f"A filter is at most {MAX_DEPTH} levels deep", limit=MAX_DEPTH)
    parts = [part for name, value in mapping.items() for part in _entry(name, value, depth)]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _entry(name: Any, value: Any, depth: int) -> Iterator[Filter]:
    """What one key of the mapping asks: a word that joins filters, or a field."""
    match name:
        case "and":
            yield And(_filters(name, value, depth))
        case "or":
            yield Or(_filters(name, value, depth))
        case "not":
            yield Not(_filter(value, depth + 1))
        case _:
            yield from _field(name, value)


def _filters(word: str, value: Any, depth: int) -> tuple[Filter, ...]:
    if not isinstance(value, list | tuple):
        raise _refusal(f"{word!r} takes a list of filters")
    return tuple(_filter(one, depth + 1) for one in value)


def _field(name: Any, value: Any) -> Iterator[Comparison]:
    try:
        field = check_attribute_name(name if isinstance(name, str) else "")
    except ValueError as error:
        raise _refusal(f"{_shown(name)} is no field: {error}") from error
    asked = value if isinstance(value, Mapping) else {Operator.EQ: value}
    if not asked:
        raise _refusal(f"{_shown(field)} has no operator")
    for word, operand in asked.items():
        if word not in _OPERATORS:
            raise _refusal(f"{_shown(word)} is no operator; they are {', '.join(_OPERATORS)}")
        operator = Operator(word)
        yield Comparison(field, operator, _operand(f"{operator} of {_shown(field)}", operator, operand))


def _operand(asked: str, operator: Operator, operand: Any) -> Scalar | tuple[Scalar, ...]:
    if operator is Operator.EXISTS:
        if not isinstance(operand, bool):
            raise _refusal(f"{asked} takes true or false")
        return operand
    if operator in _LISTS:
        if not isinstance(operand, list | tuple):
            raise _refusal(f"{asked} takes a list of values")
        if len(operand) > MAX_VALUES:
            raise _refusal(f"{asked} takes at most {MAX_VALUES} values", limit=MAX_VALUES)
        return tuple(_scalar(asked, one) for one in operand)
    if operator in _ORDERED and isinstance(operand, bool):
        raise _refusal(f"{asked} takes no true or false: they have no order")
    value = _scalar(asked, operand)
    if operator in _ORDERED and isinstance(value, str) and len(value.encode()) > MAX_BOUND_BYTES:
        raise _refusal(f"{asked} takes a text of at most {MAX_BOUND_BYTES} bytes of UTF-8", limit=MAX_BOUND_BYTES)
    return value


def _scalar(asked: str, value: Any) -> Scalar:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.isoformat()
    if isinstance(value, str):
        try:
            return check_attribute_text(value)
        except ValueError as error:
            raise _refusal(f"{asked} takes no such value: {error}") from error
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and MIN_INTEGER <= value <= MAX_INTEGER:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise _refusal(f"{asked} takes a text, a date with its zone, an integer of 64 bits, a finite number, true or false")


def _shown(name: Any) -> str:
    """A name in a message, cut short."""
    return ascii(name if not isinstance(name, str) else name[:_SHOWN])[: 2 * _SHOWN]


def _refusal(detail: str, **extras: Any) -> InvalidArgument:
    return InvalidArgument(detail, field="filter", **extras)

"""Filters by attributes: the form in which callers send them, and the tree into which they are parsed.

A filter is a mapping such as ``{"year": {"gte": 2020, "lt": 2024}, "lang": {"in": ["en", "de"]}}``. It is parsed once,
before anything else happens, and the whole of it is validated.

Form:

* All fields of a mapping, and all operators of a field, must hold.
* ``{"lang": "en"}`` is short for ``{"lang": {"eq": "en"}}``.
* ``{"and": [filter, ...]}``, ``{"or": [filter, ...]}`` and ``{"not": filter}`` may stand beside fields. Attributes that
  are called ``and``, ``or`` or ``not`` can therefore not be filtered by.
* An empty mapping and an empty ``and`` hold for every chunk. An empty ``or`` holds for none.

Meaning:

* A value is a boolean, a number, a date (a text that is a whole RFC 3339 date-time with its zone) or another text.
* Two values of different kinds are never equal, and neither is less than the other: 1 is not "1", and true is not 1.
* Numbers are compared exactly, dates as instants, texts by code point.
* A comparison with an attribute that is a list holds when it holds for any element of the list.
* ``ne`` and ``nin`` are the negations of ``eq`` and ``in``, so they hold for chunks without the attribute as well.

`core.vectors.attributes` applies filters to records. To add an operator, add it to `Operator`, to `_operand` (the
values that it takes) and to `core.vectors.attributes` (its meaning).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from core.model.chunk import MAX_INTEGER, MIN_INTEGER, validate_attribute_name, validate_attribute_text
from core.model.errors import InvalidArgument

MAX_COMPARISONS = 256
MAX_DEPTH = 8
MAX_VALUES = 1000
MAX_RANGE_TEXT_BYTES = 512
"""The longest text that ``gt``, ``gte``, ``lt`` and ``lte`` take. Together with the attribute's name it must stay below
1,000 bytes, which is as far as Lucene reads the end of a range."""
_QUOTED_CHARACTERS = 64
"""How much of a name is quoted in an error."""

Scalar: TypeAlias = bool | int | float | str


class Operator(StrEnum):
    """The operators. ``exists`` takes true or false, ``in`` and ``nin`` take a list, all others take one value."""

    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    IN = "in"
    NIN = "nin"
    EXISTS = "exists"


_ORDER_OPERATORS = {Operator.GT, Operator.GTE, Operator.LT, Operator.LTE}
_LIST_OPERATORS = {Operator.IN, Operator.NIN}
_OPERATOR_NAMES = [operator.value for operator in Operator]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of a field with a value: a tuple of values for ``in`` and ``nin``, a boolean for ``exists``."""

    field: str
    operator: Operator
    value: Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class And:
    """A filter that holds when every part holds. Without parts it holds."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """A filter that holds when at least one part holds. Without parts it does not hold."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A filter that holds when its part does not hold."""

    part: "Filter"


Filter: TypeAlias = And | Or | Not | Comparison


def parse_filter(mapping: Mapping[str, Any]) -> Filter:
    """Parses the mapping of a filter. The whole mapping is validated, and nothing in it is ever ignored.

    Raises:
        InvalidArgument: the filter has an unknown operator, a value that the operator does not take, a name that no
            attribute can have, more than 256 comparisons, more than 8 filters inside one another, more than 1,000
            values in a list, a text of more than 1,024 bytes (512 in a range) or an integer of more than 64 bits. The
            error's ``field`` is ``filter``.
    """
    parsed = _filter(mapping, depth=1)
    if sum(1 for _ in comparisons(parsed)) > MAX_COMPARISONS:
        raise _refusal(f"A filter has at most {MAX_COMPARISONS} comparisons", limit=MAX_COMPARISONS)
    return parsed


def comparisons(parsed: Filter) -> Iterator[Comparison]:
    """Lists all comparisons of a filter, in order."""
    match parsed:
        case Comparison():
            yield parsed
        case Not(part):
            yield from comparisons(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from comparisons(part)


def equalities(parsed: Filter) -> Iterator[Comparison]:
    """Lists the comparisons by ``eq`` and ``in`` that are not inside a ``not``.

    Their values are values that matching chunks must have, so a value that no chunk has explains an empty answer.
    """
    match parsed:
        case Comparison(operator=Operator.EQ | Operator.IN):
            yield parsed
        case And(parts) | Or(parts):
            for part in parts:
                yield from equalities(part)


def fields_of(parsed: Filter) -> frozenset[str]:
    """Returns the names of all fields that a filter compares."""
    return frozenset(comparison.field for comparison in comparisons(parsed))


def _filter(mapping: Any, depth: int) -> Filter:
    if not isinstance(mapping, Mapping):
        raise _refusal("A filter is a mapping of fields to what must hold for them")
    if depth > MAX_DEPTH:
        raise _refusal(f"A filter is at most {MAX_DEPTH} levels deep", limit=MAX_DEPTH)
    parts = [part for name, value in mapping.items() for part in _entry(name, value, depth)]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _entry(name: Any, value: Any, depth: int) -> Iterator[Filter]:
    """Parses one entry of a mapping: ``and``, ``or``, ``not`` or the name of a field."""
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
    return tuple(_filter(part, depth + 1) for part in value)


def _field(name: Any, value: Any) -> Iterator[Comparison]:
    try:
        field = validate_attribute_name(name if isinstance(name, str) else "")
    except ValueError as error:
        raise _refusal(f"{_quoted(name)} cannot be a field: {error}") from error
    operands = value if isinstance(value, Mapping) else {Operator.EQ: value}
    if not operands:
        raise _refusal(f"{_quoted(field)} has no operator")
    for word, operand in operands.items():
        if word not in _OPERATOR_NAMES:
            raise _refusal(f"{_quoted(word)} is no operator; the operators are {', '.join(_OPERATOR_NAMES)}")
        operator = Operator(word)
        yield Comparison(field, operator, _operand(f"{operator} of {_quoted(field)}", operator, operand))


def _operand(comparison: str, operator: Operator, operand: Any) -> Scalar | tuple[Scalar, ...]:
    if operator is Operator.EXISTS:
        if not isinstance(operand, bool):
            raise _refusal(f"{comparison} takes true or false")
        return operand
    if operator in _LIST_OPERATORS:
        if not isinstance(operand, list | tuple):
            raise _refusal(f"{comparison} takes a list of values")
        if len(operand) > MAX_VALUES:
            raise _refusal(f"{comparison} takes at most {MAX_VALUES} values", limit=MAX_VALUES)
        return tuple(_scalar(comparison, element) for element in operand)
    if operator in _ORDER_OPERATORS and isinstance(operand, bool):
        raise _refusal(f"{comparison} takes neither true nor false: they have no order")
    value = _scalar(comparison, operand)
    if operator in _ORDER_OPERATORS and isinstance(value, str) and len(value.encode()) > MAX_RANGE_TEXT_BYTES:
        raise _refusal(
            f"{comparison} takes a text of at most {MAX_RANGE_TEXT_BYTES} bytes of UTF-8", limit=MAX_RANGE_TEXT_BYTES
        )
    return value


def _scalar(comparison: str, value: Any) -> Scalar:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.isoformat()
    if isinstance(value, str):
        try:
            return validate_attribute_text(value)
        except ValueError as error:
            raise _refusal(f"{comparison} does not take this value: {error}") from error
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and MIN_INTEGER <= value <= MAX_INTEGER:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise _refusal(
        f"{comparison} takes a text, a date with its zone, an integer of 64 bits, a finite number, true or false"
    )


def _quoted(name: Any) -> str:
    """Writes a name for an error message, in ASCII and cut short."""
    return ascii(name if not isinstance(name, str) else name[:_QUOTED_CHARACTERS])[: 2 * _QUOTED_CHARACTERS]


def _refusal(detail: str, **extras: Any) -> InvalidArgument:
    return InvalidArgument(detail, field="filter", **extras)

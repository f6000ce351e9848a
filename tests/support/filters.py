"""What a filter means, evaluated in plain Python, and the values, attributes and filters to try it on."""

import operator
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from core.model.filter import MAX_RANGE_TEXT_BYTES

NAMES = ["a", "ab", "größe 😀"]
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def holds(asked: Mapping[str, Any], attributes: Mapping[str, Any]) -> bool:
    """Whether attributes fulfil a filter."""
    return all(_entry(name, value, attributes) for name, value in asked.items())


def _entry(name: str, value: Any, attributes: Mapping[str, Any]) -> bool:
    if name == "and":
        return all(holds(one, attributes) for one in value)
    if name == "or":
        return any(holds(one, attributes) for one in value)
    if name == "not":
        return not holds(value, attributes)
    asked = value if isinstance(value, Mapping) else {"eq": value}
    return all(_compare(word, operand, name, attributes) for word, operand in asked.items())


def _compare(word: str, operand: Any, name: str, attributes: Mapping[str, Any]) -> bool:
    held = attributes.get(name, [])
    elements = [typed(one) for one in (held if isinstance(held, list) else [held])]
    if word == "exists":
        return (name in attributes) is operand
    if word in ("in", "nin"):
        return any(typed(one) in elements for one in operand) is (word == "in")
    if word in ("eq", "ne"):
        return (typed(operand) in elements) is (word == "eq")
    kind, wanted = typed(operand)
    return any(_ORDERS[word](value, wanted) for own, value in elements if own == kind)


def typed(value: Any) -> tuple[str, Any]:
    """A value's kind, and something that compares as the value does. Python compares integers and floats exactly."""
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, int | float):
        return "number", value
    moment = _moment(value)
    return ("text", [ord(one) for one in value]) if moment is None else ("date", moment)


def _moment(text: str) -> Fraction | None:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    try:
        whole = datetime.fromisoformat(match[1].upper() + match[3].upper())
    except ValueError:
        return None
    since = whole - datetime(1970, 1, 1, tzinfo=UTC)
    return since.days * 86_400 + since.seconds + Fraction(f"0.{match[2] or 0}")


numbers = st.one_of(
    st.sampled_from([0, -0.0, 0.0, 1, 1.0, -1, 2**53, 2.0**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2.0**63]),
    st.sampled_from([1e308, -1e308, 5e-324, -5e-324, 0.1, 1 / 3, 2**62 + 1, 2.0**62, 2**62 - 1]),
    st.integers(-3, 3),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)
texts = st.one_of(
    st.text(
        st.sampled_from(["a", "b", "e", "\u0301", "é", "0", " ", "\0", "\x1f", "\ud7ff", "\uffff", "😀", "\U0010ffff"]),
        max_size=3,
    ),
    st.sampled_from(
        ["1", "1.0", "true", "2020-01-01", "2020-01-01T00:00:00", "2020-13-01T00:00:00Z", "and", "x" * 512, "x" * 1024]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
moments = st.one_of(
    st.sampled_from(
        [
            "2020-01-01T00:00:00Z",
            "2020-01-01t01:00:00+01:00",
            "2019-12-31T14:15:00.000-09:45",
            "2020-01-01T00:00:00.000000001z",
            "2020-01-01T00:00:00.0000000010Z",
            "2020-01-01T00:00:00.1Z",
            "2020-01-01T00:00:00.09Z",
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59.999999-12:00",
        ]
    ),
    st.datetimes(timezones=st.integers(-23, 23).map(lambda hours: timezone(timedelta(hours=hours)))).map(
        lambda moment: moment.isoformat()
    ),
    st.datetimes(datetime(2019, 12, 31), datetime(2020, 1, 2), timezones=st.just(UTC)).map(
        lambda moment: moment.isoformat(timespec="milliseconds")
    ),
)
strings = texts | moments
scalars = st.booleans() | numbers | strings
attributes = st.dictionaries(st.sampled_from(NAMES), scalars | st.lists(strings, max_size=3), max_size=4)


def _has_order(value: Any) -> bool:
    """Whether a range may end there."""
    return not isinstance(value, bool) and (not isinstance(value, str) or len(value.encode()) <= MAX_RANGE_TEXT_BYTES)


def _filters(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    ordered = values.filter(_has_order)
    operators = st.one_of(
        st.tuples(st.sampled_from(["eq", "ne"]), values),
        st.tuples(st.sampled_from(["gt", "gte", "lt", "lte"]), ordered),
        st.tuples(st.sampled_from(["in", "nin"]), st.lists(values, max_size=4)),
        st.tuples(st.just("exists"), st.booleans()),
    )
    asked = values | st.lists(operators, min_size=1, max_size=2).map(dict)
    fields = st.dictionaries(st.sampled_from(NAMES), asked, max_size=2)
    return st.recursive(
        fields,
        lambda inner: st.one_of(
            st.builds(lambda word, parts: {word: parts}, st.sampled_from(["and", "or"]), st.lists(inner, max_size=3)),
            st.builds(lambda part: {"not": part}, inner),
            st.builds(lambda beside, part: {**beside, "not": part}, fields, inner),
        ),
        max_leaves=4,
    )


filters = _filters(scalars)


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The attributes of some rows, and a filter that mostly asks for values which they hold."""
    rows = draw(st.lists(attributes, min_size=1, max_size=12))
    held = [one for row in rows for value in row.values() for one in (value if isinstance(value, list) else [value])]
    return rows, draw(_filters(st.sampled_from(held) | scalars) if held else filters)

"""DynamoDB's condition, key condition and update expressions, as far as the project writes them.

Items are as on the wire: ``{"name": {"S": "text"}}``. Every function raises ``ValueError`` for an expression that it
does not understand: a proof must not pass because a condition was not read.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

Wire = dict[str, Any]
Item = dict[str, Wire]
Words = tuple[Mapping[str, str], Mapping[str, Wire]]
"""The expression's names (``#x``) and values (``:x``)."""

Predicate = Callable[[Item, Words], bool]
Operand = Callable[[Item, Words], Wire | None]
Change = Callable[[Item, Item, Words], None]
"""Changes the second item; reads the first, which is as it was before the update."""

_TOKEN = re.compile(r"\s*(<>|<=|>=|[=<>(),+\-]|[#:]?[A-Za-z0-9_]+(?:\.[#]?[A-Za-z0-9_]+)*)")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: bool(a == b),
    "<>": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


class MissingPath(Exception):
    """An update sets a place inside a map that is not there."""


class _Tokens:
    """The words of an expression, taken from the left."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._left: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(f"not understood: {text!r} at {at}")
            self._left.append(found.group(1))
            at = found.end()
        self._left.reverse()

    def peek(self) -> str:
        return self._left[-1] if self._left else ""

    def take(self, *expected: str) -> str:
        word = self._left.pop() if self._left else ""
        if expected and word.upper() not in expected:
            raise ValueError(f"not understood: {self._text!r} at {word!r}")
        return word

    def accept(self, word: str) -> bool:
        if self.peek().upper() == word:
            self._left.pop()
            return True
        return False


def holds(expression: str, item: Item | None, names: Mapping[str, str], values: Mapping[str, Wire]) -> bool:
    """Whether a condition holds for an item, or for none."""
    return _condition(expression)(item or {}, (names, values))


def updated(expression: str, item: Item, names: Mapping[str, str], values: Mapping[str, Wire]) -> Item:
    """The item after an update.

    Raises:
        MissingPath: a map that is to be changed inside is not there.
    """
    result = dict(item)
    for change in _changes(expression):
        change(item, result, (names, values))
    return result


# -- conditions --------------------------------------------------------------------------------------


@lru_cache(maxsize=1000)
def _condition(expression: str) -> Predicate:
    tokens = _Tokens(expression)
    predicate = _or(tokens)
    tokens.take("")
    return predicate


def _or(tokens: _Tokens) -> Predicate:
    terms = [_and(tokens)]
    while tokens.accept("OR"):
        terms.append(_and(tokens))
    return terms[0] if len(terms) == 1 else lambda item, words: any(term(item, words) for term in terms)


def _and(tokens: _Tokens) -> Predicate:
    terms = [_not(tokens)]
    while tokens.accept("AND"):
        terms.append(_not(tokens))
    return terms[0] if len(terms) == 1 else lambda item, words: all(term(item, words) for term in terms)


def _not(tokens: _Tokens) -> Predicate:
    if tokens.accept("NOT"):
        inner = _not(tokens)
        return lambda item, words: not inner(item, words)
    if tokens.accept("("):
        inner = _or(tokens)
        tokens.take(")")
        return inner
    return _test(tokens)


def _test(tokens: _Tokens) -> Predicate:
    if tokens.peek() in ("attribute_exists", "attribute_not_exists", "begins_with"):
        return _function(tokens)
    left = _operand(tokens)
    kind = tokens.take("=", "<>", "<", "<=", ">", ">=", "IN", "BETWEEN").upper()
    if kind == "IN":
        tokens.take("(")
        choices = [_operand(tokens)]
        while tokens.accept(","):
            choices.append(_operand(tokens))
        tokens.take(")")
        return lambda item, words: any(_compare("=", left, one)(item, words) for one in choices)
    if kind == "BETWEEN":
        low = _operand(tokens)
        tokens.take("AND")
        high = _operand(tokens)
        above, below = _compare(">=", left, low), _compare("<=", left, high)
        return lambda item, words: above(item, words) and below(item, words)
    return _compare(kind, left, _operand(tokens))


def _function(tokens: _Tokens) -> Predicate:
    name = tokens.take()
    tokens.take("(")
    operand = _operand(tokens)
    if name == "begins_with":
        tokens.take(",")
        prefix = _operand(tokens)
        tokens.take(")")
        return lambda item, words: _text(operand(item, words)).startswith(_text(prefix(item, words)))
    tokens.take(")")
    if name == "attribute_exists":
        return lambda item, words: operand(item, words) is not None
    return lambda item, words: operand(item, words) is None


def _compare(kind: str, left: Operand, right: Operand) -> Predicate:
    test = _COMPARE[kind]

    def predicate(item: Item, words: Words) -> bool:
        one, other = left(item, words), right(item, words)
        if one is None or other is None or one.keys() != other.keys():
            return kind == "<>"
        return test(_value(one), _value(other))

    return predicate


def _operand(tokens: _Tokens) -> Operand:
    word = tokens.take()
    if word.startswith(":"):
        return lambda _, words: words[1][word]
    if word == "if_not_exists":
        tokens.take("(")
        first = _operand(tokens)
        tokens.take(",")
        other = _operand(tokens)
        tokens.take(")")
        return lambda item, words: found if (found := first(item, words)) is not None else other(item, words)
    steps = word.split(".")
    return lambda item, words: _at(item, steps, words[0])


def _at(item: Item, steps: list[str], names: Mapping[str, str]) -> Wire | None:
    value: Wire | None = {"M": item}
    for step in steps:
        value = (value or {}).get("M", {}).get(_name(step, names))
    return value


def _name(step: str, names: Mapping[str, str]) -> str:
    return names[step] if step.startswith("#") else step


def _text(value: Wire | None) -> str:
    return str((value or {}).get("S", ""))


def _value(value: Wire) -> Any:
    ((kind, content),) = value.items()
    return Decimal(content) if kind == "N" else content


# -- updates -----------------------------------------------------------------------------------------


@lru_cache(maxsize=1000)
def _changes(expression: str) -> list[Change]:
    tokens = _Tokens(expression)
    changes: list[Change] = []
    while tokens.peek():
        kind = {"SET": _set, "REMOVE": _remove, "ADD": _add}[tokens.take("SET", "REMOVE", "ADD").upper()]
        changes.append(kind(tokens))
        while tokens.accept(","):
            changes.append(kind(tokens))
    return changes


def _set(tokens: _Tokens) -> Change:
    path = tokens.take().split(".")
    tokens.take("=")
    value = _sum(tokens)

    def change(before: Item, item: Item, words: Words) -> None:
        _put(item, path, words[0], value(before, words))

    return change


def _sum(tokens: _Tokens) -> Operand:
    first = _operand(tokens)
    if tokens.peek() not in ("+", "-"):
        return first
    sign = 1 if tokens.take() == "+" else -1
    second = _operand(tokens)
    return lambda item, words: _number(_known(first(item, words)) + sign * _known(second(item, words)))


def _known(value: Wire | None) -> Decimal:
    if value is None:
        raise MissingPath
    return Decimal(value["N"])


def _number(value: Decimal) -> Wire:
    return {"N": str(value)}


def _remove(tokens: _Tokens) -> Change:
    path = tokens.take().split(".")
    return lambda before, item, words: _put(item, path, words[0], None)


def _add(tokens: _Tokens) -> Change:
    path = tokens.take().split(".")
    operand = _operand(tokens)

    def change(before: Item, item: Item, words: Words) -> None:
        more = operand(before, words)
        if more is None or "N" not in more:
            raise ValueError("only numbers are added here")
        there = _at(before, path, words[0]) or {"N": "0"}
        _put(item, path, words[0], _number(Decimal(there["N"]) + Decimal(more["N"])))

    return change


def _put(item: Item, path: list[str], names: Mapping[str, str], value: Wire | None) -> None:
    """Sets, or removes, what is at a path. Maps on the way are copied: items are shared between states."""
    *way, last = [_name(step, names) for step in path]
    here: dict[str, Any] = item
    for step in way:
        if step not in here or "M" not in here[step]:
            raise MissingPath
        here[step] = {"M": dict(here[step]["M"])}
        here = here[step]["M"]
    if value is None:
        here.pop(last, None)
    else:
        here[last] = value

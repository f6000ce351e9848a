"""DynamoDB's condition, key condition and update expressions: parsed once, held to DynamoDB's rules for their text, and
evaluated on items in memory.

The rules are those of "Expressions" in DynamoDB's developer guide. Only the functions and clauses that the project
writes are known: an expression that uses another one is refused, so that no proof passes because a condition was not
understood. Items are as on the wire: ``{"name": {"S": "text"}}``.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

RESERVED = frozenset(ReservedKeywords.get_reserved_keywords())
MAX_BYTES = 4 * 1024
MAX_OPERATORS = 300
MAX_IN = 100
CLAUSES = ("SET", "REMOVE", "ADD")
TESTS = ("attribute_exists", "attribute_not_exists", "begins_with")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPERATORS = {"AND", "OR", "NOT", "IN", "BETWEEN", "+", "-", *_COMPARE}
_TOKEN = re.compile(r"\s*([#:]?\w+|<>|<=|>=|[=<>(),.+\-\[\]])")
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")

Wire = dict[str, Any]
Item = dict[str, Wire]
Path = tuple[str, ...]
"""A document path: names, placeholders of names, and places in lists such as ``[0]``."""
Words = tuple[Mapping[str, str], Mapping[str, Wire]]
"""The expression's names (``#x``) and values (``:x``)."""

Predicate = Callable[[Item, Words], bool]
Operand = Callable[[Item, Words], Wire | None]
Change = Callable[[Item, Item, Words], None]
"""Changes the second item; reads the first, which is as it was before the update."""


class Refused(AssertionError):
    """A request that AWS refuses, or a limit that the request would pass in use. No code under test may catch it."""


class MissingPath(Exception):
    """An update sets a place inside a map that is not there."""


@dataclass(frozen=True)
class Condition:
    """A parsed condition.

    Attributes:
        placeholders: the names and values that the expression uses.
        tests: of each comparison the path, the operator and the first words of the operands.
        joined: whether the tests are joined by AND alone, as those of a key condition must be.
    """

    placeholders: frozenset[str]
    tests: Sequence[tuple[Path, str, Sequence[str]]]
    joined: bool
    holds: Predicate


@dataclass(frozen=True)
class Update:
    """A parsed update.

    Attributes:
        actions: of each action the clause, the path that it changes, and its last word.
    """

    placeholders: frozenset[str]
    actions: Sequence[tuple[str, Path, str]]
    changes: Sequence[Change]


@lru_cache(maxsize=1000)
def parse_condition(expression: str) -> Condition:
    """Parses a condition or a key condition.

    Raises:
        Refused: AWS would not take the expression, or the project does not use what it holds.
    """
    tokens = _Tokens(expression)
    holds = _or(tokens)
    tokens.end()
    return Condition(tokens.placeholders, tokens.tests, not {"OR", "NOT", "("} & tokens.seen, holds)


@lru_cache(maxsize=1000)
def parse_update(expression: str) -> Update:
    """Parses an update.

    Raises:
        Refused: AWS would not take the expression, or the project does not use what it holds.
    """
    tokens = _Tokens(expression)
    actions: list[tuple[str, Path, str]] = []
    changes: list[Change] = []
    while tokens.peek():
        clause = tokens.take().upper()
        if clause not in CLAUSES:
            raise Refused(f"An update expression begins with one of {', '.join(CLAUSES)}: {clause!r}")
        if clause in [known for known, _, _ in actions]:
            raise Refused(f"The {clause} section can only be used once in an update expression")
        parse = {"SET": _set, "REMOVE": _remove, "ADD": _add}[clause]
        while True:
            path, change = parse(tokens)
            actions.append((clause, path, tokens.last))
            changes.append(change)
            if not tokens.accept(","):
                break
    return Update(tokens.placeholders, actions, changes)


@lru_cache(maxsize=1000)
def parse_projection(expression: str) -> frozenset[str]:
    """Parses a list of the attributes to read; answers the placeholders that the list uses.

    Raises:
        Refused: AWS would not take the expression.
    """
    tokens = _Tokens(expression)
    tokens.path()
    while tokens.accept(","):
        tokens.path()
    tokens.end()
    return tokens.placeholders


def holds(expression: str, item: Item | None, names: Mapping[str, str], values: Mapping[str, Wire]) -> bool:
    """Whether a condition holds for an item, or for a missing item."""
    return parse_condition(expression).holds(item or {}, (names, values))


def updated(expression: str, item: Item, names: Mapping[str, str], values: Mapping[str, Wire]) -> Item:
    """The item after an update.

    Raises:
        MissingPath: the update changes the inside of a map that is not there.
    """
    result = dict(item)
    for change in parse_update(expression).changes:
        change(item, result, (names, values))
    return result


# -- tokens ------------------------------------------------------------------------------------------


class _Tokens:
    """The words of an expression, taken from the left.

    Attributes:
        last: the word that was taken last.
    """

    def __init__(self, text: str) -> None:
        if len(text.encode()) > MAX_BYTES:
            raise Refused(f"An expression has at most {MAX_BYTES} bytes: {len(text.encode())}")
        tokens = list(_split(text))
        if not tokens:
            raise Refused("The expression can not be empty")
        operators = sum(token.upper() in _OPERATORS or token in (*TESTS, "if_not_exists") for token in tokens)
        if operators > MAX_OPERATORS:
            raise Refused(f"An expression has at most {MAX_OPERATORS} operators: {operators}")
        _check_parentheses(tokens, text)
        self.placeholders = frozenset(token for token in tokens if token[0] in "#:")
        self.seen = {token.upper() for place, token in enumerate(tokens) if token != "(" or _groups(tokens, place)}
        self.tests: list[tuple[Path, str, Sequence[str]]] = []
        self.last = ""
        self._text = text
        self._left = tokens[::-1]

    def peek(self, ahead: int = 0) -> str:
        return self._left[-1 - ahead] if len(self._left) > ahead else ""

    def take(self, *expected: str) -> str:
        word = self._left.pop() if self._left else ""
        if not word or (expected and word.upper() not in expected):
            raise Refused(f"Not an expression at {word!r}: {self._text!r}")
        self.last = word
        return word

    def accept(self, word: str) -> bool:
        if self.peek().upper() == word:
            self.last = self._left.pop()
            return True
        return False

    def end(self) -> None:
        if self._left:
            raise Refused(f"Not an expression at {self.peek()!r}: {self._text!r}")

    def path(self) -> Path:
        """A document path. A plain name may be no reserved word."""
        steps = [self._name()]
        while self.peek() in (".", "["):
            if self.accept("."):
                steps.append(self._name())
            else:
                self.take("[")
                steps.append(f"[{self.take()}]")
                self.take("]")
        return tuple(steps)

    def _name(self) -> str:
        name = self.take()
        if self.peek() == "(":
            raise Refused(f"{name!r} is no function that the project uses")
        if name.startswith("#"):
            return name
        if not _PLAIN_NAME.fullmatch(name):
            raise Refused(f"{name!r} cannot stand in an expression; give it a name with #")
        if name.upper() in RESERVED:
            raise Refused(f"{name!r} is a reserved word; give it a name with #")
        return name


def _split(text: str) -> Iterator[str]:
    place, text = 0, text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise Refused(f"Not an expression from {text[place:]!r} on")
        yield match[1]
        place = match.end()


def _groups(tokens: Sequence[str], place: int) -> bool:
    """Whether a parenthesis groups conditions, and opens neither a list nor a function's arguments."""
    return place == 0 or tokens[place - 1].upper() in ("AND", "OR", "NOT", "(")


def _check_parentheses(tokens: Sequence[str], expression: str) -> None:
    opened: list[int] = []
    pairs: dict[int, int] = {}
    for place, token in enumerate(tokens):
        if token == "(":
            opened.append(place)
        elif token == ")":
            if not opened:
                raise Refused(f"A parenthesis too many: {expression!r}")
            pairs[opened.pop()] = place
    if opened:
        raise Refused(f"A parenthesis is not closed: {expression!r}")
    if any(pairs.get(start + 1) == end - 1 for start, end in pairs.items()):
        raise Refused(f"Redundant parentheses: {expression!r}")


# -- conditions --------------------------------------------------------------------------------------


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
    if tokens.peek(1) == "(":
        return _function(tokens)
    path, left = _operand(tokens)
    comparison = tokens.take(*_COMPARE, "IN", "BETWEEN").upper()
    words, right = _right_side(tokens, comparison)
    tokens.tests.append((path, comparison, words))
    if comparison == "IN":
        return lambda item, words: any(_compare("=", left, choice)(item, words) for choice in right)
    if comparison == "BETWEEN":
        above, below = _compare(">=", left, right[0]), _compare("<=", left, right[1])
        return lambda item, words: above(item, words) and below(item, words)
    return _compare(comparison, left, right[0])


def _right_side(tokens: _Tokens, comparison: str) -> tuple[list[str], list[Operand]]:
    """The operands of a comparison, and their first words."""
    if comparison == "IN":
        tokens.take("(")
    operands = [_operand(tokens)]
    while comparison == "IN" and tokens.accept(","):
        operands.append(_operand(tokens))
    if comparison == "IN":
        tokens.take(")")
        if len(operands) > MAX_IN:
            raise Refused(f"IN takes at most {MAX_IN} operands: {len(operands)}")
    if comparison == "BETWEEN":
        tokens.take("AND")
        operands.append(_operand(tokens))
    return [path[0] for path, _ in operands], [operand for _, operand in operands]


def _function(tokens: _Tokens) -> Predicate:
    name = tokens.take()
    if name not in TESTS:
        raise Refused(f"{name!r} is no function that the project uses")
    tokens.take("(")
    path, operand = _operand(tokens)
    if name == "begins_with":
        tokens.take(",")
        [word, *_], prefix = _operand(tokens)
        tokens.take(")")
        tokens.tests.append((path, name, [word]))
        return lambda item, words: _text(operand(item, words)).startswith(_text(prefix(item, words)))
    tokens.take(")")
    exists = name == "attribute_exists"
    return lambda item, words: (operand(item, words) is not None) is exists


def _compare(comparison: str, left: Operand, right: Operand) -> Predicate:
    test = _COMPARE[comparison]

    def predicate(item: Item, words: Words) -> bool:
        value, other = left(item, words), right(item, words)
        if value is None or other is None or value.keys() != other.keys():
            return comparison == "<>"
        return test(comparable(value), comparable(other))

    return predicate


def _operand(tokens: _Tokens) -> tuple[Path, Operand]:
    """A path, a value or ``if_not_exists``, with the function that reads it."""
    word = tokens.peek()
    if word.startswith(":"):
        tokens.take()
        return (word,), lambda _, words: words[1][word]
    if word == "if_not_exists":
        tokens.take()
        tokens.take("(")
        path, first = _operand(tokens)
        tokens.take(",")
        _, other = _operand(tokens)
        tokens.take(")")
        return path, lambda item, words: value if (value := first(item, words)) is not None else other(item, words)
    path = tokens.path()
    return path, lambda item, words: _at(item, path, words[0])


def _at(item: Item, path: Path, names: Mapping[str, str]) -> Wire | None:
    value: Wire | None = {"M": item}
    for step in path:
        value = (value or {}).get("M", {}).get(name_of(step, names))
    return value


def name_of(step: str, names: Mapping[str, str]) -> str:
    """The name that a step of a path stands for."""
    return names[step] if step.startswith("#") else step


def _text(value: Wire | None) -> str:
    return str((value or {}).get("S", ""))


def comparable(value: Mapping[str, Any]) -> Any:
    """A value's content, in an order that is DynamoDB's: texts compare by their bytes."""
    ((kind, content),) = value.items()
    return Decimal(content) if kind == "N" else content.encode() if kind == "S" else content


# -- updates -----------------------------------------------------------------------------------------


def _set(tokens: _Tokens) -> tuple[Path, Change]:
    path = tokens.path()
    tokens.take("=")
    value = _sum(tokens)
    return path, lambda before, item, words: _put(item, path, words[0], value(before, words))


def _sum(tokens: _Tokens) -> Operand:
    _, first = _operand(tokens)
    if tokens.peek() not in ("+", "-"):
        return first
    sign = 1 if tokens.take() == "+" else -1
    _, second = _operand(tokens)
    return lambda item, words: _number(_addend(first(item, words)) + sign * _addend(second(item, words)))


def _addend(value: Wire | None) -> Decimal:
    if value is None:
        raise MissingPath
    return Decimal(value["N"])


def _number(value: Decimal) -> Wire:
    return {"N": str(value)}


def _remove(tokens: _Tokens) -> tuple[Path, Change]:
    path = tokens.path()
    return path, lambda before, item, words: _put(item, path, words[0], None)


def _add(tokens: _Tokens) -> tuple[Path, Change]:
    path = tokens.path()
    _, operand = _operand(tokens)

    def change(before: Item, item: Item, words: Words) -> None:
        more = operand(before, words)
        if more is None or "N" not in more:
            raise ValueError("only numbers are added in memory")
        value = _at(before, path, words[0]) or {"N": "0"}
        _put(item, path, words[0], _number(Decimal(value["N"]) + Decimal(more["N"])))

    return path, change


def _put(item: Item, path: Path, names: Mapping[str, str], value: Wire | None) -> None:
    """Sets, or removes, what is at a path. Maps on the way are copied: items are shared between states."""
    if any(step.startswith("[") for step in path):
        raise ValueError("no list is changed inside in memory")
    *way, last = [name_of(step, names) for step in path]
    inside: dict[str, Any] = item
    for step in way:
        if step not in inside or "M" not in inside[step]:
            raise MissingPath
        inside[step] = {"M": dict(inside[step]["M"])}
        inside = inside[step]["M"]
    if value is None:
        inside.pop(last, None)
    else:
        inside[last] = value

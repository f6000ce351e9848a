"""DynamoDB's rules for the text of an expression ("Expressions" in its developer guide). Nothing is evaluated."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

RESERVED = frozenset(ReservedKeywords.get_reserved_keywords())
MAX_BYTES = 4 * 1024
MAX_OPERATORS = 300
MAX_IN = 100
CLAUSES = ("SET", "REMOVE", "ADD", "DELETE")
_WORDS = {"AND", "OR", "NOT", "IN", "BETWEEN", *CLAUSES}
_FUNCTIONS = {
    "attribute_exists",
    "attribute_not_exists",
    "attribute_type",
    "begins_with",
    "contains",
    "size",
    "if_not_exists",
    "list_append",
}
_OPERATORS = {"AND", "OR", "NOT", "IN", "BETWEEN", "=", "<>", "<", "<=", ">", ">=", "+", "-"}
_TOKEN = re.compile(r"\s*([#:]?\w+|<>|<=|>=|[=<>(),.+\-\[\]])")
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
_PLACEHOLDER = re.compile(r"[#:]\w{1,254}")

Path = tuple[str, ...]


class Refused(AssertionError):
    """A request that AWS refuses, or a limit that it would pass in use. No code under test may catch it."""


def refuse(reason: str) -> None:
    raise Refused(reason)


@dataclass
class Words:
    """The expressions of one request and the placeholders that they may use.

    Attributes:
        used: placeholders seen in an expression so far.
    """

    names: Mapping[str, str]
    values: Mapping[str, Any]
    used: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> "Words":
        """The placeholders of a request. A map of them that is there may not be empty."""
        for name in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
            if request.get(name) == {}:
                refuse(f"{name} must not be empty")
        words = cls(request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {}))
        for placeholder in (*words.names, *words.values):
            if not _PLACEHOLDER.fullmatch(placeholder):
                refuse(f"{placeholder!r} is no placeholder")
        return words

    def read(self, expression: str) -> list[str]:
        """The tokens of an expression whose form holds."""
        size = len(expression.encode())
        if size > MAX_BYTES:
            refuse(f"An expression has at most {MAX_BYTES} bytes: {size}")
        tokens = list(_tokens(expression))
        if not tokens:
            refuse("The expression can not be empty")
        operators = sum(token.upper() in _OPERATORS or token in _FUNCTIONS for token in tokens)
        if operators > MAX_OPERATORS:
            refuse(f"An expression has at most {MAX_OPERATORS} operators: {operators}")
        for place, token in enumerate(tokens):
            self._check(token, before=tokens[place - 1] if place else "", after="".join(tokens[place + 1 : place + 2]))
        _check_parentheses(tokens, expression)
        return tokens

    def _check(self, token: str, before: str, after: str) -> None:
        if token[0] in "#:":
            known: Mapping[str, Any] = self.names if token[0] == "#" else self.values
            if token not in known:
                refuse(f"{token} is used in an expression and not defined")
            self.used.add(token)
        elif after == "(" and token.upper() not in _WORDS and token not in {"(", ",", *_OPERATORS}:
            if token not in _FUNCTIONS:
                refuse(f"{token!r} is no function")
        elif token[0].isalnum() or token[0] == "_":
            self._check_name(token, before)

    @staticmethod
    def _check_name(token: str, before: str) -> None:
        if before == "[" and token.isdigit():
            return
        # A clause's word is no name, unless it stands where only a name can.
        if token.upper() in _WORDS and before != ".":
            return
        if not _PLAIN_NAME.fullmatch(token):
            refuse(f"{token!r} cannot stand in an expression; give it a name with #")
        if token.upper() in RESERVED:
            refuse(f"{token!r} is a reserved word; give it a name with #")

    def path(self, tokens: list[str]) -> Path:
        """A document path, its placeholders replaced."""
        return tuple(self.names.get(token, token) for token in tokens if token not in {".", "[", "]"})

    def check_all_used(self) -> None:
        """Every placeholder that is defined must be used in some expression."""
        unused = sorted({*self.names, *self.values} - self.used)
        if unused:
            refuse(f"Defined and not used in any expression: {', '.join(unused)}")


def _tokens(expression: str) -> Iterator[str]:
    place = 0
    text = expression.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise Refused(f"Not an expression from {text[place:]!r} on")
        yield match[1]
        place = match.end()


def _check_parentheses(tokens: list[str], expression: str) -> None:
    opened: list[int] = []
    pairs: dict[int, int] = {}
    for place, token in enumerate(tokens):
        if token == "(":
            opened.append(place)
        elif token == ")":
            if not opened:
                refuse(f"A parenthesis too many: {expression!r}")
            pairs[opened.pop()] = place
    if opened:
        refuse(f"A parenthesis is not closed: {expression!r}")
    for start, end in pairs.items():
        if pairs.get(start + 1) == end - 1:
            refuse(f"Redundant parentheses: {expression!r}")


def split(tokens: list[str]) -> list[list[str]]:
    """Tokens between the commas that stand in no parentheses."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if token == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def clauses(tokens: list[str]) -> list[tuple[str, list[list[str]]]]:
    """An update expression's clauses and their actions."""
    found: list[tuple[str, list[str]]] = []
    for place, token in enumerate(tokens):
        if token.upper() in CLAUSES and (place == 0 or tokens[place - 1] != "."):
            if token.upper() in [name for name, _ in found]:
                refuse(f"The {token} section can only be used once in an update expression")
            found.append((token.upper(), []))
        elif found:
            found[-1][1].append(token)
        else:
            refuse(f"An update expression begins with one of {', '.join(CLAUSES)}: {token!r}")
    return [(name, split(rest)) for name, rest in found]


def check_in_lists(tokens: list[str]) -> None:
    """An IN takes at most so many operands."""
    for place, token in enumerate(tokens):
        if token.upper() == "IN" and tokens[place + 1 : place + 2] == ["("]:
            operands = split(tokens[place + 2 : tokens.index(")", place)])
            if len(operands) > MAX_IN:
                refuse(f"IN takes at most {MAX_IN} operands: {len(operands)}")


def check_betweens(tokens: list[str], values: Mapping[str, Any]) -> None:
    """The upper bound of a BETWEEN is not below the lower one, and of its type."""
    for place, token in enumerate(tokens):
        if token.upper() == "BETWEEN":
            low, high = (values.get(tokens[at], {}) for at in (place + 1, place + 3))
            if low and high and (set(low) != set(high) or _order(low) > _order(high)):
                refuse("BETWEEN needs bounds of one type, the upper one not below the lower one")


def _order(value: Mapping[str, Any]) -> Any:
    [(kind, content)] = value.items()
    return float(content) if kind == "N" else content.encode() if kind == "S" else content

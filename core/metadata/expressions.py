"""Evaluates the condition and update expressions that Weft writes, on items as DynamoDB's client has them.

Only what Weft writes is understood: ``=``, ``<=``, ``IN``, ``attribute_exists``, ``attribute_not_exists``, ``AND``,
``OR`` and parentheses in conditions; ``SET``, ``REMOVE`` and ``ADD`` of whole values in updates. Anything else raises
``ValueError``, so that no condition is passed because it was not understood.
"""

import re
from collections.abc import Mapping
from typing import Any

Wire = dict[str, Any]

_TOKEN = re.compile(r"\s*([#:]?\w+(?:\.#?\w+)*|<=|[=(),])")


def holds(condition: str, item: Wire, names: Mapping[str, str], values: Mapping[str, Wire]) -> bool:
    """Tells whether a condition holds for an item; an empty item stands for a row that does not exist."""
    tokens = _Tokens(condition)
    result = _any_of(tokens, _Item(item, names), values)
    tokens.end()
    return result


def updated(update: str, item: Wire, names: Mapping[str, str], values: Mapping[str, Wire]) -> Wire:
    """Returns an item after an update. The item itself is not changed."""
    result = _Item({name: _copied(value) for name, value in item.items()}, names)
    tokens = _Tokens(update)
    while not tokens.is_empty:
        clause = tokens.take("SET", "REMOVE", "ADD")
        more = True
        while more:
            path = tokens.take()
            if clause == "REMOVE":
                result.remove(path)
            elif clause == "SET":
                tokens.take("=")
                result.put(path, values[tokens.take()])
            else:
                result.add(path, values[tokens.take()])
            more = tokens.accept(",")
    return result.item


class _Tokens:
    """The words of an expression, taken from the left."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = _TOKEN.findall(text)[::-1]
        if "".join(self._words[::-1]) != re.sub(r"\s", "", text):
            raise ValueError(f"not an expression that Weft writes: {text!r}")

    @property
    def is_empty(self) -> bool:
        return not self._words

    def take(self, *expected: str) -> str:
        word = self._words.pop() if self._words else ""
        if not word or (expected and word not in expected):
            raise ValueError(f"not an expression that Weft writes at {word!r}: {self._text!r}")
        return str(word)

    def accept(self, word: str) -> bool:
        if self._words and self._words[-1] == word:
            self._words.pop()
            return True
        return False

    def end(self) -> None:
        if self._words:
            raise ValueError(f"not an expression that Weft writes at {self._words[-1]!r}: {self._text!r}")


class _Item:
    """An item whose attributes are found by paths such as ``#state`` or ``reserved.#1``."""

    def __init__(self, item: Wire, names: Mapping[str, str]) -> None:
        self.item = item
        self._names = names

    def _place(self, path: str) -> tuple[Wire, str]:
        """Returns the map that holds the path's last name, and that name."""
        *outer, last = (self._names[name] if name.startswith("#") else name for name in path.split("."))
        place = self.item
        for name in outer:
            place = place[name]["M"]
        return place, last

    def get(self, path: str) -> Wire | None:
        place, name = self._place(path)
        return place.get(name)

    def put(self, path: str, value: Wire) -> None:
        place, name = self._place(path)
        place[name] = value

    def remove(self, path: str) -> None:
        place, name = self._place(path)
        place.pop(name, None)

    def add(self, path: str, value: Wire) -> None:
        place, name = self._place(path)
        place[name] = {"N": str(int(place.get(name, {"N": "0"})["N"]) + int(value["N"]))}


def _copied(value: Any) -> Any:
    """Copies a value so far that paths into its maps can be changed."""
    if isinstance(value, dict) and "M" in value:
        return {"M": {name: _copied(inner) for name, inner in value["M"].items()}}
    return value


def _any_of(tokens: _Tokens, item: _Item, values: Mapping[str, Wire]) -> bool:
    result = _all_of(tokens, item, values)
    while tokens.accept("OR"):
        result = _all_of(tokens, item, values) or result
    return result


def _all_of(tokens: _Tokens, item: _Item, values: Mapping[str, Wire]) -> bool:
    result = _test(tokens, item, values)
    while tokens.accept("AND"):
        result = _test(tokens, item, values) and result
    return result


def _test(tokens: _Tokens, item: _Item, values: Mapping[str, Wire]) -> bool:
    if tokens.accept("("):
        result = _any_of(tokens, item, values)
        tokens.take(")")
        return result
    word = tokens.take()
    if word in ("attribute_exists", "attribute_not_exists"):
        tokens.take("(")
        exists = item.get(tokens.take()) is not None
        tokens.take(")")
        return exists == (word == "attribute_exists")
    attribute, comparison = item.get(word), tokens.take("=", "<=", "IN")
    if comparison == "IN":
        tokens.take("(")
        choices = [values[tokens.take()]]
        while tokens.accept(","):
            choices.append(values[tokens.take()])
        tokens.take(")")
        return attribute in choices
    value = values[tokens.take()]
    if comparison == "=":
        return attribute == value
    return attribute is not None and _sortable(attribute) <= _sortable(value)


def _sortable(value: Wire) -> Any:
    return int(value["N"]) if "N" in value else value["S"]

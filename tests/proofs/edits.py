"""Edits: changes of a function's syntax tree, each of which takes one protection out of the function.

An edit names the function itself, so that the import fails once the function has moved. In the function, the edit finds
its place by words, so that a reworded or reordered line costs nothing; `tests.proofs.trees` explains words and
templates. An edit whose place is not there exactly once, or that makes no difference, raises `LookupError`. The kinds:

- `never`, `always`, `condition`: a condition is False, True, or another one. Conditions are the tests of ``if``,
  ``while``, conditional expressions and comprehensions, the operands of ``and`` and ``or``, and what a function that
  returns ``bool`` returns.
- `becomes`: an expression is another one.
- `value`, `without`: a keyword argument, or an entry of a dictionary, has another value, or is left out.
- `skip`, `instead`: a statement is left out, or other statements are in its place. `skip` also leaves out an element of
  a list.
- `clause`: a condition expression of DynamoDB does not look at an attribute.
- `parameter`: an argument of the function has another value, whatever the caller passes.
"""

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from tests.proofs.trees import (
    conditions,
    contains,
    expressions,
    field,
    filled,
    filled_statements,
    only,
    replace,
    smallest,
    steps,
)

_ALL_ROWS = "attribute_exists(pk)"


@dataclass(frozen=True)
class Edit:
    """A change of one function.

    Attributes:
        source: the function's text, as it was when the mutants were imported: a run takes minutes, and the file may
            change while it lasts.
        change: changes the function's syntax tree, which has no docstring.
    """

    function: FunctionType
    source: str
    change: Callable[[ast.FunctionDef], None]

    def __call__(self, tree: ast.FunctionDef) -> None:
        """Changes the tree in place.

        Raises:
            LookupError: the place is not there exactly once, or the change makes no difference.
        """
        before = ast.dump(tree)
        try:
            self.change(tree)
        except LookupError as error:
            raise LookupError(f"{self.function.__module__}:{self.function.__qualname__}: {error}") from None
        if ast.dump(tree) == before:
            raise LookupError(f"{self.function.__qualname__} is not changed")


# -- kinds of edits --------------------------------------------------------------------------------


def never(function: Callable[..., Any], words: str) -> Edit:
    """The condition with the words is False."""
    return condition(function, words, "False")


def always(function: Callable[..., Any], words: str) -> Edit:
    """The condition with the words is True."""
    return condition(function, words, "True")


def condition(function: Callable[..., Any], words: str, template: str) -> Edit:
    """The condition with the words becomes another condition."""

    def change(tree: ast.FunctionDef) -> None:
        found = smallest(conditions(tree), words)
        replace(tree, found, filled(template, found))

    return _edit(function, change)


def becomes(function: Callable[..., Any], words: str, template: str) -> Edit:
    """The smallest expression with the words becomes another expression."""

    def change(tree: ast.FunctionDef) -> None:
        found = smallest(expressions(tree), words)
        replace(tree, found, filled(template, found))

    return _edit(function, change)


def value(function: Callable[..., Any], name: str, template: str, *, of: str = "") -> Edit:
    """The keyword argument, or the entry of a dictionary, with the name has another value.

    Args:
        of: words of the call or the dictionary; needed where several have the name.
    """

    def change(tree: ast.FunctionDef) -> None:
        owner, number = field(tree, name, of)
        if isinstance(owner, ast.Call):
            owner.keywords[number].value = filled(template, owner.keywords[number].value)
        else:
            owner.values[number] = filled(template, owner.values[number])

    return _edit(function, change)


def without(function: Callable[..., Any], name: str, *, of: str = "") -> Edit:
    """The keyword argument, or the entry of a dictionary, with the name is left out. ``of`` is as for `value`."""

    def change(tree: ast.FunctionDef) -> None:
        owner, number = field(tree, name, of)
        if isinstance(owner, ast.Call):
            del owner.keywords[number]
        else:
            del owner.keys[number], owner.values[number]

    return _edit(function, change)


def skip(function: Callable[..., Any], words: str) -> Edit:
    """The smallest statement, or element of a list, with the words is left out."""
    return instead(function, words, "pass")


def instead(function: Callable[..., Any], words: str, statements: str) -> Edit:
    """Other statements are in the place of the smallest one with the words, for which ``_`` stands among them."""

    def change(tree: ast.FunctionDef) -> None:
        found = smallest(steps(tree), words)
        replace(tree, found, filled_statements(statements, found) if isinstance(found, ast.stmt) else None)

    return _edit(function, change)


def clause(function: Callable[..., Any], attribute: str) -> Edit:
    """The condition expression of DynamoDB with a clause on the attribute loses this clause.

    A condition that has no other clause then demands that the row exists.
    """
    names = inspect.unwrap(function).__globals__

    def change(tree: ast.FunctionDef) -> None:
        texts = {node: text for node in expressions(tree) if (text := _text(node, names)) is not None}
        nodes = [node for node, text in texts.items() if _has_clause(text, attribute)]
        whole = [node for node in nodes if not any(contains(other, node) for other in nodes)]
        found = only(whole, f"a clause on {attribute}")
        replace(tree, found, ast.Constant(_without_clause(texts[found], attribute)))

    return _edit(function, change)


def parameter(function: Callable[..., Any], name: str, expression: str) -> Edit:
    """The function's argument with the name has the expression's value, whatever the caller passes."""

    def change(tree: ast.FunctionDef) -> None:
        if name not in {node.arg for node in ast.walk(tree.args) if isinstance(node, ast.arg)}:
            raise LookupError(f"no argument {name}")
        tree.body[:0] = ast.parse(f"{name} = {expression}").body

    return _edit(function, change)


def _edit(function: Callable[..., Any], change: Callable[[ast.FunctionDef], None]) -> Edit:
    """An edit of a function, or of the function behind a method and its decorators."""
    plain = inspect.unwrap(getattr(function, "__func__", function))
    if not isinstance(plain, FunctionType):
        raise TypeError(f"{function} is no function")
    return Edit(plain, inspect.getsource(plain), change)


# -- condition expressions of DynamoDB -------------------------------------------------------------


def _text(expression: ast.expr, names: dict[str, Any]) -> str | None:
    """The text of an expression that is made of constants and of names of the module's constants; else None."""
    match expression:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name) if isinstance(names.get(name), str):
            return str(names[name])
        case ast.FormattedValue(value=inner):
            return _text(inner, names)
        case ast.JoinedStr(values=parts):
            texts = [_text(part, names) for part in parts]
            return None if None in texts else "".join(text or "" for text in texts)
    return None


def _has_clause(text: str, attribute: str) -> bool:
    return any(_is_on(part, attribute) for part in text.split(" AND "))


def _without_clause(text: str, attribute: str) -> str:
    left = " AND ".join(part for part in text.split(" AND ") if not _is_on(part, attribute))
    return left or ("" if text.startswith(" AND ") else _ALL_ROWS)


def _is_on(part: str, attribute: str) -> bool:
    return re.match(rf"#?{attribute} [=<>]", part) is not None

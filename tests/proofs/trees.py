"""Syntax trees of functions: finds a place by words and puts a template's expression in that place.

**Words.** ``"number < version"`` stands for the smallest place that contains each of these words, in any order. Words
are names, attributes, names of arguments, string constants and the words in them, other constants, and operators.
``purge()`` is a call of ``purge``. ``~hidden`` is a word that the place must not contain. Leading underscores do not
count.

**Templates.** In the text of a new expression, ``_`` stands for the expression that it replaces, and ``_1``, ``_2``, …
for the parts of that expression: the arguments of a call, the operands of an operator, the elements of a tuple. ``_0``
is the object whose method is called, or the value that is subscripted.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)

_SIGNS: dict[type[ast.AST], str] = {
    ast.And: "and",
    ast.Or: "or",
    ast.Not: "not",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


# -- places ----------------------------------------------------------------------------------------


def conditions(tree: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yields the conditions of a function: tests, operands of ``and`` and ``or``, and answers of type ``bool``."""
    answers = isinstance(tree.returns, ast.Name) and tree.returns.id == "bool"
    for node in ast.walk(tree):
        match node:
            case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
                yield node.test
            case ast.comprehension():
                yield from node.ifs
            case ast.BoolOp():
                yield from node.values
            case ast.Return(value=ast.expr() as answer) if answers:
                yield answer


def expressions(tree: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yields the expressions in a function's body whose value is read."""
    for statement in tree.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                yield node


def steps(tree: ast.FunctionDef) -> Iterator[ast.stmt | ast.expr]:
    """Yields the statements in a function's body, and the elements of its lists and tuples."""
    for statement in tree.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.stmt):
                yield node
            elif isinstance(node, ast.List | ast.Tuple):
                yield from node.elts


def field(tree: ast.FunctionDef, name: str, of: str) -> tuple[ast.Call | ast.Dict, int]:
    """Finds a keyword argument, or an entry of a dictionary, by its name.

    Args:
        of: words of the call or the dictionary.

    Returns:
        The call or the dictionary, and the field's index in it.

    Raises:
        LookupError: there is no such field, or more than one.
    """
    owners = [node for node in ast.walk(tree) if isinstance(node, ast.Call | ast.Dict) and name in _fields(node)]
    owner = smallest(owners, f"{name} {of}")
    return owner, _fields(owner).index(name)


def _fields(owner: ast.Call | ast.Dict) -> list[Any]:
    if isinstance(owner, ast.Call):
        return [keyword.arg for keyword in owner.keywords]
    return [key.value if isinstance(key, ast.Constant) else None for key in owner.keys]


def smallest(nodes: Iterable[Node], words: str) -> Node:
    """The node that contains the words and no smaller node with the words.

    Raises:
        LookupError: there is no such node, or more than one.
    """
    wanted = {_bare(word) for word in words.split() if not _is_excluded(word)}
    unwanted = {_bare(word[1:]) for word in words.split() if _is_excluded(word)}
    fitting = [node for node in nodes if wanted <= (held := _words(node)) and not unwanted & held]
    return only([node for node in fitting if not any(contains(node, other) for other in fitting)], words)


def only(nodes: list[Node], words: str) -> Node:
    """The one node of a list.

    Raises:
        LookupError: the list has no node, or more than one.
    """
    if len(nodes) != 1:
        raise LookupError(f"{len(nodes)} places for {words!r}: {[ast.unparse(node) for node in nodes]}")
    return nodes[0]


def contains(node: ast.AST, other: ast.AST) -> bool:
    """Whether another node is inside a node."""
    return node is not other and any(each is other for each in ast.walk(node))


def _is_excluded(word: str) -> bool:
    return word.startswith("~") and len(word) > 1


def _bare(word: str) -> str:
    return word.lstrip("_") or word


def _words(node: ast.AST) -> set[str]:
    found: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)) | ast.arg(arg=name):
                found.add(name)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                found.add(f"{name}()")
            case ast.Constant(value=str(text)):
                found |= {text, *re.findall(r"\w+", text)}
            case ast.Constant(value=constant):
                found.add(repr(constant))
            case _:
                found.add(_SIGNS.get(type(each), ""))
    return {_bare(word) for word in found}


# -- replacement -----------------------------------------------------------------------------------


class _Replacing(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST | list[ast.stmt] | None) -> None:
        self._old = old
        self._new = new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else self.generic_visit(node)


def replace(tree: ast.AST, old: ast.AST, new: ast.AST | list[ast.stmt] | None) -> None:
    """Puts a new node, or statements, in the place of a node of a tree; None takes the node out of its list."""
    _Replacing(old, new).visit(tree)


class _Filling(ast.NodeTransformer):
    def __init__(self, parts: dict[str, ast.AST]) -> None:
        self._parts = parts

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._parts:
            return deepcopy(self._parts[node.id])
        if re.fullmatch(r"_\d*", node.id):
            raise LookupError(f"the expression has no part {node.id}")
        return node


def filled(template: str, original: ast.expr) -> ast.expr:
    """The expression of a template that replaces an expression.

    Raises:
        LookupError: the template names a part that the expression does not have.
    """
    parts: dict[str, ast.AST] = {f"_{number}": part for number, part in enumerate(_parts(original), start=1)}
    match original:
        case ast.Call(func=ast.Attribute(value=owner)) | ast.Subscript(value=owner):
            parts["_0"] = owner
    expression: ast.expr = _Filling(parts | {"_": original}).visit(ast.parse(template, mode="eval").body)
    return expression


def _parts(expression: ast.expr) -> list[ast.expr]:
    match expression:
        case ast.Call(args=parts) | ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            return parts
        case ast.BinOp(left, _, right):
            return [left, right]
        case ast.Compare(left, _, others):
            return [left, *others]
    return []


def filled_statements(template: str, original: ast.stmt) -> list[ast.stmt]:
    """The statements of a template in which ``_`` stands for the statement that they replace."""
    module = ast.parse(template)
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id == "_":
            replace(module, node, deepcopy(original))
    return module.body

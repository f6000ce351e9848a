"""Mutants: the engine with one protection switched off, for a block and in this process alone."""

import __future__

import ast
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any
from unittest.mock import patch

from core.metadata.dynamo import Action, Table
from tests.proofs.edits import Edit
from tests.proofs.probes import Probe


class Mutant:
    """The engine without one protection.

    Args:
        name: a sentence that says what the engine no longer does.
        edits: what takes the protection out. There are several where one protection stands behind another, so that no
            proof sees that one of them alone is gone.
        probes: pieces of proofs that are tried first; after them, all are.
        vectors: the vector store that the protection belongs to; empty: it belongs to none.
    """

    def __init__(self, name: str, *edits: Edit, probes: Sequence[Probe], vectors: str = "") -> None:
        self.name = name
        self.edits = edits
        self.probes = probes
        self.vectors = vectors


@contextmanager
def switched_off(mutant: Mutant) -> Iterator[None]:
    """Runs the block with the mutant in the engine's place. Calls from other threads meet it too.

    Raises:
        LookupError: an edit does not apply to the engine's code as it is now. The message says which and why.
    """
    edits: defaultdict[FunctionType, list[Edit]] = defaultdict(list)
    for edit in mutant.edits:
        edits[edit.function].append(edit)
    codes = {function: _edited(function, changes) for function, changes in edits.items()}
    originals = {function: function.__code__ for function in codes}
    try:
        for function, code in codes.items():
            function.__code__ = code
        with _values_in_use():
            yield
    finally:
        for function, code in originals.items():
            function.__code__ = code


@contextmanager
def _values_in_use() -> Iterator[None]:
    """Leaves out the named values that no expression uses, for DynamoDB refuses them.

    A mutant whose condition has lost a clause still passes the clause's values.
    """
    wire = Table._wire

    def wire_in_use(table: Table, action: Action) -> Any:
        expressions = f"{action.update} {action.condition}"
        in_use = {name: value for name, value in action.values.items() if re.search(rf":{name}\b", expressions)}
        return wire(table, replace(action, values=in_use))

    with patch.object(Table, "_wire", wire_in_use):
        yield


def _edited(function: FunctionType, edits: Sequence[Edit]) -> CodeType:
    """The code of a function with edits.

    Raises:
        LookupError: an edit does not apply.
    """
    [tree] = ast.parse(textwrap.dedent(edits[0].source)).body
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(f"{function.__qualname__} is not made by def")
    # The code alone is taken over, so decorators and defaults stay as they are.
    tree.decorator_list = []
    tree.args.defaults = [ast.Constant(None) for _ in tree.args.defaults]
    tree.args.kw_defaults = [default and ast.Constant(None) for default in tree.args.kw_defaults]
    if ast.get_docstring(tree) is not None:
        del tree.body[0]
    _Pairwise().visit(tree)
    for edit in edits:
        edit(tree)
    module = ast.fix_missing_locations(ast.Module([tree], []))
    flags = __future__.annotations.compiler_flag
    names = dict(function.__globals__)
    exec(compile(module, function.__code__.co_filename, "exec", flags=flags, dont_inherit=True), names)
    changed: FunctionType = names[function.__name__]
    return changed.__code__


class _Pairwise(ast.NodeTransformer):
    """Makes ``a == c and b == d`` of ``(a, b) == (c, d)``, so that each pair is a condition of its own."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        match node:
            case ast.Compare(ast.Tuple(left), [ast.Eq() | ast.NotEq()], [ast.Tuple(right)]) if len(left) == len(right):
                operator = ast.And() if isinstance(node.ops[0], ast.Eq) else ast.Or()
                pairs = zip(left, right, strict=True)
                return ast.BoolOp(operator, [ast.Compare(one, node.ops, [other]) for one, other in pairs])
        return node

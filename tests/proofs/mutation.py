"""How a protection is switched off: a function of the engine is made anew from its own text, with one piece changed.

It lasts for a block, in this process alone. The piece must be there, once: a mutant of code that has changed is an
error, and not a protection that was tried.
"""

import __future__

import inspect
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from tests.proofs.probes import Probe


@dataclass(frozen=True)
class Mutant:
    """A protection switched off.

    Attributes:
        where: the function, as ``module:name``.
        old, new: the piece of its text, and what takes its place.
        probes: the pieces of proofs that are tried first; then all are.
        more: further edits: where one protection stands behind another, neither is seen to be gone alone.
        vectors: the vector store that it is of; empty: of none.
    """

    name: str
    where: str
    old: str
    new: str
    probes: tuple[Probe, ...] = ()
    more: tuple[tuple[str, str, str], ...] = ()
    vectors: str = ""


@contextmanager
def switched_off(mutant: Mutant) -> Iterator[None]:
    """The engine without a protection.

    Raises:
        LookupError: the piece of text is not there, or not once.
    """
    edits: dict[str, list[tuple[str, str]]] = {}
    for where, old, new in ((mutant.where, mutant.old, mutant.new), *mutant.more):
        edits.setdefault(where, []).append((old, new))
    changed = [(_function(where), _edited(where, some)) for where, some in edits.items()]
    originals = [(function, function.__code__) for function, _ in changed]
    try:
        for function, code in changed:
            function.__code__ = code
        yield
    finally:
        for function, code in originals:
            function.__code__ = code


def _edited(where: str, edits: Sequence[tuple[str, str]]) -> CodeType:
    """A function's code with pieces of its text changed."""
    function = _function(where)
    lines = textwrap.dedent(inspect.getsource(function)).splitlines(keepends=True)
    while lines[0].startswith("@"):
        lines.pop(0)
    source = "".join(lines)
    for old, new in edits:
        if source.count(old) != 1:
            raise LookupError(f"{where} holds {old!r} {source.count(old)} times")
        source = source.replace(old, new)
    names = dict(function.__globals__)
    code = compile(source, where, "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
    exec(code, names)  # the engine's own text, with a piece changed
    edited: FunctionType = names[function.__name__]
    return edited.__code__


def _function(where: str) -> FunctionType:
    module, _, path = where.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = inspect.getattr_static(found, name)
    function = getattr(found, "__func__", found)
    if not isinstance(function, FunctionType):
        raise TypeError(f"{where} is no function")
    return function

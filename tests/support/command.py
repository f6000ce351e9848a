"""What the command lines of proofs and benchmarks share: options, progress, and the last line."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")


def parser(
    description: str | None, *, prog: str | None = None, vectors: Sequence[str] = ("embedded", "opensearch")
) -> argparse.ArgumentParser:
    """The options that every one of them has.

    Args:
        prog: how it is called.
        vectors: the vector stores that it can be asked for, the default first; none takes part when there is none.
    """
    options = argparse.ArgumentParser(prog=prog, description=description)
    options.add_argument("--seed", type=int, default=0, help="of everything that is drawn")
    options.add_argument("--rounds", type=int, default=1, help="more work")
    options.add_argument("--json", action="store_true", help="print nothing but the last line")
    if vectors:
        options.add_argument("--vectors", choices=vectors, default=vectors[0], help="the vector store")
    return options


def progress(items: Iterable[T], what: str, total: float | None = None) -> Iterable[T]:
    """The items; a terminal sees how far it is."""
    console = Console(stderr=True)
    return track(items, what, total=total, console=console, disable=not console.is_terminal, transient=True)


def finish(answer: dict[str, Any], *, held: bool, quiet: bool, show: Callable[[], None] | None = None) -> None:
    """Prints the answer as one JSON object, the last line, and ends: with 0 when every promise held, else with 1.

    Args:
        quiet: nothing but the last line.
        show: prints what a person reads.
    """
    if show is not None and not quiet:
        show()
    print(json.dumps(answer))
    sys.exit(0 if held else 1)

"""The command line of every proof: options, progress, the last line, the exit code."""

import itertools
import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any, TypeVar

from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.types import VectorStore
from infra.opensearch.server import running_server
from tests.support.command import parser
from tests.support.opensearch import store_on

Item = TypeVar("Item")
Answer = TypeVar("Answer")

HELD, BROKEN, NOT_RUN = 0, 1, 2

_numbers = itertools.count()

STORES: dict[str, Callable[[str], VectorStore]] = {
    "embedded": lambda server: EmbeddedVectorStore(None),
    # Each store has indexes of its own, so that worlds that run at the same time do not meet.
    "opensearch": lambda server: store_on(server, prefix=f"proof-{os.getpid()}-{next(_numbers)}"),
}
"""The vector stores that a proof can run on, by their name in ``--vectors``."""
ALL = "all"


@dataclass(frozen=True)
class Options:
    """The options of a proof.

    Attributes:
        rounds: the amount of work; 1 is the full size.
        quiet: whether only the last line is printed.
        processes: how many processes share the work.
        server: the URL of the vector store's server, if the store has one.
        room: the room of the code whose mutants are tried; empty: all rooms. Other proofs have no rooms.
    """

    seed: int = 0
    rounds: int = 1
    vectors: str = "embedded"
    quiet: bool = False
    processes: int = 1
    server: str = ""
    room: str = ""

    def store(self) -> VectorStore:
        return STORES[self.vectors](self.server)

    def of_each_store(self) -> "list[Options]":
        """The same options for each vector store that is to be tried."""
        names = sorted(STORES) if self.vectors == ALL else [self.vectors]
        return [replace(self, vectors=name) for name in names]

    def share(self, full: float = 1.0) -> float:
        """The share of a proof that is tried on the vector store: a server answers much slower than this process."""
        return full if self.vectors == "embedded" else full / 20


Report = dict[str, Any]
"""A proof's last line: the keys that its docstring explains, and ``broken``, the first problems of each kind."""


def main(
    name: str,
    prove: Callable[[Options, Callable[[str], None]], Report],
    *,
    held: Callable[[Report], bool],
    every_store: bool = False,
    rooms: Sequence[str] = (),
) -> None:
    """Runs a proof as a program.

    Args:
        every_store: whether the proof tries all stores when none is named.
        rooms: the rooms of the code of which one can be chosen.

    Ends the process: 0 when every promise held, 1 when one was broken, 2 when it could not run.
    """
    options = _options(name, rooms, every_store=every_store)
    hush()
    started = time.monotonic()
    try:
        with _server(options) as url:
            report = prove(replace(options, server=url), _progress(options))
    except Exception:  # noqa: BLE001 - after any error the proof could not run
        traceback.print_exc()
        sys.exit(NOT_RUN)
    report.setdefault("seconds", round(time.monotonic() - started, 1))
    if not options.quiet:
        for each in report.get("broken", []):
            print(each)
    print(json.dumps(report))
    sys.exit(HELD if held(report) else BROKEN)


@contextmanager
def _server(options: Options) -> Iterator[str]:
    """Runs the server that the vector store needs; answers its URL, empty where the store needs no server."""
    if options.vectors == "embedded":
        yield ""
        return
    with running_server(say=_progress(options)) as server:
        yield server.url


def hush() -> None:
    """Silences the log of this process: a proof causes the failures that the engine would report."""
    logging.disable(logging.ERROR)


def _options(name: str, rooms: Sequence[str], *, every_store: bool) -> Options:
    stores = [ALL, *sorted(STORES)] if every_store else sorted(STORES)
    known = parser(None, prog=f"python -m tests.proofs.{name}", vectors=stores)
    if rooms:
        known.add_argument("--room", choices=rooms, default="", help="the room whose mutants are tried, instead of all")
    given = known.parse_args()
    room = given.room if rooms else ""
    return Options(given.seed, given.rounds, given.vectors, given.json, processes=os.cpu_count() or 1, room=room)


def _progress(options: Options) -> Callable[[str], None]:
    """A function that shows on a terminal how far a proof is."""
    if options.quiet or not sys.stderr.isatty():
        return lambda line: None
    return lambda line: print(f"\r\033[K{line[:100]}", end="", file=sys.stderr, flush=True)


def spread(
    work: Callable[[Item], Answer], items: Sequence[Item], processes: int, tell: Callable[[str], None]
) -> Iterator[Answer]:
    """Does work on every item, in several processes where that is asked for. The answers come in order of the items."""
    answers: Iterable[Answer]
    if processes <= 1 or len(items) <= 1:
        answers = map(work, items)
        yield from _counted(answers, len(items), tell)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=hush) as pool:
        yield from _counted(pool.map(work, items), len(items), tell)


def _counted(answers: Iterable[Answer], total: int, tell: Callable[[str], None]) -> Iterator[Answer]:
    for number, answer in enumerate(answers, 1):
        tell(f"{number} of {total}")
        yield answer
    tell("")

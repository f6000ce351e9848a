"""What every proof's command line shares: options, progress, the last line, the exit code."""

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
    # Indexes of its own for each store, so that worlds beside one another do not meet.
    "opensearch": lambda server: store_on(server, prefix=f"proof-{os.getpid()}-{next(_numbers)}"),
}
"""The vector stores that a proof can run on. One more is one more line."""
ALL = "all"


@dataclass(frozen=True)
class Options:
    """What a proof was asked for.

    Attributes:
        rounds: how much work; 1 is the full size.
        quiet: only the last line is printed.
        server: the URL of the vector store's server, where it has one.
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
        """The same for each store that was asked for."""
        names = sorted(STORES) if self.vectors == ALL else [self.vectors]
        return [replace(self, vectors=name) for name in names]

    def share(self, full: float = 1.0) -> float:
        """How much of all there is is tried: a server answers much slower than this process."""
        return full if self.vectors == "embedded" else full / 20


Report = dict[str, Any]
"""A proof's last line: the keys that design/proofs names, and ``broken``: what was seen, a few of each."""


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
        every_store: it tries all stores unless one is named.
        rooms: the rooms of the code of which one can be chosen.

    Ends the process: 0 when every promise held, 1 when one was broken, 2 when it could not run.
    """
    options = _options(name, rooms, every_store=every_store)
    hush()
    started = time.monotonic()
    try:
        with _server(options) as url:
            report = prove(replace(options, server=url), _progress(options))
    except Exception:  # noqa: BLE001 - whatever it was, the proof could not run
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
    """The URL of the server that the vector store needs; empty: it needs none."""
    if options.vectors == "embedded":
        yield ""
        return
    with running_server(say=_progress(options)) as server:
        yield server.url


def hush() -> None:
    """What the engine says of failures is no news here: they are made on purpose."""
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
    """Says how far a proof is, on a terminal only."""
    if options.quiet or not sys.stderr.isatty():
        return lambda line: None
    return lambda line: print(f"\r\033[K{line[:100]}", end="", file=sys.stderr, flush=True)


def spread(
    work: Callable[[Item], Answer], items: Sequence[Item], processes: int, tell: Callable[[str], None]
) -> Iterator[Answer]:
    """Does work on every item, in several processes when there is more than one; answers in any order."""
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

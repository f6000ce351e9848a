"""Pieces of proofs, to be pointed at a mutant: each looks where its protection matters."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from core.model.query import RetrieveQuery
from core.model.tenant import Tenant
from tests.proofs import (
    citations,
    explain,
    interference,
    isolation,
    late_writers,
    operations,
    races,
    ready,
    reconcile,
    redelivery,
    scripts,
)
from tests.proofs.command import Options
from tests.proofs.crash import try_operation
from tests.proofs.harness import TENANT, World
from tests.proofs.judge import Problem
from tests.proofs.storms import try_storms
from tests.proofs.tally import Tally

Probe = Callable[[Options], Iterator[Tally]]
"""A piece of a proof, some tallies at a time."""

STORMS_AT_ONCE = 50


def race(name: str, limit: int = 80) -> Probe:
    """Races whose name holds a text."""

    def probe(options: Options) -> Iterator[Tally]:
        for pair in races.pairs():
            if name in pair.name:
                yield races.try_pair(pair, options, limit)

    return probe


def cut(name: str, share: float = 1.0) -> Probe:
    """Cuts of the operations whose name holds a text."""

    def probe(options: Options) -> Iterator[Tally]:
        for operation in operations.OPERATIONS:
            if name in operation.name:
                yield try_operation(operation, options, share)

    return probe


def late(name: str, share: float = 1.0) -> Probe:
    """Late writers whose name holds a text."""

    def probe(options: Options) -> Iterator[Tally]:
        for writer in late_writers.WRITERS:
            if name in writer.name:
                yield late_writers.try_writer(writer, options, share)

    return probe


def script(name: str = "") -> Probe:
    """Scripted races whose name holds a text."""

    def probe(options: Options) -> Iterator[Tally]:
        for one in scripts.SCRIPTS:
            if name in one.name:
                yield scripts.try_script(one, options)

    return probe


def storms(number: int) -> Probe:
    """So many storms."""

    def probe(options: Options) -> Iterator[Tally]:
        for batch in range(number // STORMS_AT_ONCE):
            yield try_storms(options.store(), f"{options.seed}-{batch}", STORMS_AT_ONCE)

    return probe


def foreign(options: Options) -> Iterator[Tally]:
    """A vector store that answers with another tenant's record: no answer may hold it."""
    world = World(options.store(), options.seed)
    scene = operations.serving()(world)
    search = world.mirror.store.search
    tally = Tally()

    def astray(tenant: Any, space: Any, query: Any) -> Any:
        return [replace(match, tenant=Tenant("globex")) for match in search(tenant, space, query)]

    world.mirror.store.search = astray  # type: ignore[method-assign]  # this one store goes astray
    try:
        answer = world.plain.engine.retrieve(TENANT, RetrieveQuery(query="text", collections=[scene.collection]))
        tally.add("a store gone astray", [Problem("mixed", f"{len(answer.hits)} hits of another tenant's")])
    except RuntimeError:
        tally.add("a store gone astray", [])
    finally:
        world.close()
    yield tally


def redelivered(options: Options) -> Iterator[Tally]:
    """Events of a few objects, with handlers that live and with some that die."""
    for part in range(3):
        for deadly in (False, True):
            yield redelivery.try_objects(options, f"part {part}", redelivery.AT_ONCE, deadly=deadly).tally


def repaired(options: Options) -> Iterator[Tally]:
    """A few small collections that are damaged and reconciled."""
    yield reconcile.try_small(options, 3, lambda line: None)


def isolated(options: Options) -> Iterator[Tally]:
    """A few tenants that try to reach one another's things."""
    yield isolation.try_store(options, 12, 300, lambda line: None)[0]


def cited(options: Options) -> Iterator[Tally]:
    """Questions to small libraries."""
    for part in range(4):
        yield citations.try_part(options, 5, 16, part).tally


def explained(options: Options) -> Iterator[Tally]:
    """Questions to small libraries."""
    for part in range(4):
        yield explain.try_part(options, 100, 40, part).tally


def reasoned(name: str) -> Probe:
    """Made situations whose name holds a text."""

    def probe(options: Options) -> Iterator[Tally]:
        yield explain.try_cases(options, explain.cases(name))

    return probe


def readied(options: Options) -> Iterator[Tally]:
    """A few pairs of ingest and retrieve."""
    yield from (worker.tally for worker in ready.try_store(options, 64, lambda line: None))


def beside(options: Options) -> Iterator[Tally]:
    """Questions of a small tenant beside a larger one."""
    yield from interference.try_store(options, 150, 40, 40, lambda line: None)


EVERYTHING: tuple[Probe, ...] = (
    script(),
    cut("", 0.02),
    late("", 0.05),
    storms(100),
    race("", 6),
    late("", 0.3),
    cut("", 0.2),
    storms(500),
    race("", 40),
    foreign,
)

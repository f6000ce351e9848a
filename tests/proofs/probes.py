"""Probes: pieces of proofs, each of which is tried on a mutant where its protection matters."""

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
    sweep,
)
from tests.proofs.command import Options
from tests.proofs.crash import try_operation
from tests.proofs.harness import TENANT, World
from tests.proofs.storms import try_storms
from tests.proofs.tally import Tally
from tests.support.books import Problem

Probe = Callable[[Options], Iterator[Tally]]
"""Runs a piece of a proof and yields its tallies. A mutant is killed by the first tally with a problem."""

STORMS_AT_ONCE = 50


def race(name: str, limit: int = 80) -> Probe:
    """The races whose names hold a text, each in at most ``limit`` interleavings."""

    def probe(options: Options) -> Iterator[Tally]:
        for pair in races.pairs():
            if name in pair.name:
                yield races.try_pair(pair, options, limit)

    return probe


def cut(name: str, share: float = 1.0) -> Probe:
    """A share of the cuts of the operations whose names hold a text."""

    def probe(options: Options) -> Iterator[Tally]:
        for operation in operations.OPERATIONS:
            if name in operation.name:
                yield try_operation(operation, options, share)

    return probe


def late(name: str, share: float = 1.0) -> Probe:
    """A share of the cases of the late writers whose names hold a text."""

    def probe(options: Options) -> Iterator[Tally]:
        for writer in late_writers.WRITERS:
            if name in writer.name:
                yield late_writers.try_writer(writer, options, share)

    return probe


def script(name: str = "") -> Probe:
    """The scripted races whose names hold a text."""

    def probe(options: Options) -> Iterator[Tally]:
        for scripted in scripts.SCRIPTS:
            if name in scripted.name:
                yield scripts.try_script(scripted, options)

    return probe


def storms(number: int) -> Probe:
    """A number of storms: crowds of processes on one collection."""

    def probe(options: Options) -> Iterator[Tally]:
        for batch in range(number // STORMS_AT_ONCE):
            yield try_storms(options.store(), f"{options.seed}-{batch}", STORMS_AT_ONCE)

    return probe


def foreign(options: Options) -> Iterator[Tally]:
    """A retrieve whose vector store answers with another tenant's records, none of which may be in the answer."""
    world = World(options.store(), options.seed)
    scene = operations.serving()(world)
    search = world.mirror.store.search
    tally = Tally()

    def search_of_another_tenant(tenant: Any, space: Any, query: Any) -> Any:
        return [replace(match, tenant=Tenant("globex")) for match in search(tenant, space, query)]

    world.mirror.store.search = search_of_another_tenant  # type: ignore[method-assign]  # of this store alone
    try:
        answer = world.engine.retrieve(TENANT, RetrieveQuery(query="text", collections=[scene.collection]))
        tally.add(
            "a store that answers with another tenant's records",
            [Problem("mixed", f"{len(answer.hits)} hits of another tenant's")],
        )
    except RuntimeError:
        tally.add("a store that answers with another tenant's records", [])
    finally:
        world.close()
    yield tally


def redelivered(options: Options) -> Iterator[Tally]:
    """The events of a few objects, with handlers that live and with handlers of which some die.

    Handlers run in threads, so a part that finds a mistake in one run can miss it in another: there are many parts.
    """
    for part in range(8):
        for deadly in (False, True):
            yield redelivery.try_objects(options, f"part {part}", redelivery.AT_ONCE, deadly=deadly).tally


def repaired(options: Options) -> Iterator[Tally]:
    """The reconcile of a few small collections that were damaged."""
    yield reconcile.try_small(options, 3, lambda line: None)


def stuck(options: Options) -> Iterator[Tally]:
    """Sweeps over documents of which the oldest cannot be cleaned."""
    tally = Tally()
    tally.add("the oldest documents cannot be cleaned", sweep.stuck_problems())
    yield tally


def isolated(options: Options) -> Iterator[Tally]:
    """Requests of a few tenants that try to reach what belongs to another tenant."""
    yield isolation.try_store(options, 12, 300, lambda line: None)[0]


def cited(options: Options) -> Iterator[Tally]:
    """Contexts for questions to small libraries, whose citations are compared with the documents."""
    for part in range(4):
        yield citations.try_part(options, 5, 16, part).tally


def explained(options: Options) -> Iterator[Tally]:
    """Answers to questions to small libraries, whose order is computed again from the figures in the answer."""
    for part in range(4):
        yield explain.try_part(options, 100, 40, part).tally


def reasoned(name: str) -> Probe:
    """Answers with few hits, in the made situations whose names hold a text, whose reasons are compared."""

    def probe(options: Options) -> Iterator[Tally]:
        yield explain.try_cases(options, explain.cases(name))

    return probe


def readied(options: Options) -> Iterator[Tally]:
    """A few ingests, each followed by a retrieve that must find the document."""
    yield from (worker.tally for worker in ready.try_store(options, 64, lambda line: None))


def beside(options: Options) -> Iterator[Tally]:
    """Questions of a small tenant, whose answers must not change with what a larger tenant has."""
    yield from interference.try_store(options, 150, 40, 40, lambda line: None)


LATE = late("", 0.3)
EVERYTHING: tuple[Probe, ...] = (
    script(),
    cut("", 0.02),
    late("", 0.05),
    storms(100),
    race("", 6),
    LATE,
    cut("", 0.2),
    storms(500),
    race("", 40),
    foreign,
)
"""What is tried on a mutant that its own probes let live."""

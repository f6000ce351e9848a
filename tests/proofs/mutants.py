"""Tries every mutant: the engine with one protection switched off, in this process alone, must turn a proof red.

The mutants of a room of the code stand with the room's tests, in ``tests/ROOM/mutants.py``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.catalog import mutants as catalog
from tests.deletion import mutants as deletion
from tests.events import mutants as events
from tests.http import mutants as http
from tests.ingest import mutants as ingest
from tests.loading import mutants as loading
from tests.metadata import mutants as metadata
from tests.proofs.command import ALL, Options, Report, main, spread
from tests.proofs.mutation import Mutant, switched_off
from tests.proofs.probes import EVERYTHING, Probe
from tests.protocol import mutants as protocol
from tests.ranking import mutants as ranking
from tests.recovery import mutants as recovery
from tests.retrieval import mutants as retrieval
from tests.vectors import mutants as vectors

ROOMS: dict[str, Sequence[Mutant]] = {
    "protocol": protocol.MUTANTS,
    "metadata": metadata.MUTANTS,
    "vectors": vectors.MUTANTS,
    "ranking": ranking.MUTANTS,
    "retrieval": retrieval.MUTANTS,
    "ingest": ingest.MUTANTS,
    "deletion": deletion.MUTANTS,
    "recovery": recovery.MUTANTS,
    "catalog": catalog.MUTANTS,
    "loading": loading.MUTANTS,
    "http": http.MUTANTS,
    "events": events.MUTANTS,
}
MUTANTS = [mutant for mutants in ROOMS.values() for mutant in mutants]


def named(*names: str) -> list[Mutant]:
    """The mutants with these names.

    Raises:
        KeyError: no mutant has one of the names.
    """
    by_name = {mutant.name: mutant for mutant in MUTANTS}
    return [by_name[name] for name in names]


def probed_by(probe: Probe, store: str) -> list[Mutant]:
    """The mutants that a probe is tried on first, as far as they are tried on a vector store."""
    return [mutant for mutant in MUTANTS if probe in mutant.probes and store == (mutant.vectors or "embedded")]


@dataclass(frozen=True)
class Verdict:
    """Whether a mutant was killed. ``seen`` is the first promise that it broke; empty when it survived."""

    name: str
    seen: str


def try_mutant(mutant: Mutant, options: Options, probes: Sequence[Probe] = EVERYTHING) -> Verdict:
    """Tries probes on a mutant, its own ones first, until one finds a broken promise.

    Raises:
        LookupError: the mutant does not apply to the code as it is now.
    """
    with switched_off(mutant):
        for probe in (*mutant.probes, *probes):
            try:
                for tally in probe(options):
                    if tally.problems:
                        return Verdict(mutant.name, tally.broken[0])
            except Exception as error:  # noqa: BLE001 - a proof that could not run has found no broken promise
                print(f"{mutant.name}: {error!r}")
    return Verdict(mutant.name, "")


def _try_numbered(job: tuple[int, Options]) -> Verdict:
    """Tries a mutant by its number, which unlike the mutant can be sent to another process."""
    number, options = job
    return try_mutant(MUTANTS[number], options)


def _jobs(options: Options) -> list[tuple[int, Options]]:
    """The mutants to try: those of a vector store on that store when it is chosen, the others on one store."""
    plain = "embedded" if options.vectors == ALL else options.vectors
    chosen = ROOMS[options.room] if options.room else MUTANTS
    return [
        (number, replace(options, vectors=mutant.vectors or plain))
        for number, mutant in enumerate(MUTANTS)
        if mutant in chosen and (mutant.vectors in ("", plain) or options.vectors == ALL)
    ]


def prove(options: Options, tell: Callable[[str], None]) -> Report:
    """Tries every mutant of the room that the options name, or of all rooms."""
    verdicts = list(spread(_try_numbered, _jobs(options), options.processes, tell))
    return {
        "tried": len(verdicts),
        "killed": sum(bool(verdict.seen) for verdict in verdicts),
        "survivors": [verdict.name for verdict in verdicts if not verdict.seen],
        "broken": [],
    }


def held(report: Report) -> bool:
    """Whether no mutant has survived."""
    return not report["survivors"]


if __name__ == "__main__":
    main("mutants", prove, held=held, every_store=True, rooms=list(ROOMS))

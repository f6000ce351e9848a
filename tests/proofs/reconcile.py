"""Proof of reconcile: a reconcile finds every difference between rows and vectors, repairs it, and changes nothing
else.

A collection of many documents, some in progress and some failed, is damaged at random: vectors are deleted, stray
vectors are added, chunk rows are deleted, and counters are made wrong. Workers reconcile the collection, whose time is
up again and again, and who die between two steps. Then every row and every vector is compared with what it was before
the damage. Small collections meet worse: workers that die at any call, and two workers at once, of whom one may sleep
for longer than its lease.

Keys of the last line:

- ``chunks``: the chunks of the ready documents of the large collection.
- ``damaged``, ``found``, ``repaired``: the differences that were made, that the report of the reconcile tells of, and
  that are gone afterwards. All wrong counters together count as one difference.
- ``false_repairs``: rows and vectors that were changed although nothing was wrong with them.
- ``seconds``: the duration of the large reconcile. ``deaths``: its workers that died.
- ``small_trials``: the reconciles of small collections.
- ``problems``: promises that were seen broken. ``broken`` shows the first of them.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import core.recovery.ready_chunks
import core.recovery.reconcile
from core.metadata import table
from core.metadata.jobs import Job, JobKind
from core.metadata.rows import Counts
from core.model.ids import MAX_ATTEMPT, ChunkId, CollectionId, DocumentId
from core.recovery.jobs import LEASE
from core.vectors.types import VectorRecord
from tests.proofs import operations as do
from tests.proofs.calls import Call, Death, Plan, let_pass
from tests.proofs.command import Options, Report, main
from tests.proofs.harness import TENANT, Actor, Saved, World, seeded
from tests.proofs.operations import Scene
from tests.proofs.schedule import Schedule, interleave
from tests.proofs.tally import Tally, total
from tests.support.books import Problem
from tests.support.contents import text
from tests.support.dynamodb import Items
from tests.support.rows import read_rows

CHUNKS = 100_000
SMALL = 120
STEP = 7
TRIALS = 100
DAMAGED = 0.01
DAMAGED_SMALL = 0.2
LARGEST = 99
HUGE = 1200
"""The chunks of one document: more than a worker looks at in one step."""
APART = 20
OTHERS_EVERY = 60
CALL_S = 0.05
TURN_S = 4.0
TURNS = 2000
DIES, SLEEPS = 0.1, 0.03

Key = tuple[str, str]


# -- the collection ----------------------------------------------------------------------------------


class Stage:
    """A world with a collection to be damaged, and another collection beside it.

    Attributes:
        chunks: the number of chunks of the ready documents of the collection.
    """

    def __init__(self, options: Options, chunks: int) -> None:
        # A state of so many rows is large, and no index of this proof lags.
        self.world = World(options.store(), options.seed, states_kept=1)
        self.collection = self.world.collection().id
        self._elsewhere = self.world.collection("elsewhere").id
        self._shared = set(self.world.items)
        self._apart: Items = {}
        self._ingest_all(chunks, seeded("reconcile", options.seed))
        self.chunks = sum(head.chunk_count for head in self.ready())

    def _ingest_all(self, chunks: int, chance: random.Random) -> None:
        made, number = min(HUGE, chunks // 4), 0
        self._ingest(self.collection, "huge", made)
        while made < chunks:
            size = min(chance.randint(1, min(LARGEST, chunks // 4)), chunks - made)
            self._ingest(self.collection, f"n{number}", size)
            if number % OTHERS_EVERY == 0:
                self._others(number)
            if number % APART == 0:
                self._put_apart()
            made, number = made + size, number + 1
        self.world.dynamodb.set_back(self.world.items | self._apart)

    def _ingest(self, collection: CollectionId, tag: str, chunks: int) -> None:
        self.world.plain.ingest(collection, text(tag, chunks), source_key=None if chunks % 4 == 0 else tag)
        self.world.clock.advance(0.01)

    def _others(self, number: int) -> None:
        """Adds documents in progress, a failed one, one that was claimed, and one in the other collection."""
        world, scene = self.world, Scene(self.collection)
        for write in (do.BEGIN, do.CHUNKS, do.VECTORS):
            do.stalled(lambda _: scene, write, None, 9, f"half{number}{write}", seconds=0)(world)
        do.failed(lambda _: scene, f"bad{number}")(world)
        do.stalled(lambda _: scene, do.CHUNKS, f"claimed{number}", 5, f"claimed{number}")(world)
        self._ingest(self.collection, f"claimed{number}", 5)
        self._ingest(self._elsewhere, f"elsewhere{number}", 7)

    def _put_apart(self) -> None:
        """Takes the rows of the ingested documents out of the table for a while: a small table is quick."""
        items = self.world.items
        self._apart |= {key: item for key, item in items.items() if key not in self._shared}
        self.world.dynamodb.set_back({key: item for key, item in items.items() if key in self._shared})

    def ready(self) -> list[Any]:
        """The rows of the collection's ready documents."""
        return [head for head in read_rows(self.world.items).ready() if head.collection_id == self.collection]

    def job(self) -> Job:
        """The job of the reconcile, which says how far it is."""
        found = self.world.stores.jobs.get(TENANT, self.collection, JobKind.RECONCILE)
        if found is None:
            raise ValueError("a new collection has no job of its first reconcile")
        return found


# -- the damage --------------------------------------------------------------------------------------


class Damage:
    """The damage of a collection, and what the world was before it.

    Attributes:
        missing: chunks whose vectors were deleted.
        stray: chunks of which vectors were added.
        lost: chunks whose rows were deleted.
    """

    def __init__(self, stage: Stage, share: float, chance: random.Random) -> None:
        self._stage = stage
        self._world = stage.world
        self._space = stage.world.embedder.space
        self._items, self._records = dict(self._world.items), dict(self._world.mirror.records)
        heads = stage.ready()
        served = [chunk_id for head in heads for chunk_id in head.served_chunk_ids()]
        victims = chance.sample(served, max(6, round(share * len(served))))
        third = len(victims) // 3
        self.missing, self.lost = set(victims[:third]), set(victims[third : 2 * third])
        self.stray: set[ChunkId] = set()
        while len(self.stray) < len(victims) - 2 * third:
            chunk_id = _stray(chance.choice(heads), chance)
            if (TENANT, self._space, chunk_id) not in self._records:
                self.stray.add(chunk_id)
        self._do(chance)

    @property
    def count(self) -> int:
        """The number of differences; all wrong counters together are one."""
        return len(self.missing) + len(self.stray) + len(self.lost) + 1

    def _do(self, chance: random.Random) -> None:
        world = self._world
        world.mirror.delete(TENANT, self._space, sorted(self.missing))
        [vector] = world.embedder.embed(["stray"]).vectors
        collection = self._stage.collection
        records = [
            VectorRecord(chunk_id, collection, None, None, "stray text", vector) for chunk_id in sorted(self.stray)
        ]
        world.mirror.write(TENANT, self._space, records)
        gone = {_row(chunk_id) for chunk_id in self.lost}
        items = {key: item for key, item in world.items.items() if key not in gone}
        for number in chance.sample(range(table.GATES), 3):
            gate = table.gate(TENANT, collection, number)
            items[gate.pk, gate.sk] = _miscounted(items[gate.pk, gate.sk], chance)
        world.dynamodb.set_back(items)

    def found(self, counts: dict[str, int]) -> int:
        """The number of differences that a report tells of. The vector of a lost chunk is removed too."""
        right = {
            "embedded_again": len(self.missing),
            "removed": len(self.stray) + len(self.lost),
            "lost": len(self.lost),
            "counters_corrected": 1,
        }
        return self.count - sum(abs(wanted - counts.get(name, 0)) for name, wanted in right.items())

    def left(self) -> tuple[list[str], list[str]]:
        """What differs from the world before the damage: differences that were not repaired, and changes of the rest.
        The difference of a lost chunk is repaired when its vector is gone too."""
        damaged: list[str] = []
        rest: list[str] = []
        right = {place: record for place, record in self._records.items() if place[2] not in self.lost}
        for place in _differences(right, self._world.mirror.records):
            own = place[2] in self.missing | self.stray | self.lost
            (damaged if own else rest).append(f"vector {place[2]}")
        gone = {_row(chunk_id) for chunk_id in self.lost}
        rows = {key: item for key, item in self._items.items() if key not in gone}
        rest += [f"row {key}" for key in _differences(_comparable(rows), _comparable(self._world.items))]
        if _totals(self._items) != _totals(self._world.items):
            damaged.append("counters")
        return damaged, rest + self._world.store_problems()


def _stray(head: Any, chance: random.Random) -> ChunkId:
    """A chunk of a document that never was, or of an attempt or an index that a document does not serve."""
    match chance.randrange(3):
        case 0:
            never = DocumentId.new(chance.getrandbits(41), chance.getrandbits(74))
            return ChunkId.of(never, chance.randint(1, MAX_ATTEMPT), chance.randrange(LARGEST))
        case 1:
            attempt = chance.choice([number for number in range(1, MAX_ATTEMPT + 1) if number != head.attempt])
            return ChunkId.of(head.document_id, attempt, chance.randrange(head.chunk_count))
        case _:
            return ChunkId.of(head.document_id, head.attempt, head.chunk_count + chance.randrange(LARGEST))


def _row(chunk: ChunkId) -> Key:
    key = table.chunk(TENANT, chunk)
    return key.pk, key.sk


def _miscounted(gate: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    counts = {name: int(gate.get(name, {"N": "0"})["N"]) for name in Counts.model_fields}
    return gate | {name: {"N": str(value + chance.randint(1, 9))} for name, value in counts.items()}


def _comparable(items: Items) -> Items:
    """All rows but those of jobs, which go on, and those of gates, whose sums are compared instead."""
    return {key: item for key, item in items.items() if key[1] != "GATE" and not key[1].startswith("JOB#")}


def _totals(items: Items) -> dict[tuple[str, str], int]:
    """The sums of the gates of each collection, by collection and counter."""
    totals: dict[tuple[str, str], int] = {}
    for (partition, sort), item in items.items():
        if sort == "GATE":
            for name in Counts.model_fields:
                place = (partition.rpartition("#G#")[0], name)
                totals[place] = totals.get(place, 0) + int(item.get(name, {"N": "0"})["N"])
    return totals


def _differences(right: Any, present: Any) -> list[Any]:
    return [place for place in right.keys() | present.keys() if right.get(place) != present.get(place)]


# -- the workers -------------------------------------------------------------------------------------


def turn(stage: Stage, seconds: float = TURN_S) -> Callable[[Actor], Any]:
    """One call of the reconcile, with so much time."""
    return lambda actor: actor.engine.reconcile.run(TENANT, stage.collection, actor.world.clock.monotonic() + seconds)


def reconcile(stage: Stage, plan: Plan) -> Iterator[Problem]:
    """Runs workers one after the other, until the reconcile has finished."""
    for _ in range(TURNS):
        outcome = stage.world.run(turn(stage), plan)
        if outcome.failure is not None:
            yield Problem("other", repr(outcome.failure))
            return
        if stage.job().finished:
            return
        if outcome.died:
            stage.world.clock.advance(LEASE.total_seconds() + 1)
    yield Problem("left", "a reconcile came to no end")


def tired(chance: random.Random, deaths: list[int]) -> Plan:
    """A plan by which time passes in every call, and some workers die once they have saved how far they are."""

    def plan(call: Call) -> Any:
        call.actor.world.clock.advance(CALL_S)
        answer = call.perform()
        if call.name == "put_item" and chance.random() < DIES:
            deaths.append(call.number)
            raise Death
        return answer

    return plan


def dying(chance: random.Random) -> Plan:
    """A plan by which a worker dies at some calls, before the call or after it."""

    def plan(call: Call) -> Any:
        dies = chance.random()
        if dies < SLEEPS:
            raise Death
        answer = call.perform()
        if dies < 2 * SLEEPS:
            raise Death
        return answer

    return plan


def sleepy(chance: random.Random) -> Plan:
    """A plan by which now and then a call takes longer than the lease."""

    def plan(call: Call) -> Any:
        if chance.random() < SLEEPS:
            call.actor.world.clock.advance(LEASE.total_seconds() + 1)
        return call.perform()

    return plan


def _two_at_once(stage: Stage, chance: random.Random) -> Iterator[Problem]:
    """Runs two workers in a random order; a third worker finishes what they leave."""

    def choose(number: int, current: int, able: Sequence[int]) -> int:
        return chance.choice(able)

    plan = sleepy(chance)
    run = interleave(
        stage.world, [turn(stage), turn(stage)], Schedule(chance.randrange(2)), choose=choose, plans=[plan, plan]
    )
    for outcome in run.outcomes:
        if not outcome.acknowledged:
            yield Problem("other", f"one of two workers ended with {outcome.failure!r}")
    if not stage.job().finished:
        stage.world.clock.advance(LEASE.total_seconds() + 1)
        yield from reconcile(stage, let_pass)


def _one_after_another(stage: Stage, chance: random.Random) -> Iterator[Problem]:
    yield from reconcile(stage, dying(chance))


# -- the proof ---------------------------------------------------------------------------------------


def try_large(options: Options, chunks: int, tell: Callable[[str], None]) -> tuple[Report, Tally]:
    """Damages a collection of that many chunks, and reconciles it; answers the first keys of the last line."""
    tell(f"{chunks} chunks are ingested")
    stage = Stage(options, chunks)
    chance = seeded("damage", options.seed)
    damage = Damage(stage, DAMAGED, chance)
    deaths: list[int] = []
    tell("they are reconciled")
    start = perf_counter()
    problems = list(reconcile(stage, tired(chance, deaths)))
    seconds = perf_counter() - start
    damaged, rest = damage.left()
    tally = Tally()
    tally.add("the large collection", [*problems, *_left_problems(damaged, rest)])
    report: Report = {
        "chunks": stage.chunks,
        "damaged": damage.count,
        "found": damage.found(stage.job().counts),
        "repaired": damage.count - len(damaged),
        "false_repairs": len(rest),
        "seconds": round(seconds, 1),
        "deaths": len(deaths),
    }
    stage.world.close()
    return report, tally


def _left_problems(damaged: list[str], rest: list[str]) -> list[Problem]:
    """Damage that was not repaired, and changes of anything else."""
    return [Problem("left", each) for each in damaged] + [Problem("false_repairs", each) for each in rest]


@contextmanager
def short_steps() -> Iterator[None]:
    """Makes a worker's step a few documents, so that a small collection takes many steps."""
    sizes = ((core.recovery.reconcile, "CHUNKS_AT_ONCE"), (core.recovery.reconcile, "DOCUMENTS_AT_ONCE"))
    places = (*sizes, (core.recovery.ready_chunks, "DOCUMENTS_AT_ONCE"))
    before = [getattr(module, name) for module, name in places]
    try:
        for module, name in places:
            setattr(module, name, STEP)
        yield
    finally:
        for (module, name), value in zip(places, before, strict=True):
            setattr(module, name, value)


@short_steps()
def try_small(options: Options, trials: int, tell: Callable[[str], None]) -> Tally:
    """Reconciles small collections by workers that die at any call, and by two workers at once."""
    stage = Stage(options, SMALL)
    saved: Saved = stage.world.save()
    tally = Tally()
    for number in range(trials):
        tell(f"{number} of {trials} small ones")
        for name, trial in (("dies at any call", _one_after_another), ("two at once", _two_at_once)):
            stage.world.set_back(saved)
            chance = seeded(name, options.seed, number)
            damage = Damage(stage, DAMAGED_SMALL, chance)
            problems = list(trial(stage, chance))
            problems += _left_problems(*damage.left())
            tally.add(f"{name}, trial {number}", problems)
    stage.world.close()
    return tally


def prove(
    options: Options, tell: Callable[[str], None], chunks: int | None = None, trials: int | None = None
) -> Report:
    """Reconciles a large collection, then small ones."""
    report, large = try_large(options, CHUNKS * options.rounds if chunks is None else chunks, tell)
    small = try_small(options, TRIALS * options.rounds if trials is None else trials, tell)
    whole = total([large, small])
    return {
        **report,
        "false_repairs": whole.problems["false_repairs"],
        "small_trials": small.tried,
        "problems": whole.problems.total(),
        "broken": whole.broken,
    }


def held(report: Report) -> bool:
    return report["damaged"] == report["found"] == report["repaired"] and not report["problems"]


if __name__ == "__main__":
    main("reconcile", prove, held=held)

"""Proof: a reconcile finds everything in which rows and vectors disagree, repairs it, and touches nothing else.

A collection of many documents, some in progress and some failed, is damaged at random in both directions. Workers
reconcile it whose time is up again and again, and who die between two steps. Then every row and every vector is
compared with what it was before the damage. Small collections go through worse: workers that die at any call, and two
at once, of whom one may sleep for longer than its lease.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import core.recovery.ready_chunks
import core.recovery.reconcile
from core.metadata import table
from core.metadata.jobs import Job, JobKind
from core.metadata.rows import Counts
from core.model.document import DocumentState
from core.model.ids import MAX_ATTEMPT, ChunkId, CollectionId, DocumentId
from core.recovery.jobs import LEASE
from core.vectors.types import VectorRecord
from tests.proofs import operations as do
from tests.proofs.calls import Call, Death, Plan, let_pass
from tests.proofs.command import Options, Report, main
from tests.proofs.harness import TENANT, Actor, Saved, World, seeded
from tests.proofs.operations import Scene
from tests.proofs.schedule import Schedule, interleave
from tests.proofs.tally import Tally
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
"""Chunks of one document: more than a worker looks at in one step."""
APART = 20
OTHERS_EVERY = 60
CALL_S = 0.05
TURN_S = 4.0
TURNS = 2000
DIES, SLEEPS = 0.1, 0.03

Key = tuple[str, str]


# -- the collection ----------------------------------------------------------------------------------


class Stage:
    """A world with a collection to be damaged, and another beside it.

    Attributes:
        chunks: of its ready documents.
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
        """Documents in progress, failed ones, one of a second attempt's, and one elsewhere."""
        world, scene = self.world, Scene(self.collection)
        for write in (do.BEGIN, do.CHUNKS, do.VECTORS):
            do.stalled(lambda _: scene, write, None, 9, f"half{number}{write}", seconds=0)(world)
        do.failed(lambda _: scene, f"bad{number}")(world)
        do.stalled(lambda _: scene, do.CHUNKS, f"claimed{number}", 5, f"claimed{number}")(world)
        self._ingest(self.collection, f"claimed{number}", 5)
        self._ingest(self._elsewhere, f"elsewhere{number}", 7)

    def _put_apart(self) -> None:
        """A small table is a quick one: the rows of what has been ingested wait elsewhere."""
        items = self.world.items
        self._apart |= {key: item for key, item in items.items() if key not in self._shared}
        self.world.dynamodb.set_back({key: item for key, item in items.items() if key in self._shared})

    def ready(self) -> list[Any]:
        """The rows of the collection's ready documents."""
        heads = read_rows(self.world.items).heads.values()
        return [one for one in heads if one.collection_id == self.collection and one.state == DocumentState.READY]

    def job(self) -> Job:
        """How far the reconcile is."""
        found = self.world.stores.jobs.get(TENANT, self.collection, JobKind.RECONCILE)
        if found is None:
            raise ValueError("a collection has its first reconcile from its beginning")
        return found


# -- the damage --------------------------------------------------------------------------------------


class Damage:
    """What disagrees, and what the world was before.

    Attributes:
        missing: chunks whose vectors were deleted.
        stray: vectors that were added.
        lost: chunks whose rows were deleted.
    """

    def __init__(self, stage: Stage, share: float, chance: random.Random) -> None:
        self._stage = stage
        self._world = stage.world
        self._space = stage.world.embedder.space
        self._items, self._records = dict(self._world.items), dict(self._world.mirror.records)
        heads = stage.ready()
        served = [one for head in heads for one in head.served_chunk_ids()]
        victims = chance.sample(served, max(6, round(share * len(served))))
        third = len(victims) // 3
        self.missing, self.lost = set(victims[:third]), set(victims[third : 2 * third])
        self.stray: set[ChunkId] = set()
        while len(self.stray) < len(victims) - 2 * third:
            one = _stray(chance.choice(heads), chance)
            if (TENANT, self._space, one) not in self._records:
                self.stray.add(one)
        self._do(chance)

    @property
    def count(self) -> int:
        """The counters count once."""
        return len(self.missing) + len(self.stray) + len(self.lost) + 1

    def _do(self, chance: random.Random) -> None:
        world = self._world
        world.mirror.delete(TENANT, self._space, sorted(self.missing))
        [vector] = world.embedder.embed(["stray"]).vectors
        collection = self._stage.collection
        records = [VectorRecord(one, collection, None, None, "stray text", vector) for one in sorted(self.stray)]
        world.mirror.write(TENANT, self._space, records)
        gone = {_row(one) for one in self.lost}
        items = {key: item for key, item in world.items.items() if key not in gone}
        for number in chance.sample(range(table.GATES), 3):
            gate = table.gate(TENANT, collection, number)
            items[gate.pk, gate.sk] = _miscounted(items[gate.pk, gate.sk], chance)
        world.dynamodb.set_back(items)

    def found(self, counts: dict[str, int]) -> int:
        """How much of it a report tells of. A lost chunk's vector is one more that goes."""
        right = {
            "embedded_again": len(self.missing),
            "removed": len(self.stray) + len(self.lost),
            "lost": len(self.lost),
            "counters_corrected": 1,
        }
        return self.count - sum(abs(wanted - counts.get(name, 0)) for name, wanted in right.items())

    def left(self) -> tuple[list[str], list[str]]:
        """What is not as it was: of the damage, and of the rest. A lost chunk is whole when its vector is gone too."""
        damaged: list[str] = []
        rest: list[str] = []
        right = {place: one for place, one in self._records.items() if place[2] not in self.lost}
        for place in _differences(right, self._world.mirror.records):
            own = place[2] in self.missing | self.stray | self.lost
            (damaged if own else rest).append(f"vector {place[2]}")
        gone = {_row(one) for one in self.lost}
        rows = {key: item for key, item in self._items.items() if key not in gone}
        rest += [f"row {key}" for key in _differences(_comparable(rows), _comparable(self._world.items))]
        if _totals(self._items) != _totals(self._world.items):
            damaged.append("counters")
        return damaged, rest + self._world.store_problems()


def _stray(head: Any, chance: random.Random) -> ChunkId:
    """A vector of a document that never was, or of an attempt or an index that the document does not serve."""
    match chance.randrange(3):
        case 0:
            never = DocumentId.new(chance.getrandbits(41), chance.getrandbits(74))
            return ChunkId.of(never, chance.randint(1, MAX_ATTEMPT), chance.randrange(LARGEST))
        case 1:
            attempt = chance.choice([one for one in range(1, MAX_ATTEMPT + 1) if one != head.attempt])
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
    """All rows but the job's, which move on, and the gates', of which the sums count."""
    return {key: item for key, item in items.items() if key[1] != "GATE" and not key[1].startswith("JOB#")}


def _totals(items: Items) -> dict[tuple[str, str], int]:
    """What the gates of each collection count."""
    totals: dict[tuple[str, str], int] = {}
    for (partition, sort), item in items.items():
        if sort == "GATE":
            for name in Counts.model_fields:
                place = (partition.rpartition("#G#")[0], name)
                totals[place] = totals.get(place, 0) + int(item.get(name, {"N": "0"})["N"])
    return totals


def _differences(right: Any, there: Any) -> list[Any]:
    return [place for place in right.keys() | there.keys() if right.get(place) != there.get(place)]


# -- the workers -------------------------------------------------------------------------------------


def turn(stage: Stage, seconds: float = TURN_S) -> Callable[[Actor], Any]:
    """One call, of so much time."""
    return lambda actor: actor.engine.reconcile.run(TENANT, stage.collection, actor.world.clock.monotonic() + seconds)


def reconcile(stage: Stage, plan: Plan) -> Iterator[Problem]:
    """Workers one after the other, until one comes to the end."""
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
    """Time passes in every call, and some die once they have saved how far they are."""

    def plan(call: Call) -> Any:
        call.actor.world.clock.advance(CALL_S)
        answer = call.perform()
        if call.name == "put_item" and chance.random() < DIES:
            deaths.append(call.number)
            raise Death
        return answer

    return plan


def dying(chance: random.Random) -> Plan:
    """Whoever works dies at any call, before it or after it."""

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
    """Now and then a call takes longer than the lease."""

    def plan(call: Call) -> Any:
        if chance.random() < SLEEPS:
            call.actor.world.clock.advance(LEASE.total_seconds() + 1)
        return call.perform()

    return plan


def _two_at_once(stage: Stage, chance: random.Random) -> Iterator[Problem]:
    """Two workers as chance has it; what they leave, a third one does."""

    def choose(number: int, current: int, able: Sequence[int]) -> int:
        return chance.choice(able)

    plan = sleepy(chance)
    run = interleave(
        stage.world, [turn(stage), turn(stage)], Schedule(chance.randrange(2)), choose=choose, plans=[plan, plan]
    )
    for outcome in run.outcomes:
        if not outcome.acknowledged:
            yield Problem("other", f"one of two ended so: {outcome.failure!r}")
    if not stage.job().finished:
        stage.world.clock.advance(LEASE.total_seconds() + 1)
        yield from reconcile(stage, let_pass)


def _one_after_another(stage: Stage, chance: random.Random) -> Iterator[Problem]:
    yield from reconcile(stage, dying(chance))


# -- the proof ---------------------------------------------------------------------------------------


@dataclass
class Large:
    """What came of the large collection."""

    chunks: int
    damaged: int
    found: int
    repaired: int
    false_repairs: int
    seconds: float
    deaths: int
    problems: list[Problem]


def try_large(options: Options, chunks: int, tell: Callable[[str], None]) -> Large:
    """Damages a collection of so many chunks, and reconciles it."""
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
    problems += [Problem("left", each) for each in damaged] + [Problem("false_repairs", each) for each in rest]
    found = damage.found(stage.job().counts)
    stage.world.close()
    return Large(
        stage.chunks,
        damage.count,
        found,
        damage.count - len(damaged),
        len(rest),
        round(seconds, 1),
        len(deaths),
        problems,
    )


@contextmanager
def short_steps() -> Iterator[None]:
    """A worker's step is a few documents, so that a small collection takes many."""
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
    """Small collections, and workers that have worse to bear."""
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
            damaged, rest = damage.left()
            problems += [Problem("left", each) for each in damaged] + [Problem("false_repairs", each) for each in rest]
            tally.add(f"{name}, trial {number}", problems)
    stage.world.close()
    return tally


def prove(
    options: Options, tell: Callable[[str], None], chunks: int | None = None, trials: int | None = None
) -> Report:
    """Reconciles a large collection, and small ones."""
    large = try_large(options, CHUNKS * options.rounds if chunks is None else chunks, tell)
    small = try_small(options, TRIALS * options.rounds if trials is None else trials, tell)
    whole = Tally()
    whole.add("the large collection", large.problems)
    return {
        "chunks": large.chunks,
        "damaged": large.damaged,
        "found": large.found,
        "repaired": large.repaired,
        "false_repairs": large.false_repairs + small.problems["false_repairs"],
        "seconds": large.seconds,
        "deaths": large.deaths,
        "small_trials": small.tried,
        "problems": sum(small.problems.values()) + len(large.problems),
        "broken": [*whole.broken, *small.broken],
    }


def held(report: Report) -> bool:
    return report["damaged"] == report["found"] == report["repaired"] and not report["problems"]


if __name__ == "__main__":
    main("reconcile", prove, held=held)

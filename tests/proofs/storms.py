"""Storms and crowds: several processes whose order and faults are random.

A storm is deterministic: a seed draws which process goes on, which call fails and how, which write comes late and which
process dies. A crowd is eight threads at once, in the order in which the machine happens to run them.
"""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.model.errors import WeftError
from core.model.hit import RetrieveResult
from core.model.ids import DocumentId
from core.model.ingest import IngestResult
from tests.proofs import operations as do
from tests.proofs.calls import Call
from tests.proofs.cuts import Cut, Kind, applies
from tests.proofs.harness import LIFE_S, STALLED_S, TENANT, Actor, Outcome, World, seeded
from tests.proofs.judge import look, sweep_until_quiet
from tests.proofs.operations import Scene
from tests.proofs.schedule import Schedule, interleave
from tests.proofs.tally import Tally
from tests.proofs.watch import Watch, question
from tests.support.books import Problem, moment_problems
from tests.support.contents import text
from tests.support.rows import read_rows

SWITCH, FAULT = 0.3, 0.06
LIVING = (
    Kind.THROTTLED,
    Kind.CONFLICT,
    Kind.NO_ANSWER,
    Kind.HALF_NO_ANSWER,
    Kind.UNPROCESSED,
    Kind.TWICE,
    Kind.SWEEP_LATE,
)
DEADLY = (Kind.DIES_BEFORE, Kind.DIES_AFTER, Kind.DIES_FIRST_HALF, Kind.DIES_SECOND_HALF, Kind.DIES_LATE)
WORKERS = 8

Step = Callable[[Actor, Scene, random.Random], Any]


def _ingest(actor: Actor, scene: Scene, chance: random.Random) -> IngestResult:
    key = chance.choice([do.KEY, do.KEY, "second.md", None])
    version = chance.choice([None, None, "4", "6", "7"]) if key else None
    content = text(chance.choice(["new", "other", "old", "third"]), chance.choice([1, 2, 5]))
    return actor.ingest(scene.collection, content, source_key=key, source_version=version)


def _fail(actor: Actor, scene: Scene, chance: random.Random) -> IngestResult:
    return do.ingest_badly(actor, scene, source_key=chance.choice([do.KEY, "second.md", None]))


def _delete_source(actor: Actor, scene: Scene, chance: random.Random) -> Any:
    return do.delete_source(chance.choice([None, "5", "8"]))(actor, scene)


def _delete_document(actor: Actor, scene: Scene, chance: random.Random) -> Any:
    documents = sorted(read_rows(actor.world.items).heads)
    if documents:
        do.delete_document(actor, Scene(scene.collection, chance.choice(documents)))


def _delete_collection(actor: Actor, scene: Scene, chance: random.Random) -> Any:
    return do.delete_collection(actor, scene)


def _sweep(actor: Actor, scene: Scene, chance: random.Random) -> Any:
    return actor.engine.recovery.sweep()


def _drain(actor: Actor, scene: Scene, chance: random.Random) -> Any:
    return actor.engine.recovery.drain(actor.deadline())


def _update(actor: Actor, scene: Scene, chance: random.Random) -> Any:
    return do.update(name=chance.choice(["notes", "renamed", "again"]))(actor, scene)


def _reindex(actor: Actor, scene: Scene, chance: random.Random) -> Any:
    return do.reindex(actor, scene)


def _reconcile(actor: Actor, scene: Scene, chance: random.Random) -> Any:
    return do.reconcile(actor, scene)


def _retrieve(actor: Actor, scene: Scene, chance: random.Random) -> Any:
    return actor.engine.retrieve(TENANT, question(scene.collection, chance.choice([1, 10])))


OFTEN: tuple[Step, ...] = (_ingest, _ingest, _ingest, _fail, _delete_source, _delete_document, _sweep, _retrieve)
SELDOM: tuple[Step, ...] = (_drain, _update, _reindex, _reconcile, _delete_collection)
SCENES: tuple[Callable[[World], Scene], ...] = (
    do.empty,
    do.serving(),
    do.stalled(do.serving(), do.VECTORS),
    do.superseded,
    do.failed_and_due,
    do.everything,
)


@dataclass
class Storm:
    """The choices of one storm.

    Attributes:
        late: cuts whose delayed writes have not reached the stores yet.
    """

    world: World
    scene: Scene
    chance: random.Random
    late: list[Cut] = field(default_factory=list)

    def choose(self, number: int, current: int, able: Sequence[int]) -> int:
        if self.late and self.chance.random() < SWITCH:
            self.late.pop(self.chance.randrange(len(self.late))).land()
        return self.chance.choice(able) if self.chance.random() < SWITCH else current

    def plan(self, call: Call) -> Any:
        if not call.write or self.chance.random() >= FAULT:
            return call.perform()
        kinds = [kind for kind in (*LIVING, *DEADLY) if applies(kind, call.label, len(call.pieces))]
        cut = Cut(call.number, self.chance.choice(kinds))
        try:
            return cut(call)
        finally:
            if cut.late:
                self.late.append(cut)

    def land(self) -> None:
        while self.late:
            self.late.pop().land()

    def pass_time(self, actor: Actor) -> None:
        """Lets time pass; all delayed writes have reached the stores by then."""
        self.land()
        self.world.clock.advance(STALLED_S + 60)


def storm(world: World, saved: Any, scene: Scene, seed: object) -> list[Problem]:
    """Runs one storm from a saved world, sweeps, and says what is wrong."""
    world.set_back(saved)
    chance = seeded("storm", seed)
    world.dynamodb.lag = chance.choice([0.0, 0.0, 0.4])
    watch = Watch(world)
    drawn = Storm(world, scene, chance)
    steps = [_step(watch, chance.choice(OFTEN + SELDOM if place == 0 else OFTEN), scene, chance) for place in range(3)]
    steps.append(drawn.pass_time)
    moments: list[Problem] = []

    def on_switch() -> None:
        moments.extend(moment_problems(read_rows(world.items), world.vector_texts()))

    plans = [drawn.plan] * 3 + [lambda call: call.perform()]
    run = interleave(world, steps, Schedule(), choose=drawn.choose, plans=plans, on_switch=on_switch)
    drawn.land()
    world.dynamodb.lag = 0.0
    problems = moments + watch.problems + _unexpected(run.outcomes) + _unserved(run.outcomes, watch.served)
    return problems + look(world)[1] + sweep_until_quiet(world)[1]


def _step(watch: Watch, step: Step, scene: Scene, chance: random.Random) -> Callable[[Actor], Any]:
    own = random.Random(chance.random())

    def run(actor: Actor) -> Any:
        start = watch.moment
        answer = step(actor, scene, own)
        if isinstance(answer, RetrieveResult):
            watch.check_answer(answer, start, 1)
        return answer

    return run


def _unexpected(outcomes: Sequence[Outcome]) -> list[Problem]:
    failures = [outcome.failure for outcome in outcomes if outcome.failure is not None]
    return [Problem("other", repr(failure)) for failure in failures if not isinstance(failure, WeftError)]


def _unserved(outcomes: Sequence[Outcome], served: set[DocumentId]) -> list[Problem]:
    answers = [outcome.answer for outcome in outcomes if isinstance(outcome.answer, IngestResult)]
    lost = [one.document_id for one in answers if one.state == "ready" and one.document_id not in served]
    return [Problem("lost", f"{one} was acknowledged and never served") for one in lost]


def try_storms(store: Any, seed: object, number: int) -> Tally:
    """Runs storms of one seed, over all scenes in turn."""
    world = World(store)
    tally = Tally()
    try:
        prepared = []
        for prepare in SCENES:
            world.set_back(_blank(world))
            prepared.append((prepare(world), world.save()))
        for one in range(number):
            scene, saved = prepared[one % len(prepared)]
            tally.add(f"storm {seed}-{one}", storm(world, saved, scene, f"{seed}-{one}"))
    finally:
        world.close()
    return tally


def _blank(world: World) -> Any:
    fresh = World(world.mirror.store)
    return fresh.save()


# -- a crowd -----------------------------------------------------------------------------------------


def crowd(store: Any, seed: object, operations: int) -> tuple[int, list[Problem]]:
    """Runs eight threads at once, each with so many operations; answers their number, and what was wrong."""
    world = World(store)
    world.wait_in_real_time()
    scene = do.serving()(world)
    problems: list[Problem] = []
    watch = Watch(world, keep=False)
    steps = [one for one in OFTEN + SELDOM if one is not _delete_collection]

    def work(worker: int) -> None:
        chance = seeded("crowd", seed, worker)
        for _ in range(operations):
            actor = Actor(world)
            try:
                answer = chance.choice(steps)(actor, scene, chance)
            except WeftError:
                continue
            except Exception as failure:  # noqa: BLE001 - the proof judges every failure
                problems.append(Problem("other", repr(failure)))
                continue
            if isinstance(answer, RetrieveResult):
                problems.extend(_mixed(answer))

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    world.dynamodb.watch = None
    problems += watch.problems + look(world)[1]
    world.clock.advance(LIFE_S + 1)
    world.engine.recovery.drain(world.clock.monotonic() + LIFE_S)  # more than four sweeps reach
    problems += sweep_until_quiet(world)[1]
    world.close()
    return WORKERS * operations, problems


def _mixed(answer: RetrieveResult) -> list[Problem]:
    versions: dict[str, set[str]] = {}
    for hit in answer.hits:
        if hit.document is not None and hit.document.source_key is not None and hit.chunk.id is not None:
            versions.setdefault(hit.document.source_key, set()).add(hit.chunk.id.generation)
    return [Problem("mixed", f"{len(one)} versions in one answer") for one in versions.values() if len(one) > 1]

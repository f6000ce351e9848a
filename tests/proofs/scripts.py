"""Scripted races: exact meetings, which drawn schedules seldom find. The processes are held at named calls."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.metadata import table
from core.model.errors import IngestInterrupted
from tests.proofs import operations as do
from tests.proofs.calls import Call, Death, Plan, let_pass
from tests.proofs.command import Options
from tests.proofs.harness import LIFE_S, STALLED_S, TABLE, TENANT, Actor, Outcome, World
from tests.proofs.judge import look, sweep_until_quiet
from tests.proofs.operations import Scene, newest
from tests.proofs.schedule import Schedule, Step, Switch, interleave
from tests.proofs.tally import Tally
from tests.proofs.watch import Watch
from tests.support.books import Problem
from tests.support.rows import read_rows

TRANSACT = "dynamodb.transact_write_items"
UPDATE = "dynamodb.update_item"
ROWS = "dynamodb.batch_write_item"
READ = "dynamodb.batch_get_item"
RESERVE, EMBEDDED = 2, 3
"""The number of an ingest's heartbeat that records its chunks, and of the heartbeat that follows the embedding."""


@dataclass(frozen=True)
class Script:
    """One meeting.

    Attributes:
        first: the place of the process that begins.
        plans: the plan of each process; without them every call is made.
        expect: of some processes, by their place, the error with which they must end; None: they must succeed.
        check: says what is wrong after the meeting.
        calm: whether the counters must be right and nothing may be left afterwards.
        mortal: whether a process dies at its next write when it is older than a writer's life; else it must stop by
            itself.
    """

    name: str
    prepare: Callable[[World], Scene]
    steps: Callable[[Scene], Sequence[Step]]
    switches: tuple[Switch, ...]
    first: int = 0
    plans: tuple[Plan, ...] = ()
    expect: tuple[tuple[int, type[Exception] | None], ...] = ()
    check: Callable[[World, Scene], list[Problem]] = field(default=lambda world, scene: [])
    calm: bool = True
    mortal: bool = True


def run_script(script: Script, world: World) -> list[Problem]:
    """Runs one meeting, sweeps, and says what is wrong."""
    scene = script.prepare(world)
    watch = Watch(world)
    plans = script.plans or tuple(let_pass for _ in script.steps(scene))
    run = interleave(
        world,
        script.steps(scene),
        Schedule(script.first),
        switches=script.switches,
        plans=plans,
        mortal=script.mortal,
    )
    problems = watch.problems + script.check(world, scene)
    for place, error in script.expect:
        problems += _ended(run.outcomes[place], error)
    if script.calm:
        problems += look(world)[1] + sweep_until_quiet(world)[1]
    return problems


def _ended(outcome: Outcome, error: type[Exception] | None) -> list[Problem]:
    if (error is None and outcome.acknowledged) or (error is not None and isinstance(outcome.failure, error)):
        return []
    return [Problem("living_failed", f"a process ended with {outcome.failure!r} {outcome.answer!r}")]


# -- what the processes do -------------------------------------------------------------------------


def _later(step: Step) -> Step:
    """The same step, once the documents in progress have stalled."""

    def run(actor: Actor) -> Any:
        actor.world.clock.advance(STALLED_S + 60)
        return step(actor)

    return run


def _ingest(scene: Scene, tag: str = "new") -> Step:
    return lambda actor: do.ingest(tag)(actor, scene)


def _ingest_slowly(scene: Scene) -> Step:
    """An ingest that seems to have stalled while it embeds."""

    def run(actor: Actor) -> Any:
        do.while_embedding(actor, lambda _: actor.world.clock.advance(STALLED_S + 60))
        return do.ingest()(actor, scene)

    return run


def _ingest_badly(scene: Scene) -> Step:
    return lambda actor: do.ingest_badly(actor, scene)


def _sweep(actor: Actor) -> Any:
    return actor.engine.recovery.sweep()


def _delete_newest(scene: Scene) -> Step:
    return lambda actor: do.delete_document(actor, Scene(scene.collection, newest(actor.world, scene)))


def _delete_collection_and_sweep(scene: Scene) -> Step:
    def run(actor: Actor) -> None:
        do.delete_collection(actor, scene)
        actor.engine.recovery.sweep()

    return run


def _reindex_slowly(scene: Scene) -> Step:
    """A reindex whose embedder takes longer than a writer lives, while the document is removed for good."""

    def run(actor: Actor) -> Any:
        def remove_for_good(texts: Sequence[str]) -> None:
            actor.world.engine.documents.delete(TENANT, scene.named)
            actor.world.clock.advance(LIFE_S)
            sweep_until_quiet(actor.world)

        do.while_embedding(actor, remove_for_good)
        return do.reindex(actor, scene)

    return run


def _dies_at(call_name: str) -> Plan:
    """A plan by which the process dies after its first call of that name."""

    def plan(call: Call) -> Any:
        answer = call.perform()
        if call.label == call_name:
            raise Death
        return answer

    return plan


class _FirstGate(random.Random):
    """Randomness that always draws the first gate, where a reconcile writes its correction."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0


def _ingest_at_the_first_gate(scene: Scene) -> Step:
    def run(actor: Actor) -> Any:
        actor.engine.clock.random = _FirstGate("first gate")
        return do.ingest("loose", key=None)(actor, scene)

    return run


def _miscounted(world: World) -> Scene:
    """A collection with a counter that is off by five."""
    scene = do.serving()(world)
    gate = table.gate(TENANT, scene.collection, 3)
    world.dynamodb.update_item(
        TableName=TABLE,
        Key={"pk": {"S": gate.pk}, "sk": {"S": gate.sk}},
        UpdateExpression="ADD #documents :five",
        ExpressionAttributeNames={"#documents": "documents"},
        ExpressionAttributeValues={":five": {"N": "5"}},
    )
    return scene


def _counted_or_not(world: World, scene: Scene) -> list[Problem]:
    """The counter is right, or as wrong as it was."""
    rows = read_rows(world.items)
    counted = sum(gate.get("documents", 0) for gate in rows.gates[scene.collection])
    off = counted - len(rows.ready())
    chunks = sum(gate.get("chunks", 0) for gate in rows.gates[scene.collection])
    right = sum(head.chunk_count for head in rows.ready())
    if off in (0, 5) and chunks == right:
        return []
    return [Problem("counters_wrong", f"documents off by {off}, chunks by {chunks - right}")]


def _buried(world: World) -> Scene:
    """A served version whose chunks rank below hundreds of chunks of a version in progress."""
    scene = do.serving()(world)
    content = "\n\n".join(f"text text text x{number}" for number in range(450))

    def step(actor: Actor) -> Any:
        return actor.ingest(scene.collection, content, source_key=do.KEY)

    do.die_after(world, do.VECTORS, step)
    return scene


def _nothing(scene: Scene) -> Sequence[Step]:
    return [lambda actor: None]


SCRIPTS: tuple[Script, ...] = (
    Script(
        "an old attempt has read, and fails what was claimed since",
        do.empty,
        lambda scene: [_ingest_badly(scene), _later(_ingest(scene, "bad"))],
        (Switch(0, TRANSACT, 2, 1), Switch(1, do.VECTORS, 1, 0)),
        expect=((1, None),),
    ),
    Script(
        "an old attempt reads, and fails what was claimed before",
        do.empty,
        lambda scene: [_ingest_badly(scene), _later(_ingest(scene, "bad"))],
        (Switch(0, READ, 1, 1), Switch(1, do.VECTORS, 1, 0)),
        expect=((1, None),),
    ),
    Script(
        "an old attempt swaps what a dead one has claimed",
        do.empty,
        lambda scene: [_ingest(scene), _later(_ingest(scene))],
        (Switch(0, TRANSACT, 2, 1),),
        plans=(let_pass, _dies_at(TRANSACT)),
        expect=((0, IngestInterrupted),),
    ),
    Script(
        "an ingest records how much it writes while its document is removed, and dies",
        do.empty,
        lambda scene: [_ingest(scene), _delete_newest(scene)],
        (Switch(0, UPDATE, RESERVE, 1), Switch(1, TRANSACT, 1, 0)),
        plans=(_dies_at(ROWS), let_pass),
        expect=((1, None),),
    ),
    Script(
        "a sweep has read, and fails what has shown a sign of life since",
        do.empty,
        lambda scene: [_ingest_slowly(scene), _sweep],
        (Switch(0, UPDATE, EMBEDDED, 1), Switch(1, TRANSACT, 1, 0), Switch(0, ROWS, 1, 1)),
        expect=((0, None),),
    ),
    Script(
        "a claim has read, and takes what has shown a sign of life since",
        do.empty,
        lambda scene: [_ingest_slowly(scene), _ingest(scene)],
        (Switch(0, UPDATE, EMBEDDED, 1), Switch(1, TRANSACT, 1, 0), Switch(0, ROWS, 1, 1)),
        expect=((0, None), (1, None)),
    ),
    Script(
        "a sweep cleans what another has failed since it was listed, and its writer wakes up after both",
        do.empty,
        lambda scene: [_later(_sweep), _sweep, _ingest(scene)],
        (Switch(2, ROWS, 1, 0), Switch(0, READ, 1, 1)),
        first=2,
        plans=(let_pass, let_pass, _dies_at(ROWS)),
    ),
    Script(
        "a reindex wakes up when its document is gone for good, and dies",
        do.serving(),
        lambda scene: [_reindex_slowly(scene)],
        (),
        plans=(_dies_at(do.VECTORS),),
        mortal=False,
    ),
    Script(
        "a document comes while a reconcile corrects its collection's counters",
        _miscounted,
        lambda scene: [lambda actor: do.reconcile(actor, scene), _ingest_at_the_first_gate(scene)],
        (Switch(0, TRANSACT, 1, 1),),
        check=_counted_or_not,
        calm=False,
    ),
    Script(
        "a removal is written into a collection that was deleted meanwhile",
        do.empty,
        lambda scene: [lambda actor: do.delete_source("9")(actor, scene), _delete_collection_and_sweep(scene)],
        (Switch(0, TRANSACT, 1, 1),),
    ),
    Script(
        "an ingest is overtaken by a removal that has not come to its row yet",
        do.serving(),
        lambda scene: [_ingest(scene), lambda actor: do.delete_source()(actor, scene)],
        (Switch(0, READ, 1, 1), Switch(1, READ, 1, 0)),
    ),
    Script("served chunks rank below hundreds of chunks in progress", _buried, _nothing, ()),
)


def try_script(script: Script, options: Options) -> Tally:
    """Runs one script in a world of its own."""
    world = World(options.store(), options.seed)
    tally = Tally()
    try:
        tally.add(script.name, run_script(script, world))
    finally:
        world.close()
    return tally

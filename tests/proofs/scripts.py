"""Scripted races: meetings so exact that chance seldom finds them. Each is held at named calls, and goes on as told."""

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
"""Which of an ingest's heartbeats records how many chunks there will be, and which follows the embedding."""


@dataclass(frozen=True)
class Script:
    """One meeting.

    Attributes:
        first: who begins.
        expect: what must have come of it: the place of a process, and the error that it may end with; None: none.
        calm: whether the counters are right and nothing is left afterwards.
        mortal: whether who is older than a writer may be is ended; else it must end itself.
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
    """One meeting, to the quiet after it."""
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
    return [Problem("living_failed", f"ended so: {outcome.failure!r} {outcome.answer!r}")]


# -- what they do ------------------------------------------------------------------------------------


def _later(step: Step) -> Step:
    """The same, when what is in progress has stalled."""

    def run(actor: Actor) -> Any:
        actor.world.clock.advance(STALLED_S + 60)
        return step(actor)

    return run


def _ingest(scene: Scene, tag: str = "new") -> Step:
    return lambda actor: do.ingest(tag)(actor, scene)


def _ingest_slowly(scene: Scene) -> Step:
    """An ingest that seems to have stalled while it embeds."""

    def run(actor: Actor) -> Any:
        embed = actor.embedder.embed

        def slowly(texts: Any) -> Any:
            actor.world.clock.advance(STALLED_S + 60)
            return embed(texts)

        actor.embedder.embed = slowly  # type: ignore[method-assign]  # one instance's own
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
    """A reindex whose embedder takes longer than a writer lives, while the document goes for good."""

    def run(actor: Actor) -> Any:
        embed = actor.embedder.embed

        def slowly(texts: Any) -> Any:
            world = actor.world
            world.engine.documents.delete(TENANT, scene.named)
            world.clock.advance(LIFE_S)
            sweep_until_quiet(world)
            return embed(texts)

        actor.embedder.embed = slowly  # type: ignore[method-assign]  # one instance's own
        return do.reindex(actor, scene)

    return run


def _dies_at(call_name: str) -> Plan:
    """Dies after its first call of that name."""

    def plan(call: Call) -> Any:
        answer = call.perform()
        if call.label == call_name:
            raise Death
        return answer

    return plan


class _FirstGate(random.Random):
    """Chance that always falls on the first of all gates, where a correction is written."""

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
    """The counter is right, or as far off as it was."""
    rows = read_rows(world.items)
    counted = sum(gate.get("documents", 0) for gate in rows.gates[scene.collection])
    off = counted - len(rows.ready())
    chunks = sum(gate.get("chunks", 0) for gate in rows.gates[scene.collection])
    right = sum(head.chunk_count for head in rows.ready())
    if off in (0, 5) and chunks == right:
        return []
    return [Problem("counters_wrong", f"documents off by {off}, chunks by {chunks - right}")]


def _buried(world: World) -> Scene:
    """A version that is served beneath hundreds of nearer chunks of one on its way in."""
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
    Script("what is served lies beneath hundreds of chunks on their way in", _buried, _nothing, ()),
)


def try_script(script: Script, options: Options) -> Tally:
    """One meeting in a world of its own."""
    world = World(options.store(), options.seed)
    tally = Tally()
    try:
        tally.add(script.name, run_script(script, world))
    finally:
        world.close()
    return tally

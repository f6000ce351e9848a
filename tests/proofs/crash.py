"""Proof of crashes: wherever a process dies, a source is served whole in its old or in its new version, and nothing is
left behind.

Every write of every operation is cut in every way in which it can go wrong (`tests.proofs.cuts`). After each cut
questions are asked. Then either the sweeps run, or another process repeats the operation before they run. In the end
the stores must hold the state before the operation or the state after it. Real processes are killed too
(`tests.proofs.killed`).

Keys of the last line:

- ``operations``, ``cuts``, ``kills``: the operations, their cuts, and the processes that were killed.
- ``lost``: served or acknowledged data that is gone, or a state that is neither the one before nor the one after.
- ``mixed``: an answer or a document that holds what it must not: two versions, hidden or foreign chunks.
- ``orphans``: chunk rows, vectors and rows of documents that belong to nothing once the sweeps are through.
- ``counters_wrong``: counters of a collection that differ from a recount.
- ``empty_answers``: answers that lack chunks that are served.
- ``left``: work, marks, jobs or states that the sweeps have not finished.
- ``other``: anything else that must not happen; ``broken`` says what.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from tests.proofs.calls import Call, Plan, let_pass
from tests.proofs.command import Options, Report, main, spread
from tests.proofs.cuts import Cut, Kind, applies
from tests.proofs.harness import STALLED_S, Outcome, World, seeded
from tests.proofs.judge import Summary, look, summary, sweep_until_quiet
from tests.proofs.killed import kill
from tests.proofs.operations import OPERATIONS, Operation
from tests.proofs.tally import Tally, total
from tests.support.books import Problem

KINDS = ("lost", "mixed", "orphans", "counters_wrong", "empty_answers", "left", "other")
KILLS = 200
RECONCILE_S = 25 * 3600.0


@dataclass(frozen=True)
class Case:
    """One cut: which write is cut, in which way, and whether the operation is repeated before the sweeps."""

    at: int
    kind: Kind
    again: bool


class Trial:
    """One operation in a world of its own, which is cut again and again from the same state."""

    def __init__(self, operation: Operation, world: World) -> None:
        self._operation = operation
        self._world = world
        self._scene = operation.prepare(world)
        self._saved = world.save()
        self._before, first = self._end()
        self._set_back()
        self.writes: list[tuple[str, int]] = []
        self._acknowledges = self._run(self._count).acknowledged
        self._after, second = self._end()
        self._set_back()
        self._run(let_pass)
        self._run_again()
        self._after_again, third = self._end()
        self.problems = first + second + third

    def _count(self, call: Call) -> Any:
        if call.write:
            self.writes.append((call.label, len(call.pieces)))
        return call.perform()

    def _run(self, plan: Plan) -> Outcome:
        return self._world.run(lambda actor: self._operation.run(actor, self._scene), plan)

    def _run_again(self) -> None:
        """Another process repeats the operation, once the first process has stalled."""
        self._world.clock.advance(STALLED_S + 1)
        self._run(let_pass)

    def _set_back(self) -> None:
        self._world.set_back(self._saved)

    def _end(self) -> tuple[Summary, list[Problem]]:
        if self._operation.damaged:
            self._world.clock.advance(RECONCILE_S)
        rows, problems = sweep_until_quiet(self._world)
        return summary(rows, self._scene.known), problems

    def cases(self) -> Iterator[Case]:
        """Every possible cut of every write."""
        for at, (label, pieces) in enumerate(self.writes, 1):
            for kind in Kind:
                if applies(kind, label, pieces):
                    yield Case(at, kind, again=False)
                    yield Case(at, kind, again=True)

    def judge(self, case: Case) -> list[Problem]:
        """Cuts the operation once, lets the world recover, and says what is wrong."""
        self._set_back()
        cut = Cut(case.at, case.kind)
        outcome = self._run(cut)
        if case.kind in (Kind.END_LATE, Kind.CUT_OFF):
            cut.land()
        problems = [] if self._operation.damaged else look(self._world)[1]
        if not cut.done:
            problems.append(Problem("other", "the write was not reached"))
        if outcome.died != case.kind.deadly:
            problems.append(Problem("other", f"died: {outcome.died}, failure: {outcome.failure!r}"))
        if cut.late and not case.again:
            self._world.engine.recovery.sweep(timedelta(0))
        if case.again:
            self._run_again()
        cut.land()
        state, found = self._end()
        right = [self._after]
        if case.again or (outcome.acknowledged and not self._acknowledges):
            right.append(self._after_again)
        if not case.again and not outcome.acknowledged:
            right.append(self._before)
        if state not in right:
            problems.append(Problem("lost", f"neither before nor after: {_difference(state, self._after)}"))
        return problems + found


def _difference(state: Summary, after: Summary) -> str:
    return f"not there {sorted(after - state)}, there {sorted(state - after)}"


def try_operation(operation: Operation, options: Options, share: float = 1.0) -> Tally:
    """Cuts one operation.

    Args:
        share: the share of all cuts that is tried, drawn by the seed.
    """
    world = World(options.store(), options.seed)
    tally = Tally()
    chance = seeded("crash", options.seed, operation.name)
    try:
        trial = Trial(operation, world)
        tally.add(f"{operation.name}, uncut", trial.problems)
        tally.tried = 0
        for case in trial.cases():
            if share >= 1 or chance.random() < share:
                again = ", then again" if case.again else ""
                where = f"{operation.name}, write {case.at} ({trial.writes[case.at - 1][0]}) {case.kind}{again}"
                tally.add(where, trial.judge(case))
    except ValidationError as error:
        tally.add(operation.name, [Problem("other", f"a row that cannot be read: {error.title}")])
    finally:
        world.close()
    return tally


def _work(job: tuple[int, Options, float]) -> Tally:
    number, options, share = job
    return try_operation(OPERATIONS[number], options, share)


def prove(
    options: Options, tell: Callable[[str], None], share: float | None = None, kills: int | None = None
) -> Report:
    """Cuts every operation, then kills processes whose vectors are in a file. More rounds kill more processes; one
    round already tries every cut."""
    share = options.share() if share is None else share
    kills = KILLS * options.rounds if kills is None else kills
    jobs = [(number, options, share) for number in range(len(OPERATIONS))]
    tallies = list(spread(_work, jobs, options.processes, tell))
    killed = Tally()
    killed.add("killed processes", kill(kills, options.seed, tell))
    return report(tallies, killed, kills)


def report(tallies: list[Tally], killed: Tally, kills: int) -> Report:
    whole = total([*tallies, killed])
    return {
        "operations": len(OPERATIONS),
        "cuts": whole.tried - killed.tried,
        "kills": kills,
        **whole.report(KINDS),
    }


def held(report: Report) -> bool:
    return not any(report[kind] for kind in KINDS)


if __name__ == "__main__":
    main("crash", prove, held=held)

"""Deterministic interleavings: processes that hand over to one another just before a call to a store.

Only one process runs at any time. A `Schedule` says where the running process is held and which process goes on; the
same schedule gives the same run. Schedules with few switches are tried first, since few switches find most races
(M. Musuvathi and S. Qadeer, Iterative context bounding for systematic testing of multithreaded programs, PLDI 2007).
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.proofs.calls import Call, Death, Plan, let_pass
from tests.proofs.harness import LIFE_S, Actor, Outcome, World

Step = Callable[[Actor], Any]


@dataclass(frozen=True)
class Schedule:
    """The process that begins, and the switches: the number of the call before which a process is held, and the process
    that goes on."""

    first: int = 0
    switches: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        return " ".join([f"{self.first} begins", *(f"{to} at {at}" for at, to in self.switches)])


Chooser = Callable[[int, int, Sequence[int]], int]
"""Chooses the process that goes on, of a call's number, the process that is about to make the call, and the processes
that could go on."""


def fixed(schedule: Schedule) -> Chooser:
    """Follows a schedule. When a process has ended, the next one has its turn."""
    switches = dict(schedule.switches)

    def choose(number: int, current: int, able: Sequence[int]) -> int:
        wanted = switches.get(number, current)
        return wanted if wanted in able else current

    return choose


@dataclass(frozen=True)
class Switch:
    """One switch of a script.

    Attributes:
        process, call, nth: the process is held before its ``nth`` call of that name.
        to: the process that goes on.
    """

    process: int
    call: str
    nth: int
    to: int


class Script:
    """Follows switches in their order, each of them once."""

    def __init__(self, switches: Sequence[Switch]) -> None:
        self._left = list(switches)
        self._made: Counter[tuple[int, str]] = Counter()

    def next(self, process: int, call: Call) -> int:
        """The process that goes on when a process is about to make a call."""
        self._made[process, call.label] += 1
        if not self._left:
            return process
        first = self._left[0]
        if (first.process, first.call) != (process, call.label) or self._made[process, call.label] < first.nth:
            return process
        return self._left.pop(0).to


@dataclass
class Run:
    """What happened in one interleaving.

    Attributes:
        able: at each call, the processes that could have gone on; the process that was about to make the call is first.
    """

    outcomes: list[Outcome]
    able: list[tuple[int, ...]]


@dataclass
class _Process:
    step: Step
    plan: Plan
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    outcome: Outcome | None = None


class _Table:
    """The round table at which the processes take turns."""

    def __init__(self, world: World, processes: Sequence[_Process], choose: Chooser, first: int) -> None:
        self._world = world
        self._processes = processes
        self._choose = choose
        self._first = first
        self._over = threading.Semaphore(0)
        self.able: list[tuple[int, ...]] = []
        self.on_switch: Callable[[], None] = lambda: None
        self.script: Script | None = None
        self.mortal = True
        self._broken: list[Exception] = []

    def run(self) -> None:
        threads = [
            threading.Thread(target=self._live, args=(number,), daemon=True) for number in range(len(self._processes))
        ]
        for thread in threads:
            thread.start()
        self._processes[self._first].turn.release()
        self._over.acquire()
        for thread in threads:
            thread.join()
        if self._broken:
            raise self._broken[0]

    def _switch(self) -> None:
        try:
            self.on_switch()
        except Exception as error:  # noqa: BLE001 - raised again once all processes have ended
            self._broken.append(error)

    def _live(self, number: int) -> None:
        me = self._processes[number]
        me.turn.acquire()
        actor_plan = me.plan

        def plan(call: Call) -> Any:
            self._point(number, call)
            if self.mortal and call.write and self._world.clock.monotonic() - call.actor.born > LIFE_S:
                raise Death  # no writer lives that long
            return actor_plan(call)

        me.outcome = self._world.run(me.step, plan, chance=number)
        left = self._living()
        if left:
            self._switch()
            self._processes[left[0]].turn.release()
        else:
            self._over.release()

    def _living(self) -> list[int]:
        return [number for number, one in enumerate(self._processes) if one.outcome is None]

    def _point(self, number: int, call: Call) -> None:
        able = (number, *(one for one in self._living() if one != number))
        self.able.append(able)
        chosen = (
            self._choose(len(self.able) - 1, number, able) if self.script is None else self.script.next(number, call)
        )
        chosen = chosen if chosen in able else number
        if chosen != number:
            self._switch()
            self._processes[chosen].turn.release()
            self._processes[number].turn.acquire()


def interleave(
    world: World,
    steps: Sequence[Step],
    schedule: Schedule,
    *,
    choose: Chooser | None = None,
    switches: Sequence[Switch] = (),
    plans: Sequence[Plan] = (),
    on_switch: Callable[[], None] = lambda: None,
    mortal: bool = True,
) -> Run:
    """Runs processes from their beginning to their end, in turns that a schedule, ``choose`` or ``switches`` say.

    Args:
        mortal: whether a process dies at its next write when it is older than a writer's life.
    """
    processes = [_Process(step, plans[number] if plans else let_pass) for number, step in enumerate(steps)]
    table = _Table(world, processes, choose or fixed(schedule), schedule.first)
    table.on_switch = on_switch
    table.mortal = mortal
    table.script = Script(switches) if switches else None
    table.run()
    return Run([process.outcome for process in processes if process.outcome is not None], table.able)


def children(schedule: Schedule, run: Run) -> Iterator[Schedule]:
    """The schedules with one switch more than a schedule that was run; the new switch comes after all others."""
    start = schedule.switches[-1][0] + 1 if schedule.switches else 1
    for number in range(start, len(run.able)):
        for other in run.able[number][1:]:
            yield Schedule(schedule.first, (*schedule.switches, (number, other)))

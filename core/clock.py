"""Time, waiting and randomness are passed in, so that no test sleeps and every race can be replayed."""

import random
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

from core.model.ids import TypeId

Id = TypeVar("Id", bound=TypeId)


class Clock(Protocol):
    """What the engine knows of time and chance."""

    random: random.Random

    def now(self) -> datetime:
        """The present, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for durations and deadlines inside one process."""
        ...

    def sleep(self, seconds: float) -> None:
        """Waits."""
        ...


class SystemClock:
    """The machine's own time and randomness."""

    def __init__(self) -> None:
        self.random: random.Random = random.SystemRandom()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Lifetime:
    """How long a writer may go on writing. Over when either clock says so: a machine that was halted may have
    stopped its monotonic one."""

    def __init__(self, clock: Clock, life: timedelta) -> None:
        self._clock = clock
        self._monotonic = clock.monotonic() + life.total_seconds()
        self._wall = clock.now() + life

    def is_over(self) -> bool:
        return self._clock.monotonic() >= self._monotonic or self._clock.now() >= self._wall


def new_id(kind: type[Id], clock: Clock) -> Id:
    """A new identifier of now."""
    return kind.new(int(clock.now().timestamp() * 1000), clock.random.getrandbits(74))

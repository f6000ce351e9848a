"""Time, waiting and randomness. They are passed in, so that no test sleeps and every race can be replayed."""

import random
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

from core.model.ids import TypeId

Id = TypeVar("Id", bound=TypeId)


class Clock(Protocol):
    """The engine's source of time and randomness."""

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
        """Returns the machine's wall clock, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Returns the machine's monotonic clock, in seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Waits for real."""
        time.sleep(seconds)


class Lifetime:
    """The life of a writer, after which it must not write any more.

    The life is over when the monotonic clock or the wall clock says so, because a halted machine may have stopped its
    monotonic clock.
    """

    def __init__(self, clock: Clock, life: timedelta) -> None:
        self._clock = clock
        self._monotonic = clock.monotonic() + life.total_seconds()
        self._wall = clock.now() + life

    def is_over(self) -> bool:
        """Tells whether the life is over."""
        return self._clock.monotonic() >= self._monotonic or self._clock.now() >= self._wall


def new_id(kind: type[Id], clock: Clock) -> Id:
    """Makes a new ID that carries the present time."""
    return kind.new(int(clock.now().timestamp() * 1000), clock.random.getrandbits(74))

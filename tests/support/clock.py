"""Clocks for tests."""

import random
import threading
from datetime import UTC, datetime, timedelta
from typing import Protocol

from core.clock import Clock


class MovableClock(Clock, Protocol):
    """A clock of a test, which lets time pass."""

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        ...


class ManualClock:
    """A clock that starts at a fixed moment and moves on only by `sleep` and `advance`, at once. Its randomness is
    seeded."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self._start = datetime(2026, 1, 1, tzinfo=UTC)
        self._elapsed = 0.0
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        with self._lock:
            self._elapsed += seconds

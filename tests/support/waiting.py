"""Waiting for what other threads and processes do, within a bound."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LONGEST_S = 60.0
PAUSE_S = 0.02


def until(condition: Callable[[], T], longest_s: float = LONGEST_S) -> T:
    """The condition's first true value.

    Raises:
        AssertionError: there was none in time.
    """
    ends = time.monotonic() + longest_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < ends, f"not true after {longest_s:.0f} s"
        time.sleep(PAUSE_S)

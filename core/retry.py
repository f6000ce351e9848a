"""Waiting between tries: the one way in which Weft repeats a request or a step.

The waits follow *full jitter* (Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015): each wait
is drawn at random between zero and a bound, and the bound doubles from try to try. Many callers that failed at the same
moment are thereby spread over time.

A library such as tenacity is not used, because the waits and their randomness must come from the engine's `Clock`:
tests and proofs replay every race without sleeping.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from core.clock import Clock


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often something is tried, and how long the waits between the tries are.

    Attributes:
        tries: the number of tries, at least 1.
        first_wait_s: the bound of the first wait, in seconds.
        longest_wait_s: the bound that later waits never exceed, in seconds.
    """

    tries: int
    first_wait_s: float
    longest_wait_s: float

    def wait_s(self, clock: Clock, failures: int, at_most_s: float = inf) -> float:
        """Draws the wait that follows a number of failed tries, in seconds.

        Args:
            failures: how many tries have failed so far, at least 1.
            at_most_s: a further bound of this wait, in seconds.
        """
        bound = min(self.longest_wait_s, self.first_wait_s * 2 ** (failures - 1), at_most_s)
        return clock.random.uniform(0, max(bound, 0.0))


def attempts(clock: Clock, backoff: Backoff, deadline: float = inf) -> Iterator[int]:
    """Yields the number of each try, from 1, and sleeps before every try but the first.

    The caller leaves the loop when a try succeeds. The loop ends by itself after the last try, without a wait, and
    before a try that would begin after the deadline.

    Args:
        deadline: a moment of the clock's monotonic time. No wait is drawn beyond it.
    """
    for number in range(1, backoff.tries + 1):
        if number > 1:
            clock.sleep(backoff.wait_s(clock, number - 1, deadline - clock.monotonic()))
        if clock.monotonic() > deadline:
            return
        yield number

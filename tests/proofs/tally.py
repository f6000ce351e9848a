"""Tallies count the trials of a proof and the promises that they broke."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.books import Problem

SHOWN = 3


@dataclass
class Tally:
    """The count of one piece of a proof.

    Attributes:
        tried: the number of trials.
        problems: the number of problems, by kind.
        broken: the first problems of each kind, with the trial that shows each of them again.
    """

    tried: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def add(self, where: str, problems: Iterable[Problem]) -> None:
        """Counts one more trial, named ``where``, and its problems."""
        self.tried += 1
        for problem in problems:
            self.problems[problem.kind] += 1
            if self.problems[problem.kind] <= SHOWN:
                self.broken.append(f"{problem.kind}: {where}: {problem.detail}")

    def report(self, kinds: Sequence[str]) -> dict[str, Any]:
        """The last part of a proof's last line: the number of problems of each kind, and ``broken``."""
        return {**{kind: self.problems[kind] for kind in kinds}, "broken": self.broken}


def total(tallies: Sequence[Tally]) -> Tally:
    """The tally of all pieces of a proof together."""
    return Tally(
        sum(tally.tried for tally in tallies),
        sum((tally.problems for tally in tallies), Counter[str]()),
        [line for tally in tallies for line in tally.broken],
    )

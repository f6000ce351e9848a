"""What a proof has tried, and what it saw broken."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.support.books import Problem

SHOWN = 3


@dataclass
class Tally:
    """Counts of one piece of a proof, and a few of the broken promises of each kind, with how to see them again."""

    tried: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def add(self, where: str, problems: Iterable[Problem]) -> None:
        """One more trial."""
        self.tried += 1
        for problem in problems:
            self.problems[problem.kind] += 1
            if self.problems[problem.kind] <= SHOWN:
                self.broken.append(f"{problem.kind}: {where}: {problem.detail}")


def total(tallies: Sequence[Tally]) -> Tally:
    """All pieces of a proof."""
    return Tally(
        sum(tally.tried for tally in tallies),
        sum((tally.problems for tally in tallies), Counter[str]()),
        [line for tally in tallies for line in tally.broken],
    )

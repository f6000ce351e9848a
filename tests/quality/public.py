"""Public collections in tests: measured where they are found, and what is left out is said."""

import pytest

from tests.quality import corpora
from tests.quality.corpora import Corpus

ABSENT = (
    "Public test collections are measured where they are found: in the folder shared/data beside the project, or in "
    f"the one that {corpora.VARIABLE} names"
)


def public(name: str) -> Corpus:
    """A public collection. Leaves a test out where it is not found."""
    if name not in corpora.found(corpora.folder()):
        pytest.skip(ABSENT)
    return corpora.read(corpora.folder() / name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says in plain words what was left out, and what was not."""
    skipped = terminalreporter.stats.get("skipped", [])
    if count := sum(ABSENT in str(report.longrepr) for report in skipped):
        own = "The project's own were measured"
        terminalreporter.write_line(f"{count} tests of ranking were left out. {ABSENT}. {own}.", yellow=True)

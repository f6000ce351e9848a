"""Reranker: the stage that judges how well texts answer a query."""

from collections.abc import Sequence
from typing import Protocol

from core.clock import Clock
from core.model.component import Component


class Reranker(Protocol):
    """A reranking model. Thread-safe.

    Attributes:
        name: the model's name.
    """

    name: str

    def rerank(self, query: str, texts: Sequence[str], deadline: float | None = None) -> list[float]:
        """Scores how relevant each text is to a query.

        A score depends on the query and its own text alone, so that scores of different calls can be compared. A blank
        text has the score 0. Of a text that is longer than the model takes, the model reads the beginning, and the
        score stands for the whole text.

        Args:
            deadline: a moment of the clock's monotonic time, by which the call has to be done. The reranker also has a
                limit of its own, ``WEFT_RERANK_SECONDS``; None: only this limit holds. A call that is not done in time
                returns no scores at all, since the scores of some of the texts would not rank them.

        Returns:
            A score from 0 to 1 for each text, in the order of the texts. Higher is better.

        Raises:
            InvalidArgument: the query is blank.
            NotConfigured: the model refuses for a reason that only the operator can correct.
            Unavailable: the model is throttled, does not answer, or is not done in time. Try again later.
        """
        ...

    def describe(self) -> Component:
        """Returns what clients are told about this reranker.

        The description's ``max_tokens`` is how many tokens of a query and a text together the model reads; 0 when that
        is not known.
        """
        ...


def end_of_call(clock: Clock, seconds: float, deadline: float | None) -> float:
    """Returns the moment, in the clock's monotonic time, by which a call of a reranker has to be done.

    Args:
        seconds: the reranker's own limit, in seconds from now.
        deadline: the caller's deadline, in the clock's monotonic time; None: the caller has none.
    """
    own = clock.monotonic() + seconds
    return own if deadline is None else min(own, deadline)

"""Reranker: the stage that judges how well texts answer a query."""

from collections.abc import Sequence
from typing import Protocol

from core.model.component import Component


class Reranker(Protocol):
    """One reranking model. Thread-safe.

    Attributes:
        name: the model's.
    """

    name: str

    def rerank(self, query: str, texts: Sequence[str], deadline: float | None = None) -> list[float]:
        """The relevance of each text, 0 to 1, higher is better, in the order of the texts.

        A score depends on the query and its own text alone, so that scores of different calls compare. A blank text
        has 0. A model reads the beginning of a text that is longer than it takes: the whole chunk is judged by it.

        Slow is what is not done within the reranker's own limit, ``WEFT_RERANK_SECONDS``, or by the deadline. No
        scores are answered then: some alone would rank nothing.

        Args:
            deadline: a moment of the clock's monotonic time; None: the reranker's own limit alone.

        Raises:
            InvalidArgument: the query is blank.
            Unavailable: the model is throttled, slow or does not answer.
            NotConfigured: the model refuses for what only the operator can correct.
        """
        ...

    def describe(self) -> Component:
        """``max_tokens`` is how much of a query and a text the model reads."""
        ...

"""The reranker of an engine: its calls are timed, and queries that need a reranker are refused when there is none."""

from collections.abc import Sequence

from core.model.component import Component
from core.model.errors import NotConfigured
from core.observe import Observer
from core.reranking.types import Reranker


class MeasuredReranker:
    """Passes each call on to a reranker, and records how long the call took."""

    def __init__(self, reranker: Reranker, observer: Observer) -> None:
        self._reranker = reranker
        self._observer = observer
        self.name = reranker.name

    def rerank(self, query: str, texts: Sequence[str], deadline: float | None = None) -> list[float]:
        """Scores texts, as `core.reranking.types.Reranker` says."""
        with self._observer.model_call(self.name):
            return self._reranker.rerank(query, texts, deadline)

    def describe(self) -> Component:
        """Describes the reranker behind the measurement."""
        return self._reranker.describe()


def require_reranker(reranker: Reranker | None) -> Reranker:
    """Returns the reranker, when there is one.

    Raises:
        NotConfigured: no reranker is configured. Set WEFT_RERANKER, or choose another strategy.
    """
    if reranker is None:
        raise NotConfigured("No reranker is configured: set WEFT_RERANKER, or ask for another strategy")
    return reranker

"""Tells what an engine runs and whether its stores answer."""

import logging

from core.embedding.embedders import Embedders
from core.loading.loaders import Loaders
from core.metadata.dynamo import Table
from core.model.component import Component, Components, Health, TenantFilter
from core.model.query import ScoreKind, Strategy
from core.reranking.types import Reranker
from core.splitting.splitters import Splitters
from core.vectors.types import VectorStore

logger = logging.getLogger(__name__)


class StatusService:
    """Describes an engine and asks its stores."""

    def __init__(
        self,
        table: Table,
        loaders: Loaders,
        splitters: Splitters,
        embedders: Embedders,
        vectors: VectorStore | None,
        reranker: Reranker | None,
    ) -> None:
        self._table = table
        self._loaders = loaders
        self._splitters = splitters
        self._embedders = embedders
        self._vectors = vectors
        self._reranker = reranker

    def components(self) -> Components:
        """Describes every stage that the engine runs. A stage that is not configured says so."""
        embedder = self._embedders.default()
        strategies = {
            Strategy.SIMILARITY: ScoreKind.COSINE,
            Strategy.MMR: ScoreKind.MMR_RELEVANCE,
            Strategy.HYBRID: ScoreKind.RRF,
        }
        if self._reranker is not None:
            strategies[Strategy.RERANK] = ScoreKind.RRF
        return Components(
            loader=self._loaders.describe(),
            chunker=self._splitters.describe(),
            embedder=embedder.describe() if embedder else Component(),
            vector_store=self._vectors.describe() if self._vectors else Component(),
            retriever=Component(name="strategies", type=", ".join(strategies), configured=True),
            reranker=self._reranker.describe() if self._reranker else Component(),
            strategies=strategies,
            score=strategies[Strategy.SIMILARITY],
            tenant_filter=self._vectors.tenant_filter() if self._vectors else TenantFilter.UNVERIFIED,
        )

    def health(self) -> Health:
        """Asks the metadata store and the vector store whether they answer. Never raises."""
        pings = {"metadata": self._table.ping}
        if self._vectors is not None:
            pings["vectors"] = self._vectors.ping
        answers = {}
        for name, ping in pings.items():
            try:
                ping()
                answers[name] = "ok"
            except Exception as error:  # noqa: BLE001 - whatever a store raises, the store does not answer
                logger.warning("The %s store fails: %s", name, type(error).__name__)
                answers[name] = "failing"
        status = "ok" if set(answers.values()) == {"ok"} else "failing"
        return Health(status=status, stores=answers)

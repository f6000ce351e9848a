"""The engine: the services of the rooms put together."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.catalog.collections import CollectionService
from core.catalog.documents import DocumentService
from core.ingest.ingest import IngestService
from core.ingest.uploads import UploadService
from core.model.component import Component, Components, Health, TenantFilter
from core.model.context import AssembledContext, AssembleOptions, ChunkRef
from core.model.hit import AssembledRefs, CompareResult, Hit, RetrieveResult
from core.model.query import RetrieveQuery, ScoreKind, Strategy
from core.model.tenant import Tenant
from core.parts import Parts
from core.recovery.reconcile import ReconcileService
from core.recovery.reindex import ReindexService
from core.recovery.sweep import RecoveryService
from core.retrieval.assemble import assemble, assemble_refs, find_counter
from core.retrieval.compare import compare
from core.retrieval.retrieve import retrieve

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

logger = logging.getLogger(__name__)


class Engine:
    """Everything that Weft does, for one configuration. Thread-safe.

    ``core/README.md`` maps the specification's engine functions to these members.
    """

    def __init__(self, parts: Parts, s3: "S3Client | None" = None) -> None:
        self._parts = parts
        self.settings = parts.settings
        self.clock = parts.clock
        self.extensions = parts.extensions
        self.collections = CollectionService(parts)
        self.documents = DocumentService(parts)
        self.ingest = IngestService(parts)
        self.uploads = UploadService(parts, s3)
        self.reindex = ReindexService(parts)
        self.reconcile = ReconcileService(parts)
        self.recovery = RecoveryService(parts, self.reindex, self.reconcile)

    def retrieve(
        self,
        tenant: Tenant,
        query: RetrieveQuery,
        assembled: AssembleOptions | None = None,
        deadline: float | None = None,
    ) -> RetrieveResult:
        """The chunks that answer a question best, as `core.retrieval.retrieve.retrieve`; with a context of them, as
        `core.retrieval.assemble.assemble`, where ``assembled`` says how."""
        if assembled is None:
            return retrieve(self._parts, tenant, query, deadline)
        find_counter(self._parts, assembled.token_counter)  # refused before anything is embedded
        result = retrieve(self._parts, tenant, query, deadline)
        return result.model_copy(update={"context": self.assemble(tenant, result.hits, assembled)})

    def compare(self, tenant: Tenant, query: RetrieveQuery, deadline: float | None = None) -> CompareResult:
        """The final ranking beside the raw vector ranking, as `core.retrieval.compare.compare`."""
        return compare(self._parts, tenant, query, deadline)

    def assemble(self, tenant: Tenant, hits: Sequence[Hit], options: AssembleOptions | None = None) -> AssembledContext:
        """A context of hits, as `core.retrieval.assemble.assemble`."""
        return assemble(self._parts, tenant, hits, options or AssembleOptions())

    def assemble_refs(
        self, tenant: Tenant, refs: Sequence[ChunkRef], options: AssembleOptions | None = None
    ) -> AssembledRefs:
        """A context of chunks named by an earlier ranking, as `core.retrieval.assemble.assemble_refs`."""
        return assemble_refs(self._parts, tenant, refs, options or AssembleOptions())

    def components(self) -> Components:
        """What this engine runs. A stage that is not configured says so."""
        parts = self._parts
        embedder = next(iter(parts.embedders.values()), None)
        strategies = {
            Strategy.SIMILARITY: ScoreKind.COSINE,
            Strategy.MMR: ScoreKind.MMR_RELEVANCE,
            Strategy.HYBRID: ScoreKind.RRF,
        }
        if parts.reranker is not None:
            strategies[Strategy.RERANK] = ScoreKind.RRF
        return Components(
            loader=parts.loaders.describe(),
            chunker=parts.splitters.describe(),
            embedder=embedder.describe() if embedder else Component(),
            vector_store=parts.vectors.describe() if parts.vectors else Component(),
            retriever=Component(name="strategies", type=", ".join(strategies), configured=True),
            reranker=parts.reranker.describe() if parts.reranker else Component(),
            strategies=strategies,
            score=strategies[Strategy.SIMILARITY],
            tenant_filter=parts.vectors.tenant_filter() if parts.vectors else TenantFilter.UNVERIFIED,
        )

    def health(self) -> Health:
        """Asks the metadata store and the vector store. Never raises."""
        stores = {"metadata": self._parts.table.ping}
        if self._parts.vectors is not None:
            stores["vectors"] = self._parts.vectors.ping
        answers = {}
        for name, ping in stores.items():
            try:
                ping()
                answers[name] = "ok"
            except Exception as error:  # noqa: BLE001 - whatever a store raises, it does not answer
                logger.warning("The %s store fails: %s", name, type(error).__name__)
                answers[name] = "failing"
        status = "ok" if set(answers.values()) == {"ok"} else "failing"
        return Health(status=status, stores=answers)

    def start(self) -> None:
        """Starts the recovery loop of a long-running host, when an interval is set."""
        self.recovery.start()

    def stop(self) -> None:
        """Stops the recovery loop, waits for a sweep in progress, and lets go of the stores."""
        self.recovery.stop()
        self.extensions.fire("shutdown")
        if self._parts.vectors is not None:
            self._parts.vectors.close()

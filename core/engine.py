"""The engine: everything that Weft does, for one configuration.

Its constructor is the one composition: here each service gets what it needs. `core.wiring` chooses the
implementations that the settings name.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from core.catalog.chunks import ChunkService
from core.catalog.collections import CollectionService
from core.catalog.documents import DocumentService
from core.catalog.status import StatusService
from core.clock import Clock
from core.deletion.collections import CollectionDeletion
from core.deletion.documents import DocumentDeletion
from core.deletion.purge import Purger
from core.deletion.sources import SourceDeletion
from core.embedding.embedders import Embedders
from core.embedding.types import Embedder
from core.ingest.attempt import AttemptRunner
from core.ingest.begin import Beginning
from core.ingest.completion import Completion
from core.ingest.finish import Finisher, FinishQueue
from core.ingest.hold import Holds
from core.ingest.keyed import KeyedBeginning
from core.ingest.plan import Planner
from core.ingest.refusal import Refusals
from core.ingest.service import IngestService
from core.ingest.stages import Stages
from core.ingest.unkeyed import UnkeyedBeginning
from core.ingest.uploads import UploadService
from core.loading.loaders import Loaders
from core.metadata.dynamo import Table
from core.metadata.store import MetadataStore
from core.model.comparison import CompareResult
from core.model.context import AssembledContext, AssembleOptions, ChunkRef
from core.model.hit import AssembledRefs, Hit, RetrieveResult
from core.model.query import RetrieveQuery
from core.model.tenant import Tenant
from core.observe import Extension, Metrics, Observer
from core.protocol.failing import Failing
from core.protocol.served import Served
from core.protocol.transitions import Transitions
from core.recovery.due_rows import DueRows
from core.recovery.jobs import JobRunner
from core.recovery.reconcile import ReconcileService
from core.recovery.reembedding import Reembedding
from core.recovery.reindex import ReindexService
from core.recovery.sweep import RecoveryService
from core.reranking.measured import MeasuredReranker
from core.reranking.types import Reranker
from core.retrieval.assemble import AssembleService
from core.retrieval.compare import CompareService
from core.retrieval.reasons import Reasons
from core.retrieval.retrieve import RankedSearch, RetrieveService
from core.retrieval.scope import ScopeResolver
from core.retrieval.search import Searcher
from core.settings import Settings
from core.splitting.splitters import Splitters
from core.vectors.types import VectorStore
from core.vectors.unconfigured import UNCONFIGURED

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


class Engine:
    """Everything that Weft does, for one configuration. Thread-safe.

    ``core/README.md`` maps the functions of the Weave engine, whose behaviour Weft keeps, to these members.

    Args:
        embedders: the first is the default of a new collection; none: nothing can be ingested or retrieved.
        vectors: None where no vector store is configured.
        reranker: None where no reranker is configured.
        finish_queue: brings back documents that searches do not see within their call; None: such an ingest fails.
        extensions: in the order in which their hooks are called.
        metrics: None: nothing is measured.
        s3: signs uploads; None: uploads are not configured.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        clock: Clock,
        table: Table,
        loaders: Loaders,
        splitters: Splitters,
        embedders: Sequence[Embedder],
        vectors: VectorStore | None,
        reranker: Reranker | None = None,
        finish_queue: FinishQueue | None = None,
        extensions: Sequence[Extension] = (),
        metrics: Metrics | None = None,
        s3: "S3Client | None" = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.observer = Observer(clock, extensions, metrics)
        self._loaders = loaders
        self._splitters = splitters
        self._vectors = vectors
        self._store = vectors or UNCONFIGURED
        self._embedders = Embedders(embedders, self.observer)
        self._reranker = MeasuredReranker(reranker, self.observer) if reranker else None
        self._writer_life = timedelta(seconds=settings.writer_life_s)
        self.metadata = MetadataStore(table)
        self._transitions = Transitions(table, clock, self._writer_life)
        self._served = Served(self.metadata.documents, self.metadata.collections)
        self._compose_deletion()
        self._compose_ingest(finish_queue, s3)
        self._compose_retrieval()
        self._compose_jobs()
        self._compose_recovery()
        self._compose_catalog()

    # -- composition ---------------------------------------------------------------------------------

    def _compose_deletion(self) -> None:
        metadata, clock = self.metadata, self.clock
        self._failing = Failing(metadata.documents, self._transitions)
        self._purger = Purger(metadata.documents, self._transitions, self._store, clock)
        self._document_deletion = DocumentDeletion(metadata.documents, self._transitions, self._purger, clock)
        self._source_deletion = SourceDeletion(
            metadata.documents, metadata.collections, self._transitions, self._document_deletion, clock
        )
        self._collection_deletion = CollectionDeletion(
            metadata.collections,
            metadata.documents,
            self._document_deletion,
            self.observer,
            clock,
            self._writer_life,
        )

    def _compose_ingest(self, finish_queue: FinishQueue | None, s3: "S3Client | None") -> None:
        metadata, clock, observer = self.metadata, self.clock, self.observer
        documents, collections, transitions = metadata.documents, metadata.collections, self._transitions
        beginning = Beginning(collections, transitions, self._failing, observer, clock, self.settings.stalled_after)
        holds = Holds(documents, collections, transitions, clock, self._writer_life)
        completion = Completion(documents, self._purger, observer)
        stages = Stages(documents, self._embedders, self._store, observer, wait_for_searches=finish_queue is None)
        runner = AttemptRunner(
            stages=stages,
            documents=documents,
            fields=metadata.fields,
            failing=self._failing,
            purger=self._purger,
            completion=completion,
            finish_queue=finish_queue,
            observer=observer,
            clock=clock,
        )
        self.ingest = IngestService(
            planner=Planner(collections, self._embedders, self._store, self._loaders, self._splitters, clock),
            keyed=KeyedBeginning(documents, collections, transitions, beginning),
            unkeyed=UnkeyedBeginning(documents, transitions, beginning),
            holds=holds,
            runner=runner,
            finisher=Finisher(documents, self._store, holds, completion),
            refusals=Refusals(documents, collections, transitions, beginning, observer, clock),
            observer=observer,
            clock=clock,
            concurrency=self.settings.ingest_concurrency,
        )
        self.uploads = UploadService(metadata.uploads, collections, self._loaders, s3, self.settings, clock)

    def _compose_retrieval(self) -> None:
        metadata, observer, clock = self.metadata, self.observer, self.clock
        scopes = ScopeResolver(metadata.collections, metadata.fields, self._embedders, self._store, self._reranker)
        searcher = Searcher(metadata.documents, metadata.collections, self._served, self._store, observer, clock)
        ranked_search = RankedSearch(searcher, self._embedders, self._reranker)
        reasons = Reasons(metadata.collections, self._store)
        self._retrieve = RetrieveService(scopes, ranked_search, reasons, observer)
        self._compare = CompareService(scopes, ranked_search, reasons, observer, clock)
        self._assemble = AssembleService(metadata.documents, self._served, self._embedders)

    def _compose_jobs(self) -> None:
        metadata, clock = self.metadata, self.clock
        runner = JobRunner(metadata.jobs, clock)
        reembedding = Reembedding(self._embedders, self._store, self._served)
        self.reindex = ReindexService(
            metadata.collections,
            metadata.documents,
            metadata.jobs,
            runner,
            self._embedders,
            reembedding,
            self.observer,
            clock,
            self._writer_life,
        )
        self.reconcile = ReconcileService(
            metadata.collections,
            metadata.documents,
            metadata.jobs,
            runner,
            self._served,
            reembedding,
            self._store,
            clock,
            self._writer_life,
            self._reconcile_interval,
        )

    def _compose_recovery(self) -> None:
        metadata = self.metadata
        due_rows = DueRows(
            sweep_index=metadata.sweep_index,
            documents=metadata.documents,
            collections=metadata.collections,
            jobs=metadata.jobs,
            failing=self._failing,
            purger=self._purger,
            collection_deletion=self._collection_deletion,
            reindex=self.reindex,
            reconcile=self.reconcile,
            observer=self.observer,
            clock=self.clock,
        )
        self.recovery = RecoveryService(metadata.sweep_index, metadata.documents, due_rows, self.clock, self.settings)

    @property
    def _reconcile_interval(self) -> timedelta:
        return timedelta(hours=self.settings.reconcile_interval_h)

    def _compose_catalog(self) -> None:
        metadata = self.metadata
        self.collections = CollectionService(
            collections=metadata.collections,
            jobs=metadata.jobs,
            listings=metadata.listings,
            deletion=self._collection_deletion,
            embedders=self._embedders,
            splitters=self._splitters,
            vectors=self._store,
            reranker=self._reranker,
            observer=self.observer,
            clock=self.clock,
            first_reconcile_after=self._reconcile_interval,
        )
        self.documents = DocumentService(
            documents=metadata.documents,
            collections=metadata.collections,
            listings=metadata.listings,
            document_deletion=self._document_deletion,
            source_deletion=self._source_deletion,
            vectors=self._store,
            observer=self.observer,
        )
        self.status = StatusService(
            metadata.table, self._loaders, self._splitters, self._embedders, self._vectors, self._reranker
        )
        self.chunks = ChunkService(
            metadata.documents, metadata.collections, self._served, metadata.listings, self.documents
        )

    # -- retrieval -----------------------------------------------------------------------------------

    def retrieve(
        self,
        tenant: Tenant,
        query: RetrieveQuery,
        assemble: AssembleOptions | None = None,
        deadline: float | None = None,
    ) -> RetrieveResult:
        """Returns the chunks that answer a query best, as `core.retrieval.retrieve.RetrieveService` says.

        Args:
            assemble: when given, the answer also has a context of the hits, assembled with these options.
            deadline: monotonic seconds of the engine's clock. No search and no reranking begins after it.
        """
        if assemble is None:
            return self._retrieve.retrieve(tenant, query, deadline)
        self._assemble.counter(assemble.token_counter)  # an unknown counter is refused before anything is embedded
        result = self._retrieve.retrieve(tenant, query, deadline)
        return result.model_copy(update={"context": self.assemble(tenant, result.hits, assemble)})

    def compare(self, tenant: Tenant, query: RetrieveQuery, deadline: float | None = None) -> CompareResult:
        """Returns two rankings side by side, as `core.retrieval.compare.CompareService` says."""
        return self._compare.compare(tenant, query, deadline)

    def assemble(self, tenant: Tenant, hits: Sequence[Hit], options: AssembleOptions | None = None) -> AssembledContext:
        """Assembles a context of hits, as `core.retrieval.assemble.AssembleService` says."""
        return self._assemble.assemble(tenant, hits, options or AssembleOptions())

    def assemble_refs(
        self, tenant: Tenant, refs: Sequence[ChunkRef], options: AssembleOptions | None = None
    ) -> AssembledRefs:
        """Assembles a context of chunks that an earlier ranking named, as `core.retrieval.assemble` says."""
        return self._assemble.assemble_refs(tenant, refs, options or AssembleOptions())

    # -- life ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the recovery loop of a long-running host, when an interval is set."""
        self.recovery.start()

    def stop(self) -> None:
        """Stops the recovery loop, waits for a sweep in progress, and closes the stores."""
        self.recovery.stop()
        self.observer.fire("shutdown")
        if self._vectors is not None:
            self._vectors.close()

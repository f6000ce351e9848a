"""Checks an ingest's input before anything is written, and plans the ingest."""

from dataclasses import dataclass

from core.clock import Clock
from core.embedding.embedders import Embedders
from core.embedding.types import Embedder
from core.ingest.description import validate_description
from core.ingest.fingerprint import content_hash, fingerprint_of
from core.loading.loaders import Loaders
from core.loading.types import Loader
from core.metadata.collections import Collections
from core.metadata.rows import CollectionRow
from core.model.errors import EmptyContent, InvalidArgument
from core.model.ingest import IngestInput
from core.model.tenant import Tenant
from core.splitting.splitters import Splitters
from core.splitting.types import Splitter
from core.vectors.types import VectorStore
from core.vectors.unconfigured import require_vector_store


@dataclass(frozen=True)
class Plan:
    """Everything that an ingest knows before it begins.

    Attributes:
        charset: the character set that the source type names; None: it is detected.
        content_hash: SHA-256 of the content, in hex.
        fingerprint: the hash of the content and of the settings that shape what is made of it.
        writer: the random name of this ingest, by which the ingest knows its own writes.
        deadline: monotonic seconds. No new piece of work begins after it.
    """

    tenant: Tenant
    input: IngestInput
    collection: CollectionRow
    loader: Loader
    charset: str | None
    splitter: Splitter
    embedder: Embedder
    content_hash: str
    fingerprint: str
    writer: str
    deadline: float


class Planner:
    """Plans ingests."""

    def __init__(
        self,
        collections: Collections,
        embedders: Embedders,
        vectors: VectorStore,
        loaders: Loaders,
        splitters: Splitters,
        clock: Clock,
    ) -> None:
        self._collections = collections
        self._embedders = embedders
        self._vectors = vectors
        self._loaders = loaders
        self._splitters = splitters
        self._clock = clock

    def plan(self, tenant: Tenant, document: IngestInput, deadline: float) -> Plan:
        """Checks an ingest's input and finds the loader, splitter and embedder for it. Nothing is written.

        Raises:
            InvalidArgument, EmptyContent, UnsupportedMediaType: the input is refused. Correct it and call again.
            CollectionNotFound: the tenant has no such collection.
            NotConfigured: the vector store, or the collection's embedder, is not configured.
        """
        require_vector_store(self._vectors)
        if not document.content:
            raise EmptyContent("There is nothing to ingest", field="content")
        if document.source_version is not None and document.source_key is None:
            raise InvalidArgument("A source_version needs a source_key", field="source_version")
        validate_description(document)
        loader, charset = self._loaders.find(document.source_type)
        collection = self._collections.active(tenant, document.collection_id)
        embedder = self._embedders.of_space(collection.space)
        splitter = self._splitters.find(collection.chunk_strategy)
        loader.check(document.content, charset)
        hash_of_content = content_hash(document.content)
        return Plan(
            tenant=tenant,
            input=document,
            collection=collection,
            loader=loader,
            charset=charset,
            splitter=splitter,
            embedder=embedder,
            content_hash=hash_of_content,
            fingerprint=fingerprint_of(
                hash_of_content,
                loader=loader.name,
                charset=charset,
                splitter=splitter.name,
                row=collection,
                attributes=None if document.source_key is None else document.attributes,
            ),
            writer=f"{self._clock.random.getrandbits(64):016x}",
            deadline=deadline,
        )

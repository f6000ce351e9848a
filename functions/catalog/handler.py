"""The catalog's routes: collections, documents, chunks, and what the engine says of itself."""

from typing import Annotated

from fastapi import Query, Response

from core.http.answers import problems, unfinished
from core.http.app import create_app, lambda_handler
from core.http.dependencies import CurrentEngine, CurrentTenant, Deadline
from core.http.limits import fit_page
from core.http.schemas import ChunksQuery, CollectionsQuery, DocumentsQuery, ListAnswer, PageQuery
from core.model.chunk import Chunk
from core.model.collection import Collection, CollectionStats, CollectionUpdate, NewCollection
from core.model.component import Components, ExtensionInfo, Health
from core.model.document import Document, LineageChain
from core.model.errors import (
    ChunkNotFound,
    CollectionAlreadyExists,
    CollectionNotFound,
    DocumentNotFound,
    InvalidArgument,
    PayloadTooLarge,
    ReindexNotFound,
    UnsupportedMediaType,
)
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.ingest import Deletion
from core.model.recovery import ReindexProgress

app = create_app("Weft catalog")


@app.post(
    "/v1/collections",
    status_code=201,
    tags=["collections"],
    responses=problems(CollectionAlreadyExists, PayloadTooLarge, UnsupportedMediaType),
)
def create_collection(body: NewCollection, engine: CurrentEngine, tenant: CurrentTenant) -> Collection:
    """Creates a collection. A setting that is absent takes the engine's default."""
    return engine.collections.create(tenant, body)


@app.get("/v1/collections", tags=["collections"], responses=problems())
def list_collections(
    query: Annotated[CollectionsQuery, Query()], engine: CurrentEngine, tenant: CurrentTenant
) -> ListAnswer[Collection]:
    """Lists the tenant's collections: all of them, or those of a name."""
    page = fit_page(
        engine.settings.answer_bytes,
        query.page(),
        lambda page: engine.collections.list(tenant, page, name=query.name, name_contains=query.name_contains),
    )
    return ListAnswer.of(page)


@app.get("/v1/collections/{collection_id}", tags=["collections"], responses=problems(CollectionNotFound))
def get_collection(collection_id: CollectionId, engine: CurrentEngine, tenant: CurrentTenant) -> Collection:
    """Returns a collection with its counts of ready documents and of their chunks."""
    return engine.collections.get(tenant, collection_id)


@app.patch(
    "/v1/collections/{collection_id}",
    tags=["collections"],
    responses=problems(CollectionNotFound, CollectionAlreadyExists, PayloadTooLarge, UnsupportedMediaType),
)
def update_collection(
    collection_id: CollectionId, body: CollectionUpdate, engine: CurrentEngine, tenant: CurrentTenant
) -> Collection:
    """Changes a collection's name, description, retrieval strategy or metadata.

    A member that is absent stays as it is. Metadata is replaced whole.
    """
    return engine.collections.update(tenant, collection_id, body)


@app.delete(
    "/v1/collections/{collection_id}",
    tags=["collections"],
    responses={**problems(CollectionNotFound), **unfinished(Deletion)},
)
def delete_collection(
    collection_id: CollectionId, engine: CurrentEngine, tenant: CurrentTenant, deadline: Deadline, response: Response
) -> Deletion:
    """Removes a collection with its documents, chunks and vectors.

    A call whose time runs out answers 202, and the sweep removes the rest. The collection is not found from then on.
    """
    deletion = engine.collections.delete(tenant, collection_id, deadline)
    response.status_code = 200 if deletion.complete else 202
    return deletion


@app.get("/v1/collections/{collection_id}/stats", tags=["collections"], responses=problems(CollectionNotFound))
def collection_stats(collection_id: CollectionId, engine: CurrentEngine, tenant: CurrentTenant) -> CollectionStats:
    """Returns exact counts of a collection's ready documents and of their chunks."""
    return engine.collections.stats(tenant, collection_id)


@app.post(
    "/v1/collections/{collection_id}/reindex",
    status_code=202,
    tags=["collections"],
    responses=problems(CollectionNotFound),
)
def start_reindex(
    collection_id: CollectionId, engine: CurrentEngine, tenant: CurrentTenant, deadline: Deadline
) -> ReindexProgress:
    """Starts a reindex, which embeds the chunks of every ready document again, or continues an unfinished one.

    The call works until its time runs out; the sweep continues from there.
    """
    return engine.reindex.start(tenant, collection_id, deadline)


@app.get(
    "/v1/collections/{collection_id}/reindex",
    tags=["collections"],
    responses=problems(CollectionNotFound, ReindexNotFound),
)
def reindex_progress(collection_id: CollectionId, engine: CurrentEngine, tenant: CurrentTenant) -> ReindexProgress:
    """Returns the progress of the collection's last reindex."""
    return engine.reindex.progress(tenant, collection_id)


@app.get("/v1/documents", tags=["documents"], responses=problems(CollectionNotFound))
def list_documents(
    query: Annotated[DocumentsQuery, Query()], engine: CurrentEngine, tenant: CurrentTenant
) -> ListAnswer[Document]:
    """Lists the documents of a collection, or all documents of the tenant."""
    page = fit_page(
        engine.settings.answer_bytes,
        query.page(),
        lambda page: engine.documents.list(
            tenant, page, collection_id=query.collection_id, state=query.state, source_key=query.source_key
        ),
    )
    return ListAnswer.of(page)


@app.get("/v1/documents/{document_id}", tags=["documents"], responses=problems(DocumentNotFound))
def get_document(document_id: DocumentId, engine: CurrentEngine, tenant: CurrentTenant) -> Document:
    """Returns a document with its state. A failed document has the reason in `error`."""
    return engine.documents.get(tenant, document_id)


@app.delete("/v1/documents/{document_id}", tags=["documents"], responses=problems(DocumentNotFound))
def delete_document(document_id: DocumentId, engine: CurrentEngine, tenant: CurrentTenant) -> Deletion:
    """Removes a document with its chunks and vectors."""
    return engine.documents.delete(tenant, document_id)


@app.get("/v1/documents/{document_id}/chunks", tags=["chunks"], responses=problems(DocumentNotFound))
def list_document_chunks(
    document_id: DocumentId,
    query: Annotated[PageQuery, Query()],
    engine: CurrentEngine,
    tenant: CurrentTenant,
) -> ListAnswer[Chunk]:
    """Lists the chunks of a document, in document order."""
    page = fit_page(
        engine.settings.answer_bytes,
        query.page(),
        lambda page: engine.chunks.list(tenant, page, document_id=document_id),
    )
    return ListAnswer.of(page)


@app.get("/v1/chunks", tags=["chunks"], responses=problems(CollectionNotFound, DocumentNotFound))
def list_chunks(
    query: Annotated[ChunksQuery, Query()], engine: CurrentEngine, tenant: CurrentTenant
) -> ListAnswer[Chunk]:
    """Lists the chunks of a collection or of a document. The query must name one of the two."""
    page = fit_page(
        engine.settings.answer_bytes,
        query.page(),
        lambda page: engine.chunks.list(tenant, page, collection_id=query.collection_id, document_id=query.document_id),
    )
    return ListAnswer.of(page)


@app.get("/v1/chunks/{chunk_id}", tags=["chunks"], responses=problems(ChunkNotFound))
def get_chunk(chunk_id: ChunkId, engine: CurrentEngine, tenant: CurrentTenant) -> Chunk:
    """Returns a chunk of a ready document."""
    return engine.chunks.get(tenant, chunk_id)


@app.get("/v1/chunks/{chunk_id}/lineage", tags=["chunks"], responses=problems(ChunkNotFound))
def chunk_lineage(chunk_id: ChunkId, engine: CurrentEngine, tenant: CurrentTenant) -> LineageChain:
    """Returns the chain from a chunk up to its document and the document's source."""
    return engine.chunks.lineage(tenant, chunk_id)


@app.get("/v1/components", tags=["engine"], responses=problems())
def components(engine: CurrentEngine, _: CurrentTenant) -> Components:
    """Returns every stage of the pipeline as it is configured, and the strategies that questions can name."""
    return engine.status.components()


@app.get("/v1/extensions", tags=["engine"], responses=problems())
def extensions(engine: CurrentEngine, _: CurrentTenant) -> ListAnswer[ExtensionInfo]:
    """Lists the registered extensions and their hooks, in order of registration."""
    return ListAnswer(items=engine.observer.describe())


@app.get(
    "/v1/health",
    tags=["engine"],
    responses={**problems(always=(InvalidArgument,)), 503: {"model": Health, "description": "A store does not answer"}},
)
def health(engine: CurrentEngine, response: Response) -> Health:
    """Says whether each store answers. The call needs no token."""
    answer = engine.status.health()
    response.status_code = 200 if answer.status == "ok" else 503
    return answer


handler = lambda_handler(app)

"""The routes that ingest documents, create uploads and delete sources."""

from typing import Annotated

from fastapi import Query, Response

from core.http.answers import Answers, problems, unfinished
from core.http.app import create_app, lambda_handler
from core.http.dependencies import CurrentEngine, CurrentTenant, Deadline
from core.http.problem import problem_of
from core.http.schemas import BatchAnswer, BatchBody, BatchFailure, BatchSuccess, DocumentBody, SourceQuery
from core.model.document import DocumentState
from core.model.errors import (
    CollectionNotFound,
    DuplicateDocument,
    EmptyContent,
    IngestInterrupted,
    PayloadTooLarge,
    UnsupportedMediaType,
    VersionConflict,
    WeftError,
)
from core.model.ids import CollectionId
from core.model.ingest import Deletion, IngestInput, IngestResult
from core.model.upload import NewUpload, Upload

app = create_app("Weft ingest")

_INGESTED: Answers = {
    200: {
        "model": IngestResult,
        "description": "Nothing was added: the content is unchanged, or the source has a newer version",
    },
    202: {
        "model": IngestResult,
        "description": "Still in progress: another call ingests this content, or searches do not see it yet",
    },
}


@app.post(
    "/v1/collections/{collection_id}/documents",
    status_code=201,
    tags=["ingest"],
    responses={
        **problems(
            EmptyContent,
            CollectionNotFound,
            DuplicateDocument,
            VersionConflict,
            IngestInterrupted,
            PayloadTooLarge,
            UnsupportedMediaType,
        ),
        **_INGESTED,
    },
)
def ingest_document(
    collection_id: CollectionId,
    body: DocumentBody,
    engine: CurrentEngine,
    tenant: CurrentTenant,
    deadline: Deadline,
    response: Response,
) -> IngestResult:
    """Ingests a document. With a source key the call is an upsert: it replaces the content of that source.

    The old content is served until the new content is ready. The same content again changes nothing.
    """
    document = body.to_input(collection_id, engine.settings.inline_bytes)
    result = engine.ingest.ingest(tenant, document, deadline)
    response.status_code = _status(result)
    return result


def _status(result: IngestResult) -> int:
    if result.state.in_progress:
        return 202
    return 200 if result.unchanged or result.state is not DocumentState.READY else 201


@app.post(
    "/v1/collections/{collection_id}/documents/batch",
    tags=["ingest"],
    responses=problems(CollectionNotFound, PayloadTooLarge, UnsupportedMediaType),
)
def ingest_batch(
    collection_id: CollectionId, body: BatchBody, engine: CurrentEngine, tenant: CurrentTenant, deadline: Deadline
) -> BatchAnswer:
    """Ingests 1 to 100 documents. The answer has a result for each, in order; a refused document stops no other."""
    engine.collections.get(tenant, collection_id)
    inputs = [_to_input(document, collection_id, engine.settings.inline_bytes) for document in body.documents]
    answers = engine.ingest.batch(tenant, inputs, deadline)
    return BatchAnswer(
        results=[
            BatchFailure(error=problem_of(answer)) if isinstance(answer, WeftError) else BatchSuccess(result=answer)
            for answer in answers
        ]
    )


def _to_input(
    document: DocumentBody | WeftError, collection_id: CollectionId, inline_bytes: int
) -> IngestInput | WeftError:
    if isinstance(document, WeftError):
        return document
    try:
        return document.to_input(collection_id, inline_bytes)
    except WeftError as error:
        return error


@app.post(
    "/v1/collections/{collection_id}/uploads",
    status_code=201,
    tags=["ingest"],
    responses=problems(CollectionNotFound, PayloadTooLarge, UnsupportedMediaType),
)
def create_upload(collection_id: CollectionId, body: NewUpload, engine: CurrentEngine, tenant: CurrentTenant) -> Upload:
    """Creates a signed URL that uploads one object. The object is ingested after it has been uploaded."""
    return engine.uploads.create(tenant, collection_id, body)


@app.delete(
    "/v1/collections/{collection_id}/sources",
    tags=["ingest"],
    responses={**problems(CollectionNotFound), **unfinished(Deletion)},
)
def delete_source(
    collection_id: CollectionId,
    query: Annotated[SourceQuery, Query()],
    engine: CurrentEngine,
    tenant: CurrentTenant,
    deadline: Deadline,
    response: Response,
) -> Deletion:
    """Removes every version of a source. A source that does not exist is removed with success.

    A call whose time runs out answers 202, and the sweep removes the rest.
    """
    deletion = engine.documents.delete_source(tenant, collection_id, query.key, deadline)
    response.status_code = 200 if deletion.complete else 202
    return deletion


handler = lambda_handler(app)

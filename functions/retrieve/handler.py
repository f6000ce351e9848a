"""The routes that retrieve chunks and assemble contexts."""

from core.http.answers import problems
from core.http.app import create_app, lambda_handler
from core.http.dependencies import CurrentEngine, CurrentTenant, Deadline
from core.http.limits import fit_retrieval, refuse_too_large
from core.http.schemas import AssembleBody, RetrieveBody
from core.model.errors import CollectionNotFound, PayloadTooLarge, StaleRanking, UnsupportedMediaType
from core.model.hit import AssembledRefs, RetrieveResult

app = create_app("Weft retrieve")


@app.post(
    "/v1/retrieve",
    tags=["retrieve"],
    responses=problems(CollectionNotFound, PayloadTooLarge, UnsupportedMediaType),
)
async def retrieve(
    body: RetrieveBody, engine: CurrentEngine, tenant: CurrentTenant, deadline: Deadline
) -> RetrieveResult:
    """Finds the chunks that answer a question best, and builds a cited context of them if the body asks for one.

    An answer with fewer than `top_k` hits has a `reason`.
    """
    return fit_retrieval(
        engine.settings.answer_bytes, engine.retrieve(tenant, body.to_query(), body.assemble, deadline)
    )


@app.post("/v1/assemble", tags=["retrieve"], responses=problems(StaleRanking, PayloadTooLarge, UnsupportedMediaType))
async def assemble(body: AssembleBody, engine: CurrentEngine, tenant: CurrentTenant) -> AssembledRefs:
    """Builds a context of chunks that an earlier answer named, within a token budget, with a citation for each marker.

    Nothing is embedded. A chunk that is gone makes the whole ranking stale: retrieve again.
    """
    answer = engine.assemble_refs(tenant, body.refs, body)
    return refuse_too_large(engine.settings.answer_bytes, answer)


handler = lambda_handler(app)

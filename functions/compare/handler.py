"""The route of comparisons."""

from core.http.answers import problems
from core.http.app import create_app, lambda_handler
from core.http.dependencies import CurrentEngine, CurrentTenant, Deadline
from core.http.limits import fit_comparison
from core.http.schemas import QuestionBody
from core.model.comparison import CompareResult
from core.model.errors import CollectionNotFound, PayloadTooLarge, UnsupportedMediaType

app = create_app("Weft compare")


@app.post(
    "/v1/compare",
    tags=["retrieve"],
    responses=problems(CollectionNotFound, PayloadTooLarge, UnsupportedMediaType),
)
async def compare(
    body: QuestionBody, engine: CurrentEngine, tenant: CurrentTenant, deadline: Deadline
) -> CompareResult:
    """Ranks as a retrieve does, beside the raw vector ranking: which chunks moved, which were left out, and why."""
    return fit_comparison(engine.settings.answer_bytes, engine.compare(tenant, body.to_query(), deadline))


handler = lambda_handler(app)

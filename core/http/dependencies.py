"""The arguments that endpoints take from FastAPI: the engine, the tenant and the deadline of a call."""

from typing import Annotated

from fastapi import Depends, Request

from core.engine import Engine
from core.http.request import tenant_of
from core.model.tenant import Tenant

# A call stops working so long before its function's time-out, so that the answer still gets out.
_MARGIN_S = 1.0


async def current_engine(request: Request) -> Engine:
    """Returns the engine of this process."""
    engine: Engine = request.app.state.engine()
    return engine


async def current_tenant(request: Request) -> Tenant:
    """Returns the tenant of the verified token (`core.http.request.tenant_of`)."""
    engine = await current_engine(request)
    return tenant_of(request, engine.settings.tenant_claim)


async def current_deadline(request: Request) -> float:
    """Returns the time at which this call must stop working, in seconds of the engine's monotonic clock."""
    engine = await current_engine(request)
    seconds = float(engine.settings.call_seconds)
    context = request.scope.get("aws.context")
    if context is not None:
        seconds = min(seconds, context.get_remaining_time_in_millis() / 1000 - _MARGIN_S)
    return engine.clock.monotonic() + seconds


CurrentEngine = Annotated[Engine, Depends(current_engine)]
CurrentTenant = Annotated[Tenant, Depends(current_tenant)]
Deadline = Annotated[float, Depends(current_deadline)]

"""The FastAPI application of a function, and its Lambda handler."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.utilities.typing import LambdaContext
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from mangum import Mangum
from mangum.types import LambdaContext as MangumContext
from starlette.exceptions import HTTPException

from core.engine import Engine
from core.http.problem import MEDIA_TYPE, refuse_input, refuse_route, refuse_weft_error
from core.http.route import StrictRoute
from core.model.errors import WeftError
from core.powertools import configure_logging, logger
from core.wiring import engine_from_environment

VERSION = "1"
LambdaHandler = Callable[[dict[str, Any], LambdaContext], dict[str, Any]]


def create_app(title: str, engine: Callable[[], Engine] = engine_from_environment) -> FastAPI:
    """Creates the application of a function, without routes yet.

    Args:
        title: the name of the function.
        engine: returns the engine; called for every request, first when the first request needs it. It is kept in
            ``app.state.engine``, where tests replace it.
    """
    app = FastAPI(
        title=title,
        version=VERSION,
        redirect_slashes=False,
        openapi_url=None,
        generate_unique_id_function=lambda route: route.name,
        exception_handlers={
            WeftError: refuse_weft_error,
            RequestValidationError: refuse_input,
            HTTPException: refuse_route,
        },
    )
    app.router.route_class = StrictRoute
    app.state.engine = engine
    return app


def lambda_handler(app: FastAPI) -> LambdaHandler:
    """Makes a Lambda handler, which turns an event of API Gateway (payload format 2.0) into an answer.

    Every call has an event loop of its own, so that any thread can call the handler. An endpoint that is a coroutine
    may therefore block its loop, and saves the thread in which FastAPI would run a plain function.
    """
    configure_logging()

    @logger.inject_lambda_context(clear_state=True, correlation_id_path=correlation_paths.API_GATEWAY_HTTP)
    def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        with asyncio.Runner() as runner:
            runner.get_loop()
            adapter = Mangum(app, lifespan="off", text_mime_types=["application/json", MEDIA_TYPE])
            return adapter(event, cast(MangumContext, context))

    return handler

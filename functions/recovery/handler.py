"""The scheduled sweep. It repeats sweeps until nothing is due or the function's time is nearly up."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from core.engine import Engine
from core.powertools import configure_logging, logger
from core.wiring import engine_from_environment

# The last sweep starts no new document this long before the time-out: removing a document's data ends within it.
_MARGIN_S = 15.0

configure_logging()


def drain(context: LambdaContext, engine: Engine) -> dict[str, Any]:
    """Repeats sweeps within the time that the function has left, and returns their counts."""
    seconds = context.get_remaining_time_in_millis() / 1000 - _MARGIN_S
    result = engine.recovery.drain(engine.clock.monotonic() + seconds)
    counts = result.model_dump(mode="json")
    logger.info("Swept", extra=counts)
    return counts


@logger.inject_lambda_context(clear_state=True)
def handler(_: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return drain(context, engine_from_environment())

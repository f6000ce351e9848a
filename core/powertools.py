"""The logger and the metrics of the Lambda functions, by Powertools for AWS Lambda."""

import logging
import os
import traceback
from typing import Any

from aws_lambda_powertools import Logger, single_metric
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.functions import is_metrics_disabled
from botocore.exceptions import ParamValidationError

NAMESPACE = "Weft"

logger = Logger(service="weft")


def configure_logging() -> None:
    """Gives the engine's own log lines the functions' form, inside a Lambda function. Elsewhere the host decides."""
    if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
        logging.getLogger("core")
        copy_config_to_registered_loggers(logger, include={"core"})


class PowertoolsMetrics:
    """Writes each measurement as a log line in CloudWatch's embedded metric format.

    The tenant is never a dimension: CloudWatch charges for every value of a dimension as a metric of its own.
    """

    def record(self, name: str, value: float, unit: str, **dimensions: str) -> None:
        if is_metrics_disabled():  # single_metric is the one function of Powertools that does not ask this itself
            return
        with single_metric(name=name, unit=MetricUnit(unit), value=value, namespace=NAMESPACE) as metric:
            for key, text in dimensions.items():
                if key != "tenant":
                    metric.add_dimension(name=key, value=text)


def describe(error: BaseException) -> list[dict[str, Any]]:
    """Describes an error and its causes for the log, each by type, message and stack.

    The message of a validation error repeats the validated value, which may be a document's text. Of such an error only
    the place and the kind are kept.
    """
    chain: list[dict[str, Any]] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        chain.append(
            {
                "type": f"{type(current).__module__}.{type(current).__qualname__}",
                "message": _message(current),
                "stack": traceback.format_tb(current.__traceback__),
            }
        )
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return chain


def _message(error: BaseException) -> str:
    # Validation errors of pydantic and FastAPI are recognized by their method ``errors``, so that a function without
    # HTTP does not have to import FastAPI.
    if callable(errors := getattr(error, "errors", None)):
        return _kinds(errors())
    if isinstance(error, ParamValidationError):
        return "a parameter of a request to AWS is not valid"
    return str(error)


def _kinds(errors: Any) -> str:
    return "; ".join(f"{'.'.join(str(part) for part in item['loc'])}: {item['type']}" for item in errors)

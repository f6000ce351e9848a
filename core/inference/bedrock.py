"""Requests to Amazon Bedrock: the client, the tries of a request, and the meaning of its errors."""

from collections.abc import Callable
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import (
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)

from core.clock import Clock
from core.model.errors import ConfigurationError, NotConfigured, Unavailable, WeftError
from core.retry import Backoff, attempts

BACKOFF = Backoff(tries=6, first_wait_s=0.2, longest_wait_s=4.0)
"""The tries of one request, and the waits between them."""
RETRY_AFTER_S = 5
"""How long a caller is told to wait after all tries have failed, in seconds."""

TRANSIENT = frozenset(
    {
        "BadGatewayException",
        "ConflictException",
        "DependencyFailedException",
        "InternalServerException",
        "ModelErrorException",
        "ModelNotReadyException",
        "ModelTimeoutException",
        "ServiceQuotaExceededException",
        "ServiceUnavailableException",
        "ThrottlingException",
    }
)
"""The codes of errors that say nothing against the request: the same request may succeed a moment later."""

_REFUSED = (ClientError, CredentialRetrievalError, NoCredentialsError, PartialCredentialsError)
_UNANSWERED = (ConnectionError, HTTPClientError)

Answer = TypeVar("Answer")


def bedrock_client(service: str, *, connect_timeout_s: float, read_timeout_s: float, connections: int) -> Any:
    """Returns a boto3 client of Amazon Bedrock that tries every request once.

    Further tries are left to `call_bedrock`, which knows the caller's deadline.

    Args:
        service: boto3's name of the service: ``bedrock-runtime`` or ``bedrock-agent-runtime``.
        connect_timeout_s: how long a connection may take, in seconds.
        read_timeout_s: how long the service may be silent on a connection, in seconds.
        connections: how many connections are kept open.

    Raises:
        ConfigurationError: no region is set. Set AWS_REGION.
    """
    config = Config(
        connect_timeout=connect_timeout_s,
        read_timeout=read_timeout_s,
        max_pool_connections=connections,
        retries={"total_max_attempts": 1},
    )
    # One of boto3's overloads for each service: the name is not known to the type checker.
    make_client: Any = boto3.client
    try:
        return make_client(service, config=config)
    except NoRegionError as error:
        raise ConfigurationError("Amazon Bedrock needs a region: set AWS_REGION") from error


def call_bedrock(
    request: Callable[[], Answer], clock: Clock, *, last_start: float, refusal: Callable[[Exception], WeftError]
) -> Answer:
    """Sends a request, repeats it while the service is at fault, and returns the answer.

    Args:
        request: sends the request once and returns the service's answer.
        last_start: a moment of the clock's monotonic time. No try begins after this moment.
        refusal: turns the service's refusal of the request into the error that the caller of the engine gets.

    Raises:
        Unavailable: the service throttles or does not answer. Try again after ``retry_after_s`` seconds.
        WeftError: the service refuses the request; ``refusal`` says which error that is.
    """
    cause: Exception | None = None
    for _ in attempts(clock, BACKOFF, last_start):
        try:
            return request()
        except _UNANSWERED as error:
            cause = error
        except _REFUSED as error:
            if not _is_transient(error):
                raise refusal(error) from error
            cause = error
    raise Unavailable("Amazon Bedrock throttles or does not answer", retry_after_s=RETRY_AFTER_S) from cause


def not_configured(model: str, permission: str, error: Exception) -> NotConfigured:
    """Returns the error for a refusal that only the operator can correct.

    The service's own message is left out, because it may name accounts and roles.

    Args:
        model: the identifier of the model that refused.
        permission: the permission that the role needs for the request.
        error: the refusal.
    """
    reason = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
    return NotConfigured(
        f"Amazon Bedrock refuses {model} ({reason}): check the credentials, the role's {permission} permission, "
        "and that the region has the model"
    )


def _is_transient(error: Exception) -> bool:
    return isinstance(error, ClientError) and error.response["Error"]["Code"] in TRANSIENT

"""How Amazon Bedrock is asked: its tries, and what its errors mean."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

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

TRIES = 6
FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 4.0
RETRY_AFTER_S = 5

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
"""What the service says of itself or of the moment: the same request may be answered later."""

REFUSALS = (ClientError, CredentialRetrievalError, NoCredentialsError, PartialCredentialsError)
NO_ANSWER = (ConnectionError, HTTPClientError)

Answer = TypeVar("Answer")


def single_try(*, connect_timeout_s: float, read_timeout_s: float, connections: int) -> Config:
    """A client's configuration that leaves trying again to ``ask``."""
    return Config(
        connect_timeout=connect_timeout_s,
        read_timeout=read_timeout_s,
        max_pool_connections=connections,
        retries={"total_max_attempts": 1},
    )


@contextmanager
def region_needed() -> Iterator[None]:
    """Around the making of a client.

    Raises:
        ConfigurationError: no region is set.
    """
    try:
        yield
    except NoRegionError as error:
        raise ConfigurationError("Amazon Bedrock needs a region: set AWS_REGION") from error


def ask(
    request: Callable[[], Answer], clock: Clock, *, last_start: float, refused: Callable[[Exception], WeftError]
) -> Answer:
    """The answer to one request, tried again with full jitter while the service is the one to blame.

    Args:
        last_start: no try begins after this moment of the clock's monotonic time.
        refused: the error that a refusal means to the caller.

    Raises:
        Unavailable: the service throttles or does not answer.
        WeftError: as ``refused`` says.
    """
    cause: Exception | None = None
    for attempt in range(TRIES):
        if attempt:
            longest = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** (attempt - 1))
            clock.sleep(clock.random.uniform(0, longest))
        if clock.monotonic() > last_start:
            break
        try:
            return request()
        except NO_ANSWER as error:
            cause = error
        except REFUSALS as error:
            if not _is_transient(error):
                raise refused(error) from error
            cause = error
    raise Unavailable("Amazon Bedrock throttles or does not answer", retry_after_s=RETRY_AFTER_S) from cause


def not_configured(model: str, permission: str, error: Exception) -> NotConfigured:
    """A refusal that the operator can correct. The service's own message may name accounts and roles, and stays out."""
    reason = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
    return NotConfigured(
        f"Amazon Bedrock refuses {model} ({reason}): check the credentials, the role's {permission} permission, "
        "and that the region has the model"
    )


def _is_transient(error: Exception) -> bool:
    return isinstance(error, ClientError) and error.response["Error"]["Code"] in TRANSIENT

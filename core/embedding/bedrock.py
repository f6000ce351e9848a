"""Amazon Bedrock's Titan Text Embeddings V2.

Request and answer: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html
"""

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

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
from core.embedding.checks import check_texts, unit
from core.embedding.types import Embeddings, Vector
from core.model.collection import VectorSpace
from core.model.component import Component
from core.model.errors import ConfigurationError, InvalidArgument, NotConfigured, Unavailable, WeftError
from core.text.counting import CharsPerFour
from core.text.types import TokenCounter

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

MODEL = "amazon.titan-embed-text-v2:0"
DIMENSIONS = (256, 512, 1024)

MAX_TOKENS = 2048
"""Estimated tokens: 8,192 characters. The model takes 8,192 of its own tokens, and a token is seldom less than a
character in any script; four characters a token holds for English alone."""

TRIES = 6
PATIENCE_S = 10.0
"""No further try begins after this many seconds: a call has 25, and one try takes up to READ_TIMEOUT_S."""
FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 4.0
RETRY_AFTER_S = 5
CONNECT_TIMEOUT_S = 2
READ_TIMEOUT_S = 8
CONNECTIONS = 32

TRANSIENT = frozenset(
    {
        "InternalServerException",
        "ModelErrorException",
        "ModelNotReadyException",
        "ModelTimeoutException",
        "ServiceQuotaExceededException",
        "ServiceUnavailableException",
        "ThrottlingException",
    }
)
TOO_LONG = re.compile("too many input tokens|maxlength", re.IGNORECASE)
"""Bedrock tells a text that is too long from a wrong request by its message alone."""

REFUSALS = (ClientError, CredentialRetrievalError, NoCredentialsError, PartialCredentialsError)
NO_ANSWER = (ConnectionError, HTTPClientError)


class _Answer(NamedTuple):
    vector: Vector
    tokens: int


def bedrock_client() -> "BedrockRuntimeClient":
    """A client that leaves retrying to the embedder.

    Raises:
        ConfigurationError: no region is set.
    """
    config = Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        max_pool_connections=CONNECTIONS,
        retries={"total_max_attempts": 1},
    )
    try:
        return boto3.client("bedrock-runtime", config=config)
    except NoRegionError as error:
        raise ConfigurationError("Amazon Bedrock needs a region: set AWS_REGION") from error


class BedrockEmbedder:
    """One request a text, several at once. Thread-safe.

    The model has no tokenizer to run here: ``counter`` is an estimate. A text that turns out too long all the same is
    refused by the service, never cut.
    """

    def __init__(
        self, client: "BedrockRuntimeClient", clock: Clock, *, model: str, dimensions: int, concurrency: int = 8
    ) -> None:
        """
        Args:
            client: as ``bedrock_client`` makes it.
            model: as ``MODEL``.
            dimensions: one of ``DIMENSIONS``.
            concurrency: requests at once, over all calls of more than one text.

        Raises:
            ConfigurationError: another model, or dimensions that it does not have.
        """
        if model != MODEL:
            raise ConfigurationError(f"WEFT_BEDROCK_MODEL: {MODEL} is the one that is supported")
        if dimensions not in DIMENSIONS:
            raise ConfigurationError(f"WEFT_BEDROCK_DIMENSIONS: {MODEL} has {', '.join(map(str, DIMENSIONS))}")
        self.space = VectorSpace(model=model, dimensions=dimensions)
        self.max_tokens = MAX_TOKENS
        self.counter: TokenCounter = CharsPerFour()
        self._client = client
        self._clock = clock
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="bedrock")

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """As the protocol says, and:

        Raises:
            NotConfigured: the credentials, the role or the region do not allow the model.
        """
        check_texts(texts, [self.counter.count(text) for text in texts], self.max_tokens)
        # A query is one text, and must not queue behind the hundreds of an ingest.
        answers = [self._embed(texts[0])] if len(texts) == 1 else list(self._pool.map(self._embed, texts))
        return Embeddings([answer.vector for answer in answers], sum(answer.tokens for answer in answers))

    def describe(self) -> Component:
        return Component(name=self.space.model, type="bedrock", configured=True, dimensions=self.space.dimensions)

    def _embed(self, text: str) -> _Answer:
        """One text, tried again with full jitter while the service is the one to blame."""
        last_start = self._clock.monotonic() + PATIENCE_S
        for attempt in range(TRIES):
            if attempt:
                longest = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** (attempt - 1))
                self._clock.sleep(self._clock.random.uniform(0, longest))
            if self._clock.monotonic() > last_start:
                break
            try:
                return self._request(text)
            except NO_ANSWER as error:
                cause: Exception = error
            except REFUSALS as error:
                if not _is_transient(error):
                    raise _refusal(error) from error
                cause = error
        raise Unavailable("Amazon Bedrock throttles or does not answer", retry_after_s=RETRY_AFTER_S) from cause

    def _request(self, text: str) -> _Answer:
        dimensions = self.space.dimensions
        response = self._client.invoke_model(
            modelId=self.space.model,
            contentType="application/json",
            accept="application/json",
            body=json.dumps({"inputText": text, "dimensions": dimensions, "normalize": True}),
        )
        answer = json.loads(response["body"].read())
        embedding = answer.get("embedding", [])
        if len(embedding) != dimensions:
            raise NotConfigured(f"Amazon Bedrock answered with {len(embedding)} numbers instead of {dimensions}")
        return _Answer(unit(embedding), answer["inputTextTokenCount"])


def _is_transient(error: Exception) -> bool:
    return isinstance(error, ClientError) and error.response["Error"]["Code"] in TRANSIENT


def _refusal(error: Exception) -> WeftError:
    """What a refusal means to the caller. The service's own message may name accounts and roles, and stays out."""
    reason = type(error).__name__
    if isinstance(error, ClientError):
        reason = error.response["Error"]["Code"]
        if reason == "ValidationException" and TOO_LONG.search(error.response["Error"]["Message"]):
            return InvalidArgument("A text has more tokens than the embedding model takes")
    return NotConfigured(
        f"Amazon Bedrock refuses {MODEL} ({reason}): check the credentials, the role's bedrock:InvokeModel permission, "
        "and that the region has the model"
    )

"""Amazon Bedrock's Titan Text Embeddings V2.

Request and answer: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html
"""

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import boto3
from botocore.exceptions import ClientError

from core.clock import Clock
from core.embedding.checks import check_texts, unit
from core.embedding.types import Embeddings
from core.inference.bedrock import ask, not_configured, region_needed, single_try
from core.model.component import Component
from core.model.errors import ConfigurationError, InvalidArgument, NotConfigured, WeftError
from core.model.vector import Vector, VectorSpace
from core.splitting.counting import CharsPerFour, TokenCounter

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

MODEL = "amazon.titan-embed-text-v2:0"
DIMENSIONS = (256, 512, 1024)

MAX_TOKENS = 2048
"""Estimated tokens: 8,192 characters. The model takes 8,192 of its own tokens, and a token is seldom less than a
character in any script; four characters a token holds for English alone."""

PATIENCE_S = 10.0
"""No further try begins after this many seconds: a call has 25, and one try takes up to READ_TIMEOUT_S."""
CONNECT_TIMEOUT_S = 2
READ_TIMEOUT_S = 8
CONNECTIONS = 32

TOO_LONG = re.compile("too many input tokens|maxlength", re.IGNORECASE)
"""Bedrock tells a text that is too long from a wrong request by its message alone."""


class _Answer(NamedTuple):
    vector: Vector
    tokens: int


def bedrock_client() -> "BedrockRuntimeClient":
    """A client that leaves retrying to the embedder.

    Raises:
        ConfigurationError: no region is set.
    """
    config = single_try(connect_timeout_s=CONNECT_TIMEOUT_S, read_timeout_s=READ_TIMEOUT_S, connections=CONNECTIONS)
    with region_needed():
        return boto3.client("bedrock-runtime", config=config)


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
        return Component(
            name=self.space.model,
            type="bedrock",
            configured=True,
            dimensions=self.space.dimensions,
            max_tokens=self.max_tokens,
        )

    def _embed(self, text: str) -> _Answer:
        last_start = self._clock.monotonic() + PATIENCE_S
        return ask(lambda: self._request(text), self._clock, last_start=last_start, refused=_refusal)

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


def _refusal(error: Exception) -> WeftError:
    """What a refusal means to the caller."""
    if isinstance(error, ClientError):
        problem = error.response["Error"]
        if problem["Code"] == "ValidationException" and TOO_LONG.search(problem["Message"]):
            return InvalidArgument("A text has more tokens than the embedding model takes")
    return not_configured(MODEL, "bedrock:InvokeModel", error)

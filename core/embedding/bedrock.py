"""An embedder that uses Titan Text Embeddings V2 at Amazon Bedrock.

The shapes of requests and answers are those of
https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html
"""

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from botocore.exceptions import ClientError

from core.clock import Clock
from core.embedding.types import Embeddings, describe_embedder
from core.inference.bedrock import bedrock_client, call_bedrock, not_configured
from core.inference.validation import validate_texts
from core.model.component import Component
from core.model.errors import ConfigurationError, InvalidArgument, NotConfigured, WeftError
from core.model.vector import Vector, VectorSpace, unit_vector
from core.splitting.counting import CharsPerFour, TokenCounter

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

MODEL = "amazon.titan-embed-text-v2:0"
"""The model's identifier at Amazon Bedrock."""
DIMENSIONS = (256, 512, 1024)
"""The numbers of dimensions that the model offers."""

MAX_TOKENS = 2048
"""The length of the longest text, in estimated tokens: 8,192 characters. The model takes 8,192 tokens of its own. In no
script is a token often shorter than a character, so that a text of 8,192 characters nearly always fits. Only in English
does a token have four characters on average."""

PATIENCE_S = 10.0
"""For how many seconds a failed request is repeated. A call of the engine has 25 seconds, and the last try may take up
to ``READ_TIMEOUT_S`` longer."""
CONNECT_TIMEOUT_S = 2
READ_TIMEOUT_S = 8
CONNECTIONS = 32

TOO_LONG = re.compile("too many input tokens|maxlength", re.IGNORECASE)
"""Amazon Bedrock has no error code for a text that is too long: only the message tells it from other wrong requests."""


class _Embedding(NamedTuple):
    vector: Vector
    tokens: int


def embedding_client() -> "BedrockRuntimeClient":
    """Returns a client for `BedrockEmbedder`, which repeats failed requests itself.

    Raises:
        ConfigurationError: no region is set. Set AWS_REGION.
    """
    client: BedrockRuntimeClient = bedrock_client(
        "bedrock-runtime",
        connect_timeout_s=CONNECT_TIMEOUT_S,
        read_timeout_s=READ_TIMEOUT_S,
        connections=CONNECTIONS,
    )
    return client


class BedrockEmbedder:
    """Embeds each text by one request, and sends several requests at a time. Thread-safe.

    The model's tokenizer cannot be run here, so ``counter`` estimates the number of tokens. A text may turn out to be
    too long although the estimate allows it. The service then refuses the text, and does not truncate it.
    """

    def __init__(
        self, client: "BedrockRuntimeClient", clock: Clock, *, model: str, dimensions: int, concurrency: int = 8
    ) -> None:
        """
        Args:
            client: a client as `embedding_client` makes it.
            model: the model's identifier; `MODEL` is the only one supported.
            dimensions: the number of dimensions of the vectors, one of `DIMENSIONS`.
            concurrency: how many requests run at a time. Calls with more than one text share this number.

        Raises:
            ConfigurationError: the model is not supported, or it does not offer that number of dimensions.
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
        """Embeds texts, as `core.embedding.types.Embedder` says.

        Raises:
            NotConfigured: the credentials, the role or the region do not allow the model.
        """
        validate_texts(texts, [self.counter.count(text) for text in texts], self.max_tokens)
        # A query is a single text. In the pool it would wait behind the hundreds of texts of an ingest.
        embeddings = [self._embed(texts[0])] if len(texts) == 1 else list(self._pool.map(self._embed, texts))
        return Embeddings(
            [embedding.vector for embedding in embeddings], sum(embedding.tokens for embedding in embeddings)
        )

    def describe(self) -> Component:
        return describe_embedder(self, "bedrock")

    def _embed(self, text: str) -> _Embedding:
        last_start = self._clock.monotonic() + PATIENCE_S
        return call_bedrock(lambda: self._request(text), self._clock, last_start=last_start, refusal=_refusal)

    def _request(self, text: str) -> _Embedding:
        dimensions = self.space.dimensions
        response = self._client.invoke_model(
            modelId=self.space.model,
            contentType="application/json",
            accept="application/json",
            body=json.dumps({"inputText": text, "dimensions": dimensions, "normalize": True}),
        )
        answer = json.loads(response["body"].read())
        numbers = answer.get("embedding", [])
        if len(numbers) != dimensions:
            raise NotConfigured(f"Amazon Bedrock answered with {len(numbers)} numbers instead of {dimensions}")
        return _Embedding(unit_vector(numbers), answer["inputTextTokenCount"])


def _refusal(error: Exception) -> WeftError:
    if isinstance(error, ClientError):
        problem = error.response["Error"]
        if problem["Code"] == "ValidationException" and TOO_LONG.search(problem["Message"]):
            return InvalidArgument("A text has more tokens than the embedding model takes")
    return not_configured(MODEL, "bedrock:InvokeModel", error)

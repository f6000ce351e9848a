"""Amazon Bedrock's embedder.

The real service is out of reach here. Shapes and errors are tested against botocore's Stubber, which checks both by
the service's own description; requests at the same time against a server on loopback.
"""

import json
import random
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import NoCredentialsError
from botocore.response import StreamingBody
from botocore.stub import Stubber

from core.clock import SystemClock
from core.embedding.bedrock import (
    DIMENSIONS,
    MODEL,
    PATIENCE_S,
    BedrockEmbedder,
    embedding_client,
)
from core.inference.bedrock import BACKOFF, TRANSIENT
from core.model.errors import ConfigurationError, InvalidArgument, NotConfigured, Unavailable
from core.model.vector import VectorSpace
from tests.support.bedrock import loopback_client, titan_server

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

ACCOUNT = "123456789012"


class LongWaits(random.Random):
    """Every wait is longer than the embedder's patience."""

    def uniform(self, a: float, b: float) -> float:
        return PATIENCE_S + 1


class ReplayedClock:
    """Time passes by waiting alone; ``waits`` are the seconds."""

    def __init__(self) -> None:
        self.random: random.Random = random.Random(7)
        self.waits: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC)

    def monotonic(self) -> float:
        return sum(self.waits)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def clock() -> ReplayedClock:
    return ReplayedClock()


@pytest.fixture
def client() -> "Iterator[BedrockRuntimeClient]":
    with loopback_client(9) as client:
        yield client


@pytest.fixture
def stub(client: "BedrockRuntimeClient") -> Iterator[Stubber]:
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def embedder(client: "BedrockRuntimeClient", clock: ReplayedClock) -> BedrockEmbedder:
    return BedrockEmbedder(client, clock, model=MODEL, dimensions=256, concurrency=1)


def add_answer(stub: Stubber, text: str, vector: list[float], tokens: int = 3) -> None:
    """Expects the documented request, and answers as documented."""
    request = {
        "modelId": MODEL,
        "contentType": "application/json",
        "accept": "application/json",
        "body": json.dumps({"inputText": text, "dimensions": 256, "normalize": True}),
    }
    stub.add_response("invoke_model", body({"embedding": vector, "inputTextTokenCount": tokens}), request)


def body(answer: dict[str, Any]) -> dict[str, Any]:
    content = json.dumps(answer).encode()
    return {"body": StreamingBody(BytesIO(content), len(content)), "contentType": "application/json"}


def axis(number: int, length: float = 1.0) -> list[float]:
    return [length if place == number else 0.0 for place in range(256)]


def test_each_text_is_one_request(stub: Stubber, embedder: BedrockEmbedder) -> None:
    add_answer(stub, "one", axis(0), tokens=2)
    add_answer(stub, "two é", axis(1), tokens=5)
    assert embedder.embed(["one", "two é"]) == ([axis(0), axis(1)], 7)


def test_vectors_are_brought_to_unit_length(stub: Stubber, embedder: BedrockEmbedder) -> None:
    add_answer(stub, "one", axis(3, length=0.98))
    assert embedder.embed(["one"]).vectors == [axis(3)]


def test_it_tells_what_it_is(embedder: BedrockEmbedder) -> None:
    assert embedder.space == VectorSpace(model=MODEL, dimensions=256)
    assert embedder.counter.name == "chars/4", "an estimate, and its name says so"


@pytest.mark.parametrize("code", sorted(TRANSIENT))
def test_a_passing_failure_is_tried_again(
    stub: Stubber, embedder: BedrockEmbedder, clock: ReplayedClock, code: str
) -> None:
    stub.add_client_error("invoke_model", code, "Too many requests")
    add_answer(stub, "one", axis(0))
    assert embedder.embed(["one"]).vectors == [axis(0)]
    assert len(clock.waits) == 1


def test_throttling_without_end_is_unavailable(stub: Stubber, embedder: BedrockEmbedder, clock: ReplayedClock) -> None:
    for _ in range(BACKOFF.tries):
        stub.add_client_error("invoke_model", "ThrottlingException", "Too many requests")
    with pytest.raises(Unavailable) as unavailable:
        embedder.embed(["one"])
    assert unavailable.value.extras["retry_after_s"] > 0
    assert len(clock.waits) == BACKOFF.tries - 1
    assert all(0 <= wait <= BACKOFF.longest_wait_s for wait in clock.waits)
    assert sum(clock.waits) <= PATIENCE_S


def test_no_try_begins_after_its_time(stub: Stubber, embedder: BedrockEmbedder, clock: ReplayedClock) -> None:
    clock.random = LongWaits()
    stub.add_client_error("invoke_model", "ThrottlingException", "Too many requests")
    with pytest.raises(Unavailable):
        embedder.embed(["one"])


@pytest.mark.parametrize(
    "message",
    [
        "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9875",
        "Malformed input request: expected maxLength: 50000, actual: 50001, please reformat your input and try again.",
    ],
)
def test_a_text_that_turns_out_too_long_is_the_callers_to_correct(
    stub: Stubber, embedder: BedrockEmbedder, clock: ReplayedClock, message: str
) -> None:
    stub.add_client_error("invoke_model", "ValidationException", message)
    with pytest.raises(InvalidArgument, match="more tokens"):
        embedder.embed(["one"])
    assert clock.waits == [], "trying again would change nothing"


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "ResourceNotFoundException", "ExpiredTokenException", "ValidationException"]
)
def test_a_refusal_is_the_operators_to_correct_and_names_no_account(
    stub: Stubber, embedder: BedrockEmbedder, clock: ReplayedClock, code: str
) -> None:
    stub.add_client_error("invoke_model", code, f"arn:aws:sts::{ACCOUNT}:assumed-role/weft is not authorized")
    with pytest.raises(NotConfigured, match=f"{code}.*permission") as refused:
        embedder.embed(["one"])
    assert ACCOUNT not in refused.value.detail
    assert clock.waits == []


def test_missing_credentials_are_the_operators_to_correct(
    client: "BedrockRuntimeClient", embedder: BedrockEmbedder
) -> None:
    def no_credentials(**_: Any) -> None:
        raise NoCredentialsError

    client.meta.events.register("before-call.bedrock-runtime.InvokeModel", no_credentials)
    with pytest.raises(NotConfigured, match="NoCredentialsError"):
        embedder.embed(["one"])


@pytest.mark.parametrize("answer", [{}, {"embedding": [1.0], "inputTextTokenCount": 1}])
def test_an_answer_of_another_shape_is_not_taken(
    stub: Stubber, embedder: BedrockEmbedder, answer: dict[str, Any]
) -> None:
    stub.add_response("invoke_model", body(answer))
    with pytest.raises(NotConfigured, match="instead of 256"):
        embedder.embed(["one"])


def test_one_failed_text_fails_the_call(stub: Stubber, embedder: BedrockEmbedder) -> None:
    add_answer(stub, "one", axis(0))
    stub.add_client_error("invoke_model", "AccessDeniedException", "no")
    with pytest.raises(NotConfigured):
        embedder.embed(["one", "two"])


def test_nothing_is_asked_when_one_text_is_known_to_be_too_long(stub: Stubber, embedder: BedrockEmbedder) -> None:
    with pytest.raises(InvalidArgument, match="Text 2 of 2"):
        embedder.embed(["one", "x" * (4 * embedder.max_tokens + 1)])


def test_a_service_that_cannot_be_reached_is_unavailable(clock: ReplayedClock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with loopback_client(port) as client, pytest.raises(Unavailable):
        BedrockEmbedder(client, clock, model=MODEL, dimensions=256).embed(["one"])
    assert len(clock.waits) == BACKOFF.tries - 1


def test_requests_run_at_the_same_time_and_keep_their_order() -> None:
    texts = [f"text number {number}" for number in range(8)]
    with titan_server() as server, loopback_client(server.server_port) as client:
        embedder = BedrockEmbedder(client, SystemClock(), model=MODEL, dimensions=256, concurrency=4)
        alone = [embedder.embed([text]).vectors[0] for text in texts]
        server.gathering = threading.Barrier(4)
        assert embedder.embed(texts).vectors == alone
        assert set(server.paths) == {f"/model/{MODEL}/invoke"}


def test_another_model_is_refused(client: "BedrockRuntimeClient", clock: ReplayedClock) -> None:
    with pytest.raises(ConfigurationError, match="WEFT_BEDROCK_MODEL"):
        BedrockEmbedder(client, clock, model="amazon.titan-embed-text-v1", dimensions=256)


def test_dimensions_that_the_model_lacks_are_refused(client: "BedrockRuntimeClient", clock: ReplayedClock) -> None:
    assert 300 not in DIMENSIONS
    with pytest.raises(ConfigurationError, match=r"WEFT_BEDROCK_DIMENSIONS: .* 256, 512, 1024"):
        BedrockEmbedder(client, clock, model=MODEL, dimensions=300)


def test_the_client_tries_once_since_the_embedder_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = embedding_client()
    assert client.meta.config.retries["total_max_attempts"] == 1  # type: ignore[attr-defined]  # set when configured
    client.close()


def test_a_client_without_a_region_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "no-such-file")
    with pytest.raises(ConfigurationError, match="AWS_REGION"):
        embedding_client()

"""Amazon Bedrock's reranker.

The real service is out of reach here. Shapes, bounds and errors are tested against botocore's Stubber, which checks
requests and answers by the service's own description.
"""

import socket
from collections.abc import Iterator
from typing import Any, cast

import pytest
from botocore.client import BaseClient
from botocore.exceptions import NoCredentialsError
from botocore.stub import Stubber

from core.inference.bedrock import BACKOFF, TRANSIENT
from core.model.errors import ConfigurationError, InvalidArgument, NotConfigured, Unavailable
from core.reranking.bedrock import MAX_CHARACTERS, MAX_TEXTS, BedrockReranker, RerankingClient, reranking_client
from tests.support.bedrock import loopback_rerank_client
from tests.support.clock import ManualClock

ACCOUNT = "123456789012"
MODEL = "cohere.rerank-v3-5:0"
ARN = f"arn:aws:bedrock:us-east-1::foundation-model/{MODEL}"
SECONDS = 10.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def client() -> Iterator[RerankingClient]:
    with loopback_rerank_client(9) as client:
        yield client


@pytest.fixture
def stub(client: RerankingClient) -> Iterator[Stubber]:
    with Stubber(cast(BaseClient, client)) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def reranker(client: RerankingClient, clock: ManualClock) -> BedrockReranker:
    return BedrockReranker(client, clock, model=MODEL, seconds=SECONDS)


def request(texts: list[str], query: str = "why", token: str | None = None) -> dict[str, Any]:
    """As documented."""
    asked: dict[str, Any] = {
        "queries": [{"type": "TEXT", "textQuery": {"text": query}}],
        "sources": [
            {"type": "INLINE", "inlineDocumentSource": {"type": "TEXT", "textDocument": {"text": text}}}
            for text in texts
        ],
        "rerankingConfiguration": {
            "type": "BEDROCK_RERANKING_MODEL",
            "bedrockRerankingConfiguration": {
                "modelConfiguration": {"modelArn": ARN},
                "numberOfResults": len(texts),
            },
        },
    }
    return asked if token is None else asked | {"nextToken": token}


def add_answer(
    stub: Stubber, texts: list[str], scores: dict[int, float], *, token: str | None = None, next_token: str = ""
) -> None:
    """Expects the documented request, and answers as documented: best first."""
    best_first = sorted(scores.items(), key=lambda item: -item[1])
    answer: dict[str, Any] = {"results": [{"index": index, "relevanceScore": score} for index, score in best_first]}
    if next_token:
        answer["nextToken"] = next_token
    stub.add_response("rerank", answer, request(texts, token=token))


def test_scores_come_in_the_order_of_the_texts(stub: Stubber, reranker: BedrockReranker) -> None:
    add_answer(stub, ["one", "two é", "three"], {0: 0.25, 1: 1.0, 2: 0.5})
    assert reranker.rerank("why", ["one", "two é", "three"]) == [0.25, 1.0, 0.5]


def test_an_answer_may_have_several_pages(stub: Stubber, reranker: BedrockReranker) -> None:
    texts = ["one", "two", "three"]
    add_answer(stub, texts, {1: 0.75, 2: 0.5}, next_token="more")
    add_answer(stub, texts, {0: 0.25}, token="more")
    assert reranker.rerank("why", texts) == [0.25, 0.75, 0.5]


def test_a_request_has_at_most_a_thousand_texts(stub: Stubber, reranker: BedrockReranker) -> None:
    texts = [f"text {number}" for number in range(MAX_TEXTS + 2)]
    add_answer(stub, texts[:MAX_TEXTS], dict.fromkeys(range(MAX_TEXTS), 0.5))
    add_answer(stub, texts[MAX_TEXTS:], {0: 0.75, 1: 0.25})
    assert reranker.rerank("why", texts) == [0.5] * MAX_TEXTS + [0.75, 0.25]


def test_blank_texts_are_not_sent(stub: Stubber, reranker: BedrockReranker) -> None:
    add_answer(stub, ["one", "two"], {0: 0.25, 1: 0.5})
    assert reranker.rerank("why", ["", "one", " \n", "two"]) == [0.0, 0.25, 0.0, 0.5]
    assert reranker.rerank("why", [""]) == [0.0], "and nothing is asked when there is nothing else"


def test_of_a_text_that_is_too_long_the_beginning_is_sent(stub: Stubber, reranker: BedrockReranker) -> None:
    add_answer(stub, ["x" * MAX_CHARACTERS], {0: 0.5})
    assert reranker.rerank("why", ["x" * MAX_CHARACTERS + "y"]) == [0.5]


def test_a_query_that_is_too_long_is_refused(stub: Stubber, reranker: BedrockReranker) -> None:
    with pytest.raises(InvalidArgument, match=str(MAX_CHARACTERS)):
        reranker.rerank("x" * (MAX_CHARACTERS + 1), ["one"])


@pytest.mark.parametrize("code", sorted(TRANSIENT))
def test_a_passing_failure_is_tried_again(stub: Stubber, reranker: BedrockReranker, code: str) -> None:
    stub.add_client_error("rerank", code, "Too many requests")
    add_answer(stub, ["one"], {0: 0.5})
    assert reranker.rerank("why", ["one"]) == [0.5]


def test_throttling_without_end_is_unavailable(stub: Stubber, reranker: BedrockReranker, clock: ManualClock) -> None:
    for _ in range(BACKOFF.tries):
        stub.add_client_error("rerank", "ThrottlingException", "Too many requests")
    with pytest.raises(Unavailable) as unavailable:
        reranker.rerank("why", ["one"])
    assert unavailable.value.extras["retry_after_s"] > 0
    assert clock.monotonic() <= SECONDS / 2, "the last try would have had its whole time"


def test_no_try_begins_that_could_end_too_late(stub: Stubber, reranker: BedrockReranker, clock: ManualClock) -> None:
    add_answer(stub, ["one"], {0: 0.5})
    assert reranker.rerank("why", ["one"], deadline=clock.monotonic() + SECONDS / 2) == [0.5]
    with pytest.raises(Unavailable):
        reranker.rerank("why", ["one"], deadline=clock.monotonic() + SECONDS / 2 - 0.1)


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "ResourceNotFoundException", "ExpiredTokenException", "ValidationException"]
)
def test_a_refusal_is_the_operators_to_correct_and_names_no_account(
    stub: Stubber, reranker: BedrockReranker, clock: ManualClock, code: str
) -> None:
    stub.add_client_error("rerank", code, f"arn:aws:sts::{ACCOUNT}:assumed-role/weft is not authorized")
    with pytest.raises(NotConfigured, match=f"{code}.*bedrock:Rerank and bedrock:InvokeModel") as refused:
        reranker.rerank("why", ["one"])
    assert ACCOUNT not in refused.value.detail
    assert clock.monotonic() == 0, "trying again would change nothing"


def test_missing_credentials_are_the_operators_to_correct(client: RerankingClient, reranker: BedrockReranker) -> None:
    def no_credentials(**_: Any) -> None:
        raise NoCredentialsError

    client.meta.events.register("before-call.bedrock-agent-runtime.Rerank", no_credentials)
    with pytest.raises(NotConfigured, match="NoCredentialsError"):
        reranker.rerank("why", ["one"])


@pytest.mark.parametrize("scores", [{}, {0: 0.5}, {0: 0.5, 2: 0.5}, {0: 0.5, 1: 0.5, 2: 0.5}])
def test_scores_of_other_texts_than_those_asked_are_not_taken(
    stub: Stubber, reranker: BedrockReranker, scores: dict[int, float]
) -> None:
    add_answer(stub, ["one", "two"], scores)
    with pytest.raises(NotConfigured, match="instead of 2"):
        reranker.rerank("why", ["one", "two"])


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_a_score_outside_0_to_1_is_not_taken(stub: Stubber, reranker: BedrockReranker, score: float) -> None:
    add_answer(stub, ["one"], {0: score})
    with pytest.raises(NotConfigured, match="outside"):
        reranker.rerank("why", ["one"])


def test_a_service_that_cannot_be_reached_is_unavailable(clock: ManualClock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with loopback_rerank_client(port) as client, pytest.raises(Unavailable):
        BedrockReranker(client, clock, model=MODEL, seconds=SECONDS).rerank("why", ["one"])


def test_one_try_takes_at_most_half_of_a_calls_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    config = reranking_client(SECONDS).meta.config
    assert config.connect_timeout + config.read_timeout == SECONDS / 2
    assert config.retries["total_max_attempts"] == 1, "the reranker tries again"


def test_a_client_without_a_region_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "no-such-file")
    with pytest.raises(ConfigurationError, match="AWS_REGION"):
        reranking_client(SECONDS)

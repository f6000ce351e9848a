"""A reranker that uses the Rerank operation of Amazon Bedrock.

The shapes of requests and answers are those of
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_agent-runtime_Rerank.html
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from core.clock import Clock
from core.inference.bedrock import bedrock_client, call_bedrock, not_configured
from core.inference.validation import validate_query
from core.model.component import Component
from core.model.errors import InvalidArgument, NotConfigured
from core.reranking.types import end_of_call

MAX_TEXTS = 1000
"""How many texts one request may have."""

MAX_CHARACTERS = 32_000
"""How many characters a query may have, and a text."""

CONNECT_SHARE = 0.1
READ_SHARE = 0.4
"""The share of a call's time that a connection may take, and an answer. One try takes at most half of the time, so that
there is room for a second try."""

CONNECTIONS = 10


class RerankingClient(Protocol):
    """The part of boto3's client ``bedrock-agent-runtime`` that the reranker uses."""

    @property
    def meta(self) -> Any: ...

    def rerank(self, **request: Any) -> dict[str, Any]: ...


def reranking_client(seconds: float) -> RerankingClient:
    """Returns a client for `BedrockReranker`, which repeats failed requests itself.

    Args:
        seconds: how long a call of the reranker may take.

    Raises:
        ConfigurationError: no region is set. Set AWS_REGION.
    """
    client: RerankingClient = bedrock_client(
        "bedrock-agent-runtime",
        connect_timeout_s=CONNECT_SHARE * seconds,
        read_timeout_s=READ_SHARE * seconds,
        connections=CONNECTIONS,
    )
    return client


class BedrockReranker:
    """Scores up to 1,000 texts by one request. Thread-safe.

    The service takes up to 32,000 characters of a text; a longer text is sent up to there. A model of the service may
    read less. Blank texts are not sent.

    A try begins only when it would end within the call's time. With a deadline that is nearer than the length of one
    try, a call is therefore Unavailable at once.
    """

    def __init__(self, client: RerankingClient, clock: Clock, *, model: str, seconds: float) -> None:
        """
        Args:
            client: a client as `reranking_client` makes it for the same ``seconds``.
            model: the identifier of a foundation model in the client's region.
            seconds: how long a call may take.
        """
        self.name = model
        self._client = client
        self._clock = clock
        self._seconds = seconds
        region, partition = client.meta.region_name, client.meta.partition
        self._arn = f"arn:{partition}:bedrock:{region}::foundation-model/{model}"

    def rerank(self, query: str, texts: Sequence[str], deadline: float | None = None) -> list[float]:
        """Scores texts, as `core.reranking.types.Reranker` says.

        Raises:
            InvalidArgument: the query has more characters than the service takes.
        """
        validate_query(query)
        if len(query) > MAX_CHARACTERS:
            raise InvalidArgument(f"The reranker takes a query of at most {MAX_CHARACTERS} characters", field="query")
        end = end_of_call(self._clock, self._seconds, deadline)
        last_start = end - (CONNECT_SHARE + READ_SHARE) * self._seconds
        scores = [0.0] * len(texts)
        places = [place for place, text in enumerate(texts) if text.strip()]
        for start in range(0, len(places), MAX_TEXTS):
            batch = places[start : start + MAX_TEXTS]
            batch_scores = self._scores(query, [texts[place][:MAX_CHARACTERS] for place in batch], last_start)
            for place, score in zip(batch, batch_scores, strict=True):
                scores[place] = score
        return scores

    def describe(self) -> Component:
        return Component(name=self.name, type="bedrock", configured=True)

    def _scores(self, query: str, texts: Sequence[str], last_start: float) -> list[float]:
        """Returns the scores in the order of the texts; the service answers with the best score first."""
        by_place = {result["index"]: result["relevanceScore"] for result in self._results(query, texts, last_start)}
        if by_place.keys() != set(range(len(texts))):
            raise NotConfigured(f"Amazon Bedrock answered with scores of {len(by_place)} texts instead of {len(texts)}")
        if not all(0 <= score <= 1 for score in by_place.values()):
            raise NotConfigured("Amazon Bedrock answered with a score outside 0 to 1")
        return [by_place[place] for place in range(len(texts))]

    def _results(self, query: str, texts: Sequence[str], last_start: float) -> Iterator[dict[str, Any]]:
        """Yields the results of all pages of the answer."""
        request = self._request(query, texts)
        while True:
            page = call_bedrock(
                lambda: self._client.rerank(**request), self._clock, last_start=last_start, refusal=self._refusal
            )
            yield from page["results"]
            if not page.get("nextToken"):
                return
            request["nextToken"] = page["nextToken"]

    def _request(self, query: str, texts: Sequence[str]) -> dict[str, Any]:
        return {
            "queries": [{"type": "TEXT", "textQuery": {"text": query}}],
            "sources": [
                {"type": "INLINE", "inlineDocumentSource": {"type": "TEXT", "textDocument": {"text": text}}}
                for text in texts
            ],
            "rerankingConfiguration": {
                "type": "BEDROCK_RERANKING_MODEL",
                "bedrockRerankingConfiguration": {
                    "numberOfResults": len(texts),
                    "modelConfiguration": {"modelArn": self._arn},
                },
            },
        }

    def _refusal(self, error: Exception) -> NotConfigured:
        return not_configured(self.name, "bedrock:Rerank and bedrock:InvokeModel", error)

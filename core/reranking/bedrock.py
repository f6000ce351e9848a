"""Amazon Bedrock's Rerank operation, which asks one of its reranking models.

Request and answer: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_agent-runtime_Rerank.html
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, cast

import boto3

from core.clock import Clock
from core.inference.bedrock import ask, not_configured, region_needed, single_try
from core.model.component import Component
from core.model.errors import InvalidArgument, NotConfigured
from core.reranking.checks import check_query, end_of

MAX_TEXTS = 1000
"""Of one request."""

MAX_CHARACTERS = 32_000
"""Of a query, and of a text."""

CONNECT_SHARE = 0.1
READ_SHARE = 0.4
"""Of a call's time: one try takes half of it at most, so that there is room for a second one."""

CONNECTIONS = 10


class RerankClient(Protocol):
    """What is used of the client for Amazon Bedrock's agents at run time."""

    @property
    def meta(self) -> Any: ...

    def rerank(self, **request: Any) -> dict[str, Any]: ...


def bedrock_client(seconds: float) -> RerankClient:
    """A client that leaves trying again to the reranker.

    Args:
        seconds: how long a call of the reranker may take.

    Raises:
        ConfigurationError: no region is set.
    """
    config = single_try(
        connect_timeout_s=CONNECT_SHARE * seconds, read_timeout_s=READ_SHARE * seconds, connections=CONNECTIONS
    )
    with region_needed():
        return cast(RerankClient, boto3.client("bedrock-agent-runtime", config=config))


class BedrockReranker:
    """One request for up to 1,000 texts. Thread-safe.

    The service takes up to 32,000 characters of a text: of a longer one it gets the beginning. Its models may read
    less. Blank texts are not sent.

    No try begins that could end after the call's time, so a deadline nearer than one try is Unavailable at once.
    """

    def __init__(self, client: RerankClient, clock: Clock, *, model: str, seconds: float) -> None:
        """
        Args:
            client: as ``bedrock_client`` makes it for the same ``seconds``.
            model: a foundation model's identifier, in the client's region.
            seconds: how long a call may take.
        """
        self.name = model
        self._client = client
        self._clock = clock
        self._seconds = seconds
        region, partition = client.meta.region_name, client.meta.partition
        self._arn = f"arn:{partition}:bedrock:{region}::foundation-model/{model}"

    def rerank(self, query: str, texts: Sequence[str], deadline: float | None = None) -> list[float]:
        """As the protocol says, and:

        Raises:
            InvalidArgument: the query has more characters than the service takes.
        """
        check_query(query)
        if len(query) > MAX_CHARACTERS:
            raise InvalidArgument(f"The reranker takes a query of at most {MAX_CHARACTERS} characters", field="query")
        last_start = end_of(self._clock, self._seconds, deadline) - (CONNECT_SHARE + READ_SHARE) * self._seconds
        scores = [0.0] * len(texts)
        places = [place for place, text in enumerate(texts) if text.strip()]
        for start in range(0, len(places), MAX_TEXTS):
            asked = places[start : start + MAX_TEXTS]
            answers = self._relevance(query, [texts[place][:MAX_CHARACTERS] for place in asked], last_start)
            for place, score in zip(asked, answers, strict=True):
                scores[place] = score
        return scores

    def describe(self) -> Component:
        return Component(name=self.name, type="bedrock", configured=True)

    def _relevance(self, query: str, texts: Sequence[str], last_start: float) -> list[float]:
        """Scores in the order of the texts: the service answers best first."""
        found = {result["index"]: result["relevanceScore"] for result in self._results(query, texts, last_start)}
        if found.keys() != set(range(len(texts))):
            raise NotConfigured(f"Amazon Bedrock answered with scores of {len(found)} texts instead of {len(texts)}")
        if not all(0 <= score <= 1 for score in found.values()):
            raise NotConfigured("Amazon Bedrock answered with a score outside 0 to 1")
        return [found[place] for place in range(len(texts))]

    def _results(self, query: str, texts: Sequence[str], last_start: float) -> Iterator[dict[str, Any]]:
        """Of all pages."""
        request = self._request(query, texts)
        while True:
            answer = ask(
                lambda: self._client.rerank(**request), self._clock, last_start=last_start, refused=self._refused
            )
            yield from answer["results"]
            if not answer.get("nextToken"):
                return
            request["nextToken"] = answer["nextToken"]

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

    def _refused(self, error: Exception) -> NotConfigured:
        return not_configured(self.name, "bedrock:Rerank and bedrock:InvokeModel", error)

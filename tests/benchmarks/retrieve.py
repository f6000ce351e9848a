"""How long the whole handler takes to answer a question, beside the bare vector search in the same run.

Each client asks through the real handler, with an event as API Gateway makes it, then runs the store's search alone,
then what is below the store, and begins again; so that all three meet the same machine. Below the embedded store is
the matrix product, below OpenSearch's the k-NN request that it sends. Whatever the strategy, both are for ten hits by
vector; the reranker of ``rerank`` counts words.
"""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from opensearchpy import OpenSearch

from core.model.collection import Collection
from core.model.query import Strategy
from core.model.vector import Vector
from core.vectors.opensearch.client import CONNECTIONS
from core.vectors.types import VectorQuery
from tests.benchmarks.texts import readmes
from tests.benchmarks.workbench import TENANT, Workbench, embedder_of, workbench
from tests.support.command import finish, parser, progress
from tests.support.gateway import Api, served

TOP_K = 10
QUESTIONS = 200
WARM_UP = 20
QUESTION_WORDS = 8
PROMISED = {"dynamodb": {"BatchGetItem": 2, "GetItem": 1}, "embedder": {"embed": 1}, "vectors": {"search": 1}}
"""Requests a retrieve, when nothing has to be refilled: one read of the collection, one search, two batch reads."""
BY_TERMS = {"search": 1, "search_text": 1}
"""Searches of a strategy that fuses vectors and terms, in place of the one."""
SERVER_BY_TERMS = 3
"""What these take OpenSearch: by vector, and by terms the statistics and the best."""
TIES = 0.1
"""Searches that may take OpenSearch a second request: where the hits cut through equal scores, since some texts here
hold the same words."""


@dataclass(frozen=True)
class Times:
    """Seconds of one question.

    Attributes:
        whole: the handler's answer.
        own: without what was spent in the DynamoDB double.
        search: the store's search alone.
        bare: what the store asks for, alone.
    """

    whole: float
    own: float
    search: float
    bare: float


class BareProduct:
    """The least that a search in this process can be: a matrix product and its highest scores."""

    def __init__(self, vectors: Sequence[Vector]) -> None:
        self._vectors = np.array(vectors, dtype=np.float32)

    def top(self, query: Vector) -> list[int]:
        scores = self._vectors @ np.array(query, dtype=np.float32)
        best: list[int] = np.argpartition(scores, -TOP_K)[-TOP_K:].tolist()
        return sorted(best, key=lambda row: -scores[row])


class BareRequest:
    """The k-NN request alone: the body that the store sends, by the plain client of OpenSearch."""

    def __init__(self, url: str, path: str, body: dict[str, Any]) -> None:
        self._client = OpenSearch([url], pool_maxsize=CONNECTIONS)
        self._index = path.split("/")[1]
        self._body = body

    def top(self, query: Vector) -> Any:
        knn = self._body["query"]["knn"]["vector"]
        body = {**self._body, "query": {"knn": {"vector": {**knn, "vector": query}}}}
        return self._client.search(index=self._index, body=body)


def bare_of(bench: Workbench) -> BareProduct | BareRequest:
    """The bare search of a workbench whose last search was the store's own by vector."""
    if bench.opensearch is None:
        return BareProduct(bench.vectors.written)
    transport, url = bench.opensearch
    return BareRequest(url, *transport.search)


class Client:
    """Asks one question after the other."""

    def __init__(self, bench: Workbench, collection: Collection, strategy: Strategy = Strategy.SIMILARITY) -> None:
        self._bench = bench
        self._collection = collection
        self._strategy = strategy
        self._api = Api()
        self._embedder = bench.embedder

    def ask(self, question: str, path: str = "/v1/retrieve", top_k: int = TOP_K) -> None:
        """One question to the handler."""
        body = {"query": question, "collections": [self._collection.id], "top_k": top_k, "strategy": self._strategy}
        answer = self._api.post(path, body)
        assert answer.status == 200, answer.text
        assert len(answer.json["hits"]) == top_k, "every question has as many hits as are asked for"

    def compare(self, bare: BareProduct | BareRequest, question: str) -> Times:
        """The same question to the handler, to the store and to what is below the store."""
        vector = self._embedder.embed([question]).vectors[0]
        with self._bench.probe.one_call() as spent:
            whole = _seconds(partial(self.ask, question))
        search = _seconds(partial(self.search, vector))
        return Times(whole, whole - spent["dynamodb"], search, _seconds(partial(bare.top, vector)))

    def search(self, vector: Vector) -> None:
        """The store's own search by vector."""
        query = VectorQuery(vector, [self._collection.id], TOP_K)
        # Of the store itself: the probe counts what the handler asks for, and nothing else.
        with self._bench.probe.uncounted():
            self._bench.vectors.bare.search(TENANT, self._collection.space, query)


def _seconds(step: Callable[[], Any]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--chunks", type=int, default=10_000)
    options.add_argument("--clients", type=int, nargs="+", default=[1, 8], help="one row for each number")
    options.add_argument("--strategy", type=Strategy, choices=list(Strategy), default=Strategy.SIMILARITY)
    given = options.parse_args()
    draw = random.Random(given.seed)
    embedder = embedder_of("hashed")
    with workbench(embedder, given.vectors) as bench:
        collection = bench.collection("benchmark")
        chunks = sum(result.chunk_count for result in bench.fill(collection, given.chunks))
        client = Client(bench, collection, given.strategy)
        with served(bench.engine):
            for question in questions(draw, WARM_UP):
                client.ask(question)
            client.search(embedder.embed(["any"]).vectors[0])
            step = partial(client.compare, bare_of(bench))
            rows = [row(bench, step, clients, questions(draw, QUESTIONS * given.rounds)) for clients in given.clients]
    shared = {"store": given.vectors, "strategy": given.strategy, "chunks": chunks}
    rows = [{**shared, **one} for one in rows]
    held = all(as_promised(one["requests"], given.strategy) for one in rows)
    finish({**rows[0], "rows": rows}, held=held, quiet=given.json, show=partial(_show, rows))


def as_promised(requests: dict[str, dict[str, float]], strategy: Strategy) -> bool:
    """Whether a retrieve asks for no more than is promised."""
    ours = {service: by for service, by in requests.items() if service != "opensearch"}
    by_terms = strategy in {Strategy.HYBRID, Strategy.RERANK}
    promised = {**PROMISED, "vectors": BY_TERMS} if by_terms else PROMISED
    most = SERVER_BY_TERMS if by_terms else 1
    server = requests.get("opensearch", {"_search": most})
    return ours == promised and server.keys() == {"_search"} and server["_search"] <= most * (1 + TIES)


def questions(draw: random.Random, count: int) -> list[str]:
    """A few words in a row from the texts."""
    words = " ".join(text.content for text in readmes()).split()
    starts = [draw.randrange(len(words) - QUESTION_WORDS) for _ in range(count)]
    return [" ".join(words[start : start + QUESTION_WORDS]) for start in starts]


def row(bench: Workbench, step: Callable[[str], Times], clients: int, asked: list[str]) -> dict[str, Any]:
    """What so many clients at once are answered in."""
    bench.probe.reset()
    with ThreadPoolExecutor(clients, "client") as pool:
        times = list(progress(pool.map(step, asked), f"{clients} at once", total=len(asked)))
    requests = bench.probe.by_service(len(asked))
    requests["embedder"]["embed"] -= 1  # the client's own, for the bare searches
    whole, own, search, bare = ([getattr(one, name) for one in times] for name in ("whole", "own", "search", "bare"))
    return {
        "clients": clients,
        "p50_ms": _milliseconds(statistics.median(whole)),
        "p95_ms": _milliseconds(statistics.quantiles(whole, n=20)[-1]),
        "own_p50_ms": _milliseconds(statistics.median(own)),
        "search_p50_ms": _milliseconds(statistics.median(search)),
        "bare_p50_ms": _milliseconds(statistics.median(bare)),
        "ratio_p50": round(statistics.median(whole) / statistics.median(bare), 2),
        "ratio_p50_own": round(statistics.median(own) / statistics.median(bare), 2),
        "requests": requests,
    }


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _show(rows: Sequence[dict[str, Any]]) -> None:
    for one in rows:
        print(f"{one['clients']} clients, {one['chunks']} chunks, requests {one['requests']}")
        for name in ("p50_ms", "p95_ms", "own_p50_ms", "search_p50_ms", "bare_p50_ms", "ratio_p50", "ratio_p50_own"):
            print(f"  {one[name]:10.3f} {name}")


if __name__ == "__main__":
    main()

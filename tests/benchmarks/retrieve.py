"""How long the whole handler takes to answer a question, beside the bare vector search in the same run.

Each client asks through the real handler, with an event as API Gateway makes it, then runs the store's search alone,
then the matrix product alone, and begins again; so that all three meet the same machine.
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
from numpy.typing import NDArray

from core.model.collection import Collection
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.types import VectorQuery
from tests.api.gateway import Api, served
from tests.benchmarks.texts import readmes
from tests.benchmarks.workbench import TENANT, Workbench, workbench
from tests.support.command import finish, parser, progress

TOP_K = 10
QUESTIONS = 200
WARM_UP = 20
QUESTION_WORDS = 8
PROMISED = {"dynamodb": {"BatchGetItem": 2, "GetItem": 1}, "embedder": {"embed": 1}, "vectors": {"search": 1}}
"""Requests a retrieve, when nothing has to be refilled: one read of the collection, one search, two batch reads."""


@dataclass(frozen=True)
class Times:
    """Seconds of one question.

    Attributes:
        whole: the handler's answer.
        own: without what was spent in the DynamoDB double.
        search: the store's search alone.
        bare: the matrix product alone.
    """

    whole: float
    own: float
    search: float
    bare: float


class BareProduct:
    """The least that a search can be: a matrix product and its highest scores."""

    def __init__(self, vectors: Sequence[Sequence[float]]) -> None:
        self._vectors = np.array(vectors, dtype=np.float32)

    def top(self, query: NDArray[np.float32]) -> list[int]:
        scores = self._vectors @ query
        best: list[int] = np.argpartition(scores, -TOP_K)[-TOP_K:].tolist()
        return sorted(best, key=lambda row: -scores[row])


class Client:
    """Asks one question after the other."""

    def __init__(self, bench: Workbench, collection: Collection, bare: BareProduct) -> None:
        self._bench = bench
        self._collection = collection
        self._bare = bare
        self._api = Api()
        self._space = collection.space
        self._embedder = bench.parts.embedder(collection.embedding_model)

    def ask(self, question: str) -> Times:
        body = {"query": question, "collections": [self._collection.id], "top_k": TOP_K}
        vector = self._embedder.embed([question]).vectors[0]
        query = VectorQuery(vector, [self._collection.id], TOP_K)
        array = np.array(vector, dtype=np.float32)
        with self._bench.probe.one_call() as spent:
            answer, whole = _timed(partial(self._api.post, "/v1/retrieve", body))
        assert answer.status == 200, answer.text
        assert len(answer.json["hits"]) == TOP_K, "every question has ten hits"
        # The store's own method: the probe counts what the handler asks for, and nothing else.
        _, search = _timed(partial(EmbeddedVectorStore.search, self._bench.vectors, TENANT, self._space, query))
        _, bare = _timed(partial(self._bare.top, array))
        return Times(whole, whole - spent["dynamodb"], search, bare)


def _timed(step: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    answer = step()
    return answer, time.perf_counter() - start


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--chunks", type=int, default=10_000)
    options.add_argument("--clients", type=int, nargs="+", default=[1, 8], help="one row for each number")
    given = options.parse_args()
    draw = random.Random(given.seed)
    with workbench("hashed") as bench:
        collection = bench.collection("benchmark")
        chunks = sum(result.chunk_count for result in bench.fill(collection, given.chunks))
        client = Client(bench, collection, BareProduct(bench.vectors.written))
        with served(bench.engine):
            for question in questions(draw, WARM_UP):
                client.ask(question)
            rows = [row(bench, client, clients, draw, given.rounds) for clients in given.clients]
    shared = {"store": given.vectors, "strategy": "similarity", "chunks": chunks}
    rows = [{**shared, **one} for one in rows]
    held = all(one["requests"] == PROMISED for one in rows)
    finish({**rows[0], "rows": rows}, held=held, quiet=given.json, show=partial(_show, rows))


def questions(draw: random.Random, count: int) -> list[str]:
    """A few words in a row from the texts."""
    words = " ".join(text.content for text in readmes()).split()
    starts = [draw.randrange(len(words) - QUESTION_WORDS) for _ in range(count)]
    return [" ".join(words[start : start + QUESTION_WORDS]) for start in starts]


def row(bench: Workbench, client: Client, clients: int, draw: random.Random, rounds: int) -> dict[str, Any]:
    """What so many clients at once are answered in."""
    asked = questions(draw, QUESTIONS * rounds)
    bench.probe.reset()
    with ThreadPoolExecutor(clients, "client") as pool:
        times = list(progress(pool.map(client.ask, asked), f"{clients} at once", total=len(asked)))
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

"""Proof of readiness: ready means retrievable. A document that has just become ready is in the answer to its text.

One process ingests and another retrieves, each with a vector store of its own on the same file or index, as two
deployed functions have. The index becomes searchable as seldom as a deployed index does. Eight pairs of an ingest and a
retrieve run at a time. A pair ingests a document with a source key, one without, or a new version of an earlier one;
then the old version must not be found.

Keys of the last line:

- ``pairs``, ``kinds``, ``stores``: the pairs, in all and by kind, and the vector stores.
- ``found``: pairs whose document was the answer. ``old_found``: pairs whose old version was found.
- ``not_replaced``: new versions whose ingest did not say that they replace the old one.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from core.clock import SystemClock
from core.engine import Engine
from core.model.collection import NewCollection
from core.model.hit import RetrieveResult
from core.model.ids import CollectionId
from core.model.ingest import IngestInput, IngestResult
from core.model.query import RetrieveQuery, Strategy
from core.model.tenant import Tenant
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.opensearch.client import Client, connect
from core.vectors.opensearch.index import IndexOptions
from core.vectors.opensearch.store import OpenSearchVectorStore
from core.vectors.types import VectorStore
from tests.proofs.command import Options, Report, main
from tests.proofs.harness import SETTINGS, seeded
from tests.proofs.tally import Tally, total
from tests.support.books import Problem
from tests.support.dynamodb import LargeDynamoDB
from tests.support.embedder import HashedEmbedder
from tests.support.engines import make_engine

PAIRS = 1_000
"""The pairs on each store."""
AT_ONCE = 8
TENANTS = 3
KEYS = 6
"""The number of sources of each worker, which get new versions."""
ENDLESS = 1e9
CHUNK_WORDS = 6


@contextmanager
def two_views(options: Options) -> Iterator[tuple[VectorStore, VectorStore]]:
    """Two stores on the same records, which share nothing in memory."""
    with ExitStack() as stack:
        if options.vectors == "embedded":
            folder = stack.enter_context(TemporaryDirectory(prefix="weft-ready-"))
            path = Path(folder) / "vectors.sqlite"
            first, second = (stack.enter_context(closing(EmbeddedVectorStore(path))) for _ in range(2))
            yield first, second
            return
        index = IndexOptions(prefix=f"ready-{os.getpid()}-{os.urandom(4).hex()}")
        clock = SystemClock()
        one, other = (
            stack.enter_context(
                closing(OpenSearchVectorStore(Client(connect(options.server, "none"), clock), index, clock))
            )
            for _ in range(2)
        )
        yield one, other


def engine_on(table: LargeDynamoDB, vectors: VectorStore) -> Engine:
    """A process with its own clients of shared stores."""
    return make_engine(table, vectors, [HashedEmbedder()], SystemClock(), SETTINGS)


@dataclass(frozen=True)
class Place:
    """The engines and the collection of a worker. Its name is in all its words, and in no others."""

    writer: Engine
    reader: Engine
    tenant: Tenant
    collection: CollectionId
    name: str


@dataclass(frozen=True)
class Version:
    """An ingested version: the texts of its chunks, and the result of its ingest."""

    texts: tuple[str, ...]
    result: IngestResult


class Worker:
    """Runs one pair of an ingest and a retrieve after the other."""

    def __init__(self, place: Place, chance: Random) -> None:
        self._place = place
        self._chance = chance
        self._versions: dict[str, Version] = {}
        self.tally = Tally()
        self.found = 0
        self.kinds: Counter[str] = Counter()

    def run(self, pairs: int, tell: Callable[[], None]) -> None:
        for number in range(pairs):
            self._pair(number)
            tell()

    def _pair(self, number: int) -> None:
        key = f"{self._place.name}-{self._chance.randrange(KEYS)}.txt" if self._chance.random() < 0.8 else None
        words = [f"{self._place.name}x{number}x{word}" for word in range(CHUNK_WORDS * self._chance.randint(1, 3))]
        texts = [" ".join(words[start : start + CHUNK_WORDS]) for start in range(0, len(words), CHUNK_WORDS)]
        request = IngestInput(collection_id=self._place.collection, content="\n\n".join(texts).encode(), source_key=key)
        result = self._place.writer.ingest.ingest(self._place.tenant, request, self._deadline())
        question = self._chance.choice(texts)
        old = self._versions.get(key) if key is not None else None
        try:
            problems = list(self._problems(result, question, self._ask(question, top_k=1), old))
        except Exception as failure:  # noqa: BLE001 - no failure is an answer
            problems = [Problem("not_found", repr(failure))]
        self.found += not any(problem.kind == "not_found" for problem in problems)
        kind = "new version" if old else "with a key" if key else "without a key"
        self.kinds[kind] += 1
        self.tally.add(f"{self._place.name}, pair {number}, {kind}", problems)
        if key is not None:
            self._versions[key] = Version(tuple(texts), result)

    def _problems(
        self, result: IngestResult, question: str, answer: RetrieveResult, old: Version | None
    ) -> Iterator[Problem]:
        if [(hit.chunk.document_id, hit.chunk.text) for hit in answer.hits] != [(result.document_id, question)]:
            yield Problem("not_found", f"{result} is answered with {answer}"[:500])
        if old is not None:
            if old.result.document_id not in result.replaced:
                yield Problem("not_replaced", f"{result} replaces nothing")
            hits = self._ask(old.texts[0], top_k=10).hits
            if any(hit.chunk.document_id == old.result.document_id for hit in hits):
                yield Problem("old_found", f"{old.result.document_id} is found after it was replaced")

    def _ask(self, text: str, top_k: int) -> RetrieveResult:
        within = [self._place.collection] if self._chance.random() < 0.5 else None
        strategy = self._chance.choice([Strategy.SIMILARITY, Strategy.HYBRID])
        query = RetrieveQuery(query=text, collections=within, top_k=top_k, strategy=strategy)
        return self._place.reader.retrieve(self._place.tenant, query)

    def _deadline(self) -> float:
        return self._place.writer.clock.monotonic() + ENDLESS


def try_store(options: Options, pairs: int, tell: Callable[[str], None]) -> list[Worker]:
    """Runs that many pairs on one store; answers the workers with what they have seen."""
    with two_views(options) as (one, other):
        table = LargeDynamoDB()
        writer, reader = engine_on(table, one), engine_on(table, other)
        places = []
        for number in range(TENANTS):
            tenant = Tenant(f"tenant-{number}")
            new = NewCollection(name="notes", chunk_size=CHUNK_WORDS, chunk_overlap=0)
            places.append((tenant, writer.collections.create(tenant, new).id))
        workers = [
            Worker(
                Place(writer, reader, *places[number % TENANTS], f"w{number}"), seeded("ready", options.seed, number)
            )
            for number in range(AT_ONCE)
        ]
        each = -(-pairs // AT_ONCE)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            told = lambda: tell(f"{options.vectors}: {sum(one.tally.tried for one in workers)} of {pairs}")  # noqa: E731
            list(pool.map(lambda worker: worker.run(each, told), workers))
        return workers


def prove(options: Options, tell: Callable[[str], None], pairs: int = PAIRS) -> Report:
    """Runs that many pairs on each store."""
    stores = options.of_each_store()
    workers = [worker for one in stores for worker in try_store(one, pairs * options.rounds, tell)]
    whole = total([worker.tally for worker in workers])
    return {
        "pairs": whole.tried,
        "found": sum(worker.found for worker in workers),
        "old_found": whole.problems["old_found"],
        "not_replaced": whole.problems["not_replaced"],
        "kinds": dict(sum((worker.kinds for worker in workers), Counter[str]())),
        "stores": [one.vectors for one in stores],
        "broken": whole.broken,
    }


def held(report: Report) -> bool:
    return report["found"] == report["pairs"] and not report["old_found"] and not report["not_replaced"]


if __name__ == "__main__":
    main("ready", prove, held=held, every_store=True)

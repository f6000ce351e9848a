"""Proof of interference: no tenant's answers change with what another tenant keeps in the same index.

One tenant asks the same questions again and again: before another tenant ingests ten thousand documents of the same
words, some of them the same texts; while it ingests; afterwards; once the server has merged its segments; while the
other tenant deletes all its documents; afterwards; and once the server has merged its segments again. Hits, order and
scores must stay the same to the last digit: of searches by vector and by terms in the store, and of each strategy of
the engine. An approximate search cannot promise this, so the store must say of itself that it is exact.

Keys of the last line:

- ``queries``, ``documents``, ``stores``: the answers that were compared, the documents of the other tenant, and the
  vector stores.
- ``changed_answers``: answers that differ from the first answer to the same question.
- ``approximate``: stores that say that they are approximate. ``empty``: stores where too many questions find nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from threading import Event
from typing import Any, TypeVar

import urllib3

from core.analysis.terms import query_terms
from core.engine import Engine
from core.model.collection import NewCollection
from core.model.errors import Unavailable
from core.model.filter import parse_filter
from core.model.ids import CollectionId
from core.model.ingest import IngestInput
from core.model.page import PageRequest
from core.model.query import RetrieveOptions, RetrieveQuery, Strategy
from core.model.tenant import Tenant
from core.vectors.types import TextQuery, VectorMatch, VectorQuery
from tests.proofs.command import Options, Report, main
from tests.proofs.harness import SETTINGS, seeded
from tests.proofs.tally import Tally, total
from tests.support.books import Problem
from tests.support.clock import ManualClock
from tests.support.dynamodb import LargeDynamoDB
from tests.support.embedder import HashedEmbedder
from tests.support.engines import make_engine

Item = TypeVar("Item")

QUIET, LOUD = Tenant("quiet"), Tenant("loud")
DOCUMENTS = 10_000
"""The documents of the other tenant."""
OWN = 300
QUESTIONS = 200
COLLECTIONS = 3
AT_ONCE = 8
ENDLESS = 1e9
MERGE_S = 120.0
WORDS = [f"word{number}" for number in range(400)]
COMMON = [1 / (1 + rank) for rank in range(len(WORDS))]
"""The frequency of each word, by Zipf's law."""
PHRASES = ("東京都庁の展望台", "Grüße aus München", "переход через дорогу")
STRATEGIES = (Strategy.SIMILARITY, Strategy.MMR, Strategy.HYBRID)


def some_text(chance: Random, words: int) -> str:
    said = chance.choices(WORDS, COMMON, k=words)
    if chance.random() < 0.1:
        said.append(chance.choice(PHRASES))
    return " ".join(said)


@dataclass(frozen=True)
class Question:
    """A question. Its ``ask`` answers with everything of the answer that could change, as text."""

    name: str
    ask: Callable[[], str]


class Neighbours:
    """Two tenants in one table and one vector store.

    Attributes:
        questions: the questions of the quiet tenant.
        answers: the answers to them, before the other tenant had any document.
    """

    def __init__(self, options: Options, own: int, questions: int) -> None:
        self._server = options.server if options.vectors == "opensearch" else ""
        self._chance = seeded("interference", options.seed)
        self.store = options.store()
        self._embedder = HashedEmbedder()
        self.engine = self._engine()
        # Each text is ingested twice at least, so that some scores are equal.
        self._texts = [some_text(self._chance, self._chance.randint(3, 40)) for _ in range(own // 2)]
        named = [NewCollection(name=f"notes {n}", chunk_size=16, chunk_overlap=0) for n in range(COLLECTIONS)]
        self._collections = [self.engine.collections.create(QUIET, new).id for new in named]
        _each(lambda number: self._ingest(QUIET, self._collections[number % COLLECTIONS], number, ""), range(own))
        self.questions = [self._question(number) for number in range(questions)]
        self.answers = [question.ask() for question in self.questions]

    def _engine(self) -> Engine:
        return make_engine(LargeDynamoDB(), self.store, [self._embedder], ManualClock(), SETTINGS)

    def _ingest(self, tenant: Tenant, collection: CollectionId, number: int, more: str) -> None:
        request = IngestInput(
            collection_id=collection,
            content=f"{self._texts[number % len(self._texts)]} {more}".encode(),
            source_key=f"{number}.txt",
            attributes={"year": 2000 + number % 20, "lang": "de" if number % 3 else "en"},
        )
        self.engine.ingest.ingest(tenant, request, ENDLESS)

    # -- the other tenant --------------------------------------------------------------------------

    def fill(self, documents: int) -> CollectionId:
        """Ingests the other tenant's documents: texts of the first tenant, and other texts of the same words."""
        chance = self._chance
        collection = self.engine.collections.create(LOUD, NewCollection(name="loud", chunk_size=128)).id
        more = [some_text(chance, chance.randint(0, 20)) if number % 4 else "" for number in range(documents)]
        _each(lambda number: self._ingest(LOUD, collection, number, more[number]), range(documents))
        self._expect(collection, documents)
        return collection

    def empty(self, collection: CollectionId) -> None:
        """Deletes the other tenant's documents, many at the same time, and then its collection."""
        page = PageRequest(limit=100)
        while (listed := self.engine.documents.list(LOUD, page, collection_id=collection)).next_page_token:
            _each(partial(self.engine.documents.delete, LOUD), [document.id for document in listed.items])
        while not self.engine.collections.delete(LOUD, collection, ENDLESS).complete:
            pass
        self._expect(collection, 0)

    def _expect(self, collection: CollectionId, records: int) -> None:
        matching = self.store.matching(LOUD, self._embedder.space, [collection], None)
        if matching != records:
            raise RuntimeError(f"the other tenant has {matching} records, and must have {records}")

    def merge(self) -> None:
        """Makes the server merge all segments of an index into one, and drop what was deleted."""
        if not self._server:
            return
        with urllib3.PoolManager(retries=False, timeout=MERGE_S) as http:
            answer = http.request("POST", f"{self._server}/_forcemerge?max_num_segments=1")
        if answer.status != 200:
            raise Unavailable("the server does not merge")

    # -- questions ---------------------------------------------------------------------------------

    def _question(self, number: int) -> Question:
        chance = self._chance
        text = chance.choice([*self._texts[:20], some_text(chance, 2), some_text(chance, 6), *PHRASES])
        within = chance.sample(self._collections, chance.randint(1, COLLECTIONS))
        limit = chance.choice([1, 3, 10, 50])
        filter_ = {"year": {"gte": chance.randrange(2000, 2020)}} if chance.random() < 0.3 else None
        kind = number % (2 + len(STRATEGIES))
        if kind < 2:
            name, ask = self._of_store("vectors" if kind else "terms", text, within, limit, filter_)
        else:
            name, ask = self._of_engine(STRATEGIES[kind - 2], text, within, limit, filter_)
        return Question(f"{name} of {text[:40]!r}, {limit}", ask)

    def _of_store(
        self, kind: str, text: str, within: list[CollectionId], limit: int, filter_: dict[str, Any] | None
    ) -> tuple[str, Callable[[], str]]:
        parsed = None if filter_ is None else parse_filter(filter_)
        space = self._embedder.space
        vectors = VectorQuery(self._embedder.embed([text]).vectors[0], within, limit, filter=parsed)
        terms = TextQuery(query_terms(text), within, limit, filter=parsed)
        if kind == "vectors":
            return kind, lambda: _exact(self.store.search(QUIET, space, vectors))
        return kind, lambda: _exact(self.store.search_text(QUIET, space, terms))

    def _of_engine(
        self, strategy: Strategy, text: str, within: list[CollectionId], limit: int, filter_: dict[str, Any] | None
    ) -> tuple[str, Callable[[], str]]:
        query = RetrieveQuery(
            query=text,
            collections=within,
            top_k=limit,
            strategy=strategy,
            filter=filter_,
            options=RetrieveOptions(explain=True),
        )
        return strategy, lambda: self.engine.retrieve(QUIET, query).model_dump_json()

    def ask_all(self, when: str) -> Tally:
        """Asks every question once."""
        tally = Tally()
        for number in range(len(self.questions)):
            self._ask(number, when, tally)
        return tally

    def _ask(self, number: int, when: str, tally: Tally) -> None:
        question, before = self.questions[number], self.answers[number]
        answer = question.ask()
        changed = [Problem("changed", _apart(before, answer))] if answer != before else []
        tally.add(f"{question.name}, {when}", changed)

    @contextmanager
    def asking(self, when: str) -> Iterator[Tally]:
        """Asks one question after another for as long as the block runs."""
        tally, over = Tally(), Event()

        def ask() -> None:
            while not over.is_set():
                self._ask(tally.tried % len(self.questions), when, tally)

        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(ask)
            try:
                yield tally
            finally:
                over.set()
        asked.result()


def _each(work: Callable[[Item], object], items: Sequence[Item]) -> None:
    """Does work on every item, in several threads."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(work, items):
            pass


def _exact(matches: list[VectorMatch]) -> str:
    return " ".join(f"{match.chunk_id}:{match.score.hex()}" for match in matches)


def _apart(before: str, after: str) -> str:
    """The parts of two answers around the first place where they differ."""
    same = next(
        (place for place, (one, other) in enumerate(zip(before, after, strict=False)) if one != other),
        min(len(before), len(after)),
    )
    start = max(0, same - 60)
    return f"was …{before[start : same + 60]}…, is …{after[start : same + 60]}…"


def try_store(options: Options, documents: int, own: int, questions: int, tell: Callable[[str], None]) -> list[Tally]:
    """Tells the whole story on one store."""
    world = Neighbours(options, own, questions)
    try:
        return list(_story(world, documents, lambda line: tell(f"{options.vectors}: {line}")))
    finally:
        world.store.close()


def _story(world: Neighbours, documents: int, tell: Callable[[str], None]) -> Iterator[Tally]:
    yield _promised(world)
    yield world.ask_all("again")
    tell("the other tenant ingests")
    with world.asking("while the other ingests") as meanwhile:
        collection = world.fill(documents)
    yield meanwhile
    yield world.ask_all("after the other has ingested")
    world.merge()
    yield world.ask_all("once its segments are merged")
    tell("the other tenant deletes")
    with world.asking("while the other deletes") as meanwhile:
        world.empty(collection)
    yield meanwhile
    yield world.ask_all("after the other has deleted")
    world.merge()
    yield world.ask_all("once what it deleted is merged away")


def _promised(world: Neighbours) -> Tally:
    """Checks that the store says that it is exact, and that most questions find something."""
    tally = Tally()
    kind = world.engine.status.components().vector_store.type or ""
    if "approximate" in kind:
        tally.add(kind, [Problem("approximate", "its answers can change with what others have")])
    empty = sum(not answer or '"hits":[]' in answer for answer in world.answers)
    if 3 * empty > len(world.answers):
        tally.add("answers", [Problem("empty", f"{empty} of {len(world.answers)} questions find nothing")])
    return tally


def prove(
    options: Options,
    tell: Callable[[str], None],
    documents: int = DOCUMENTS,
    own: int = OWN,
    questions: int = QUESTIONS,
) -> Report:
    """Tells the story on each store."""
    stores = options.of_each_store()
    documents *= options.rounds
    whole = total([tally for one in stores for tally in try_store(one, documents, own, questions, tell)])
    return {
        "queries": whole.tried,
        "changed_answers": whole.problems["changed"],
        "approximate": whole.problems["approximate"],
        "empty": whole.problems["empty"],
        "documents": documents,
        "stores": [one.vectors for one in stores],
        "broken": whole.broken,
    }


def held(report: Report) -> bool:
    return not any(report[name] for name in ("changed_answers", "approximate", "empty"))


if __name__ == "__main__":
    main("interference", prove, held=held, every_store=True)

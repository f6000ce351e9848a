"""Proof of explanations: an answer explains itself. The final order of a comparison follows, bit for bit, from the
figures in its JSON; and an answer with fewer than top_k hits names the right reason.

Random questions are asked of random collections of two tenants and two embedding models: with every strategy and
option, filters, values of min_score, and rerankers that fail. The handlers write each answer as JSON, and the proof
parses it again. The order of the hits is rebuilt by `core.ranking.explain`. The figures are computed again by their
formulas, and compared with the ranking of the vector store itself. A retrieve of the same question must give the same
hits. The reasons are tried in made situations (`tests.proofs.situations`).

Keys of the last line:

- ``answers``, ``rebuilt_equal``: the questions, and those whose comparison and retrieve are all right.
- ``reasons``, ``reasons_right``: the answers in made situations, and those that name the right reason.
- ``situations``, ``ways``, ``stores``: the situations, the ways in which each is asked, and the vector stores.
- ``problems``: what was wrong with answers, by kind. ``broken`` shows the first problems.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from core.analysis.terms import query_terms
from core.model.collection import Collection, NewCollection
from core.model.comparison import CompareResult
from core.model.errors import Unavailable
from core.model.filter import parse_filter
from core.model.ids import ChunkId, CollectionId
from core.model.ingest import IngestInput
from core.model.page import PageRequest
from core.model.tenant import Tenant
from core.ranking.explain import explain
from core.settings import Settings
from core.vectors.types import TextQuery, VectorMatch, VectorQuery
from tests.proofs.command import Options, Report, main, spread
from tests.proofs.harness import seeded
from tests.proofs.situations import MODELS, SITUATIONS, WAYS, Situation, Way, dying_at_vectors, try_situation
from tests.proofs.tally import Tally, total
from tests.support.books import Problem
from tests.support.dynamodb import LargeDynamoDB
from tests.support.embedder import HashedEmbedder
from tests.support.engines import TABLE, World, make_world
from tests.support.gateway import Api, served
from tests.support.reranker import WordOverlapReranker

PARTS, QUESTIONS, DOCUMENTS = 20, 150, 240
TENANTS = (Tenant("acme"), Tenant("globex"))
WORDS = [*(f"word{number}" for number in range(40)), "the", "of", "and", "東京", "größe", "переход"]
COMMON = [1 / (1 + rank) for rank in range(len(WORDS))]
STRATEGIES = ("similarity", "mmr", "hybrid", "rerank")
ALL = 10_000
MIN_POOL = 20
SMALL_ANSWER = 64 * 1024
MANY_ANSWERS = 5 * 1024 * 1024

Json = dict[str, Any]


def embedders() -> list[HashedEmbedder]:
    """An embedder of each model."""
    return [HashedEmbedder(MODELS[0]), HashedEmbedder(MODELS[1], dimensions=48)]


def new_world(options: Options, answer_bytes: int) -> World:
    """An engine with two embedding models and a reranker."""
    settings = Settings(table=TABLE, embedder="none", vectors="none", answer_bytes=answer_bytes)
    world = make_world(settings=settings, dynamodb=LargeDynamoDB(), create=False, vectors=options.store())
    world.rebuild(embedders=embedders(), reranker=WordOverlapReranker(world.clock))
    for embedder in embedders():
        world.vectors.prepare(embedder.space)
    return world


class Library:
    """Random documents of two tenants. Some are replaced, some are in progress."""

    def __init__(self, options: Options, part: int, documents: int) -> None:
        self.chance = seeded("explain", options.seed, part)
        self.world = new_world(options, MANY_ANSWERS)
        self.collections = {tenant: [self._collection(tenant, place) for place in range(4)] for tenant in TENANTS}
        for number in range(documents):
            self._ingest(number)
        self._served = {tenant: set(self._chunks(tenant)) for tenant in TENANTS}

    def _collection(self, tenant: Tenant, place: int) -> Collection:
        """Creates a collection: the first two of a tenant are of one embedding model, the others of the other."""
        new = NewCollection(name=f"notes {place}", embedding_model=MODELS[place // 2], chunk_size=12, chunk_overlap=0)
        return self.world.engine.collections.create(tenant, new)

    def _ingest(self, number: int) -> None:
        tenant = self.chance.choice(TENANTS)
        # One collection has most of the documents, so that its windows are full.
        collection = self.chance.choices(self.collections[tenant], (12, 2, 4, 1))[0]
        if number < 2 * len(self.collections[tenant]):
            tenant = TENANTS[number % 2]
            collection = self.collections[tenant][number // 2]
        request = IngestInput(
            collection_id=collection.id,
            content=self.words(self.chance.randint(1, 40)).encode(),
            source_key=f"{self.chance.randrange(200)}.txt",
            attributes={"year": 2000 + number % 7, "lang": self.chance.choice(["en", "de", "fr"])},
        )
        with dying_at_vectors(self.world, written=True) if self.chance.random() < 0.05 else nullcontext():
            self.world.engine.ingest.ingest(tenant, request, self.world.deadline())

    def words(self, count: int) -> str:
        return " ".join(self.chance.choices(WORDS, COMMON, k=count))

    def _chunks(self, tenant: Tenant) -> Iterator[ChunkId | None]:
        for collection in self.collections[tenant]:
            page = PageRequest(limit=100)
            while True:
                found = self.world.engine.chunks.list(tenant, page, collection_id=collection.id)
                yield from (chunk.id for chunk in found.items)
                if found.next_page_token is None:
                    break
                page = PageRequest(limit=100, token=found.next_page_token)

    def ranking(self, tenant: Tenant, body: Json, *, by_terms: bool) -> dict[str, tuple[int, float, Any]]:
        """The vector store's own ranking of the served chunks: the rank, score and vector of each, by chunk ID."""
        ids = [CollectionId(name) for name in body.get("collections") or self._ids(tenant)]
        parsed = parse_filter(body["filter"]) if "filter" in body else None
        places = {}
        for embedder in embedders():
            model = embedder.space.model
            within = self.collections[tenant]
            mine = [each.id for each in within if each.id in ids and each.embedding_model == model]
            if not mine:
                continue
            matches: list[VectorMatch]
            if by_terms:
                terms = TextQuery(query_terms(body["query"]), mine, ALL, filter=parsed)
                matches = self.world.vectors.search_text(tenant, embedder.space, terms)
            else:
                vector = embedder.embed([body["query"]]).vectors[0]
                query = VectorQuery(vector, mine, ALL, filter=parsed, with_vectors=True)
                matches = self.world.vectors.search(tenant, embedder.space, query)
            shown = [match for match in matches if match.chunk_id in self._served[tenant]]
            for rank, match in enumerate(shown, start=1):
                places[str(match.chunk_id)] = (rank, match.score, match.vector)
        return places

    def _ids(self, tenant: Tenant) -> list[CollectionId]:
        return [collection.id for collection in self.collections[tenant]]

    def question(self, tenant: Tenant) -> Json:
        """A random question, as the body of a request."""
        chance = self.chance
        body: Json = {
            "query": self.words(chance.choice((1, 2, 4, 8))),
            "top_k": chance.choice((1, 2, 5, 10, 20, 60, 100)),
            "strategy": chance.choice(STRATEGIES),
            "options": self._options(chance),
        }
        differing = "mmr" in (body["strategy"], body["options"]["first_stage"])
        if differing or chance.random() < 0.6:
            body["collections"] = chance.choice(
                [[each] for each in self._ids(tenant)] + [self._ids(tenant)[:2], self._ids(tenant)[2:]]
            )
        if chance.random() < 0.3:
            body["filter"] = chance.choice(
                [{"year": {"gte": 2004}}, {"lang": "en"}, {"year": 2003, "lang": "de"}, {"not": {"lang": "fr"}}]
            )
        return body

    def _options(self, chance: Random) -> Json:
        weight = partial(chance.choice, (0.0, 0.3, 1.0, 1.0, 2.5))
        weights = {"vector": weight(), "bm25": weight()}
        return {
            "mmr_lambda": chance.choice((0.0, 0.25, 0.7, 1.0)),
            "rrf_k": chance.choice((1, 13, 60, 1000)),
            "weights": weights if any(weights.values()) else {},
            "first_stage": chance.choice(("similarity", "mmr", "hybrid")),
            "fuse": chance.random() < 0.6,
            "fallback": True,
            "explain": True,
        }

    def close(self) -> None:
        self.world.close()


# -- answers ---------------------------------------------------------------------------------------


def look(library: Library, tenant: Tenant, body: Json, answer: Json, plain: Json) -> Iterator[Problem]:
    """Everything that is wrong with a comparison and with the retrieve of the same question."""
    yield from _rebuilt(answer)
    yield from _formulas(body["query"], answer)
    yield from _as_the_store_ranks(library, tenant, body, answer)
    shown = [(hit["rank"], hit["chunk"]["id"], hit["score"], hit["signals"]["final"]) for hit in answer["hits"]]
    found = [(hit["rank"], hit["chunk"]["id"], hit["score"], hit["signals"]["final"]) for hit in plain["hits"]]
    same = ("reason", "score", "strategy", "models", "fallback")
    if shown != found or any(answer[name] != plain[name] for name in same):
        yield Problem("retrieve", f"{found} and {plain['reason']}, but {shown} and {answer['reason']}")


def _rebuilt(answer: Json) -> Iterator[Problem]:
    """The order that the figures give must be the hits', followed by the chunks left out, by their final rank."""
    left_out = [hit for hit in answer["left_out"] if hit["signals"]["final"] is not None]
    left_out.sort(key=lambda hit: hit["signals"]["final"]["rank"])
    right = [hit["chunk"]["id"] for hit in (*answer["hits"], *left_out)]
    try:
        order = explain(CompareResult.model_validate_json(json.dumps(answer)))
    except ValueError as error:
        yield Problem("figures", str(error))
        return
    if order != right:
        yield Problem("order", f"{order} is rebuilt, and {right} is right")


def _formulas(query: str, answer: Json) -> Iterator[Problem]:
    """Each figure must be what its formula gives; the formulas are written a second time in this module."""
    options = answer["options"]
    for hit in (*answer["hits"], *answer["left_out"]):
        signals = hit["signals"]
        fused, mmr, final = signals["fused"], signals["mmr"], signals["final"]
        told = []
        if fused is not None:
            told.append((fused["score"], _fusion(answer, signals)))
        if mmr is not None:
            relevance = options["mmr_lambda"] * signals["vector"]["score"]
            told.append((mmr["value"], relevance - (1 - options["mmr_lambda"]) * mmr["penalty"]))
        if final is not None:
            told.append((final["score"], _final(answer, signals)))
            told.append((hit["score"], final["score"]))
        if signals["rerank"] is not None:
            words = set(query.casefold().split())
            shared = len(words & set(hit["chunk"]["text"].casefold().split()))
            told.append((signals["rerank"]["score"], shared / len(words)))
        for said, right in told:
            if said != right:
                yield Problem("formula", f"{said} is said and {right} is right: {signals}")


def _fusion(answer: Json, signals: Json) -> float:
    options, parts = answer["options"], [("vector", 1.0)]
    if _finder(answer) == "hybrid":
        parts = [("vector", options["weights"]["vector"]), ("bm25", options["weights"]["bm25"])]
    total = 0.0
    for name, weight in parts:
        place = signals[name]
        if place is not None and weight > 0 and place["rank"] <= answer["candidates"]:
            total += weight / (options["rrf_k"] + place["rank"])
    return total


def _finder(answer: Json) -> str:
    return str(answer["options"]["first_stage"] if answer["strategy"] == "rerank" else answer["strategy"])


def _final(answer: Json, signals: Json) -> float:
    k = answer["options"]["rrf_k"]
    if answer["strategy"] == "rerank" and answer["fallback"] is None:
        if not answer["options"]["fuse"]:
            return float(signals["rerank"]["score"])
        return float(1 / (k + signals["first_stage"]["rank"]) + 1 / (k + signals["rerank"]["rank"]))
    fused = _finder(answer) == "hybrid" or len(answer["models"]) > 1
    return _fusion(answer, signals) if fused else float(signals["vector"]["score"])


def _as_the_store_ranks(library: Library, tenant: Tenant, body: Json, answer: Json) -> Iterator[Problem]:
    """Ranks, cosines, BM25 scores and penalties must be those of the vector store, for the served chunks."""
    by_vector = library.ranking(tenant, body, by_terms=False)
    by_terms = library.ranking(tenant, body, by_terms=True) if _finder(answer) == "hybrid" else {}
    looked_at = {"vector": max(answer["window"], answer["candidates"]), "bm25": answer["candidates"]}
    seen = [*answer["hits"], *answer["left_out"]]
    for hit in seen:
        for name, right in (("vector", by_vector), ("bm25", by_terms)):
            place = right.get(hit["chunk"]["id"])
            expected = None if place is None or place[0] > looked_at[name] else {"rank": place[0], "score": place[1]}
            if hit["signals"][name] != expected:
                yield Problem("store", f"{name} is {hit['signals'][name]}, and {expected} in the store")
    differing = [hit for hit in seen if hit["signals"]["mmr"] is not None]
    differing.sort(key=lambda hit: hit["signals"]["mmr"]["rank"])
    if all(hit["chunk"]["id"] in by_vector for hit in differing):
        yield from _penalties(answer, differing, by_vector)


def _penalties(answer: Json, differing: Sequence[Json], places: Mapping[str, Any]) -> Iterator[Problem]:
    """A penalty must be the cosine with the chunk that it names, and no smaller than the cosine with any chunk that was
    chosen before. Chunks below min_score are not chosen."""
    vectors = {chunk_id: vector for chunk_id, (_, _, vector) in places.items()}
    bar = answer["min_score"] if answer["strategy"] == "mmr" else None
    chosen = answer["top_k"] if answer["strategy"] == "mmr" else max(3 * answer["top_k"], MIN_POOL)
    for place, hit in enumerate(differing):
        mmr, mine = hit["signals"]["mmr"], vectors[hit["chunk"]["id"]]
        before = [other for other in differing[:place] if other["signals"]["mmr"]["rank"] <= chosen]
        least = max([0.0, *(_product(mine, vectors[other["chunk"]["id"]]) for other in before)])
        against = 0.0 if mmr["against"] is None else _product(mine, vectors[mmr["against"]])
        if mmr["penalty"] != against or against < least:
            yield Problem("penalty", f"{mmr} is {against} by the vectors, and {least} at least")
        if bar is not None and mmr["against"] is not None and places[mmr["against"]][1] < bar:
            yield Problem("penalty", f"{mmr} is against what min_score {bar} cuts")


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


# -- the proof -------------------------------------------------------------------------------------


def ask(library: Library) -> list[Problem]:
    """Asks one question, as a comparison and as a retrieve; answers what is wrong."""
    tenant = library.chance.choice(TENANTS)
    body = library.question(tenant)
    api = Api().as_tenant(str(tenant))
    reranker = WordOverlapReranker(library.world.clock)
    library.world.rebuild(reranker=reranker)
    if library.chance.random() < 0.15:
        reranker.failure = Unavailable("The model does not answer")
    if library.chance.random() < 0.4:
        first = api.post("/v1/retrieve", body).json
        # The score of a stage that stands in for another is of another kind.
        if first.get("hits") and first["fallback"] is None:
            body["min_score"] = library.chance.choice(first["hits"])["score"]
    answers = [api.post(path, body) for path in ("/v1/compare", "/v1/retrieve")]
    if any(answer.status != 200 for answer in answers):
        return [Problem("refused", f"{body}: {[answer.text[:300] for answer in answers]}")]
    compared, plain = (answer.json for answer in answers)
    return list(look(library, tenant, body, compared, plain))


@dataclass
class Seen:
    """The tally of some answers, and the number of those with nothing wrong."""

    tally: Tally = field(default_factory=Tally)
    right: int = 0


def try_part(options: Options, documents: int, questions: int, part: int) -> Seen:
    """Asks questions of one library."""
    library, seen = Library(options, part, documents), Seen()
    with served(lambda: library.world.engine):
        for number in range(questions):
            problems = ask(library)
            seen.tally.add(f"part {part}, question {number}", problems)
            seen.right += not problems
    library.close()
    return seen


def cases(name: str = "") -> list[tuple[Situation, Way]]:
    """The situations whose names hold a text, in each of their ways."""
    return [(situation, way) for situation in SITUATIONS if name in situation.name for way in situation.ways]


def try_cases(options: Options, chosen: Sequence[tuple[Situation, Way]]) -> Tally:
    """Makes and tries situations, each for a tenant of its own."""
    tally, world = Tally(), new_world(options, SMALL_ANSWER)
    with served(lambda: world.engine):
        for number, (situation, way) in enumerate(chosen):
            for where, right, told in try_situation(situation, way, world, Tenant(f"tenant-{number}")):
                tally.add(where, [] if right else [Problem("reason", told)])
    world.close()
    return tally


def prove(
    options: Options,
    tell: Callable[[str], None],
    parts: int = PARTS,
    documents: int = DOCUMENTS,
    questions: int = QUESTIONS,
    made: Sequence[tuple[Situation, Way]] = tuple(cases()),
) -> Report:
    """Asks questions of random libraries and tries made situations, on each store."""
    seen: list[Seen] = []
    reasons: list[Tally] = []
    for each in options.of_each_store():
        libraries = range(max(1, int(each.share(parts))) * options.rounds)
        seen += spread(partial(try_part, each, documents, questions), libraries, options.processes, tell)
        heaps = [made[part::PARTS] for part in range(PARTS)]
        reasons += spread(partial(try_cases, each), heaps, options.processes, tell)
    answers, told = total([part.tally for part in seen]), total(reasons)
    return {
        "answers": answers.tried,
        "rebuilt_equal": sum(part.right for part in seen),
        "reasons": told.tried,
        "reasons_right": told.tried - told.problems["reason"],
        "ways": len(WAYS),
        "situations": len(SITUATIONS),
        "stores": [each.vectors for each in options.of_each_store()],
        "problems": dict(answers.problems),
        "broken": [*answers.broken, *told.broken],
    }


def held(report: Report) -> bool:
    every = report["answers"] == report["rebuilt_equal"] > 0
    return every and report["reasons"] == report["reasons_right"] > 0 and not report["broken"]


if __name__ == "__main__":
    main("explain", prove, held=held, every_store=True)

"""Made situations: answers with fewer than top_k hits, each with the one reason that is right.

Each situation is made anew for a tenant of its own, for each way of asking in which it makes sense, and tried through
retrieve and through compare. The right reason and figures are written beside the situation, or counted from its parts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from core.analysis.terms import document_terms
from core.model.collection import Collection, NewCollection
from core.model.errors import Unavailable
from core.model.hit import ReasonCode
from core.model.ids import ChunkId, DocumentId
from core.model.ingest import IngestInput
from core.model.tenant import Tenant
from core.vectors.types import VectorRecord
from tests.proofs.calls import Death
from tests.support.engines import World
from tests.support.gateway import Answer, Api
from tests.support.reranker import WordOverlapReranker

QUESTION = "red green"
TOP_K = 8
MODELS = ("hashed-words", "other-words")


@dataclass(frozen=True)
class Way:
    """A way of asking: a strategy with options."""

    name: str
    strategy: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def by_terms_alone(self) -> bool:
        return dict(self.options).get("weights") == {"vector": 0}

    @property
    def reranks(self) -> bool:
        return self.strategy == "rerank"


FIRST_STAGES = ("similarity", "mmr", "hybrid")
WAYS = (
    Way("similarity", "similarity"),
    Way("mmr", "mmr", {"mmr_lambda": 0.3}),
    Way("hybrid", "hybrid"),
    Way("hybrid by vectors", "hybrid", {"weights": {"bm25": 0}}),
    Way("hybrid by terms", "hybrid", {"weights": {"vector": 0}}),
    *(
        Way(f"rerank of {first}{'' if fuse else ', unfused'}", "rerank", {"first_stage": first, "fuse": fuse})
        for first in FIRST_STAGES
        for fuse in (True, False)
    ),
)
BY_TERMS = [way for way in WAYS if way.by_terms_alone]
RERANKING = [way for way in WAYS if way.reranks]
OF_MANY_MODELS = [way for way in WAYS if "mmr" not in way.name]


class Scene:
    """The collections of one tenant, made for one question."""

    def __init__(self, world: World, tenant: Tenant, way: Way) -> None:
        self.world = world
        self.tenant = tenant
        self.way = way
        self.reranker = WordOverlapReranker(world.clock)
        world.rebuild(reranker=self.reranker)
        self._api = Api().as_tenant(str(tenant))
        self._around: list[Callable[[], Any]] = []

    def collection(self, name: str = "notes", model: str = MODELS[0]) -> Collection:
        new = NewCollection(name=name, embedding_model=model, chunk_size=400, chunk_overlap=0)
        return self.world.engine.collections.create(self.tenant, new)

    def ingest(self, collection: Collection, text: str, key: str | None = None, **attributes: Any) -> DocumentId:
        request = IngestInput(collection_id=collection.id, content=text.encode(), source_key=key, attributes=attributes)
        document = self.world.engine.ingest.ingest(self.tenant, request, self.world.deadline()).document_id
        if document is None:
            raise ValueError("a document was to be ingested")
        return document

    def fill(self, count: int = 4, **attributes: Any) -> Collection:
        """Ingests that many documents of one chunk, each with a word of the question; attribute values come in turn."""
        collection = self.collection()
        for number in range(count):
            mine = {name: value[number % len(value)] for name, value in attributes.items()}
            self.ingest(collection, f"red {'green ' * number}n{number}", str(number), **mine)
        return collection

    def die(self, collection: Collection, text: str, key: str, *, written: bool, **attributes: Any) -> None:
        """Runs an ingest that dies before its swap, with its vectors written or not."""
        with dying_at_vectors(self.world, written=written):
            self.ingest(collection, text, key, **attributes)
            raise ValueError("the ingest must die")

    def always_replaced(self, collection: Collection, **attributes: Any) -> None:
        """Replaces a source after every search from now on, so that no answer ever holds it."""
        numbers = iter(range(1000))

        def replace() -> None:
            self.ingest(collection, f"red again {next(numbers)}", "restless", **attributes)

        replace()
        name = "search_text" if "hybrid" in self.way.name else "search"
        search = getattr(self.world.vectors, name)

        def after(*arguments: Any) -> Any:
            found = search(*arguments)
            replace()
            return found

        self._around.append(partial(replaced, self.world.vectors, name, after))

    def fail_reranker(self) -> None:
        self.reranker.failure = Unavailable("The model does not answer")

    def ask(self, path: str = "/v1/retrieve", **fields: Any) -> Answer:
        options = {**self.way.options, **fields.pop("options", {})}
        body = {"query": QUESTION, "top_k": TOP_K, "strategy": self.way.strategy, "options": options, **fields}
        return self._api.post(path, body)

    def ask_as_made(self, path: str, body: Mapping[str, Any]) -> Answer:
        """Asks while everything that belongs to the situation happens."""
        with ExitStack() as stack:
            for meanwhile in self._around:
                stack.enter_context(meanwhile())
            return self.ask(path, **body)

    def scores(self, **fields: Any) -> list[float]:
        """The scores of all hits of the same question without min_score, best first."""
        return sorted((hit["score"] for hit in self.ask(**fields).json["hits"]), reverse=True)


@contextmanager
def replaced(owner: object, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Replaces one function of one object while the block runs."""
    setattr(owner, name, function)
    try:
        yield
    finally:
        delattr(owner, name)


@contextmanager
def dying_at_vectors(world: World, *, written: bool) -> Iterator[None]:
    """Lets an ingest in the block die at the write of its vectors, after the write or before it."""
    write = world.vectors.write

    def write_and_die(*arguments: Any) -> None:
        if written:
            write(*arguments)
        raise Death

    with suppress(Death), replaced(world.vectors, "write", write_and_die):
        yield


@dataclass(frozen=True)
class Expected:
    """The right answer to a question.

    Attributes:
        code: the code of the reason; None: there is none.
        hits: the number of hits; None: any number.
        body: the fields of the question beside its text.
        figures: the figures of the reason.
    """

    code: ReasonCode | None
    hits: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Situation:
    """A situation.

    Attributes:
        make: makes the situation and says which answer is right.
        ways: the ways of asking in which the situation makes sense.
    """

    name: str
    make: Callable[[Scene], Expected]
    ways: Sequence[Way] = WAYS


def try_situation(situation: Situation, way: Way, world: World, tenant: Tenant) -> Iterator[tuple[str, bool, str]]:
    """Makes one situation and tries it; answers of each call its name, whether its answer is right, and the answer."""
    scene = Scene(world, tenant, way)
    expected = situation.make(scene)
    for path in ("/v1/retrieve", "/v1/compare"):
        answer = scene.ask_as_made(path, expected.body)
        where = f"{situation.name}, {way.name}, {path}"
        if answer.status != 200:
            yield where, False, answer.text
            continue
        reason, hits = answer.json["reason"], answer.json["hits"]
        figures = {name: (reason or {}).get(name) for name in expected.figures}
        right = (
            (reason or {}).get("code") == expected.code
            and figures == expected.figures
            and expected.hits in (None, len(hits))
            and bool(reason is None or reason["detail"])
        )
        yield where, right, f"{len(hits)} hits, {reason}; right is {expected}"


# -- no documents ------------------------------------------------------------------------------------


def _no_collection(scene: Scene) -> Expected:
    return Expected(ReasonCode.NO_DOCUMENTS, 0)


def _empty_collection(scene: Scene) -> Expected:
    scene.collection()
    return Expected(ReasonCode.NO_DOCUMENTS, 0)


def _empty_beside_full(scene: Scene) -> Expected:
    scene.fill()
    empty = scene.collection("empty")
    return Expected(ReasonCode.NO_DOCUMENTS, 0, {"collections": [empty.id]})


def _all_deleted(scene: Scene) -> Expected:
    collection = scene.collection()
    for number in range(3):
        document = scene.ingest(collection, f"red {number}", str(number))
        scene.world.engine.documents.delete(scene.tenant, document)
    return Expected(ReasonCode.NO_DOCUMENTS, 0)


def _empty_with_min_score(scene: Scene) -> Expected:
    scene.collection()
    return Expected(ReasonCode.NO_DOCUMENTS, 0, {"min_score": 0})


def _failed_alone(scene: Scene) -> Expected:
    scene.die(scene.collection(), "red", "failed", written=True)
    scene.world.clock.advance(16 * 60)
    scene.world.engine.recovery.drain(scene.world.deadline())
    return Expected(ReasonCode.NO_DOCUMENTS, 0)


# -- documents in progress ---------------------------------------------------------------------------


def _in_progress(scene: Scene, *, written: bool, ready: int = 0) -> Expected:
    collection = scene.fill(ready)
    for number in range(3):
        scene.die(collection, f"red coming {number}", f"coming {number}", written=written)
    return Expected(ReasonCode.STILL_INGESTING, ready, figures={"in_progress": 3})


def _in_progress_elsewhere(scene: Scene) -> Expected:
    collection = scene.fill(2)
    scene.die(scene.collection("busy"), "red", "coming", written=True)
    return Expected(ReasonCode.FEWER_THAN_TOP_K, 2, {"collections": [collection.id]})


def _in_progress_of_another(scene: Scene) -> Expected:
    scene.fill(2)
    other = Scene(scene.world, Tenant(f"{scene.tenant}-neighbour"), scene.way)
    other.die(other.fill(3), "red", "coming", written=True)
    return Expected(ReasonCode.FEWER_THAN_TOP_K, 2)


def _new_version_on_its_way(scene: Scene) -> Expected:
    collection = scene.fill(2)
    scene.die(collection, "red new", "0", written=True)
    return Expected(ReasonCode.STILL_INGESTING, 2, figures={"in_progress": 1})


def _hidden_fulfils_no_filter(scene: Scene) -> Expected:
    """The filter leaves out no served document, only one in progress."""
    collection = scene.fill(3, lang=["en"])
    scene.die(collection, "red", "coming", written=True, lang="de")
    return Expected(ReasonCode.STILL_INGESTING, 3, {"filter": {"lang": "en"}}, {"in_progress": 1})


def _first_of_all_with_a_filter(scene: Scene) -> Expected:
    """No document is served, so the filter leaves out nothing."""
    scene.die(scene.collection(), "red", "coming", written=True, lang="de")
    return Expected(ReasonCode.STILL_INGESTING, 0, {"filter": {"lang": "en"}}, {"in_progress": 1})


# -- min_score ---------------------------------------------------------------------------------------


def _below(scene: Scene, **fields: Any) -> Expected:
    """The answer where min_score is the best score: all lower scores are cut."""
    scores = scene.scores(**fields)
    cut = [score for score in scores if score < scores[0]]
    return Expected(
        ReasonCode.BELOW_MIN_SCORE, len(scores) - len(cut), {"min_score": scores[0], **fields}, {"best_score": max(cut)}
    )


def _below_min_score(scene: Scene) -> Expected:
    scene.fill(6)
    return _below(scene)


def _all_below_min_score(scene: Scene) -> Expected:
    collection = scene.collection()
    for number in range(3):
        scene.ingest(collection, f"red and much that is not asked for {number}", str(number))
    [best, *_] = scene.scores()
    return Expected(ReasonCode.BELOW_MIN_SCORE, 0, {"min_score": 1}, {"best_score": best})


def _below_min_score_and_filtered(scene: Scene) -> Expected:
    scene.fill(6, lang=["en", "en", "de"])
    return _below(scene, filter={"lang": "en"})


def _below_min_score_and_in_progress(scene: Scene) -> Expected:
    scene.die(scene.fill(6), "red", "coming", written=True)
    return _below(scene)


def _below_min_score_and_replaced(scene: Scene) -> Expected:
    """The chunks that min_score cut are certain; those that a further search could have found are not."""
    collection = scene.fill(5)
    expected = _below(scene)
    scene.always_replaced(collection)
    return Expected(expected.code, None, expected.body)


def _min_score_cuts_nothing(scene: Scene) -> Expected:
    scene.fill(3)
    return Expected(ReasonCode.FEWER_THAN_TOP_K, 3, {"min_score": min(scene.scores())})


def _enough_above_min_score(scene: Scene) -> Expected:
    scene.fill(6)
    return Expected(None, 2, {"min_score": scene.scores()[1], "top_k": 2})


def _min_score_of_a_reranker_that_fails(scene: Scene) -> Expected:
    """It is of another kind, so it cuts nothing."""
    scene.fill(6)
    least = scene.scores()[0]
    scene.fail_reranker()
    return Expected(ReasonCode.FEWER_THAN_TOP_K, 6, {"min_score": least, "options": {"fallback": True}})


# -- the filter --------------------------------------------------------------------------------------


def _filtered_out(scene: Scene) -> Expected:
    scene.fill(7, lang=["en", "de", "fr"])
    return Expected(ReasonCode.FILTERED_OUT, 3, {"filter": {"lang": "en"}}, {"filtered": 4})


def _filtered_out_but_for_what_is_hidden(scene: Scene) -> Expected:
    """What is not served is not what the filter leaves out."""
    collection = scene.fill(5, lang=["en", "de"])
    scene.die(collection, "red", "coming", written=True, lang="de")
    scene.die(collection, "red new", "1", written=True, lang="de")
    return Expected(ReasonCode.FILTERED_OUT, 3, {"filter": {"lang": "en"}}, {"filtered": 2})


def _all_filtered_out(scene: Scene) -> Expected:
    """Each value is there, and not in one chunk."""
    scene.fill(6, lang=["en", "de"], year=[2020, 2021])
    asked = {"filter": {"lang": "en", "year": 2021}}
    return Expected(ReasonCode.FILTERED_OUT, 0, asked, {"filtered": 6})


def _filtered_by_a_range(scene: Scene) -> Expected:
    scene.fill(6, year=[2019, 2020, 2021])
    return Expected(ReasonCode.FILTERED_OUT, 0, {"filter": {"year": {"gt": 2021}}}, {"filtered": 6})


def _filtered_beside_a_stray_vector(scene: Scene) -> Expected:
    """An orphan is a hit that no counter counts."""
    collection = scene.fill(4, lang=["en", "de"])
    text, embedder = "red stray", scene.world.embedder
    stray = VectorRecord(
        ChunkId.of(DocumentId.new(1_780_000_000_000, 7), 1, 0),
        collection.id,
        None,
        None,
        text,
        embedder.embed([text]).vectors[0],
        {"lang": "en"},
        document_terms(text),
    )
    scene.world.vectors.write(scene.tenant, embedder.space, [stray])
    return Expected(ReasonCode.FILTERED_OUT, 3, {"filter": {"lang": "en"}}, {"filtered": 2})


def _lost_vector_with_a_filter(scene: Scene) -> Expected:
    """The filter did not leave out a chunk whose vector is lost."""
    collection = scene.fill(3, lang=["en"])
    lost = scene.ingest(collection, "red lost", "lost", lang="en")
    scene.world.vectors.delete(scene.tenant, scene.world.embedder.space, [ChunkId.of(lost, 1, 0)])
    return Expected(ReasonCode.FEWER_THAN_TOP_K, 3, {"filter": {"lang": "en"}})


def _filter_leaves_all(scene: Scene) -> Expected:
    scene.fill(4, lang=["en", "de"])
    return Expected(ReasonCode.FEWER_THAN_TOP_K, 4, {"filter": {"lang": {"in": ["en", "de"]}}})


def _filter_leaves_enough(scene: Scene) -> Expected:
    scene.fill(7, lang=["en", "de"])
    return Expected(None, 3, {"filter": {"lang": "en"}, "top_k": 3})


def _unknown(scene: Scene, filter_: Mapping[str, Any]) -> Expected:
    scene.fill(4, lang=["en", "de"], year=[2020])
    return Expected(ReasonCode.UNKNOWN_ATTRIBUTE_VALUE, 0, {"filter": filter_}, {"attribute": "lang"})


def _unknown_inside_not(scene: Scene) -> Expected:
    scene.fill(4, lang=["en", "de"])
    return Expected(ReasonCode.FEWER_THAN_TOP_K, 4, {"filter": {"not": {"lang": "xx"}}})


def _unknown_beside_known(scene: Scene) -> Expected:
    scene.fill(4, lang=["en", "de"])
    either = {"or": [{"lang": "xx"}, {"lang": "en"}]}
    return Expected(ReasonCode.FILTERED_OUT, 2, {"filter": either}, {"filtered": 2})


# -- fewer than top_k, and reasons of the search -----------------------------------------------------


def _fewer(scene: Scene, count: int) -> Expected:
    scene.fill(count)
    return Expected(ReasonCode.FEWER_THAN_TOP_K, count)


def _enough(scene: Scene) -> Expected:
    scene.fill(TOP_K)
    return Expected(None, TOP_K)


def _replaced_versions(scene: Scene) -> Expected:
    collection = scene.fill(3)
    for number in range(3):
        scene.ingest(collection, f"red another {number}", "0")
    return Expected(ReasonCode.FEWER_THAN_TOP_K, 3)


def _several_collections(scene: Scene) -> Expected:
    for name in ("one", "two"):
        scene.ingest(scene.collection(name), f"red {name}", name)
    return Expected(ReasonCode.FEWER_THAN_TOP_K, 2)


def _several_models(scene: Scene, body: Mapping[str, Any], code: ReasonCode, hits: int, **figures: Any) -> Expected:
    for name in MODELS:
        collection = scene.collection(name, name)
        for number, lang in enumerate(("en", "de")):
            scene.ingest(collection, f"red {name} {lang}", str(number), lang=lang)
    return Expected(code, hits, body, figures)


def _several_models_below_min_score(scene: Scene) -> Expected:
    for name in MODELS:
        collection = scene.collection(name, name)
        for number in range(3):
            scene.ingest(collection, f"red {'green ' * number}{name}", str(number))
    return _below(scene)


def _without_a_word(scene: Scene, body: Mapping[str, Any], hits: int, filtered: int = 0) -> Expected:
    """Vectors have no weight, so a chunk without a word of the question is no hit, and no filter has left it out."""
    collection = scene.collection()
    for number, (word, lang) in enumerate((("red", "en"), ("red", "de"), ("pale", "de"), ("pale", "fr"))):
        scene.ingest(collection, f"{word} {number}", str(number), lang=lang)
    if filtered:
        return Expected(ReasonCode.FILTERED_OUT, hits, body, {"filtered": filtered})
    return Expected(ReasonCode.FEWER_THAN_TOP_K, hits, body)


def _refill_bound(scene: Scene, body: Mapping[str, Any]) -> Expected:
    collection = scene.fill(2, lang=["en", "de"])
    scene.always_replaced(collection, lang="en")
    return Expected(ReasonCode.REFILL_BOUND, None, body)


def _too_large(scene: Scene) -> Expected:
    collection = scene.collection()
    for number in range(TOP_K):
        scene.ingest(collection, f"red {number} " + "green" * 2000, str(number))
    return Expected(ReasonCode.ANSWER_TOO_LARGE, figures={"found": TOP_K})


UNKNOWN: Mapping[str, Mapping[str, Any]] = {
    "eq": {"lang": "xx"},
    "in": {"lang": {"in": ["xx", "yy"]}},
    "and": {"year": 2020, "lang": "xx"},
    "or": {"or": [{"lang": "xx"}, {"lang": "yy"}]},
    "another kind": {"lang": 7},
}

SITUATIONS = (
    Situation("no collection", _no_collection),
    Situation("an empty collection", _empty_collection),
    Situation("an empty collection beside a full one", _empty_beside_full),
    Situation("an empty collection, with min_score", _empty_with_min_score),
    Situation("everything deleted", _all_deleted),
    Situation("nothing but a failed document", _failed_alone),
    Situation("in progress", partial(_in_progress, written=False)),
    Situation("in progress, with vectors", partial(_in_progress, written=True)),
    Situation("in progress beside ready ones", partial(_in_progress, written=True, ready=3)),
    Situation("in progress in another collection", _in_progress_elsewhere),
    Situation("in progress at another tenant's", _in_progress_of_another),
    Situation("a new version on its way", _new_version_on_its_way),
    Situation("in progress is what the filter leaves out", _hidden_fulfils_no_filter),
    Situation("in progress is all there is, with a filter", _first_of_all_with_a_filter),
    Situation("below min_score", _below_min_score),
    Situation(
        "all below min_score",
        _all_below_min_score,
        [way for way in WAYS if way.strategy in ("similarity", "mmr")],
    ),
    Situation("below min_score, and filtered", _below_min_score_and_filtered),
    Situation("below min_score, and in progress", _below_min_score_and_in_progress),
    Situation("below min_score, and always replaced", _below_min_score_and_replaced),
    Situation("min_score cuts nothing", _min_score_cuts_nothing),
    Situation("enough above min_score", _enough_above_min_score),
    Situation("min_score of a reranker that fails", _min_score_of_a_reranker_that_fails, RERANKING),
    Situation("filtered out", _filtered_out),
    Situation("filtered out, but for what is hidden", _filtered_out_but_for_what_is_hidden),
    Situation("all filtered out", _all_filtered_out),
    Situation("filtered by a range", _filtered_by_a_range),
    Situation("filtered beside a stray vector", _filtered_beside_a_stray_vector),
    Situation("a lost vector, with a filter", _lost_vector_with_a_filter),
    Situation("the filter leaves all", _filter_leaves_all),
    Situation("the filter leaves enough", _filter_leaves_enough),
    *(Situation(f"an unknown value: {name}", partial(_unknown, filter_=filter_)) for name, filter_ in UNKNOWN.items()),
    Situation("an unknown value inside not", _unknown_inside_not),
    Situation("an unknown value beside a known one", _unknown_beside_known),
    *(Situation(f"{count} of {TOP_K}", partial(_fewer, count=count)) for count in (1, TOP_K - 1)),
    Situation("enough", _enough),
    Situation("replaced versions", _replaced_versions),
    Situation("several collections", _several_collections),
    Situation(
        "several models",
        partial(_several_models, body={}, code=ReasonCode.FEWER_THAN_TOP_K, hits=4),
        OF_MANY_MODELS,
    ),
    Situation(
        "several models, filtered",
        partial(_several_models, body={"filter": {"lang": "en"}}, code=ReasonCode.FILTERED_OUT, hits=2, filtered=2),
        OF_MANY_MODELS,
    ),
    Situation("several models, below min_score", _several_models_below_min_score, OF_MANY_MODELS),
    Situation("without a word of the question", partial(_without_a_word, body={}, hits=2), BY_TERMS),
    Situation(
        "without a word of the question, and filtered",
        partial(_without_a_word, body={"filter": {"lang": "de"}}, hits=1, filtered=2),
        BY_TERMS,
    ),
    Situation(
        "without a word of the question in all that is left, and filtered",
        partial(_without_a_word, body={"filter": {"not": {"lang": {"in": ["en", "de"]}}}}, hits=0, filtered=3),
        BY_TERMS,
    ),
    Situation(
        "without a word of the question in what is filtered out",
        partial(_without_a_word, body={"filter": {"lang": {"in": ["en", "de"]}}}, hits=2),
        BY_TERMS,
    ),
    Situation("always replaced", partial(_refill_bound, body={})),
    Situation("always replaced, with a filter", partial(_refill_bound, body={"filter": {"lang": "en"}})),
    Situation("an answer that is too large", _too_large),
)

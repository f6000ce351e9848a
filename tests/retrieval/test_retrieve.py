"""Retrieve answers a query with ranked chunks of served documents, and with a reason when there are few."""

import math
from dataclasses import replace

import pytest

from core.model.document import DocumentState
from core.model.errors import CollectionNotFound, InvalidArgument, NotConfigured, Unavailable
from core.model.hit import ReasonCode, RetrieveResult
from core.model.ids import ChunkId, CollectionId
from core.model.query import RetrieveQuery, ScoreKind, Strategy
from core.vectors.types import VectorMatch
from tests.support.embedder import HashedEmbedder
from tests.support.engines import ACME, GLOBEX, World
from tests.support.meddling import MeddlingVectors, RecordedMetrics, Recorder, die
from tests.support.memory import memory_world


def ask(world: World, query: str = "red green blue", tenant: object = ACME, **fields: object) -> RetrieveResult:
    question = RetrieveQuery.model_validate({"query": query, **fields})
    return world.engine.retrieve(tenant, question)  # type: ignore[arg-type]


def texts(result: RetrieveResult) -> list[str]:
    return [hit.chunk.text for hit in result.hits]


def fill(world: World, *contents: str) -> CollectionId:
    collection = world.collection()
    for number, content in enumerate(contents):
        world.ingest(collection, content, source_key=str(number))
    return collection.id


# -- hits ---------------------------------------------------------------------------------------------


def test_hits_come_best_first_with_all_fields_of_their_chunks(world: World) -> None:
    collection = world.collection(chunk_size=4, chunk_overlap=0, chunk_strategy="markdown")
    world.ingest(
        collection,
        "# Colours\n\nred green blue\n\nyellow black",
        source_key="colours",
        source="https://example.org/colours",
        source_type="text/markdown",
        title="Colours",
        metadata={"team": "red"},
        attributes={"year": 2020},
    )
    world.ingest(collection, "red", source_key="other")
    result = ask(world)
    assert (result.score, result.strategy) == (ScoreKind.COSINE, Strategy.SIMILARITY)
    assert [hit.rank for hit in result.hits] == list(range(1, len(result.hits) + 1))
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(-1 <= score <= 1 + 1e-6 for score in scores)
    first = result.hits[0]
    assert first.chunk.text == "red green blue"
    assert math.isclose(first.score, 1.0, abs_tol=1e-5)
    assert (first.hydrated, first.orphaned) == (True, False)
    assert first.chunk.id is not None
    assert first.chunk == world.engine.chunks.get(ACME, first.chunk.id)
    assert (first.chunk.context, first.chunk.origin) == ("Colours", "https://example.org/colours")
    assert first.chunk.attributes == {"year": 2020}
    assert first.chunk.lineage is not None
    assert first.chunk.lineage.total_chunks == 3
    assert first.document is not None
    assert first.document.model_dump() == {
        "id": first.chunk.document_id,
        "title": "Colours",
        "source": "https://example.org/colours",
        "source_key": "colours",
        "source_type": "text/markdown",
        "metadata": {"team": "red"},
    }


def test_a_tenant_never_sees_anothers_chunks(world: World) -> None:
    for tenant, word in ((ACME, "mine"), (GLOBEX, "theirs")):
        collection = world.collection(tenant=tenant)
        world.ingest(collection, f"red green blue {word}", tenant=tenant, source_key="a")
        world.ingest(collection, f"red green {word}", tenant=tenant)
    assert {text.split()[-1] for text in texts(ask(world))} == {"mine"}
    assert {text.split()[-1] for text in texts(ask(world, tenant=GLOBEX))} == {"theirs"}


def test_a_record_of_another_tenant_from_the_store_is_dropped(world: World, vectors: MeddlingVectors) -> None:
    collection = world.collection(tenant=GLOBEX)
    world.ingest(collection, "red", tenant=GLOBEX, source_key="a")
    fill(world, "red")
    theirs = MeddlingVectors.search

    def wrong(store: MeddlingVectors, tenant: object, space: object, query: object) -> list[VectorMatch]:
        question = replace(query, collection_ids=[collection.id])  # type: ignore[type-var]
        return theirs(store, GLOBEX, space, question)  # type: ignore[arg-type]

    vectors.search = wrong.__get__(vectors)  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="another tenant"):
        ask(world)


def test_a_retrieve_searches_the_named_collections_or_all_of_the_tenant(world: World) -> None:
    here, there = world.collection("here"), world.collection("there")
    world.ingest(here, "red here", source_key="a")
    world.ingest(there, "red there", source_key="a")
    assert set(texts(ask(world, "red"))) == {"red here", "red there"}
    assert texts(ask(world, "red", collections=[there.id])) == ["red there"]


@pytest.mark.parametrize("top_k", [0, -1, -100])
def test_a_top_k_of_zero_or_less_means_ten(world: World, top_k: int) -> None:
    fill(world, *(f"red {number}" for number in range(12)))
    assert len(ask(world, top_k=top_k).hits) == 10


@pytest.mark.parametrize("top_k", [1, 3, 12, 100])
def test_there_are_top_k_hits_whenever_there_are_top_k_chunks(world: World, top_k: int) -> None:
    fill(world, *(f"red {number}" for number in range(12)))
    result = ask(world, top_k=top_k)
    assert len(result.hits) == min(top_k, 12)
    assert (result.reason is None) == (top_k <= 12)


# -- refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"query": ""}, "query"),
        ({"query": " \n\t\u3000"}, "query"),
        ({"query": "\x00\x1b\u200b"}, "query"),
        ({"query": "x" * 8193}, "query"),
        ({"query": "red", "top_k": 101}, "top_k"),
    ],
)
@pytest.mark.parametrize("function", ["retrieve", "compare"])
def test_an_invalid_query_is_refused_before_it_is_embedded(
    world: World, fields: dict[str, object], field: str, function: str
) -> None:
    fill(world, "red")
    calls = world.embedder.calls
    with pytest.raises(InvalidArgument) as refused:
        getattr(world.engine, function)(ACME, RetrieveQuery.model_validate(fields))
    assert refused.value.extras["field"] == field
    assert world.embedder.calls == calls


def test_a_query_of_the_longest_allowed_length_is_answered(recorder: Recorder, vectors: MeddlingVectors) -> None:
    world = memory_world(recorder, vectors, embedder=HashedEmbedder(max_tokens=8192))
    fill(world, "red")
    assert ask(world, "x" * 8192).hits


@pytest.mark.parametrize("function", ["retrieve", "compare"])
@pytest.mark.parametrize("whose", ["another tenant's", "nobody's"])
def test_a_missing_collection_is_not_found_before_the_query_is_embedded(
    world: World, recorder: Recorder, function: str, whose: str
) -> None:
    theirs = world.collection(tenant=GLOBEX).id if whose == "another tenant's" else CollectionId.new(1, 1)
    with pytest.raises(CollectionNotFound):
        getattr(world.engine, function)(ACME, RetrieveQuery(query="red", collections=[theirs]))
    assert world.embedder.calls == 0
    assert recorder.hooks[-2:] == ["retrieval_started", "retrieval_failed"]


def test_a_collection_whose_model_is_no_longer_configured_is_an_error(world: World) -> None:
    fill(world, "red")
    world.rebuild(embedders=[HashedEmbedder("other")])
    with pytest.raises(NotConfigured, match="hashed-words"):
        ask(world)


# -- min_score and reasons ----------------------------------------------------------------------------


def test_min_score_cuts_lower_hits_and_the_reason_names_the_best_of_them(world: World) -> None:
    fill(world, "red green blue", "red green", "red", "pale")
    scores = [hit.score for hit in ask(world).hits]
    result = ask(world, min_score=scores[1])
    assert texts(result) == ["red green blue", "red green"], "hits that reach min_score stay"
    assert result.reason is not None
    assert (result.reason.code, result.reason.best_score) == (ReasonCode.BELOW_MIN_SCORE, scores[2])
    none = ask(world, "red blue", min_score=1)
    assert none.hits == []
    assert none.reason is not None
    assert none.reason.best_score == ask(world, "red blue").hits[0].score


def test_a_min_score_of_zero_cuts_negative_scores_and_no_min_score_cuts_none(world: World) -> None:
    fill(world, *(f"pale{number}" for number in range(9)))
    scores = [hit.score for hit in ask(world).hits]
    assert min(scores) < 0 < max(scores), "other words have scores of both signs"
    assert [hit.score for hit in ask(world, min_score=0).hits] == [score for score in scores if score >= 0]


def test_an_answer_with_top_k_hits_above_min_score_has_no_reason(world: World) -> None:
    fill(world, "red green blue", "red green", "red")
    assert ask(world, top_k=1, min_score=0.1).reason is None


def test_a_retrieve_from_an_empty_collection_says_that_there_are_no_documents(world: World) -> None:
    result = ask(world)
    assert (result.hits, result.reason and result.reason.code) == ([], ReasonCode.NO_DOCUMENTS)
    world.collection()
    result = ask(world)
    assert (result.hits, result.reason and result.reason.code) == ([], ReasonCode.NO_DOCUMENTS)


def test_a_retrieve_without_hits_says_that_documents_are_still_ingesting(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    for number in range(3):
        die(world, recorder, collection, f"red {number}", source_key=str(number))
    result = ask(world)
    assert result.hits == []
    assert result.reason is not None
    assert (result.reason.code, result.reason.in_progress) == (ReasonCode.STILL_INGESTING, 3)


def test_a_retrieve_with_fewer_hits_than_top_k_says_so(world: World) -> None:
    fill(world, "red", "green")
    result = ask(world)
    assert len(result.hits) == 2
    assert result.reason is not None
    assert result.reason.code == ReasonCode.FEWER_THAN_TOP_K
    assert "2" in result.reason.detail


def test_a_reason_is_about_the_searched_collections_alone(world: World, recorder: Recorder) -> None:
    busy, quiet = world.collection("busy"), world.collection("quiet")
    die(world, recorder, busy, "red", source_key="a")
    result = ask(world, collections=[quiet.id])
    assert result.reason is not None
    assert result.reason.code == ReasonCode.NO_DOCUMENTS


# -- hooks and metrics -------------------------------------------------------------------------------


def test_every_retrieve_fires_its_hooks_once(world: World, recorder: Recorder) -> None:
    fill(world, "red")
    recorder.fired.clear()
    ask(world)
    assert recorder.hooks == ["retrieval_started", "retrieval_completed"]
    assert {details["tenant"] for _, details in recorder.fired} == {ACME}
    recorder.fired.clear()
    world.embedder.failure = Unavailable("The model does not answer")
    with pytest.raises(Unavailable) as raised:
        ask(world)
    assert recorder.hooks == ["retrieval_started", "retrieval_failed"]
    assert recorder.fired[1][1]["error"] is raised.value
    assert all("red green blue" not in str(details) for _, details in recorder.fired)


def test_a_hook_that_raises_changes_no_answer(world: World, recorder: Recorder) -> None:
    def fail() -> None:
        raise RuntimeError("an extension's own trouble")

    fill(world, "red")
    recorder.on = {"retrieval_started": fail, "retrieval_completed": fail}
    assert texts(ask(world)) == ["red"]
    assert recorder.on == {}


def test_a_query_is_embedded_once_and_the_embedding_is_measured(world: World) -> None:
    fill(world, "red", "green")
    metrics = RecordedMetrics()
    world.rebuild(metrics=metrics)
    calls = world.embedder.calls
    ask(world)
    assert world.embedder.calls == calls + 1
    names = [(name, unit) for name, _, unit, _ in metrics.records]
    assert sorted(names) == [
        ("gen_ai.client.operation.duration", "Seconds"),
        ("gen_ai.client.token.usage", "Count"),
        ("retrieve", "Milliseconds"),
        ("vectors_search", "Milliseconds"),
    ]
    assert metrics.of("gen_ai.client.token.usage") == [3]


def test_an_unavailable_store_is_an_error_and_not_an_empty_answer(world: World, vectors: MeddlingVectors) -> None:
    fill(world, "red")
    vectors.failing = {"search"}
    with pytest.raises(Unavailable):
        ask(world)


def test_a_retrieve_changes_no_row(world: World) -> None:
    fill(world, "red", "green")
    before = world.rows()
    ask(world)
    world.engine.compare(ACME, RetrieveQuery(query="red"))
    assert world.rows() == before


def test_a_retrieve_returns_only_the_served_version_of_a_source(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    world.ingest(collection, "red old", source_key="a")
    world.ingest(collection, "red new", source_key="a")
    die(world, recorder, collection, "red green blue coming", source_key="a")
    result = ask(world)
    assert texts(result) == ["red new"]
    assert isinstance(result.hits[0].chunk.id, ChunkId)
    assert world.engine.documents.count(ACME, state=DocumentState.PROCESSING) == 1


def test_a_hit_shows_the_title_that_was_changed_in_place(world: World) -> None:
    collection = world.collection()
    world.ingest(collection, "red", source_key="a", title="Old", source="old")
    world.ingest(collection, "red", source_key="a", title="New", source="new")
    hit = ask(world).hits[0]
    assert hit.document is not None
    assert (hit.document.title, hit.document.source, hit.chunk.origin) == ("New", "new", "new")

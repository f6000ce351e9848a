"""Compare without a retriever: both rankings come from one search and cannot disagree."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.model.hit import CompareResult, ReasonCode
from core.model.query import RetrieveQuery, ScoreKind
from tests.support.engines import ACME, World
from tests.support.meddling import MeddlingVectors, RecordedMetrics, Recorder
from tests.unit.conftest import memory_world


def compare(world: World, **fields: object) -> CompareResult:
    return world.engine.compare(ACME, RetrieveQuery.model_validate({"query": "red green blue", **fields}))


def fill(world: World, count: int) -> None:
    collection = world.collection(chunk_size=3, chunk_overlap=0)
    for number in range(count):
        world.ingest(collection, f"red green{number % 7} w{number}", source_key=str(number))


@pytest.mark.parametrize(("top_k", "window"), [(0, 50), (1, 50), (16, 50), (17, 51), (100, 300)])
def test_the_window_is_three_times_top_k_and_at_least_fifty(world: World, top_k: int, window: int) -> None:
    fill(world, 3)
    result = compare(world, top_k=top_k)
    assert result.window == window
    vectors = world.vectors
    assert isinstance(vectors, MeddlingVectors)
    assert vectors.searches[0].limit == window


def test_hits_have_their_place_in_both_rankings(world: World) -> None:
    fill(world, 60)
    result = compare(world, top_k=4)
    assert [hit.rank for hit in result.hits] == [1, 2, 3, 4]
    assert [hit.vector_rank for hit in result.hits] == [1, 2, 3, 4]
    assert [hit.vector_score for hit in result.hits] == [hit.score for hit in result.hits]
    assert (result.vector_matches, result.best_vector_score) == (50, result.hits[0].score)
    assert (result.left_out, result.reordered, result.same_search) == ([], False, True)
    assert (result.score, result.strategy) == (ScoreKind.COSINE, "similarity")
    assert result.retriever_ms == result.vector_ms >= 0
    assert result.reason is None


def test_min_score_cuts_the_hits_and_not_the_raw_search(world: World) -> None:
    fill(world, 6)
    whole = compare(world)
    bar = whole.hits[2].score
    result = compare(world, min_score=bar)
    assert all(hit.score >= bar for hit in result.hits)
    assert (result.vector_matches, result.best_vector_score) == (6, whole.best_vector_score)
    assert (result.left_out, result.reordered) == ([], False)
    none = compare(world, min_score=1)
    assert (none.hits, none.left_out, none.reordered) == ([], [], False)
    assert (none.vector_matches, none.best_vector_score) == (6, whole.best_vector_score)
    assert none.reason is not None
    assert (none.reason.code, none.reason.best_score) == (ReasonCode.BELOW_MIN_SCORE, whole.best_vector_score)


def test_without_matches_lists_are_empty_and_never_null(world: World) -> None:
    world.collection()
    result = compare(world)
    assert (result.vector_matches, result.best_vector_score) == (0, 0)
    body = json.loads(result.model_dump_json())
    assert (body["hits"], body["left_out"]) == ([], [])
    assert (body["reordered"], body["same_search"]) == (False, True)


def test_both_sides_are_one_embedding_and_one_search_and_one_pair_of_hooks(
    world: World, vectors: MeddlingVectors, recorder: Recorder
) -> None:
    fill(world, 3)
    metrics = world.parts.metrics = RecordedMetrics()
    calls = world.embedder.calls
    recorder.fired.clear()
    compare(world)
    assert (world.embedder.calls, len(vectors.searches)) == (calls + 1, 1)
    assert recorder.hooks == ["retrieval_started", "retrieval_completed"]
    assert len(metrics.of("vectors_search")) == 1


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 8), st.integers(1, 10), st.none() | st.floats(-1, 1))
def test_it_finds_what_retrieve_finds(count: int, top_k: int, min_score: float | None) -> None:
    world = memory_world(Recorder(), MeddlingVectors())
    fill(world, count)
    query = RetrieveQuery(query="red green3", top_k=top_k, min_score=min_score)
    plain, both = world.engine.retrieve(ACME, query), world.engine.compare(ACME, query)
    assert [(hit.rank, hit.chunk, hit.score) for hit in both.hits] == [
        (hit.rank, hit.chunk, hit.score) for hit in plain.hits
    ]
    assert both.reason == plain.reason
    assert both.vector_matches == count
    world.vectors.close()

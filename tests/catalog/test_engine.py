"""The engine reports its components, its health, its extensions and its metrics."""

from collections.abc import Callable

import pytest

from core.engine import Engine
from core.model.collection import NewCollection
from core.model.component import Component, Health, TenantFilter
from core.model.errors import NotConfigured, Unavailable
from core.model.query import RetrieveQuery, ScoreKind, Strategy
from core.observe import HOOKS, Observer
from core.settings import Settings
from tests.support.clock import ManualClock
from tests.support.engines import ACME, TABLE, World
from tests.support.meddling import MeddlingVectors, RecordedMetrics, Recorder


def engine_without(world: World, part: str) -> Engine:
    """Makes the world's engine without its embedder or without its vector store."""
    if part == "embedder":
        return world.rebuild(embedders=[], vectors=world.vectors)
    return world.rebuild(embedders=[world.embedder], vectors=None)


# -- components ---------------------------------------------------------------------------------------


def test_components_describe_the_loaders_models_and_stores_of_the_engine(world: World) -> None:
    found = world.engine.status.components()
    assert found.loader.configured
    assert {"text/plain", "text/markdown", "text/html"} <= set(found.loader.content_types)
    assert found.chunker.configured
    assert found.embedder == Component(
        name="hashed-words", type="hashed", configured=True, dimensions=64, max_tokens=512
    )
    assert found.vector_store.configured
    assert found.retriever.configured
    assert found.strategies == {
        Strategy.SIMILARITY: ScoreKind.COSINE,
        Strategy.MMR: ScoreKind.MMR_RELEVANCE,
        Strategy.HYBRID: ScoreKind.RRF,
    }, "without a reranker there is no rerank"
    assert found.reranker == Component(), "no reranker is configured"
    assert found.score == ScoreKind.COSINE


def test_the_tenant_filter_is_verified_only_when_it_is_known_to_work(world: World) -> None:
    world.collection()
    assert world.engine.status.components().tenant_filter == TenantFilter.VERIFIED
    assert engine_without(world, "vectors").status.components().tenant_filter == TenantFilter.UNVERIFIED


def test_a_component_that_is_not_configured_is_reported_so(world: World) -> None:
    assert engine_without(world, "embedder").status.components().embedder == Component(configured=False)
    assert engine_without(world, "vectors").status.components().vector_store == Component(configured=False)


# -- missing components ------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["embedder", "vectors"])
def test_a_call_that_needs_a_missing_component_is_refused_and_writes_nothing(world: World, part: str) -> None:
    collection = world.collection()
    document_id = world.ingest(collection, "one", source_key="a").document_id
    engine, before = engine_without(world, part), world.rows()
    assert document_id is not None
    question = RetrieveQuery(query="one")
    calls: list[Callable[[], object]] = [
        lambda: engine.collections.create(ACME, NewCollection(name="new")),
        lambda: world.ingest(collection, "two", source_key="b"),
        lambda: engine.retrieve(ACME, question),
        lambda: engine.compare(ACME, question),
        lambda: engine.retrieve(ACME, RetrieveQuery(query="one", collections=[collection.id])),
    ]
    if part == "vectors":
        calls += [
            lambda: engine.documents.delete(ACME, document_id),
            lambda: engine.documents.delete_source(ACME, collection.id, "a", world.deadline()),
            lambda: engine.collections.delete(ACME, collection.id, world.deadline()),
        ]
    for call in calls:
        with pytest.raises(NotConfigured):
            call()
    assert world.rows() == before


@pytest.mark.parametrize("part", ["embedder", "vectors"])
def test_a_tenant_without_collections_is_also_refused_when_a_component_is_missing(world: World, part: str) -> None:
    with pytest.raises(NotConfigured):
        engine_without(world, part).retrieve(ACME, RetrieveQuery(query="one"))


def test_calls_that_need_no_vectors_work_without_a_vector_store(world: World) -> None:
    collection = world.collection()
    document_id = world.ingest(collection, "one", source_key="a").document_id
    assert document_id is not None
    engine = engine_without(world, "vectors")
    assert engine.documents.get(ACME, document_id).id == document_id
    assert engine.collections.stats(ACME, collection.id).chunk_count == 1


# -- health -------------------------------------------------------------------------------------------


def test_health_asks_both_stores(world: World, vectors: MeddlingVectors) -> None:
    assert world.engine.status.health() == Health(status="ok", stores={"metadata": "ok", "vectors": "ok"})
    vectors.failing = {"ping"}
    assert world.engine.status.health() == Health(status="failing", stores={"metadata": "ok", "vectors": "failing"})


@pytest.mark.parametrize("error", [Unavailable("x"), ConnectionError("dynamodb.secret.example"), KeyError("x")])
def test_health_answers_whatever_a_store_raises_and_names_no_host(
    world: World, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**_: object) -> object:
        raise error

    world.dynamodb.get_item = fail
    found = world.engine.status.health()
    assert found.stores == {"metadata": "failing", "vectors": "ok"}
    assert "secret" not in caplog.text + found.model_dump_json()


def test_health_does_not_ask_a_store_that_is_not_configured(world: World) -> None:
    assert engine_without(world, "vectors").status.health().stores == {"metadata": "ok"}


# -- extensions and metrics ----------------------------------------------------------------------------------


class Named:
    def __init__(self, name: str) -> None:
        self.name = name


class Quiet(Named):
    shutdown = "no function"


class Listener(Named):
    def __init__(self, name: str, heard: list[str]) -> None:
        super().__init__(name)
        self.heard = heard

    def retrieval_started(self, **_: object) -> None:
        self.heard.append(self.name)

    def ingest_started(self, **_: object) -> None:
        self.heard.append(self.name)

    def not_a_hook(self) -> None:
        raise AssertionError("nobody calls this")


def test_extensions_are_described_in_the_order_of_registration() -> None:
    extensions = Observer(ManualClock(), [Listener("one", []), Quiet("two"), Recorder()])
    described = [(extension.name, extension.hooks) for extension in extensions.describe()]
    assert described == [
        ("one", ["ingest_started", "retrieval_started"]),
        ("two", []),
        ("recorder", list(HOOKS)),
    ]


def test_extensions_are_called_in_order_and_an_error_stops_no_other_extension(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[str] = []

    class Broken(Named):
        def retrieval_started(self, **_: object) -> None:
            raise RuntimeError("its own trouble")

    extensions = Observer(ManualClock(), [Listener("one", heard), Broken("two"), Listener("three", heard)])
    extensions.fire("retrieval_started", tenant=ACME)
    assert heard == ["one", "three"]
    assert "Hook retrieval_started of extension two failed" in caplog.text


def test_every_hook_of_the_interface_exists() -> None:
    assert set(HOOKS) >= {
        "collection_created",
        "collection_deleted",
        "ingest_started",
        "ingest_chunked",
        "ingest_embedded",
        "ingest_completed",
        "ingest_failed",
        "retrieval_started",
        "retrieval_completed",
        "retrieval_failed",
        "document_deleted",
        "shutdown",
    }


def test_every_hook_but_the_last_names_its_tenant(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    document_id = world.ingest(collection, "one", source_key="a").document_id
    assert document_id is not None
    world.engine.retrieve(ACME, RetrieveQuery(query="one"))
    world.embedder.failure = Unavailable("The model does not answer")
    with pytest.raises(Unavailable):
        world.engine.retrieve(ACME, RetrieveQuery(query="one"))
    with pytest.raises(Unavailable):
        world.ingest(collection, "two", source_key="a")
    world.engine.documents.delete(ACME, document_id)
    world.engine.collections.delete(ACME, collection.id, world.deadline())
    world.engine.stop()
    reindexing = {"reindex_started", "reindex_completed"}
    assert set(recorder.hooks) == set(HOOKS) - reindexing
    assert all(details.get("tenant") == ACME for hook, details in recorder.fired if hook != "shutdown")
    assert recorder.fired[-1] == ("shutdown", {})


def test_the_time_of_every_ingest_is_measured_even_when_the_ingest_fails(world: World) -> None:
    collection = world.collection()
    metrics = RecordedMetrics()
    world.rebuild(metrics=metrics)
    world.ingest(collection, "one two", source_key="a")
    assert sorted((name, unit) for name, _, unit, _ in metrics.records) == [
        ("gen_ai.client.operation.duration", "Seconds"),
        ("gen_ai.client.token.usage", "Count"),
        ("ingest", "Milliseconds"),
        ("vectors_write", "Milliseconds"),
    ]
    assert metrics.of("gen_ai.client.token.usage") == [2]
    models = {dimensions.get("model") for name, _, _, dimensions in metrics.records if name.startswith("gen_ai")}
    assert models == {"hashed-words"}
    world.embedder.failure = Unavailable("The model does not answer")
    with pytest.raises(Unavailable):
        world.ingest(collection, "three", source_key="a")
    assert len(metrics.of("ingest")) == 2
    assert len(metrics.of("gen_ai.client.operation.duration")) == 2, "every call is measured, the failing call too"


def test_measured_durations_are_those_of_the_engines_clock(world: World, recorder: Recorder) -> None:
    collection = world.collection()
    metrics = RecordedMetrics()
    world.rebuild(metrics=metrics)
    recorder.on["ingest_chunked"] = lambda: world.clock.advance(1.5)
    world.ingest(collection, "one two", source_key="a")
    assert metrics.of("ingest") == [1500.0]


def test_an_engine_keeps_the_settings_and_the_clock_that_it_was_built_with(world: World) -> None:
    settings = Settings(table=TABLE, embedder="none", vectors="none")
    engine = world.rebuild(settings=settings)
    assert engine.settings is settings
    assert engine.clock is world.clock

"""Reindex embeds the chunks of every ready document again, in small steps, while retrieval keeps answering."""

from datetime import timedelta

import pytest

from core.model.collection import Collection
from core.model.document import DocumentState
from core.model.errors import CollectionNotFound, InvalidArgument, NotConfigured, ReindexNotFound, Unavailable
from core.model.ids import CollectionId
from core.model.query import RetrieveQuery
from core.recovery import reindex
from core.recovery.jobs import LEASE
from tests.recovery.conftest import BusyEmbedder, all_vectors, ready, words
from tests.support.books import check_books
from tests.support.embedder import HashedEmbedder
from tests.support.engines import ACME, GLOBEX, World, make_world
from tests.support.meddling import CrashError, MeddlingVectors, Recorder, crash, die

LIFE = timedelta(minutes=20)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> int:
    """Makes each step of the job take two chunks."""
    monkeypatch.setattr(reindex, "CHUNKS_AT_ONCE", 2)
    return 2


def finish(world: World, collection: Collection) -> None:
    progress = world.engine.reindex.start(ACME, collection.id, world.deadline())
    assert progress.finished


def test_every_ready_documents_chunks_are_embedded_again_under_the_same_identifiers(
    world: World, collection: Collection, busy: BusyEmbedder
) -> None:
    ready(world, collection, "warp", 3)
    ready(world, collection, "weft", 2)
    before, rows = all_vectors(world, collection), world.rows()
    embedded = sorted(busy.embedded)
    busy.embedded.clear()
    progress = world.engine.reindex.start(ACME, collection.id, world.deadline())
    assert (progress.documents, progress.chunks, progress.finished) == (2, 5, True)
    assert sorted(busy.embedded) == embedded
    assert all_vectors(world, collection) == before
    assert [row for row in world.rows() if not row["sk"]["S"].startswith("JOB#")] == [
        row for row in rows if not row["sk"]["S"].startswith("JOB#")
    ], "and no row is written but the job's"


def test_documents_that_are_not_ready_or_in_another_collection_are_left_alone(
    world: World, collection: Collection, recorder: Recorder, vectors: MeddlingVectors, busy: BusyEmbedder
) -> None:
    ready(world, collection, "warp")
    busy.failure = Unavailable("no answer")
    with pytest.raises(Unavailable):
        world.ingest(collection, "failed", source_key="failed")
    busy.failure = None
    die(world, recorder, collection, "working", source_key="working")
    vectors.failing = {"delete"}
    world.ingest(collection, words("warpnew", 2), source_key="warp")
    vectors.failing = set()
    ready(world, world.collection("other"), "elsewhere")
    busy.embedded.clear()
    finish(world, collection)
    assert {text.split()[0] for text in busy.embedded} == {"warpnew"}
    assert world.vector_count() == 2 + 1 + 2 + 1, "superseded, in progress, served, and in another collection"


@pytest.mark.usefixtures("small_pages")
def test_a_reindex_that_meets_its_deadline_continues_in_the_next_call(
    world: World, collection: Collection, busy: BusyEmbedder
) -> None:
    for tag, chunks in (("warp", 5), ("weft", 1), ("loom", 2), ("yarn", 4)):
        ready(world, collection, tag, chunks)
    embedded = sorted(busy.embedded)
    busy.embedded.clear()
    busy.during = lambda: world.clock.advance(10)
    seen = []
    for _ in range(20):
        progress = world.engine.reindex.start(ACME, collection.id, world.deadline(5))
        assert progress == world.engine.reindex.progress(ACME, collection.id)
        seen.append((progress.documents, progress.chunks))
        if progress.finished:
            break
    assert seen == [(0, 2), (0, 4), (2, 6), (3, 8), (3, 10), (4, 12), (4, 12)]
    assert sorted(busy.embedded) == embedded, "and every chunk was embedded again, once"


@pytest.mark.usefixtures("small_pages")
def test_the_sweep_finishes_a_reindex_that_a_call_has_begun(
    world: World, collection: Collection, busy: BusyEmbedder
) -> None:
    ready(world, collection, "warp", 7)
    busy.during = lambda: world.clock.advance(10)
    assert not world.engine.reindex.start(ACME, collection.id, world.deadline(5)).finished
    world.clock.advance(1)
    assert world.engine.recovery.sweep().advanced
    progress = world.engine.reindex.progress(ACME, collection.id)
    assert (progress.finished, progress.documents, progress.chunks) == (False, 0, 6), "a turn of 20 seconds"
    world.clock.advance(1)
    assert world.engine.recovery.sweep().advanced
    assert world.engine.reindex.progress(ACME, collection.id).finished


@pytest.mark.usefixtures("small_pages")
def test_documents_that_a_dead_worker_reindexed_are_not_embedded_again(
    world: World, collection: Collection, busy: BusyEmbedder, vectors: MeddlingVectors
) -> None:
    ready(world, collection, "warp", 2)
    ready(world, collection, "weft", 2)
    busy.embedded.clear()
    calls = []

    def die_in_the_second_call() -> None:
        calls.append(1)
        vectors.before_write = crash if len(calls) == 2 else None

    busy.during = die_in_the_second_call
    with pytest.raises(CrashError):
        world.engine.reindex.start(ACME, collection.id, world.deadline())
    busy.during = None
    leased = world.engine.reindex.start(ACME, collection.id, world.deadline())
    assert (leased.documents, leased.finished) == (1, False), "no other worker takes the job before its lease is over"
    world.clock.advance(LEASE.total_seconds() + 1)
    busy.embedded.clear()
    finish(world, collection)
    assert {text.split()[0] for text in busy.embedded} == {"weft"}
    assert world.engine.reindex.progress(ACME, collection.id).documents == 2


def test_a_second_reindex_answers_with_the_progress_of_the_running_one(
    world: World, collection: Collection, busy: BusyEmbedder, recorder: Recorder
) -> None:
    ready(world, collection, "warp")
    busy.embedded.clear()
    seen = []
    busy.during = lambda: seen.append(world.engine.reindex.start(ACME, collection.id, world.deadline()))
    finish(world, collection)
    assert [(progress.documents, progress.finished) for progress in seen] == [(0, False)]
    assert len(busy.embedded) == 2
    assert len(recorder.of("reindex_started")) == len(recorder.of("reindex_completed")) == 1


def test_a_worker_that_lost_its_lease_stops(
    world: World, collection: Collection, busy: BusyEmbedder, recorder: Recorder
) -> None:
    ready(world, collection, "warp")

    def take_over() -> None:
        busy.during = None
        world.clock.advance(LEASE.total_seconds() + 1)
        finish(world, collection)

    busy.during = take_over
    finish(world, collection)
    assert world.engine.reindex.progress(ACME, collection.id).documents == 1
    assert len(recorder.of("reindex_completed")) == 1
    check_books(world)


def test_a_worker_after_a_writers_life_writes_nothing_and_skips_no_document(
    world: World, collection: Collection, busy: BusyEmbedder, vectors: MeddlingVectors
) -> None:
    ready(world, collection, "warp")
    busy.during = lambda: world.clock.advance(LIFE.total_seconds())
    vectors.failing = {"write"}
    assert not world.engine.reindex.start(ACME, collection.id, world.deadline()).finished
    vectors.failing = set()
    busy.during = None
    finish(world, collection)
    assert world.engine.reindex.progress(ACME, collection.id).documents == 1


def test_retrieval_answers_throughout_a_reindex(world: World, collection: Collection, busy: BusyEmbedder) -> None:
    for tag in ("warp", "weft", "loom"):
        ready(world, collection, tag, 70)
    query = RetrieveQuery(query="warp part1 text", collections=[collection.id], top_k=5)
    before = world.engine.retrieve(ACME, query).hits
    answers = []
    busy.during = lambda: answers.append(world.engine.retrieve(ACME, query).hits)
    finish(world, collection)
    assert len(answers) == 6
    assert all(hits == before for hits in answers)


def test_a_document_replaced_during_a_reindex_is_served_in_its_new_version_alone(
    world: World, collection: Collection, busy: BusyEmbedder
) -> None:
    ready(world, collection, "warp")
    other = ready(world, collection, "weft")
    new = []

    def replace() -> None:
        busy.during = None
        new.append(world.ingest(collection, words("new", 3), source_key="warp").document_id)

    busy.during = replace
    finish(world, collection)
    assert {chunk_id.document_id for chunk_id in all_vectors(world, collection)} == {new[0], other}
    assert world.vector_count() == 5
    check_books(world)


@pytest.mark.parametrize("what", ["document", "source", "collection"])
def test_a_document_deleted_during_a_reindex_stays_deleted_and_leaves_no_vector(
    world: World, collection: Collection, busy: BusyEmbedder, what: str
) -> None:
    document = ready(world, collection, "warp")

    def delete() -> None:
        busy.during = None
        match what:
            case "document":
                world.engine.documents.delete(ACME, document)
            case "source":
                world.engine.documents.delete_source(ACME, collection.id, "warp", world.deadline())
            case _:
                world.engine.collections.delete(ACME, collection.id, world.deadline())

    busy.during = delete
    world.engine.reindex.start(ACME, collection.id, world.deadline())
    assert world.vector_count() == 0
    check_books(world)


def test_a_document_ingested_during_a_reindex_is_left_alone(
    world: World, collection: Collection, busy: BusyEmbedder
) -> None:
    ready(world, collection, "warp")

    def come() -> None:
        busy.during = None
        ready(world, collection, "weft")

    busy.during = come
    finish(world, collection)
    documents = [world.engine.documents.get(ACME, chunk_id.document_id) for chunk_id in all_vectors(world, collection)]
    assert {(document.source_key, document.state) for document in documents} == {
        ("warp", DocumentState.READY),
        ("weft", DocumentState.READY),
    }
    check_books(world)


def test_a_reindex_with_an_embedder_of_another_name_is_refused(world: World, collection: Collection) -> None:
    ready(world, collection, "warp")
    other = another(world, HashedEmbedder("another"))
    with pytest.raises(NotConfigured):
        other.engine.reindex.start(ACME, collection.id, other.deadline())
    with pytest.raises(ReindexNotFound):
        world.engine.reindex.progress(ACME, collection.id)


def test_a_reindex_with_an_embedder_of_other_dimensions_is_refused(world: World, collection: Collection) -> None:
    ready(world, collection, "warp")
    other = another(world, HashedEmbedder(world.embedder.space.model, dimensions=32))
    with pytest.raises(InvalidArgument, match="a new model is a new collection"):
        other.engine.reindex.start(ACME, collection.id, other.deadline())
    assert all_vectors(world, collection)


def another(world: World, embedder: HashedEmbedder) -> World:
    """Makes an engine with another embedder on the same stores."""
    return make_world(
        embedder=embedder, vectors=world.vectors, clock=world.clock, dynamodb=world.dynamodb, create=False
    )


def test_a_reindex_of_another_tenants_collection_is_not_found(world: World, collection: Collection) -> None:
    for tenant, one in ((GLOBEX, collection.id), (ACME, CollectionId.from_int(7))):
        with pytest.raises(CollectionNotFound):
            world.engine.reindex.start(tenant, one, world.deadline())
        with pytest.raises(CollectionNotFound):
            world.engine.reindex.progress(tenant, one)


def test_a_finished_reindex_can_start_again(world: World, collection: Collection, busy: BusyEmbedder) -> None:
    ready(world, collection, "warp")
    finish(world, collection)
    busy.embedded.clear()
    finish(world, collection)
    assert len(busy.embedded) == 2
    assert world.engine.reindex.progress(ACME, collection.id).documents == 1

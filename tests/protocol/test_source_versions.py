"""The version with the highest number is served, in whatever order the versions of a source arrive."""

import pytest

from core.model.collection import Collection
from core.model.document import DocumentState
from core.model.errors import IngestInterrupted, VersionConflict
from core.model.ids import DocumentId
from core.model.ingest import IngestResult
from core.model.page import PageRequest
from tests.support.books import check_books
from tests.support.engines import ACME, World
from tests.support.meddling import Recorder, die

ALL = PageRequest(limit=100)
STALLED_S = 15 * 60


@pytest.fixture
def collection(world: World) -> Collection:
    return world.collection()


def served(world: World, collection: Collection) -> list[str]:
    chunks = world.engine.chunks.list(ACME, ALL, collection_id=collection.id).items
    return [chunk.text for chunk in chunks]


def send(world: World, collection: Collection, content: str, version: str | None, sequence: str = "") -> IngestResult:
    return world.ingest(collection, content, source_key="a", source_version=version, version_sequence=sequence)


def remove(world: World, collection: Collection, version: str | None, sequence: str = "") -> list[DocumentId]:
    return world.engine.documents.delete_source(
        ACME, collection.id, "a", world.deadline(), source_version=version, version_sequence=sequence
    ).documents


def nothing_begun(world: World, collection: Collection, content: str, version: str, sequence: str = "") -> IngestResult:
    """Ingests a version that is too late, and checks that nothing was changed or embedded."""
    before, calls = world.rows(), world.embedder.calls
    result = send(world, collection, content, version, sequence)
    assert (world.rows(), world.embedder.calls) == (before, calls)
    assert (result.document_id, result.state, result.chunk_count) == (None, DocumentState.SUPERSEDED, 0)
    return result


def test_a_lower_version_is_superseded_before_anything_is_embedded(world: World, collection: Collection) -> None:
    newer = send(world, collection, "new", "10")
    late = nothing_begun(world, collection, "old", "F")
    assert late.superseded_by == newer.document_id
    assert served(world, collection) == ["new"]


def test_source_versions_compare_as_hexadecimal_numbers_of_any_length_and_case(
    world: World, collection: Collection
) -> None:
    send(world, collection, "one", "9")
    send(world, collection, "two", "a")
    send(world, collection, "three", "00000B")
    send(world, collection, "four", "0055aed6dca90281e5")
    assert served(world, collection) == ["four"]
    nothing_begun(world, collection, "five", "55AED6DCA90281E4")
    check_books(world)


def test_a_higher_version_replaces_the_current_version(world: World, collection: Collection) -> None:
    first = send(world, collection, "one", "1")
    second = send(world, collection, "two", "2")
    assert second.replaced == [first.document_id]
    check_books(world)


def test_the_same_version_again_is_unchanged_while_it_is_served(world: World, collection: Collection) -> None:
    first = send(world, collection, "one", "1")
    again = send(world, collection, "one", "01")
    assert (again.unchanged, again.document_id) == (True, first.document_id)


def test_the_same_version_with_other_content_is_a_conflict(world: World, collection: Collection) -> None:
    send(world, collection, "one", "1")
    before = world.rows()
    with pytest.raises(VersionConflict):
        send(world, collection, "two", "1")
    assert world.rows() == before


def test_a_version_equal_to_a_replaced_version_is_superseded(world: World, collection: Collection) -> None:
    send(world, collection, "one", "1")
    newer = send(world, collection, "two", None)
    late = nothing_begun(world, collection, "one", "1")
    assert late.superseded_by == newer.document_id


def test_a_version_equal_to_a_removed_version_is_superseded_by_no_document(
    world: World, collection: Collection
) -> None:
    first = send(world, collection, "one", "1")
    assert first.document_id is not None
    world.engine.documents.delete(ACME, first.document_id)
    assert nothing_begun(world, collection, "one", "1").superseded_by is None
    assert served(world, collection) == []


def test_an_equal_version_in_progress_is_joined_or_claimed_once_it_has_stalled(
    world: World, recorder: Recorder, collection: Collection
) -> None:
    working = die(world, recorder, collection, "one", source_key="a", source_version="1")
    assert send(world, collection, "one", "1").document_id == working
    world.clock.advance(STALLED_S)
    result = send(world, collection, "one", "1")
    assert (result.document_id, result.state) == (working, DocumentState.READY)
    check_books(world)


def test_a_version_equal_to_a_failed_version_begins_again(
    world: World, recorder: Recorder, collection: Collection
) -> None:
    failed = die(world, recorder, collection, "one", source_key="a", source_version="1")
    world.clock.advance(STALLED_S + 1)
    world.engine.recovery.sweep()
    result = send(world, collection, "one", "1")
    assert result.state == DocumentState.READY
    assert result.document_id != failed
    check_books(world)


def test_a_higher_version_of_the_current_content_renumbers_the_document(world: World, collection: Collection) -> None:
    first = send(world, collection, "one", "1")
    again = send(world, collection, "one", "5")
    assert (again.unchanged, again.document_id) == (True, first.document_id)
    assert first.document_id is not None
    assert world.engine.documents.get(ACME, first.document_id).source_version == "5"
    late = nothing_begun(world, collection, "two", "4")
    assert late.superseded_by == first.document_id
    check_books(world)


def test_a_version_in_progress_below_a_renumbered_version_is_never_served(
    world: World, recorder: Recorder, collection: Collection
) -> None:
    first = send(world, collection, "one", "1")
    recorder.on["ingest_embedded"] = lambda: send(world, collection, "one", "3")
    middle = send(world, collection, "two", "2")
    assert (middle.state, middle.superseded_by) == (DocumentState.SUPERSEDED, first.document_id)
    assert served(world, collection) == ["one"]
    assert world.engine.documents.count(ACME) == 1, "a version that was never served is removed"
    check_books(world)


def test_content_in_progress_below_a_renumbered_version_begins_again(
    world: World, recorder: Recorder, collection: Collection
) -> None:
    send(world, collection, "one", "1")
    dead = die(world, recorder, collection, "two", source_key="a", source_version="2")
    send(world, collection, "one", "3")
    result = send(world, collection, "two", "4")
    assert result.state == DocumentState.READY
    assert result.document_id != dead, "the version number of the dead document is too low"
    assert served(world, collection) == ["two"]
    check_books(world)


def test_a_higher_version_of_content_in_progress_renumbers_the_document_in_progress(
    world: World, recorder: Recorder, collection: Collection
) -> None:
    answers: list[IngestResult] = []

    def renumber() -> None:
        answers.append(send(world, collection, "one", "3"))

    def overtake() -> None:
        recorder.on["ingest_embedded"] = renumber
        answers.append(send(world, collection, "two", "2"))

    recorder.on["ingest_embedded"] = overtake
    result = send(world, collection, "one", "1")
    assert [answer.state for answer in answers] == [DocumentState.PROCESSING, DocumentState.READY]
    assert answers[0].document_id == result.document_id
    assert (result.state, result.replaced) == (DocumentState.READY, [answers[1].document_id])
    assert served(world, collection) == ["one"]
    assert world.engine.documents.count(ACME) == 1, "the replaced version is purged by whoever replaced it"
    nothing_begun(world, collection, "two", "2")
    check_books(world)


def test_an_ingest_that_starts_first_does_not_replace_one_that_starts_later(
    world: World, recorder: Recorder, collection: Collection
) -> None:
    later: list[IngestResult] = []
    recorder.on["ingest_embedded"] = lambda: later.append(send(world, collection, "later", None))
    first = send(world, collection, "first", None)
    assert (first.state, first.superseded_by) == (DocumentState.SUPERSEDED, later[0].document_id)
    assert (first.chunk_count, first.replaced) == (0, [])
    assert served(world, collection) == ["later"]
    assert [document.id for document in world.engine.documents.list(ACME, ALL).items] == [later[0].document_id]
    check_books(world)


def test_ingests_with_and_without_a_source_version_may_alternate(world: World, collection: Collection) -> None:
    send(world, collection, "one", "1")
    send(world, collection, "two", None)
    send(world, collection, "three", "2")
    assert served(world, collection) == ["three"]
    send(world, collection, "four", None)
    assert served(world, collection) == ["four"]
    nothing_begun(world, collection, "five", "1")
    check_books(world)


def test_a_new_version_sequence_of_a_source_starts_again(world: World, collection: Collection) -> None:
    send(world, collection, "one", "FF", "bucket-a")
    second = send(world, collection, "two", "1", "bucket-b")
    assert second.state == DocumentState.READY
    nothing_begun(world, collection, "three", "0", "bucket-b")
    check_books(world)


def test_content_older_than_a_removal_does_not_come_back(world: World, collection: Collection) -> None:
    first = send(world, collection, "one", "1")
    assert remove(world, collection, "3") == [first.document_id]
    assert nothing_begun(world, collection, "two", "2").superseded_by is None
    assert served(world, collection) == []
    assert send(world, collection, "four", "4").state == DocumentState.READY
    check_books(world)


def test_a_removal_of_an_unknown_source_still_stops_older_content(world: World, collection: Collection) -> None:
    assert remove(world, collection, "3") == []
    nothing_begun(world, collection, "two", "2")
    assert send(world, collection, "four", "4").state == DocumentState.READY
    check_books(world)


def test_a_removal_older_than_the_current_version_removes_nothing(world: World, collection: Collection) -> None:
    send(world, collection, "two", "2")
    before = world.rows()
    assert remove(world, collection, "1") == []
    assert world.rows() == before
    assert served(world, collection) == ["two"]


def test_a_removal_that_is_delivered_twice_has_the_effect_of_one(world: World, collection: Collection) -> None:
    send(world, collection, "one", "1")
    remove(world, collection, "2")
    before = world.rows()
    assert remove(world, collection, "2") == []
    assert world.rows() == before


@pytest.mark.parametrize("first", ["content", "removal"])
def test_a_removal_with_the_version_of_a_content_is_refused(world: World, collection: Collection, first: str) -> None:
    if first == "content":
        send(world, collection, "one", "1")
        with pytest.raises(VersionConflict):
            remove(world, collection, "1")
        assert served(world, collection) == ["one"]
    else:
        remove(world, collection, "1")
        with pytest.raises(VersionConflict):
            send(world, collection, "one", "1")


def test_a_removal_interrupts_a_running_ingest_of_an_older_version(
    world: World, recorder: Recorder, collection: Collection
) -> None:
    recorder.on["ingest_embedded"] = lambda: remove(world, collection, "2")
    with pytest.raises(IngestInterrupted):
        send(world, collection, "one", "1")
    assert served(world, collection) == []
    assert world.vector_count() == 0
    check_books(world)


def test_an_old_removal_does_not_disturb_a_newer_ingest(
    world: World, recorder: Recorder, collection: Collection
) -> None:
    send(world, collection, "one", "1")
    recorder.on["ingest_embedded"] = lambda: remove(world, collection, "2")
    assert send(world, collection, "three", "3").state == DocumentState.READY
    assert served(world, collection) == ["three"]
    check_books(world)


@pytest.mark.parametrize("order", [("1", "2", "3"), ("3", "2", "1"), ("2", "3", "1"), ("3", "1", "2"), ("2", "1", "3")])
def test_the_highest_version_is_served_in_every_order_of_arrival(
    world: World, collection: Collection, order: tuple[str, ...]
) -> None:
    for version in order:
        send(world, collection, f"content {version}", version)
    assert served(world, collection) == ["content 3"]
    check_books(world)

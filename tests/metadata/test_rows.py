"""Rows of documents, sources, collections and the sweep: the same on every DynamoDB that can be run here."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from core.clock import new_id
from core.metadata import table
from core.metadata.dynamo import Action, ConditionFailed
from core.metadata.paging import PageTokens
from core.metadata.rows import Counts, Head, Info, Source
from core.metadata.sweep_index import SweepCandidate
from core.metadata.table import Key
from core.model.chunk import Chunk
from core.model.collection import Collection, CollectionState
from core.model.document import DocumentState, Failure, source_id
from core.model.errors import CollectionAlreadyExists, InvalidArgument
from core.model.ids import ChunkId, CollectionId, DocumentId, UploadId
from core.model.upload import UploadInfo
from core.protocol.transitions import with_new_version
from tests.support.engines import ACME, GLOBEX, World

FAILURE = Failure(stage="embed", code="unavailable", detail="The model does not answer")
NO_LIMIT = 1000


@pytest.fixture
def collection(rows: World) -> Collection:
    return rows.collection()


@dataclass
class Begun:
    """A document in progress, and its source as it was before and after the begin."""

    head: Head
    info: Info
    source: Source


def new_head(rows: World, collection: Collection, key: str | None, number: int, fingerprint: str) -> tuple[Head, Info]:
    now = rows.clock.now()
    document_id = new_id(DocumentId, rows.clock)
    head = Head(
        tenant=ACME,
        document_id=document_id,
        collection_id=collection.id,
        state=DocumentState.PENDING,
        attempt=1,
        writer="writer-1",
        reserved={},
        number=number,
        heartbeat=now,
        fingerprint=fingerprint,
        content_hash=fingerprint,
        source_id=None if key is None else source_id(key),
        embedding_model=collection.embedding_model,
        embedding_dims=collection.embedding_dims,
        created_at=now,
        updated_at=now,
    )
    info = Info(
        document_id=document_id,
        collection_id=collection.id,
        title="",
        source="",
        source_type="text/plain",
        source_key=key,
        metadata={"owner": "Ada"},
        attributes={"price": 1.5, "tags": ["a", "b"]},
    )
    return head, info


def source_of(rows: World, collection: Collection, key: str = "a.md") -> Source:
    found = rows.stores.documents.source(ACME, collection.id, source_id(key))
    return found or Source(key=key, collection_id=collection.id)


def begin(rows: World, collection: Collection, key: str = "a.md", content: str = "one") -> Begun:
    """A version of a source that has begun."""
    read = source_of(rows, collection, key)
    head, info = new_head(rows, collection, key, read.next_number, content)
    rows.stores.transitions.begin_keyed(head, info, read, with_new_version(read, content, head.document_id))
    return Begun(head, info, source_of(rows, collection, key))


def make_ready(rows: World, collection: Collection, key: str = "a.md", content: str = "one", chunks: int = 3) -> Begun:
    begun = begin(rows, collection, key, content)
    rows.stores.transitions.heartbeat(begun.head, reserve=chunks)
    rows.stores.transitions.swap(begun.head, chunk_count=chunks, info=None, source_as_read=begun.source)
    return Begun(head_of(rows, begun), begun.info, source_of(rows, collection, key))


def head_of(rows: World, begun: Begun) -> Head:
    head = rows.stores.documents.head(ACME, begun.head.document_id)
    assert head is not None, "the document has a row"
    return head


def counts(rows: World, collection: Collection) -> Counts:
    return rows.stores.collections.counts(ACME, [collection.id])[collection.id]


def candidates(rows: World, **later: float) -> list[SweepCandidate]:
    """Documents and marks that a sweep would take after some time."""
    moment = rows.clock.now() + timedelta(**later)
    found = rows.stores.sweep_index.oldest(moment, moment, NO_LIMIT, frozenset())
    return [one for one in found if "#D#" in one.key.pk]


def nothing_is_written(rows: World, before: list[dict[str, Any]]) -> None:
    assert rows.rows() == before, "a refused transaction writes nothing"


# -- the table itself ------------------------------------------------------------------------------


def test_a_row_is_read_as_it_was_written_and_absent_values_are_left_out(rows: World) -> None:
    values = {"text": "ü", "empty": "", "number": -7, "flag": False, "list": [1, {"a": "b"}], "map": {"n": {"x": 0}}}
    rows.stores.table.write(Action(Key("P", "S"), put={**values, "none": None}))
    assert rows.stores.table.get(Key("P", "S")) == {"pk": "P", "sk": "S", **values}
    assert rows.stores.table.get(Key("P", "other")) is None


def test_any_number_of_rows_is_written_read_and_deleted_in_batches(rows: World) -> None:
    keys = [Key(f"P{number % 3}", f"S{number:03}") for number in range(230)]
    rows.stores.table.batch_write(puts=[{**key._asdict(), "n": place} for place, key in enumerate(keys)])
    found = rows.stores.table.batch_get([*keys, *keys[:5], Key("P", "missing")])
    assert {key: item["n"] for key, item in found.items()} == {key: place for place, key in enumerate(keys)}
    rows.stores.table.batch_write(deletes=[*keys, Key("P", "missing")])
    assert rows.stores.table.batch_get(keys) == {}
    assert rows.stores.table.batch_get([]) == {}
    rows.stores.table.batch_write()


def test_a_query_answers_a_prefix_in_order_from_a_key_on_either_way_up_to_a_limit(rows: World) -> None:
    names = ["A#1", "B#1", "B#2", "B#3", "C#1"]
    rows.stores.table.batch_write(puts=[{"pk": "P", "sk": name} for name in [*reversed(names)]])
    rows.stores.table.batch_write(puts=[{"pk": "other", "sk": "B#9"}])

    def found(**options: Any) -> list[str]:
        return [row["sk"] for row in rows.stores.table.query("P", **options)]

    assert found() == names
    assert found(prefix="B#") == names[1:4]
    assert found(prefix="B#", after="B#1") == ["B#2", "B#3"]
    assert found(prefix="B#", after="B#3", descending=True) == ["B#2", "B#1"]
    assert found(limit=2) == names[:2]
    assert found(prefix="B#", after="B#1", limit=1) == ["B#2"]
    assert found(prefix="D#") == []


def test_a_query_goes_on_past_a_page_of_one_megabyte(rows: World) -> None:
    for number in range(5):
        rows.stores.table.batch_write(puts=[{"pk": "P", "sk": f"S{number}", "text": "x" * 300_000}])
    assert [row["sk"] for row in rows.stores.table.query("P")] == [f"S{number}" for number in range(5)]


def test_an_index_answers_keys_alone_of_the_rows_that_are_in_it(rows: World) -> None:
    rows.stores.table.batch_write(
        puts=[{"pk": f"P{number}", "sk": "S", "text": "x", **table.listing("L", f"{number}")} for number in (2, 0, 1)]
    )
    rows.stores.table.batch_write(puts=[{"pk": "P3", "sk": "S"}])
    found = list(rows.stores.table.query_index("listing", "L"))
    assert found == [{"pk": f"P{n}", "sk": "S", "listing_pk": "L", "listing_sk": f"{n}"} for n in range(3)]
    assert list(rows.stores.table.query_index("listing", "L", after=found[0])) == found[1:]
    assert list(rows.stores.table.query_index("listing", "L", between=("1", "2"), descending=True)) == found[:0:-1]


@pytest.mark.parametrize(
    "failing",
    [
        Action(Key("P", "A"), put={"n": 2}, condition="attribute_not_exists(pk)"),
        Action(Key("P", "A"), update="SET n = :n", condition="n = :other", values={"n": 2, "other": 5}),
        Action(Key("P", "A"), delete=True, condition="n = :other", values={"other": 5}),
    ],
    ids=["put", "update", "delete"],
)
def test_a_failed_condition_raises_and_stops_every_write_of_its_transaction(rows: World, failing: Action) -> None:
    rows.stores.table.write(Action(Key("P", "A"), put={"n": 1}))
    before = rows.rows()
    with pytest.raises(ConditionFailed):
        rows.stores.table.write(failing)
    with pytest.raises(ConditionFailed):
        rows.stores.table.transact([Action(Key("P", "B"), put={"n": 1}), failing, Action(Key("P", "C"), delete=True)])
    nothing_is_written(rows, before)


def test_a_transaction_puts_updates_deletes_and_checks_at_once(rows: World) -> None:
    rows.stores.table.batch_write(puts=[{"pk": "P", "sk": name, "n": 1} for name in "ABC"])
    rows.stores.table.transact(
        [
            Action(Key("P", "A"), update="ADD n :one REMOVE absent", values={"one": 1}),
            Action(Key("P", "B"), delete=True),
            Action(Key("P", "C"), condition="n = :one", values={"one": 1}),
            Action(Key("P", "E"), update="SET #state = :state", values={"state": "new"}),
            Action(Key("P", "D"), put={"n": 4}, condition="attribute_not_exists(pk)"),
        ]
    )
    found = {row["sk"]: row.get("n") for row in rows.stores.table.query("P")}
    assert found == {"A": 2, "C": 1, "D": 4, "E": None}
    assert rows.stores.table.get(Key("P", "E")) == {"pk": "P", "sk": "E", "state": "new"}


# -- begin -----------------------------------------------------------------------------------------


def test_a_begun_version_is_a_document_in_progress_counted_listed_and_watched(
    rows: World, collection: Collection
) -> None:
    begun = begin(rows, collection)
    assert rows.stores.documents.rows(ACME, [begun.head.document_id]) == [(begun.head, begun.info)]
    assert begun.source.in_progress["one"].document_id == begun.head.document_id
    assert (begun.source.revision, begun.source.next_number) == (1, 2)
    assert counts(rows, collection) == Counts(working=1, rows=1)
    assert list(rows.stores.documents.listed(ACME, collection.id)) == [begun.head.document_id]
    assert list(rows.stores.documents.listed(ACME, None)) == [begun.head.document_id]
    assert rows.stores.documents.versions(ACME, collection.id, source_id("a.md")) == [begun.head.document_id]
    assert [one.key.sk for one in candidates(rows, minutes=5)] == ["HEAD"]


def test_of_two_begins_of_a_source_as_one_read_it_the_second_writes_nothing(
    rows: World, collection: Collection
) -> None:
    read = source_of(rows, collection)
    begin(rows, collection)
    before = rows.rows()
    head, info = new_head(rows, collection, "a.md", 1, "two")
    with pytest.raises(ConditionFailed):
        rows.stores.transitions.begin_keyed(head, info, read, with_new_version(read, "two", head.document_id))
    nothing_is_written(rows, before)


def test_unkeyed_content_is_held_by_one_document_and_taken_over_from_the_one_that_was_read(
    rows: World, collection: Collection
) -> None:
    first, info = new_head(rows, collection, None, 0, "one")
    rows.stores.transitions.begin_unkeyed(first, info, holder_as_read=None)
    assert rows.stores.documents.content_holder_of(first) == first.document_id
    second, info = new_head(rows, collection, None, 0, "one")
    before = rows.rows()
    with pytest.raises(ConditionFailed):
        rows.stores.transitions.begin_unkeyed(second, info, holder_as_read=None)
    nothing_is_written(rows, before)
    rows.stores.transitions.begin_unkeyed(second, info, holder_as_read=first.document_id)
    assert rows.stores.documents.content_holder_of(second) == second.document_id


def test_nothing_begins_and_nothing_turns_ready_behind_a_closed_gate(rows: World, collection: Collection) -> None:
    begun = begin(rows, collection)
    rows.stores.collections.close_gates(ACME, collection.id)
    before = rows.rows()
    with pytest.raises(ConditionFailed):
        begin(rows, collection, "b.md")
    with pytest.raises(ConditionFailed):
        rows.stores.transitions.swap(begun.head, chunk_count=1, info=None, source_as_read=begun.source)
    nothing_is_written(rows, before)


# -- in progress -----------------------------------------------------------------------------------


def test_a_heartbeat_makes_the_document_processing_and_records_what_is_about_to_be_written(
    rows: World, collection: Collection
) -> None:
    begun = begin(rows, collection)
    rows.clock.advance(60)
    rows.stores.transitions.heartbeat(begun.head, reserve=12)
    head = head_of(rows, begun)
    assert (head.state, head.reserved, head.heartbeat) == (DocumentState.PROCESSING, {"1": 12}, rows.clock.now())


def test_a_heartbeat_of_another_attempt_or_of_no_document_writes_nothing(rows: World, collection: Collection) -> None:
    begun = begin(rows, collection)
    before = rows.rows()
    missing, _ = new_head(rows, collection, None, 0, "one")
    for head in (begun.head.model_copy(update={"attempt": 2}), missing):
        with pytest.raises(ConditionFailed):
            rows.stores.transitions.heartbeat(head)
    nothing_is_written(rows, before)


def test_a_stalled_document_is_claimed_and_the_old_attempt_leaves_a_mark(rows: World, collection: Collection) -> None:
    begun = begin(rows, collection)
    rows.stores.transitions.heartbeat(begun.head, reserve=7)
    cutoff = rows.clock.now()
    rows.clock.advance(3600)
    claimed = rows.stores.transitions.claim(head_of(rows, begun), "writer-2", cutoff)
    head = head_of(rows, begun)
    assert (head.attempt, head.writer, head.heartbeat) == (2, "writer-2", rows.clock.now())
    assert claimed.attempt == 2
    mark = rows.stores.documents.late_writer_mark(table.late_writer_mark(ACME, head.document_id, 1))
    assert mark is not None
    assert mark.reserved == {"1": 7}
    assert rows.stores.documents.has_late_writer_mark(ACME, head.document_id)


def test_a_living_document_or_one_that_has_reserved_more_since_is_not_claimed(
    rows: World, collection: Collection
) -> None:
    begun = begin(rows, collection)
    rows.stores.transitions.heartbeat(begun.head, reserve=7)
    before = rows.rows()
    with pytest.raises(ConditionFailed):
        rows.stores.transitions.claim(head_of(rows, begun), "writer-2", rows.clock.now() - timedelta(seconds=1))
    with pytest.raises(ConditionFailed):
        rows.stores.transitions.claim(begun.head, "writer-2", rows.clock.now())
    nothing_is_written(rows, before)


# -- ends ------------------------------------------------------------------------------------------


def test_a_swap_makes_the_version_current_and_counts_it(rows: World, collection: Collection) -> None:
    begun = begin(rows, collection)
    learnt = begun.info.model_copy(update={"title": "A title", "attributes": {"year": 2026}})
    rows.stores.transitions.swap(begun.head, chunk_count=3, info=learnt, source_as_read=begun.source)
    [(head, info)] = rows.stores.documents.rows(ACME, [begun.head.document_id])
    assert (head.state, head.chunk_count, info) == (DocumentState.READY, 3, learnt)
    source = source_of(rows, collection)
    assert source.current is not None
    assert (source.current.document_id, source.current_number, source.in_progress) == (head.document_id, 1, {})
    assert counts(rows, collection) == Counts(documents=1, chunks=3, rows=1)
    assert candidates(rows, days=1) == []


def test_the_next_version_supersedes_the_current_one_in_the_same_transaction(
    rows: World, collection: Collection
) -> None:
    first = make_ready(rows, collection, content="one", chunks=3)
    second = make_ready(rows, collection, content="two", chunks=5)
    assert head_of(rows, first).state == DocumentState.SUPERSEDED
    assert second.source.current is not None
    assert second.source.current.document_id == second.head.document_id
    assert counts(rows, collection) == Counts(documents=1, chunks=5, rows=2)
    assert [one.key for one in candidates(rows)] == [table.head(ACME, first.head.document_id)]


@pytest.mark.parametrize("change", [{"attempt": 2}, {"number": 7}])
def test_a_swap_under_another_attempt_or_number_writes_nothing(
    rows: World, collection: Collection, change: dict[str, int]
) -> None:
    begun = begin(rows, collection)
    before = rows.rows()
    with pytest.raises(ConditionFailed):
        rows.stores.transitions.swap(
            begun.head.model_copy(update=change), chunk_count=1, info=None, source_as_read=begun.source
        )
    nothing_is_written(rows, before)


def test_a_swap_of_a_source_that_has_changed_since_it_was_read_writes_nothing(
    rows: World, collection: Collection
) -> None:
    first = begin(rows, collection, content="one")
    make_ready(rows, collection, content="two")
    before = rows.rows()
    with pytest.raises(ConditionFailed):
        rows.stores.transitions.swap(first.head, chunk_count=1, info=None, source_as_read=first.source)
    nothing_is_written(rows, before)


def test_a_failed_document_says_why_leaves_its_sources_work_and_is_due_after_a_writers_life(
    rows: World, collection: Collection
) -> None:
    begun = begin(rows, collection)
    released = rows.stores.transitions.release(begun.head, begun.source, None)
    rows.stores.transitions.fail(begun.head, FAILURE, cutoff=None, released=released)
    head = head_of(rows, begun)
    assert (head.state, head.error) == (DocumentState.FAILED, FAILURE)
    assert source_of(rows, collection).in_progress == {}
    assert counts(rows, collection) == Counts(rows=1)
    life = timedelta(seconds=rows.engine.settings.writer_life_s)
    assert candidates(rows) == []
    assert len(candidates(rows, seconds=life.total_seconds())) == 1


def test_a_document_with_a_heartbeat_since_the_cutoff_is_not_failed(rows: World, collection: Collection) -> None:
    begun = begin(rows, collection)
    before = rows.rows()
    cutoff = rows.clock.now() - timedelta(seconds=1)
    with pytest.raises(ConditionFailed):
        rows.stores.transitions.fail(begun.head, FAILURE, cutoff=cutoff, released=[])
    nothing_is_written(rows, before)


def test_an_overtaken_version_is_superseded_and_no_longer_working(rows: World, collection: Collection) -> None:
    begun = begin(rows, collection)
    rows.stores.transitions.overtaken(begun.head)
    assert head_of(rows, begun).state == DocumentState.SUPERSEDED
    assert counts(rows, collection) == Counts(rows=1)


def test_a_document_takes_a_new_number_with_its_source(rows: World, collection: Collection) -> None:
    begun = begin(rows, collection)
    source = begun.source.model_copy(update={"next_number": 3})
    rows.stores.transitions.renumber(begun.head, 2, "0a", begun.source, source)
    [(head, info)] = rows.stores.documents.rows(ACME, [begun.head.document_id])
    assert (head.number, info.source_version, source_of(rows, collection).next_number) == (2, "0a", 3)


# -- removal ---------------------------------------------------------------------------------------


def test_a_removed_source_serves_nothing_and_its_row_goes_by_itself_later(rows: World, collection: Collection) -> None:
    ready = make_ready(rows, collection)
    empty = ready.source.model_copy(update={"current": None, "current_number": 2, "next_number": 3, "in_progress": {}})
    rows.stores.transitions.remove_source(ACME, ready.source, empty)
    assert head_of(rows, ready).state == DocumentState.SUPERSEDED
    assert source_of(rows, collection).current is None
    assert counts(rows, collection) == Counts(rows=1)
    item = rows.stores.table.get(table.source(ACME, collection.id, source_id("a.md")))
    assert item is not None
    assert item["expires_at"] == int((rows.clock.now() + timedelta(days=30)).timestamp())


def test_the_delete_of_one_document_empties_the_source_that_serves_it(rows: World, collection: Collection) -> None:
    ready = make_ready(rows, collection)
    rows.stores.transitions.retire(ready.head, rows.stores.transitions.forget(ready.head, ready.source))
    assert head_of(rows, ready).state == DocumentState.SUPERSEDED
    assert source_of(rows, collection).current is None
    assert counts(rows, collection) == Counts(rows=1)


def test_a_removed_document_leaves_nothing_but_a_mark_that_names_what_it_may_have_written(
    rows: World, collection: Collection
) -> None:
    begun = begin(rows, collection)
    rows.stores.transitions.heartbeat(begun.head, reserve=4)
    head = head_of(rows, begun)
    rows.stores.transitions.remove(head)
    assert rows.stores.documents.rows(ACME, [head.document_id]) == []
    assert rows.stores.documents.versions(ACME, collection.id, source_id("a.md")) == []
    assert counts(rows, collection) == Counts()
    key = table.late_writer_mark(ACME, head.document_id)
    mark = rows.stores.documents.late_writer_mark(key)
    assert mark is not None
    assert mark.chunk_ids() == [ChunkId.of(head.document_id, 1, index) for index in range(4)]
    rows.stores.documents.remove_late_writer_mark(key)
    assert not rows.stores.documents.has_late_writer_mark(ACME, head.document_id)


def test_a_document_that_has_changed_since_it_was_read_is_not_removed(rows: World, collection: Collection) -> None:
    begun = begin(rows, collection)
    rows.stores.transitions.heartbeat(begun.head, reserve=4)
    before = rows.rows()
    with pytest.raises(ConditionFailed):
        rows.stores.transitions.remove(begun.head)
    nothing_is_written(rows, before)


# -- candidates ------------------------------------------------------------------------------------


def test_candidates_come_oldest_first_from_every_shard_and_tenant_up_to_a_limit(
    rows: World, collection: Collection
) -> None:
    begun = []
    for number in range(12):
        begun.append(begin(rows, collection, f"{number}.md").head)
        rows.clock.advance(600)
    keys = [table.head(ACME, head.document_id) for head in begun]
    assert [one.key for one in candidates(rows)] == keys
    now = rows.clock.now()
    found = rows.stores.sweep_index.oldest(now, now, 5, frozenset(keys[:2]))
    assert [one.key for one in found] == keys[2:7]
    early = begun[3].heartbeat
    assert [one.key for one in rows.stores.sweep_index.oldest(early, early, NO_LIMIT, frozenset())][-1] == keys[3]


def test_a_postponed_candidate_is_due_later_unless_it_has_changed_since(rows: World, collection: Collection) -> None:
    begun = begin(rows, collection)
    [candidate] = candidates(rows, minutes=5)
    later = rows.clock.now() + timedelta(hours=1)
    rows.stores.sweep_index.postpone(candidate, later)
    assert candidates(rows, minutes=59) == []
    [postponed] = candidates(rows, hours=1)
    assert postponed.due == table.due_at(later)
    rows.stores.transitions.heartbeat(begun.head)
    before = rows.rows()
    rows.stores.sweep_index.postpone(postponed, later + timedelta(hours=1))
    nothing_is_written(rows, before)


def test_a_candidate_leaves_the_index_once_it_is_due_for_good(rows: World, collection: Collection) -> None:
    begun = begin(rows, collection)
    rows.stores.transitions.fail(begun.head, FAILURE, cutoff=None, released=[])
    [early] = candidates(rows, days=1)
    assert not rows.stores.sweep_index.remove(early, rows.clock.now())
    rows.clock.advance(rows.engine.settings.writer_life_s)
    assert rows.stores.sweep_index.remove(early, rows.clock.now())
    assert candidates(rows, days=1) == []
    assert not rows.stores.sweep_index.remove(early, rows.clock.now()), "it has left already"


# -- collections -----------------------------------------------------------------------------------


def test_a_name_belongs_to_one_collection_of_a_tenant_until_it_is_given_up(rows: World, collection: Collection) -> None:
    with pytest.raises(CollectionAlreadyExists):
        rows.collection("notes")
    assert rows.collection("notes", GLOBEX).id != collection.id
    row = rows.stores.collections.get(ACME, collection.id)
    assert row is not None
    rows.clock.advance(1)
    renamed = row.model_copy(update={"name": "letters", "updated_at": rows.clock.now()})
    rows.stores.collections.update(row, renamed)
    assert rows.stores.collections.id_of(ACME, "letters") == collection.id
    assert rows.stores.collections.id_of(ACME, "notes") is None
    with pytest.raises(ConditionFailed):
        rows.stores.collections.update(row, row.model_copy(update={"description": "late"}))


def test_collections_of_a_tenant_are_listed_by_time_from_one_on_either_way(rows: World) -> None:
    made: list[CollectionId] = []
    for name in "abc":
        made.append(rows.collection(name).id)
        rows.clock.advance(1)
    rows.collection("theirs", GLOBEX)

    def found(**options: Any) -> list[CollectionId]:
        return [row.id for row in rows.stores.collections.all(ACME, **options)]

    assert found() == made
    assert found(after=made[0]) == made[1:]
    assert found(descending=True) == made[::-1]
    assert found(after=made[2], descending=True) == [made[1], made[0]]


def test_a_collection_that_is_being_deleted_frees_its_name_and_ends_without_a_row(
    rows: World, collection: Collection
) -> None:
    make_ready(rows, collection)
    row = rows.stores.collections.get(ACME, collection.id)
    assert row is not None
    rows.stores.collections.start_deleting(row)
    assert rows.stores.collections.id_of(ACME, "notes") is None
    rows.stores.collections.close_gates(ACME, collection.id)
    entries = list(rows.stores.collections.entries(ACME, collection.id))
    assert entries == [table.source(ACME, collection.id, source_id("a.md"))]
    rows.stores.collections.remove_rows(entries)
    assert list(rows.stores.collections.entries(ACME, collection.id)) == []
    deleting = rows.stores.collections.get(ACME, collection.id)
    assert deleting is not None
    assert deleting.state == CollectionState.DELETING
    rows.stores.collections.finish_emptying(deleting, table.due_at(rows.clock.now()))
    emptied = rows.stores.collections.get(ACME, collection.id)
    assert emptied is not None
    assert emptied.state == CollectionState.EMPTIED
    rows.stores.collections.remove(emptied)
    assert rows.stores.collections.get(ACME, collection.id) is None


def test_a_collection_is_deleted_by_one_of_two(rows: World, collection: Collection) -> None:
    row = rows.stores.collections.get(ACME, collection.id)
    assert row is not None
    rows.stores.collections.start_deleting(row)
    before = rows.rows()
    with pytest.raises(ConditionFailed):
        rows.stores.collections.start_deleting(row)
    nothing_is_written(rows, before)


# -- documents and chunks --------------------------------------------------------------------------


def test_documents_are_listed_by_time_from_one_on_either_way(rows: World, collection: Collection) -> None:
    made = []
    for number in range(4):
        made.append(begin(rows, collection, f"{number}.md").head.document_id)
        rows.clock.advance(1)
    for scope in (collection.id, None):
        assert list(rows.stores.documents.listed(ACME, scope)) == made
        assert list(rows.stores.documents.listed(ACME, scope, after=made[1])) == made[2:]
        assert list(rows.stores.documents.listed(ACME, scope, after=made[2], descending=True)) == [made[1], made[0]]
        assert list(rows.stores.documents.listed(GLOBEX, scope)) == []


def test_documents_are_read_in_the_order_asked_for_and_missing_ones_left_out(
    rows: World, collection: Collection
) -> None:
    first, second = begin(rows, collection, "a.md").head, begin(rows, collection, "b.md").head
    missing = new_id(DocumentId, rows.clock)
    asked = [second.document_id, missing, first.document_id]
    assert [head for head, _ in rows.stores.documents.rows(ACME, asked)] == [second, first]
    assert rows.stores.documents.heads(ACME, asked) == {one.document_id: one for one in (first, second)}
    assert rows.stores.documents.rows(GLOBEX, asked) == []


def test_what_describes_a_document_is_changed_in_place_while_it_is_there(rows: World, collection: Collection) -> None:
    begun = begin(rows, collection)
    described = begun.info.model_copy(update={"title": "T", "source": "https://example.org", "metadata": {}})
    rows.stores.documents.update_info(ACME, described)
    [(_, info)] = rows.stores.documents.rows(ACME, [begun.head.document_id])
    assert info == described
    before = rows.rows()
    missing = described.model_copy(update={"document_id": new_id(DocumentId, rows.clock)})
    with pytest.raises(ConditionFailed):
        rows.stores.documents.update_info(ACME, missing)
    nothing_is_written(rows, before)


def test_a_source_and_a_document_are_read_as_they_are_served(rows: World, collection: Collection) -> None:
    ready = make_ready(rows, collection)
    wanted = [(collection.id, source_id("a.md")), (collection.id, source_id("missing"))]
    sources, heads = rows.stores.documents.serving(ACME, wanted, [ready.head.document_id])
    assert sources == {wanted[0]: ready.source}
    assert heads == {ready.head.document_id: ready.head}


def test_chunks_are_written_over_read_with_their_documents_and_deleted(rows: World, collection: Collection) -> None:
    begun = begin(rows, collection)
    ids = [ChunkId.of(begun.head.document_id, 1, index) for index in range(300)]
    chunks = [
        Chunk(
            id=one,
            document_id=begun.head.document_id,
            collection_id=collection.id,
            index=one.chunk_index,
            text="ü" * 100,
            start_index=0,
            end_index=100,
            char_count=100,
            page=2,
            attributes={"price": 0.1},
            gap="\n \u3000",
        )
        for one in ids
    ]
    rows.stores.documents.write_chunks(ACME, chunks)
    rows.stores.documents.write_chunks(ACME, chunks[:3])
    found, infos = rows.stores.documents.chunks_and_infos(ACME, ids)
    assert list(found.values()) == [chunk.model_copy(update={"origin": "a.md"}) for chunk in chunks]
    assert infos == {begun.head.document_id: begun.info}
    assert rows.stores.documents.chunks(GLOBEX, ids) == {}
    rows.stores.documents.delete_chunks(ACME, ids)
    assert rows.stores.documents.chunks(ACME, ids) == {}


# -- page tokens and uploads -----------------------------------------------------------------------


def test_a_page_token_is_read_by_another_process_and_by_no_other_tenant_or_query(rows: World) -> None:
    query = {"of": "documents"}
    token = PageTokens(rows.stores.table).write(ACME, query, ["doc", 1])
    other = PageTokens(rows.stores.table)
    assert other.read(ACME, query, token) == ["doc", 1]
    for tenant, asked in ((GLOBEX, query), (ACME, {"of": "chunks"})):
        with pytest.raises(InvalidArgument):
            other.read(tenant, asked, token)


def test_what_waits_for_an_upload_is_found_by_its_tenant(rows: World) -> None:
    upload_id = new_id(UploadId, rows.clock)
    info = UploadInfo(title="T", source_type="text/plain", attributes={"price": 1.5})
    rows.stores.uploads.put(ACME, upload_id, info, rows.clock.now() + timedelta(days=1))
    assert rows.stores.uploads.get(ACME, upload_id) == info
    assert rows.stores.uploads.get(GLOBEX, upload_id) is None

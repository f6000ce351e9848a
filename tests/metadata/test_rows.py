"""The rows of documents, sources, collections and the sweep, and the transitions on them. Every test runs on every
DynamoDB that can be run on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from core.clock import new_id
from core.metadata import table
from core.metadata.dynamo import Action, ConditionFailed
from core.metadata.paging import PageTokens
from core.metadata.rows import CollectionRow, Counts, Head, Info, Source
from core.metadata.sweep_index import SweepCandidate
from core.metadata.table import Key
from core.model.chunk import Chunk
from core.model.collection import CollectionState
from core.model.document import DocumentState, Failure, source_id
from core.model.errors import CollectionAlreadyExists, InvalidArgument
from core.model.ids import ChunkId, DocumentId, UploadId
from core.model.upload import UploadInfo
from core.protocol.transitions import with_new_version
from tests.support.engines import ACME, GLOBEX, World

FAILURE = Failure(stage="embed", code="unavailable", detail="The model does not answer")
NO_LIMIT = 1000


@dataclass
class Begun:
    """A document in progress, and its source's row after the begin."""

    head: Head
    info: Info
    source: Source


class Scene:
    """A collection, and versions of its sources that a test brings into a state by the transitions themselves."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = world.clock
        self.documents = world.stores.documents
        self.collections = world.stores.collections
        self.sweep_index = world.stores.sweep_index
        self.transitions = world.stores.transitions
        self.collection = world.collection()
        self.id = self.collection.id

    def new_rows(self, key: str | None, number: int, fingerprint: str) -> tuple[Head, Info]:
        """Makes the rows of a document that has not begun."""
        now = self.clock.now()
        document_id = new_id(DocumentId, self.clock)
        head = Head(
            tenant=ACME,
            document_id=document_id,
            collection_id=self.id,
            state=DocumentState.PENDING,
            attempt=1,
            writer="writer-1",
            reserved={},
            number=number,
            heartbeat=now,
            fingerprint=fingerprint,
            content_hash=fingerprint,
            source_id=None if key is None else source_id(key),
            embedding_model=self.collection.embedding_model,
            embedding_dims=self.collection.embedding_dims,
            created_at=now,
            updated_at=now,
        )
        info = Info(
            document_id=document_id,
            collection_id=self.id,
            title="",
            source="",
            source_type="text/plain",
            source_key=key,
            metadata={"owner": "Ada"},
            attributes={"price": 1.5, "tags": ["a", "b"]},
        )
        return head, info

    def begin(self, key: str = "a.md", content: str = "one", reserve: int = 0) -> Begun:
        """Begins a version of a source. With ``reserve``, the version sends a heartbeat too, and its head is read
        before that heartbeat."""
        source = self.source(key)
        head, info = self.new_rows(key, source.next_number, content)
        self.transitions.begin_keyed(head, info, source, with_new_version(source, content, head.document_id))
        if reserve:
            self.transitions.heartbeat(head, reserve=reserve)
        return Begun(head, info, self.source(key))

    def make_ready(self, content: str = "one", chunks: int = 3) -> Begun:
        begun = self.begin(content=content, reserve=chunks)
        self.transitions.swap(begun.head, chunk_count=chunks, info=None, source_as_read=begun.source)
        return Begun(self.head(begun), begun.info, self.source())

    def head(self, begun: Begun) -> Head:
        head = self.documents.head(ACME, begun.head.document_id)
        assert head is not None, "the document has a row"
        return head

    def row(self) -> CollectionRow:
        row = self.collections.get(ACME, self.id)
        assert row is not None, "the collection has a row"
        return row

    def source(self, key: str = "a.md") -> Source:
        return self.documents.source(ACME, self.id, source_id(key)) or Source(key=key, collection_id=self.id)

    def counts(self) -> Counts:
        return self.collections.counts(ACME, [self.id])[self.id]

    def candidates(self, **later: float) -> list[SweepCandidate]:
        """Lists the documents and late-writer marks that a sweep would take up after some time."""
        moment = self.clock.now() + timedelta(**later)
        due = self.sweep_index.oldest(moment, moment, NO_LIMIT, frozenset())
        return [candidate for candidate in due if "#D#" in candidate.key.pk]

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Checks that the block changes no row."""
        before = self.world.rows()
        yield
        assert self.world.rows() == before, "a refused write changes no row"

    @contextmanager
    def refused(self) -> Iterator[None]:
        """Checks that a condition stops the block's write, and that the block changes no row."""
        with self.unchanged(), pytest.raises(ConditionFailed):
            yield


@pytest.fixture
def scene(rows: World) -> Scene:
    return Scene(rows)


# -- the table -------------------------------------------------------------------------------------


def test_a_row_is_read_as_it_was_written_without_its_absent_values(rows: World) -> None:
    values = {"text": "ü", "empty": "", "number": -7, "flag": False, "list": [1, {"a": "b"}], "map": {"n": {"x": 0}}}
    rows.stores.table.write(Action(Key("P", "S"), put={**values, "none": None}))
    assert rows.stores.table.get(Key("P", "S")) == {"pk": "P", "sk": "S", **values}
    assert rows.stores.table.get(Key("P", "other")) is None


def test_a_batch_writes_reads_and_deletes_any_number_of_rows(rows: World) -> None:
    keys = [Key(f"P{number % 3}", f"S{number:03}") for number in range(120)]
    rows.stores.table.batch_write(puts=[{**key._asdict(), "n": place} for place, key in enumerate(keys)])
    items = rows.stores.table.batch_get([*keys, *keys[:5], Key("P", "missing")])
    assert {key: item["n"] for key, item in items.items()} == {key: place for place, key in enumerate(keys)}
    rows.stores.table.batch_write(deletes=[*keys, Key("P", "missing")])
    assert rows.stores.table.batch_get(keys) == {}


def test_a_query_returns_a_prefix_in_order_after_a_key_in_both_directions_up_to_a_limit(rows: World) -> None:
    names = ["A#1", "B#1", "B#2", "B#3", "C#1"]
    rows.stores.table.batch_write(puts=[{"pk": "P", "sk": name} for name in reversed(names)])
    rows.stores.table.batch_write(puts=[{"pk": "other", "sk": "B#9"}])

    def sort_keys(**options: Any) -> list[str]:
        return [row["sk"] for row in rows.stores.table.query("P", **options)]

    assert sort_keys() == names
    assert sort_keys(prefix="B#") == names[1:4]
    assert sort_keys(prefix="B#", after="B#1") == ["B#2", "B#3"]
    assert sort_keys(prefix="B#", after="B#3", descending=True) == ["B#2", "B#1"]
    assert sort_keys(limit=2) == names[:2]
    assert sort_keys(prefix="D#") == []


def test_a_query_continues_after_a_page_of_one_megabyte(rows: World) -> None:
    for number in range(5):
        rows.stores.table.batch_write(puts=[{"pk": "P", "sk": f"S{number}", "text": "x" * 300_000}])
    assert [row["sk"] for row in rows.stores.table.query("P")] == [f"S{number}" for number in range(5)]


def test_a_query_of_an_index_returns_only_keys_of_the_rows_in_the_index(rows: World) -> None:
    rows.stores.table.batch_write(
        puts=[{"pk": f"P{number}", "sk": "S", "text": "x", **table.listing("L", f"{number}")} for number in (2, 0, 1)]
    )
    rows.stores.table.batch_write(puts=[{"pk": "P3", "sk": "S"}])
    keys = list(rows.stores.table.query_index("listing", "L"))
    assert keys == [{"pk": f"P{n}", "sk": "S", "listing_pk": "L", "listing_sk": f"{n}"} for n in range(3)]
    assert list(rows.stores.table.query_index("listing", "L", after=keys[0])) == keys[1:]
    assert list(rows.stores.table.query_index("listing", "L", between=("1", "2"), descending=True)) == keys[:0:-1]


def test_a_failed_condition_stops_every_write_of_its_transaction(scene: Scene) -> None:
    rows = scene.world.stores.table
    rows.write(Action(Key("P", "A"), put={"n": 1}))
    wrong = Action(Key("P", "A"), update="SET n = :n", condition="n = :other", values={"n": 2, "other": 5})
    with scene.refused():
        rows.write(wrong)
    with scene.refused():
        rows.transact([Action(Key("P", "B"), put={"n": 1}), wrong, Action(Key("P", "C"), delete=True)])


def test_a_transaction_puts_updates_deletes_and_checks_together(rows: World) -> None:
    rows.stores.table.batch_write(puts=[{"pk": "P", "sk": name, "n": 1} for name in "ABC"])
    rows.stores.table.transact(
        [
            Action(Key("P", "A"), update="ADD n :one REMOVE absent", values={"one": 1}),
            Action(Key("P", "B"), delete=True),
            Action(Key("P", "C"), condition="n = :one", values={"one": 1}),
            Action(Key("P", "D"), put={"n": 4}, condition="attribute_not_exists(pk)"),
        ]
    )
    assert {row["sk"]: row["n"] for row in rows.stores.table.query("P")} == {"A": 2, "C": 1, "D": 4}


# -- begin -----------------------------------------------------------------------------------------


def test_a_begin_writes_a_document_in_progress_that_is_counted_listed_and_in_the_sweep_index(scene: Scene) -> None:
    begun = scene.begin()
    document_id = begun.head.document_id
    assert scene.documents.rows(ACME, [document_id]) == [(begun.head, begun.info)]
    assert begun.source.in_progress["one"].document_id == document_id
    assert (begun.source.revision, begun.source.next_number) == (1, 2)
    assert scene.counts() == Counts(working=1, rows=1)
    assert list(scene.documents.listed(ACME, scene.id)) == [document_id]
    assert list(scene.documents.listed(ACME, None)) == [document_id]
    assert scene.documents.versions(ACME, scene.id, source_id("a.md")) == [document_id]
    assert [candidate.key.sk for candidate in scene.candidates(minutes=5)] == ["HEAD"]


def test_a_begin_writes_nothing_when_its_source_has_changed_since_it_was_read(scene: Scene) -> None:
    source = scene.source()
    scene.begin()
    head, info = scene.new_rows("a.md", 1, "two")
    with scene.refused():
        scene.transitions.begin_keyed(head, info, source, with_new_version(source, "two", head.document_id))


def test_unkeyed_content_belongs_to_one_document_until_a_begin_names_that_document(scene: Scene) -> None:
    first, info = scene.new_rows(None, 0, "one")
    scene.transitions.begin_unkeyed(first, info, holder_as_read=None)
    assert scene.documents.content_holder_of(first) == first.document_id
    second, info = scene.new_rows(None, 0, "one")
    with scene.refused():
        scene.transitions.begin_unkeyed(second, info, holder_as_read=None)
    scene.transitions.begin_unkeyed(second, info, holder_as_read=first.document_id)
    assert scene.documents.content_holder_of(second) == second.document_id


def test_no_document_begins_or_becomes_ready_after_the_gates_are_closed(scene: Scene) -> None:
    begun = scene.begin()
    scene.collections.close_gates(ACME, scene.id)
    with scene.refused():
        scene.begin("b.md")
    with scene.refused():
        scene.transitions.swap(begun.head, chunk_count=1, info=None, source_as_read=begun.source)


# -- heartbeats and claims -------------------------------------------------------------------------


def test_a_heartbeat_makes_the_document_processing_and_records_its_reserved_chunks(scene: Scene) -> None:
    begun = scene.begin()
    scene.clock.advance(60)
    scene.transitions.heartbeat(begun.head, reserve=12)
    head = scene.head(begun)
    assert (head.state, head.reserved, head.heartbeat) == (DocumentState.PROCESSING, {"1": 12}, scene.clock.now())


def test_a_heartbeat_of_another_attempt_or_of_a_missing_document_writes_nothing(scene: Scene) -> None:
    begun = scene.begin()
    missing, _ = scene.new_rows(None, 0, "one")
    for head in (begun.head.model_copy(update={"attempt": 2}), missing):
        with scene.refused():
            scene.transitions.heartbeat(head)


def test_a_claim_of_a_stalled_document_leaves_a_late_writer_mark_for_the_old_attempt(scene: Scene) -> None:
    begun = scene.begin(reserve=7)
    cutoff = scene.clock.now()
    scene.clock.advance(3600)
    claimed = scene.transitions.claim(scene.head(begun), "writer-2", cutoff)
    head = scene.head(begun)
    assert (head.attempt, head.writer, head.heartbeat) == (2, "writer-2", scene.clock.now())
    assert claimed.attempt == 2
    mark = scene.documents.late_writer_mark(table.late_writer_mark(ACME, head.document_id, 1))
    assert mark is not None
    assert mark.reserved == {"1": 7}
    assert scene.documents.has_late_writer_mark(ACME, head.document_id)


def test_a_claim_is_refused_for_a_document_that_is_alive_or_has_reserved_more_since(scene: Scene) -> None:
    begun = scene.begin(reserve=7)
    with scene.refused():
        scene.transitions.claim(scene.head(begun), "writer-2", scene.clock.now() - timedelta(seconds=1))
    with scene.refused():
        scene.transitions.claim(begun.head, "writer-2", scene.clock.now())


# -- swap, fail and supersede ----------------------------------------------------------------------


def test_a_swap_makes_the_version_current_and_counts_it(scene: Scene) -> None:
    begun = scene.begin()
    loaded = begun.info.model_copy(update={"title": "A title", "attributes": {"year": 2026}})
    scene.transitions.swap(begun.head, chunk_count=3, info=loaded, source_as_read=begun.source)
    [(head, info)] = scene.documents.rows(ACME, [begun.head.document_id])
    assert (head.state, head.chunk_count, info) == (DocumentState.READY, 3, loaded)
    source = scene.source()
    assert source.current is not None
    assert (source.current.document_id, source.current_number, source.in_progress) == (head.document_id, 1, {})
    assert scene.counts() == Counts(documents=1, chunks=3, rows=1)
    assert scene.candidates(days=1) == []


def test_a_swap_supersedes_the_version_before_in_the_same_transaction(scene: Scene) -> None:
    first, second = scene.make_ready("one", chunks=3), scene.make_ready("two", chunks=5)
    assert scene.head(first).state == DocumentState.SUPERSEDED
    assert second.source.current is not None
    assert second.source.current.document_id == second.head.document_id
    assert scene.counts() == Counts(documents=1, chunks=5, rows=2)
    assert [candidate.key for candidate in scene.candidates()] == [table.head(ACME, first.head.document_id)]


@pytest.mark.parametrize("change", [{"attempt": 2}, {"number": 7}, {}], ids=["attempt", "number", "source"])
def test_a_swap_writes_nothing_when_its_attempt_number_or_source_is_not_as_read(
    scene: Scene, change: dict[str, int]
) -> None:
    begun = scene.begin()
    if not change:
        scene.make_ready("two")
    head = begun.head.model_copy(update=change)
    with scene.refused():
        scene.transitions.swap(head, chunk_count=1, info=None, source_as_read=begun.source)


def test_a_failed_document_keeps_its_reason_leaves_its_source_and_is_due_after_a_writers_life(scene: Scene) -> None:
    begun = scene.begin()
    released = scene.transitions.release(begun.head, begun.source, None)
    scene.transitions.fail(begun.head, FAILURE, cutoff=None, released=released)
    head = scene.head(begun)
    assert (head.state, head.error) == (DocumentState.FAILED, FAILURE)
    assert scene.source().in_progress == {}
    assert scene.counts() == Counts(rows=1)
    assert scene.candidates() == []
    assert len(scene.candidates(seconds=scene.world.engine.settings.writer_life_s)) == 1


def test_a_document_with_a_heartbeat_after_the_cutoff_is_not_failed(scene: Scene) -> None:
    begun = scene.begin()
    cutoff = scene.clock.now() - timedelta(seconds=1)
    with scene.refused():
        scene.transitions.fail(begun.head, FAILURE, cutoff=cutoff, released=[])


def test_an_overtaken_version_is_superseded_and_no_longer_counted_as_working(scene: Scene) -> None:
    begun = scene.begin()
    scene.transitions.overtaken(begun.head)
    assert scene.head(begun).state == DocumentState.SUPERSEDED
    assert scene.counts() == Counts(rows=1)


def test_a_renumbered_document_takes_a_new_version_number_together_with_its_source(scene: Scene) -> None:
    begun = scene.begin()
    source = begun.source.model_copy(update={"next_number": 3})
    scene.transitions.renumber(begun.head, 2, "0a", begun.source, source)
    [(head, info)] = scene.documents.rows(ACME, [begun.head.document_id])
    assert (head.number, info.source_version, scene.source().next_number) == (2, "0a", 3)


# -- removal ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("removed", ["source", "document"])
def test_a_source_serves_nothing_after_its_removal_or_the_removal_of_its_document(scene: Scene, removed: str) -> None:
    ready = scene.make_ready()
    if removed == "source":
        changes: dict[str, Any] = {"current": None, "current_number": 2, "next_number": 3, "in_progress": {}}
        scene.transitions.remove_source(ACME, ready.source, ready.source.model_copy(update=changes))
        item = scene.world.stores.table.get(table.source(ACME, scene.id, source_id("a.md")))
        assert item is not None
        expiry = int((scene.clock.now() + timedelta(days=30)).timestamp())
        assert item["expires_at"] == expiry, "DynamoDB deletes the row of a removed source after 30 days"
    else:
        scene.transitions.retire(ready.head, scene.transitions.forget(ready.head, ready.source))
    assert scene.head(ready).state == DocumentState.SUPERSEDED
    assert scene.source().current is None
    assert scene.counts() == Counts(rows=1)


def test_a_removed_document_leaves_only_a_mark_that_names_the_chunks_it_may_have_written(scene: Scene) -> None:
    head = scene.head(scene.begin(reserve=4))
    scene.transitions.remove(head)
    assert scene.documents.rows(ACME, [head.document_id]) == []
    assert scene.documents.versions(ACME, scene.id, source_id("a.md")) == []
    assert scene.counts() == Counts()
    key = table.late_writer_mark(ACME, head.document_id)
    mark = scene.documents.late_writer_mark(key)
    assert mark is not None
    assert mark.chunk_ids() == [ChunkId.of(head.document_id, 1, index) for index in range(4)]
    scene.documents.remove_late_writer_mark(key)
    assert not scene.documents.has_late_writer_mark(ACME, head.document_id)


def test_a_document_that_has_changed_since_it_was_read_is_not_removed(scene: Scene) -> None:
    begun = scene.begin(reserve=4)
    with scene.refused():
        scene.transitions.remove(begun.head)


# -- the sweep's index -----------------------------------------------------------------------------


def test_sweep_candidates_come_oldest_first_from_every_shard_up_to_a_limit(scene: Scene) -> None:
    heads = []
    for number in range(12):
        heads.append(scene.begin(f"{number}.md").head)
        scene.clock.advance(600)
    keys = [table.head(ACME, head.document_id) for head in heads]
    assert [candidate.key for candidate in scene.candidates()] == keys
    now, early = scene.clock.now(), heads[3].heartbeat
    few = scene.sweep_index.oldest(now, now, 5, frozenset(keys[:2]))
    assert [candidate.key for candidate in few] == keys[2:7], "the first two are left out by name"
    assert scene.sweep_index.oldest(early, early, NO_LIMIT, frozenset())[-1].key == keys[3]


def test_a_postponed_candidate_is_due_later_unless_its_row_has_changed_since(scene: Scene) -> None:
    begun = scene.begin()
    [candidate] = scene.candidates(minutes=5)
    later = scene.clock.now() + timedelta(hours=1)
    scene.sweep_index.postpone(candidate, later)
    assert scene.candidates(minutes=59) == []
    [postponed] = scene.candidates(hours=1)
    assert postponed.due == table.due_at(later)
    scene.transitions.heartbeat(begun.head)
    with scene.unchanged():
        scene.sweep_index.postpone(postponed, later + timedelta(hours=1))


def test_a_candidate_leaves_the_sweep_index_once_its_last_time_is_due(scene: Scene) -> None:
    begun = scene.begin()
    scene.transitions.fail(begun.head, FAILURE, cutoff=None, released=[])
    [candidate] = scene.candidates(days=1)
    assert not scene.sweep_index.remove(candidate, scene.clock.now())
    scene.clock.advance(scene.world.engine.settings.writer_life_s)
    assert scene.sweep_index.remove(candidate, scene.clock.now())
    assert scene.candidates(days=1) == []
    assert not scene.sweep_index.remove(candidate, scene.clock.now()), "the candidate has left the index already"


# -- collections -----------------------------------------------------------------------------------


def test_a_name_belongs_to_one_collection_of_a_tenant_until_that_collection_is_renamed(scene: Scene) -> None:
    with pytest.raises(CollectionAlreadyExists):
        scene.world.collection("notes")
    assert scene.world.collection("notes", GLOBEX).id != scene.id
    row = scene.row()
    scene.clock.advance(1)
    scene.collections.update(row, row.model_copy(update={"name": "letters", "updated_at": scene.clock.now()}))
    assert scene.collections.id_of(ACME, "letters") == scene.id
    assert scene.collections.id_of(ACME, "notes") is None
    with scene.refused():
        scene.collections.update(row, row.model_copy(update={"description": "late"}))


def test_a_collection_that_is_being_deleted_frees_its_name_and_in_the_end_has_no_row(scene: Scene) -> None:
    scene.make_ready()
    scene.collections.start_deleting(scene.row())
    assert scene.collections.id_of(ACME, "notes") is None
    scene.collections.close_gates(ACME, scene.id)
    entries = list(scene.collections.entries(ACME, scene.id))
    assert entries == [table.source(ACME, scene.id, source_id("a.md"))]
    scene.collections.remove_rows(entries)
    assert list(scene.collections.entries(ACME, scene.id)) == []
    assert scene.row().state == CollectionState.DELETING
    scene.collections.finish_emptying(scene.row(), table.due_at(scene.clock.now()))
    assert scene.row().state == CollectionState.EMPTIED
    scene.collections.remove(scene.row())
    assert scene.collections.get(ACME, scene.id) is None


def test_only_the_first_of_two_deletes_starts_to_delete_a_collection(scene: Scene) -> None:
    row = scene.row()
    scene.collections.start_deleting(row)
    with scene.refused():
        scene.collections.start_deleting(row)


# -- listings --------------------------------------------------------------------------------------


def test_collections_of_a_tenant_are_listed_by_time_after_a_collection_in_both_directions(rows: World) -> None:
    collection_ids = []
    for name in "abc":
        collection_ids.append(rows.collection(name).id)
        rows.clock.advance(1)
    rows.collection("of globex", GLOBEX)

    def listed(**options: Any) -> list[str]:
        return [row.id for row in rows.stores.collections.all(ACME, **options)]

    assert listed() == collection_ids
    assert listed(after=collection_ids[0]) == collection_ids[1:]
    assert listed(descending=True) == collection_ids[::-1]
    assert listed(after=collection_ids[2], descending=True) == collection_ids[1::-1]


def test_documents_are_listed_by_time_after_a_document_in_both_directions(scene: Scene) -> None:
    document_ids = []
    for number in range(4):
        document_ids.append(scene.begin(f"{number}.md").head.document_id)
        scene.clock.advance(1)
    listed = scene.documents.listed
    for scope in (scene.id, None):
        assert list(listed(ACME, scope)) == document_ids
        assert list(listed(ACME, scope, after=document_ids[1])) == document_ids[2:]
        assert list(listed(ACME, scope, after=document_ids[2], descending=True)) == document_ids[1::-1]
        assert list(listed(GLOBEX, scope)) == []


# -- documents and chunks --------------------------------------------------------------------------


def test_documents_are_read_in_the_order_of_the_request_without_missing_ones(scene: Scene) -> None:
    first, second = scene.begin("a.md").head, scene.begin("b.md").head
    document_ids = [second.document_id, new_id(DocumentId, scene.clock), first.document_id]
    assert [head for head, _ in scene.documents.rows(ACME, document_ids)] == [second, first]
    assert scene.documents.heads(ACME, document_ids) == {head.document_id: head for head in (first, second)}
    assert scene.documents.rows(GLOBEX, document_ids) == []


def test_the_description_of_a_document_changes_in_place_while_the_document_exists(scene: Scene) -> None:
    begun = scene.begin()
    described = begun.info.model_copy(update={"title": "T", "source": "https://example.org", "metadata": {}})
    scene.documents.update_info(ACME, described)
    [(_, info)] = scene.documents.rows(ACME, [begun.head.document_id])
    assert info == described
    missing = described.model_copy(update={"document_id": new_id(DocumentId, scene.clock)})
    with scene.refused():
        scene.documents.update_info(ACME, missing)


def test_sources_and_documents_are_read_together_to_decide_what_is_served(scene: Scene) -> None:
    ready = scene.make_ready()
    places = [(scene.id, source_id("a.md")), (scene.id, source_id("missing"))]
    sources, heads = scene.documents.serving(ACME, places, [ready.head.document_id])
    assert sources == {places[0]: ready.source}
    assert heads == {ready.head.document_id: ready.head}


def test_chunks_are_written_overwritten_read_with_their_document_and_deleted(scene: Scene) -> None:
    begun = scene.begin()
    chunk_ids = [ChunkId.of(begun.head.document_id, 1, index) for index in range(300)]
    chunks = [
        Chunk(
            id=chunk_id,
            document_id=begun.head.document_id,
            collection_id=scene.id,
            index=chunk_id.chunk_index,
            text="ü" * 100,
            start_index=0,
            end_index=100,
            char_count=100,
            page=2,
            attributes={"price": 0.1},
            gap="\n \u3000",
        )
        for chunk_id in chunk_ids
    ]
    scene.documents.write_chunks(ACME, chunks)
    scene.documents.write_chunks(ACME, chunks[:3])
    stored, infos = scene.documents.chunks_and_infos(ACME, chunk_ids)
    assert list(stored.values()) == [chunk.model_copy(update={"origin": "a.md"}) for chunk in chunks]
    assert infos == {begun.head.document_id: begun.info}
    assert scene.documents.chunks(GLOBEX, chunk_ids) == {}
    scene.documents.delete_chunks(ACME, chunk_ids)
    assert scene.documents.chunks(ACME, chunk_ids) == {}


# -- page tokens and uploads -----------------------------------------------------------------------


def test_a_page_token_is_read_by_another_process_for_its_own_tenant_and_query_alone(rows: World) -> None:
    query = {"of": "documents"}
    token = PageTokens(rows.stores.table).write(ACME, query, ["doc", 1])
    other_process = PageTokens(rows.stores.table)
    assert other_process.read(ACME, query, token) == ["doc", 1]
    for tenant, other_query in ((GLOBEX, query), (ACME, {"of": "chunks"})):
        with pytest.raises(InvalidArgument):
            other_process.read(tenant, other_query, token)


def test_the_description_of_an_upload_is_read_by_its_own_tenant_alone(rows: World) -> None:
    upload_id = new_id(UploadId, rows.clock)
    info = UploadInfo(title="T", source_type="text/plain", attributes={"price": 1.5})
    rows.stores.uploads.put(ACME, upload_id, info, rows.clock.now() + timedelta(days=1))
    assert rows.stores.uploads.get(ACME, upload_id) == info
    assert rows.stores.uploads.get(GLOBEX, upload_id) is None

"""Whatever is done in whatever order: the counters equal a recount, and nothing is left behind."""

from datetime import timedelta

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.model.collection import Collection
from core.model.document import DocumentState
from core.model.errors import DuplicateDocument, IngestInterrupted, Unavailable
from core.model.page import PageRequest
from core.model.query import RetrieveQuery
from core.model.tenant import Tenant
from tests.support.books import check_books
from tests.support.engines import ACME, GLOBEX
from tests.support.meddling import CrashError, MeddlingVectors, Recorder, crash
from tests.support.memory import memory_world

ALL = PageRequest(limit=100)
HOOKS_OF_INGEST = ("ingest_started", "ingest_chunked", "ingest_embedded", "ingest_completed")
contents = st.sampled_from(["red", "red green", "red green blue", "one two three four five", "yellow"])
keys = st.sampled_from([None, "a", "b"])
places = st.integers(0, 2)


class Library(RuleBasedStateMachine):
    """Three collections of two tenants; a model remembers what each source serves."""

    @initialize()
    def open(self) -> None:
        self.recorder, self.vectors = Recorder(), MeddlingVectors()
        self.world = memory_world(self.recorder, self.vectors)
        self.shelves: list[tuple[Tenant, Collection]] = []
        self.served: list[dict[str, str]] = []
        self.made = 0
        for tenant in (ACME, ACME, GLOBEX):
            self.add(tenant)

    def add(self, tenant: Tenant) -> None:
        self.made += 1
        collection = self.world.collection(f"n{self.made}", tenant=tenant, chunk_size=2, chunk_overlap=0)
        self.shelves.append((tenant, collection))
        self.served.append({})

    def ingest(self, place: int, content: str, key: str | None) -> None:
        tenant, collection = self.shelves[place]
        fields = {"source_key": key} if key else {}
        result = self.world.ingest(collection, content, tenant=tenant, **fields)
        if result.state == DocumentState.READY:
            self.served[place][key or f"#{content}"] = content

    @rule(place=places, content=contents, key=keys)
    def ingest_one(self, place: int, content: str, key: str | None) -> None:
        try:
            self.ingest(place, content, key)
        except DuplicateDocument:
            assert key is None
            assert self.served[place][f"#{content}"] == content

    @rule(place=places, content=contents, key=keys, hook=st.sampled_from(HOOKS_OF_INGEST[:3]))
    def die(self, place: int, content: str, key: str | None, hook: str) -> None:
        self.recorder.on[hook] = crash
        try:
            self.ingest(place, content, key)
        except (CrashError, DuplicateDocument):
            pass
        finally:
            self.recorder.on.clear()

    @rule(place=places, content=contents, key=keys, after=st.booleans())
    def die_writing(self, place: int, content: str, key: str | None, after: bool) -> None:
        if after:
            self.vectors.after_write = crash
        else:
            self.vectors.before_write = crash
        try:
            self.ingest(place, content, key)
        except (CrashError, DuplicateDocument):
            pass
        finally:
            self.vectors.before_write = self.vectors.after_write = None

    @rule(place=places, content=contents, key=keys)
    def fail(self, place: int, content: str, key: str | None) -> None:
        self.world.embedder.failure = Unavailable("The model does not answer")
        try:
            self.ingest(place, content, key)
        except (Unavailable, DuplicateDocument):
            pass
        finally:
            self.world.embedder.failure = None

    @rule(place=places, content=contents, other=contents, key=st.sampled_from(["a", "b"]))
    def race(self, place: int, content: str, other: str, key: str) -> None:
        self.recorder.on["ingest_embedded"] = lambda: self.ingest(place, other, key)
        try:
            self.ingest(place, content, key)
        finally:
            self.recorder.on.clear()

    @rule(place=places, content=contents, key=st.sampled_from(["a", "b"]))
    def delete_under_an_ingest(self, place: int, content: str, key: str) -> None:
        self.recorder.on["ingest_embedded"] = lambda: self.delete_source(place, key)
        try:
            self.ingest(place, content, key)
        except IngestInterrupted:
            pass
        finally:
            self.recorder.on.clear()

    @rule(place=places, key=st.sampled_from(["a", "b"]))
    def delete_source(self, place: int, key: str) -> None:
        tenant, collection = self.shelves[place]
        self.world.engine.documents.delete_source(tenant, collection.id, key, self.world.deadline())
        self.served[place].pop(key, None)

    @rule(place=places, number=st.integers(0, 9))
    def delete_document(self, place: int, number: int) -> None:
        tenant, collection = self.shelves[place]
        found = self.world.engine.documents.list(tenant, ALL, collection.id).items
        if not found:
            return
        document = found[number % len(found)]
        if document.state == DocumentState.READY:
            chunks = self.world.engine.chunks.list(tenant, ALL, document_id=document.id).items
            content = " ".join(chunk.text for chunk in chunks)
            assert self.served[place].pop(document.source_key or f"#{content}") == content
        self.world.engine.documents.delete(tenant, document.id)

    @rule(place=places)
    def replace_the_collection(self, place: int) -> None:
        tenant, collection = self.shelves[place]
        self.world.engine.collections.delete(tenant, collection.id, self.world.deadline())
        self.add(tenant)
        self.shelves[place], self.served[place] = self.shelves.pop(), self.served.pop()

    @rule(minutes=st.sampled_from([1, 16, 21]))
    def let_time_pass(self, minutes: int) -> None:
        self.world.clock.advance(minutes * 60)

    @rule(stalled_after=st.sampled_from([None, timedelta(0)]))
    def sweep(self, stalled_after: timedelta | None) -> None:
        self.world.engine.recovery.sweep(stalled_after)

    @precondition(lambda self: hasattr(self, "world"))
    @invariant()
    def the_books_are_right(self) -> None:
        check_books(self.world)

    @precondition(lambda self: hasattr(self, "world"))
    @invariant()
    def what_is_served_is_what_was_swapped_in_last(self) -> None:
        for (tenant, collection), served in zip(self.shelves, self.served, strict=True):
            page = self.world.engine.chunks.list(tenant, ALL, collection.id)
            texts: dict[object, list[str]] = {}
            for chunk in page.items:
                texts.setdefault(chunk.document_id, []).append(chunk.text)
            assert sorted(" ".join(parts) for parts in texts.values()) == sorted(served.values())
            stats = self.world.engine.collections.stats(tenant, collection.id)
            assert (stats.document_count, stats.chunk_count) == (len(texts), len(page.items))
            assert self.world.engine.chunks.count(tenant, collection.id) == len(page.items)
            question = RetrieveQuery(query="red green blue", collections=[collection.id], top_k=100)
            hits = self.world.engine.retrieve(tenant, question).hits
            assert {hit.chunk.id for hit in hits} == {chunk.id for chunk in page.items}
            assert all(hit.hydrated for hit in hits)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        for tenant in (ACME, GLOBEX):
            for collection in self.world.engine.collections.list(tenant, ALL).items:
                self.world.engine.collections.delete(tenant, collection.id, self.world.deadline())
        for _ in range(2):
            self.world.clock.advance(21 * 60)
            self.world.engine.recovery.drain(self.world.deadline())
        assert self.world.keys() == [], "nothing is left after two writers' lives"
        assert [self.world.vector_count(tenant) for tenant in (ACME, GLOBEX)] == [0, 0]
        self.vectors.close()


Library.TestCase.settings = settings(
    max_examples=12, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLibrary = Library.TestCase

"""Where a proof runs an engine: every call to a store passes one place, where a plan can cut, hold or watch it.

Each `Actor` is a process of its own: an engine with its own clients of shared stores. Time, identifiers and chance are
the world's, so every run can be repeated, and a `World` can be set back to where it was.

The calls of botocore's client are cut, above its own retries: what is tried is what the engine does about an answer.
That leaves out the requests that botocore sends again by itself. A second request after a first that was
carried out is its own kind of cut (`TWICE`); the killed processes of `tests.proofs.crash` have botocore's retries.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from threading import RLock
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from core.clock import Clock
from core.embedding.types import Embeddings
from core.engine import Engine
from core.model.collection import Collection, NewCollection, VectorSpace
from core.model.errors import Unavailable
from core.model.ids import ChunkId, CollectionId
from core.model.ingest import IngestInput, IngestResult
from core.model.tenant import Tenant
from core.settings import Settings
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.types import VectorRecord, VectorStore
from tests.support.clock import ManualClock
from tests.support.dynamodb import Items, MemoryDynamoDB, cancelled, error
from tests.support.embedder import HashedEmbedder
from tests.support.engines import make_engine

TENANT = Tenant("acme")
TABLE = "weft-proof"
STALLED_S = 15 * 60.0
LIFE_S = 20 * 60.0
SETTINGS = Settings(
    table=TABLE,
    embedder="none",
    vectors="none",
    stalled_after_s=int(STALLED_S),
    writer_life_s=int(LIFE_S),
)
ENDLESS = 50_000
"""Calls that no operation of a proof comes near."""

READS = ("get_item", "batch_get_item", "query")
CONDITIONAL = ("put_item", "update_item", "delete_item", "transact_write_items")


class Death(BaseException):
    """The process ends here. Nothing of ours catches it."""


# -- calls -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A call to a store that is about to be made.

    Attributes:
        number: the actor's how many-th write; of a read, of the writes before it.
        store: ``dynamodb`` or ``vectors``.
        perform: makes the call.
        pieces: the call as several smaller ones, for one that need not happen whole.
    """

    actor: "Actor"
    number: int
    store: str
    name: str
    write: bool
    arguments: Mapping[str, Any]
    perform: Callable[[], Any]
    pieces: Sequence[Callable[[], Any]] = ()

    @property
    def label(self) -> str:
        return f"{self.store}.{self.name}"

    def throttle(self) -> Exception:
        """The answer of a service that is too busy: nothing was written."""
        if self.store == "vectors":
            return Unavailable("The vector store is busy")
        if self.name == "transact_write_items":
            return cancelled(["ThrottlingError", *["None"] * (len(self.arguments["TransactItems"]) - 1)])
        return error("ProvisionedThroughputExceededException", "too fast")

    def conflict(self) -> Exception:
        """The answer when another transaction is at the row: nothing was written."""
        if self.name == "transact_write_items":
            return cancelled(["TransactionConflict", *["None"] * (len(self.arguments["TransactItems"]) - 1)])
        return error("TransactionConflictException", "another transaction is at the row")

    def no_answer(self) -> Exception:
        """What the caller sees when no answer comes."""
        if self.store == "vectors":
            return Unavailable("The vector store does not answer")
        return ReadTimeoutError(endpoint_url="loopback")


Plan = Callable[[Call], Any]
"""Makes a call, or does not, and answers or raises as the store would."""


def let_pass(call: Call) -> Any:
    return call.perform()


class Actor:
    """One process. Its plan sees every call that it makes.

    Attributes:
        writes: the writes so far, by name.
        calls: how many there were, reads too.
        dead: whether it has died; then nothing may follow.
        chance: seeds randomness of its own, so that what it draws does not depend on when others do.
        born: the clock when it began.
    """

    def __init__(self, world: "World", plan: Plan = let_pass, chance: int | None = None) -> None:
        self.world = world
        self.plan = plan
        self.writes: list[str] = []
        self.calls = 0
        self.patience = LIFE_S - 60
        self.dead = False
        self.born = world.clock.monotonic()
        self.embedder = HashedEmbedder()
        clock = world.clock if chance is None else OwnChance(world.clock, chance)
        self.engine = world.engine(Client(self, world.dynamodb), Vectors(self, world.vectors), self.embedder, clock)

    def call(self, call: Call) -> Any:
        if self.dead:
            self.world.broken.append(f"{call.label} after the process had died")
            raise Death
        self.calls += 1
        if self.calls > ENDLESS:
            self.dead = True
            self.world.broken.append("an operation came to no end")
            raise Death
        if call.write:
            self.writes.append(call.label)
        try:
            return self.plan(call)
        except Death:
            self.dead = True
            raise

    def ingest(self, collection_id: CollectionId, content: str, **fields: Any) -> IngestResult:
        """One ingest, with all the time that a call may take."""
        given = IngestInput(collection_id=collection_id, content=content.encode(), **fields)
        return self.engine.ingest.ingest(TENANT, given, self.deadline())

    def collection(self, name: str) -> Collection:
        """A new collection of very small chunks."""
        new = NewCollection(name=name, chunk_size=4, chunk_overlap=0)
        return self.engine.collections.create(TENANT, new)

    def deadline(self) -> float:
        """When its caller's patience ends: well below the writer's life, as a function's time-out is."""
        return self.world.clock.monotonic() + self.patience


class Client:
    """DynamoDB's client of one actor."""

    def __init__(self, actor: Actor, client: Any) -> None:
        self._actor = actor
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        write = name not in READS
        if write and name not in (*CONDITIONAL, "batch_write_item"):
            raise AttributeError(name)

        def method(**arguments: Any) -> Any:
            operation = getattr(self._client, name)
            call = Call(
                actor=self._actor,
                number=len(self._actor.writes) + int(write),
                store="dynamodb",
                name=name,
                write=write,
                arguments=arguments,
                perform=lambda: operation(**arguments),
                pieces=_pieces(operation, arguments) if name == "batch_write_item" else (),
            )
            return self._actor.call(call)

        return method


def _pieces(operation: Callable[..., Any], arguments: Mapping[str, Any]) -> list[Callable[[], Any]]:
    """A batch as one request an item."""
    ((table, requests),) = arguments["RequestItems"].items()
    return [partial(operation, RequestItems={table: [one]}) for one in requests]


class Vectors:
    """The vector store of one actor."""

    def __init__(self, actor: Actor, store: VectorStore) -> None:
        self._actor = actor
        self._store = store

    def _call(self, name: str, *arguments: Any, write: bool = False, pieces: Sequence[Callable[[], Any]] = ()) -> Any:
        operation = getattr(self._store, name)
        call = Call(
            actor=self._actor,
            number=len(self._actor.writes) + int(write),
            store="vectors",
            name=name,
            write=write,
            arguments={},
            perform=lambda: operation(*arguments),
            pieces=pieces,
        )
        return self._actor.call(call)

    def write(self, tenant: Tenant, space: VectorSpace, records: Sequence[VectorRecord]) -> None:
        pieces = [partial(self._store.write, tenant, space, [one]) for one in records]
        self._call("write", tenant, space, records, write=True, pieces=pieces)

    def delete(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> int:
        pieces = [partial(self._store.delete, tenant, space, [one]) for one in chunk_ids]
        deleted: int = self._call("delete", tenant, space, chunk_ids, write=True, pieces=pieces)
        return deleted

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Whatever else a store does is a read."""
        return partial(self._call, name)


# -- cuts --------------------------------------------------------------------------------------------


class Kind(StrEnum):
    """What becomes of one write.

    ``…_LATE`` kinds lose the answer, and the write happens when it is no longer waited for: before the actor's next
    write, when the actor has ended, or after the sweep that follows.
    """

    DIES_BEFORE = "dies before"
    DIES_AFTER = "dies after"
    DIES_FIRST_HALF = "dies with the first half written"
    DIES_SECOND_HALF = "dies with the second half written"
    DIES_LATE = "dies, written after the next sweep"
    THROTTLED = "throttled"
    OUTAGE = "throttled from here on"
    CONFLICT = "conflict"
    CONFLICTS = "conflicts from here on"
    NO_ANSWER = "written, no answer"
    HALF_NO_ANSWER = "half written, no answer"
    UNPROCESSED = "half written, the rest unprocessed"
    TWICE = "written twice, the second answer"
    NEXT_LATE = "no answer, written before the next write"
    END_LATE = "no answer, written at the end"
    SWEEP_LATE = "no answer, written after the next sweep"
    CUT_OFF = "no answer from here on, all written at the end"
    AWAY = "written, no answer, and none to the next two calls"

    @property
    def deadly(self) -> bool:
        return self.name.startswith("DIES")


def applies(kind: Kind, call: str, pieces: int) -> bool:
    """Whether a kind of cut says something of a call: one that is all or nothing has no middle."""
    dynamodb, name = call.startswith("dynamodb"), call.partition(".")[2]
    if kind in (Kind.DIES_FIRST_HALF, Kind.DIES_SECOND_HALF, Kind.HALF_NO_ANSWER):
        return pieces > 1
    if kind == Kind.UNPROCESSED:
        return name == "batch_write_item" and pieces > 1
    if kind in (Kind.CONFLICT, Kind.CONFLICTS):
        return dynamodb and name in CONDITIONAL
    if kind in (Kind.CUT_OFF, Kind.AWAY):
        return dynamodb
    return True


@dataclass
class Cut:
    """A plan that cuts one write of an actor.

    Attributes:
        at: the write's number, from 1.
        late: the writes that have not happened yet.
        done: whether the cut has taken place.
    """

    at: int
    kind: Kind
    late: list[Callable[[], Any]] = field(default_factory=list)
    done: bool = False
    _delayed: bool = field(default=False, repr=False)
    _away: int = field(default=0, repr=False)

    def __call__(self, call: Call) -> Any:
        if self._away and call.store == "dynamodb":
            self._away -= 1
            raise call.no_answer()
        if not call.write or call.number < self.at:
            return call.perform()
        if call.number > self.at:
            if self._delayed:
                self.land()
            if self.kind == Kind.OUTAGE:
                raise call.throttle()
            if self.kind == Kind.CUT_OFF and call.store == "dynamodb":
                self.late.append(call.perform)
                raise call.no_answer()
            if self.kind == Kind.CONFLICTS and applies(self.kind, call.label, 0):
                raise call.conflict()
            return call.perform()
        self.done = True
        return self._cut(call)

    def _cut(self, call: Call) -> Any:
        half = len(call.pieces) // 2
        match self.kind:
            case Kind.DIES_BEFORE:
                raise Death
            case Kind.DIES_AFTER:
                with suppress(Exception):  # a write that the store refuses has an answer, too
                    call.perform()
                raise Death
            case Kind.DIES_FIRST_HALF:
                _all(call.pieces[:half])
                raise Death
            case Kind.DIES_SECOND_HALF:
                _all(call.pieces[half:])
                raise Death
            case Kind.THROTTLED | Kind.OUTAGE:
                raise call.throttle()
            case Kind.CONFLICT | Kind.CONFLICTS:
                raise call.conflict()
            case Kind.NO_ANSWER:
                call.perform()
                raise call.no_answer()
            case Kind.AWAY:
                call.perform()
                self._away = 2
                raise call.no_answer()
            case Kind.HALF_NO_ANSWER:
                _all(call.pieces[:half])
                raise call.no_answer()
            case Kind.UNPROCESSED:
                ((table, requests),) = call.arguments["RequestItems"].items()
                _all(call.pieces[:half])
                return {"UnprocessedItems": {table: requests[half:]}}
            case Kind.TWICE:
                call.perform()
                return call.perform()
            case Kind.DIES_LATE | Kind.NEXT_LATE | Kind.END_LATE | Kind.SWEEP_LATE | Kind.CUT_OFF:
                self.late.append(call.perform)
                self._delayed = self.kind == Kind.NEXT_LATE
                raise Death if self.kind == Kind.DIES_LATE else call.no_answer()

    def land(self) -> None:
        """The late writes reach the store. Nobody waits for their answers."""
        late, self.late, self._delayed = self.late, [], False
        for write in late:
            with suppress(ClientError):
                write()


def _all(pieces: Sequence[Callable[[], Any]]) -> None:
    for piece in pieces:
        piece()


# -- the world ---------------------------------------------------------------------------------------


class WorldClock(ManualClock):
    """A clock that can be set back."""

    def state(self) -> Any:
        return self._elapsed, self.random.getstate()

    def set_back(self, state: Any) -> None:
        self._elapsed = state[0]
        self.random.setstate(state[1])


class OwnChance:
    """The world's time, with a process's own randomness."""

    def __init__(self, clock: WorldClock, seed: int) -> None:
        self._clock = clock
        self.random = random.Random(f"process {seed}")
        self.now, self.monotonic, self.sleep = clock.now, clock.monotonic, clock.sleep


class Mirror:
    """A vector store, and what must be in it: so it can be set back, and told from what it says itself."""

    def __init__(self, store: VectorStore) -> None:
        self.store = store
        self._lock = RLock()
        self.records: dict[tuple[Tenant, VectorSpace, ChunkId], VectorRecord] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def write(self, tenant: Tenant, space: VectorSpace, records: Sequence[VectorRecord]) -> None:
        with self._lock:
            self.store.write(tenant, space, records)
            self.records.update({(tenant, space, one.chunk_id): one for one in records})

    def delete(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> int:
        with self._lock:
            deleted = self.store.delete(tenant, space, chunk_ids)
            for one in chunk_ids:
                self.records.pop((tenant, space, one), None)
        return deleted

    def set_back(self, records: Mapping[tuple[Tenant, VectorSpace, ChunkId], VectorRecord]) -> None:
        for place in self.records.keys() - records.keys():
            self.store.delete(place[0], place[1], [place[2]])
        changed: dict[tuple[Tenant, VectorSpace], list[VectorRecord]] = {}
        for place, record in records.items():
            if self.records.get(place) is not record:
                changed.setdefault(place[:2], []).append(record)
        for (tenant, space), some in changed.items():
            self.store.write(tenant, space, some)
        self.records = dict(records)


@dataclass(frozen=True)
class Saved:
    """A world at one moment."""

    items: Items
    records: Mapping[tuple[Tenant, VectorSpace, ChunkId], VectorRecord]
    clock: Any


class World:
    """Stores, a clock, and the processes that work on them.

    Attributes:
        broken: promises that were seen broken on the way.
    """

    def __init__(self, vectors: VectorStore | None = None, seed: int = 0, dynamodb: Any = None) -> None:
        self.clock = WorldClock(seed)
        self.dynamodb = dynamodb or MemoryDynamoDB(self.clock.monotonic)
        self.mirror = Mirror(vectors or EmbeddedVectorStore(None))
        self.vectors: Any = self.mirror
        self.broken: list[str] = []
        self._plain: Actor | None = None
        self._prints: dict[int, tuple[Any, int]] = {}

    def engine(self, client: Any, vectors: Any, embedder: HashedEmbedder, clock: Clock) -> Engine:
        return make_engine(client, vectors, [embedder], clock, SETTINGS)

    @property
    def plain(self) -> Actor:
        """A process whose calls are not cut."""
        if self._plain is None:
            self._plain = Actor(self)
        self._plain.writes.clear()
        self._plain.calls = 0
        return self._plain

    def collection(self, name: str = "notes") -> Collection:
        return self.plain.collection(name)

    def save(self) -> Saved:
        return Saved(self.dynamodb.items, dict(self.mirror.records), self.clock.state())

    def set_back(self, saved: Saved) -> None:
        self.clock.set_back(saved.clock)
        self.dynamodb.watch = None
        self.dynamodb.lag = 0.0
        self.dynamodb.set_back(saved.items)
        self.mirror.set_back(saved.records)
        self.broken.clear()

    def vector_texts(self) -> dict[ChunkId, str]:
        """The texts of the vectors, by chunk."""
        return {place[2]: record.text for place, record in self.mirror.records.items()}

    def store_problems(self) -> list[str]:
        """The vector store holds what was written and not deleted, no more and no less."""
        there = self.mirror.store.count(TENANT, self.plain.embedder.space)
        right = len(self.mirror.records)
        return [] if there == right else [f"the vector store holds {there} vectors, not {right}"]

    def fingerprint(self) -> int:
        """A number that two equal states share."""
        rows = 0
        for key, item in self.dynamodb.items.items():
            known = self._prints.get(id(item))
            if known is None or known[0] is not item:
                if len(self._prints) > 50_000:
                    self._prints.clear()
                known = self._prints[id(item)] = (item, hash((key, repr(sorted(item.items())))))
            rows ^= known[1]
        vectors = frozenset((place[2], record.text) for place, record in self.mirror.records.items())
        return hash((rows, vectors, self.clock.monotonic()))

    def run(self, step: Callable[[Actor], Any], plan: Plan = let_pass, chance: int | None = None) -> "Outcome":
        """One process from its start to its end."""
        actor = Actor(self, plan, chance)
        try:
            return Outcome(actor, answer=step(actor))
        except Death:
            return Outcome(actor, died=True)
        except Exception as failure:  # noqa: BLE001 - it is judged
            return Outcome(actor, failure=failure)

    def close(self) -> None:
        self.mirror.store.close()


@dataclass(frozen=True)
class Outcome:
    """How a process ended."""

    actor: Actor
    answer: Any = None
    failure: Exception | None = None
    died: bool = False

    @property
    def acknowledged(self) -> bool:
        return not self.died and self.failure is None


def text(tag: str, chunks: int = 2) -> str:
    """A content of so many chunks. Each of them says which content it is of: its first word."""
    return "\n\n".join(f"{tag} part{number} of text" for number in range(chunks))


def tag_of(chunk_text: str) -> str:
    """The content that a chunk is of."""
    return chunk_text.split(maxsplit=1)[0]


class SlowEmbedder(HashedEmbedder):
    """Takes its time: the clock moves on while it works."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        super().__init__()
        self._clock = clock
        self._seconds = seconds

    def embed(self, texts: Sequence[str]) -> Embeddings:
        self._clock.advance(self._seconds)
        return super().embed(texts)


def seeded(*names: object) -> random.Random:
    """Chance that follows from names alone, whatever ran before."""
    return random.Random(" ".join(map(str, names)))

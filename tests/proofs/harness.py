"""Where a proof runs an engine: a world whose processes' calls to the stores all pass one place, and can be cut there.

Each `Actor` is a process of its own: an engine with its own clients of shared stores. Time, identifiers and chance are
the world's, so every run can be repeated, and a `World` can be set back to an earlier moment.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any

from core.engine import Engine
from core.model.collection import Collection, NewCollection
from core.model.ids import ChunkId, CollectionId
from core.model.ingest import IngestInput, IngestResult
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.settings import Settings
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.types import VectorRecord, VectorStore
from tests.proofs.calls import Call, Client, Death, Plan, Vectors, let_pass
from tests.support import engines
from tests.support.clock import ManualClock
from tests.support.dynamodb import STATES_KEPT, Items, MemoryDynamoDB
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
MOST_CALLS = 50_000
"""More calls than any operation of a proof makes."""


class Actor:
    """One process. Its plan sees every call that the process makes.

    Args:
        chance: seeds randomness of the process's own, so that its draws do not depend on when other processes draw.

    Attributes:
        writes: the labels of the writes so far.
        requests: the number of DynamoDB's calls so far, by name.
        calls: the number of calls so far, reads included.
        most_calls: beyond this number of calls an operation is judged to come to no end.
        patience: how many seconds its callers wait.
        dead: whether the process has died; no call may follow.
        born: the clock when the process began.
    """

    def __init__(self, world: "World", plan: Plan = let_pass, chance: int | None = None) -> None:
        self.world = world
        self.plan = plan
        self.writes: list[str] = []
        self.requests: Counter[str] = Counter()
        self.calls = 0
        self.most_calls = MOST_CALLS
        self.patience = LIFE_S - 60
        self.dead = False
        self.born = world.clock.monotonic()
        self.embedder = HashedEmbedder()
        clock = world.clock if chance is None else OwnChance(world.clock, chance)
        client, vectors = Client(self, world.dynamodb), Vectors(self, world.mirror)
        self.engine = make_engine(client, vectors, [self.embedder], clock, SETTINGS)

    def call(self, call: Call) -> Any:
        """Makes a call as the plan says."""
        if self.dead:
            self.world.broken.append(f"{call.label} after the process had died")
            raise Death
        self.calls += 1
        if self.calls > self.most_calls:
            self.dead = True
            self.world.broken.append("an operation came to no end")
            raise Death
        if call.store == "dynamodb":
            self.requests[call.name] += 1
        if call.write:
            self.writes.append(call.label)
        try:
            return self.plan(call)
        except Death:
            self.dead = True
            raise

    def ingest(self, collection_id: CollectionId, content: str, **fields: Any) -> IngestResult:
        """Ingests a content, with all the time that a call may take."""
        request = IngestInput(collection_id=collection_id, content=content.encode(), **fields)
        return self.engine.ingest.ingest(TENANT, request, self.deadline())

    def collection(self, name: str) -> Collection:
        """Creates a collection of very small chunks."""
        new = NewCollection(name=name, chunk_size=4, chunk_overlap=0)
        return self.engine.collections.create(TENANT, new)

    def deadline(self) -> float:
        """When the patience of the caller ends: well below a writer's life, as a function's time-out is."""
        return self.world.clock.monotonic() + self.patience


class WorldClock(ManualClock):
    """A clock that can be set back."""

    def state(self) -> Any:
        return self._elapsed, self.random.getstate()

    def set_back(self, state: Any) -> None:
        self._elapsed = state[0]
        self.random.setstate(state[1])


class OwnChance:
    """The world's time, with randomness of one process's own."""

    def __init__(self, clock: WorldClock, seed: int) -> None:
        self._clock = clock
        self.random = random.Random(f"process {seed}")
        self.now, self.monotonic, self.sleep = clock.now, clock.monotonic, clock.sleep


Records = Mapping[tuple[Tenant, VectorSpace, ChunkId], VectorRecord]


class Mirror:
    """A vector store beside a list of what must be in it: the list sets the store back, and tells whether the store
    lost a write."""

    def __init__(self, store: VectorStore) -> None:
        self.store = store
        self._lock = RLock()
        self.records: dict[tuple[Tenant, VectorSpace, ChunkId], VectorRecord] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def write(self, tenant: Tenant, space: VectorSpace, records: Sequence[VectorRecord]) -> None:
        with self._lock:
            self.store.write(tenant, space, records)
            self.records.update({(tenant, space, record.chunk_id): record for record in records})

    def delete(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> int:
        with self._lock:
            deleted = self.store.delete(tenant, space, chunk_ids)
            for chunk_id in chunk_ids:
                self.records.pop((tenant, space, chunk_id), None)
        return deleted

    def set_back(self, records: Records) -> None:
        """Makes the store hold these records and no others."""
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
    records: Records
    clock: Any


class World(engines.World):
    """A world in which processes can be cut, held and interleaved, and which can be set back to an earlier moment.

    Attributes:
        mirror: the vector store of the world, with a list of what must be in it.
    """

    clock: WorldClock  # one that can be set back

    def __init__(
        self,
        vectors: VectorStore | None = None,
        seed: int = 0,
        dynamodb: Any = None,
        states_kept: int = STATES_KEPT,
    ) -> None:
        clock = WorldClock(seed)
        table = dynamodb or MemoryDynamoDB(clock.monotonic, states_kept)
        super().__init__(table, vectors or EmbeddedVectorStore(None), HashedEmbedder(), clock, SETTINGS)
        self.mirror = Mirror(self.vectors)
        self._plain: Actor | None = None
        self._prints: dict[int, tuple[Any, int]] = {}

    @property
    def engine(self) -> Engine:
        """The engine of a process whose calls are all made."""
        return self.plain.engine

    @property
    def plain(self) -> Actor:
        """A process whose calls are all made."""
        if self._plain is None:
            self._plain = Actor(self)
        self._plain.writes.clear()
        self._plain.calls = 0
        return self._plain

    def collection(self, name: str = "notes", tenant: Tenant = TENANT, **fields: Any) -> Collection:
        """Creates a collection of very small chunks."""
        return super().collection(name, tenant, **{"chunk_size": 4, "chunk_overlap": 0, **fields})

    @property
    def items(self) -> Items:
        """Every row of the table, by its key."""
        items: Items = self.dynamodb.items
        return items

    def wait_in_real_time(self) -> None:
        """Makes a wait let other threads run, for a moment of real time. The world's clock does not move: no deadline
        passes because a thread had to wait."""
        self.clock.sleep = lambda seconds: time.sleep(min(seconds, 0.002))  # type: ignore[method-assign]  # of this clock

    def save(self) -> Saved:
        """The world as it is now."""
        return Saved(self.items, dict(self.mirror.records), self.clock.state())

    def set_back(self, saved: Saved) -> None:
        """Makes a saved moment the present one."""
        self.clock.set_back(saved.clock)
        self.dynamodb.watch = None
        self.dynamodb.lag = 0.0
        self.dynamodb.set_back(saved.items)
        self.mirror.set_back(saved.records)
        self.broken.clear()

    def vector_texts(self) -> dict[ChunkId, str]:
        """The texts of the vectors that were written and not deleted, by chunk."""
        return {place[2]: record.text for place, record in self.mirror.records.items()}

    def store_problems(self) -> list[str]:
        """The vector store holds what was written and not deleted, and nothing else."""
        count, right = self.vector_count(TENANT), len(self.mirror.records)
        return [] if count == right else [f"the vector store holds {count} vectors, not {right}"]

    def fingerprint(self) -> int:
        """A number that two equal states of the world share."""
        rows = 0
        for key, item in self.items.items():
            hashed = self._prints.get(id(item))
            if hashed is None or hashed[0] is not item:
                if len(self._prints) > 50_000:
                    self._prints.clear()
                hashed = self._prints[id(item)] = (item, hash((key, repr(sorted(item.items())))))
            rows ^= hashed[1]
        vectors = frozenset((place[2], record.text) for place, record in self.mirror.records.items())
        return hash((rows, vectors, self.clock.monotonic()))

    def run(self, step: Callable[[Actor], Any], plan: Plan = let_pass, chance: int | None = None) -> "Outcome":
        """Runs one process from its start to its end."""
        actor = Actor(self, plan, chance)
        try:
            return Outcome(actor, answer=step(actor))
        except Death:
            return Outcome(actor, died=True)
        except Exception as failure:  # noqa: BLE001 - the proof judges every failure
            return Outcome(actor, failure=failure)


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


def seeded(*names: object) -> random.Random:
    """Randomness that follows from names alone, whatever ran before."""
    return random.Random(" ".join(map(str, names)))

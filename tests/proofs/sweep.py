"""Proof: sweeps settle every stalled document of every tenant, and ask DynamoDB for little more than they must.

Ten documents of each tenant have stalled, each where its ingest died before another of its writes; one of them is a
version that was replaced and not yet removed. Sweeps drain them, a writer's life passes, and sweeps drain what is due
for its last cleaning. Then nothing may be left but what is served.

The least number of requests, which the sweeps' own is put beside:

- Listing: one query for each of the two ranges of each shard of the index, for each of the two drains.
- Reading: rows in batches of 100: the row of each document, with its source's or its content's where it is to leave it;
  and in the second drain the row, or the mark, of each.
- Writing: one transaction for each document that is failed or removed, since its guard is its own: a batch has no
  conditions, and one transaction for several would fail for all of them when one lives. In the second drain one guarded
  write for each failed document, which takes it out of the index.
- Deleting: the chunk rows that may have been written, in batches of 25, in both drains; and the marks.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from time import perf_counter
from typing import Any

from core.engine import Engine
from core.metadata.dynamo import GET_LIMIT, WRITE_LIMIT
from core.metadata.table import SWEEP_SHARDS
from core.model.collection import NewCollection, VectorSpace
from core.model.document import DocumentState
from core.model.errors import Unavailable
from core.model.ids import ChunkId, DocumentId
from core.model.ingest import IngestInput
from core.model.recovery import RecoveryResult
from core.model.tenant import Tenant
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.types import VectorRecord
from tests.proofs.command import Options, Report, main
from tests.proofs.harness import LIFE_S, SETTINGS, STALLED_S, Death
from tests.proofs.judge import Problem, Rows, moment_problems, quiet_problems, read_rows
from tests.support.clock import ManualClock
from tests.support.dynamodb import Items, MemoryDynamoDB
from tests.support.embedder import HashedEmbedder
from tests.support.engines import make_engine

TENANTS = 1000
EACH = 10
READS = ("get_item", "batch_get_item", "query")
SHOWN = 10
ENDLESS = 1e9
INGEST_WRITES = 7
"""Writes of one ingest: begin, three heartbeats, chunk rows, heartbeat, swap."""
RANGES = 2
OLDER_S = 600.0
SWEEPS = 4
SENTENCES = 6
"""Of four words each, two of which fill a chunk."""


class Client:
    """A client of the table that counts its requests, and dies before one of its writes.

    Attributes:
        requests: by operation.
        writes_left: writes until it dies; None: it does not.
    """

    def __init__(self, table: MemoryDynamoDB) -> None:
        self._table = table
        self.requests: Counter[str] = Counter()
        self.writes_left: int | None = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._table, name)

        def counted(**arguments: Any) -> Any:
            if name not in READS and self.writes_left is not None:
                if not self.writes_left:
                    raise Death
                self.writes_left -= 1
            self.requests[name] += 1
            return method(**arguments)

        return counted


class Texts(EmbeddedVectorStore):
    """The vectors' texts alone: nothing is searched here.

    Attributes:
        stuck: documents whose vectors cannot be deleted.
    """

    def __init__(self) -> None:
        super().__init__(None)
        self.texts: dict[ChunkId, str] = {}
        self.stuck: frozenset[DocumentId] = frozenset()

    def write(self, tenant: Tenant, space: VectorSpace, records: Sequence[VectorRecord]) -> None:
        self.texts |= {record.chunk_id: record.text for record in records}

    def delete(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> int:
        if self.stuck.intersection(one.document_id for one in chunk_ids):
            raise Unavailable("These vectors cannot be deleted")
        return sum(self.texts.pop(one, None) is not None for one in chunk_ids)


@dataclass
class World:
    """Tenants whose documents have stalled.

    Attributes:
        client: of the engine that sweeps.
    """

    tenants: int
    clock: ManualClock = field(default_factory=ManualClock)
    vectors: Texts = field(default_factory=Texts)
    table: MemoryDynamoDB = field(init=False)
    client: Client = field(init=False)
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        items: Items = {}
        makers = [Maker(self, Tenant(f"tenant-{number:04}")) for number in range(self.tenants)]
        for maker in makers:
            maker.leave_replaced()
        self.clock.advance(OLDER_S)
        for maker in makers:
            maker.leave_unfinished()
            items |= maker.table.items
        self.table = small_table(self.clock)
        self.table.set_back(items)
        self.client = Client(self.table)
        self.engine = self.engine_on(self.client)
        self.clock.advance(STALLED_S + 1)

    def engine_on(self, client: Client) -> Engine:
        return make_engine(client, self.vectors, [HashedEmbedder()], self.clock, SETTINGS)

    def drain(self) -> RecoveryResult:
        return self.engine.recovery.drain(ENDLESS)

    def rows(self) -> Rows:
        return read_rows(self.table.items)

    def problems(self) -> list[Problem]:
        """What is wrong when sweeps are through."""
        rows = self.rows()
        now = self.clock.now().strftime("%Y-%m-%dT%H:%M:%S")
        return moment_problems(rows, self.vectors.texts) + quiet_problems(rows, self.vectors.texts, now)


class Maker:
    """Leaves a tenant's rows as its ingests died. They are in a table of their own, which is small and quick."""

    def __init__(self, world: World, tenant: Tenant) -> None:
        self._world = world
        self._tenant = tenant
        self.table = small_table(world.clock)
        self._client = Client(self.table)
        self._engine = world.engine_on(self._client)
        new = NewCollection(name=str(tenant), chunk_size=8, chunk_overlap=0)
        self._collection = self._engine.collections.create(tenant, new).id

    def leave_replaced(self) -> None:
        """A version that was replaced, and is not removed yet."""
        self._engine.ingest.ingest(self._tenant, self._input(0, "replaced.txt"), ENDLESS)
        self._die(self._input(1, "replaced.txt"), INGEST_WRITES)

    def leave_unfinished(self) -> None:
        """Ingests that died before another of their writes each."""
        for number in range(EACH - 1):
            key = f"{number}.txt" if number % 3 else None
            self._die(self._input(number, key), 1 + number % (INGEST_WRITES - 1))

    def _input(self, number: int, key: str | None) -> IngestInput:
        content = (f"{self._tenant}-{number} alpha beta gamma. " * SENTENCES).encode()
        return IngestInput(collection_id=self._collection, content=content, source_key=key)

    def _die(self, given: IngestInput, writes: int) -> None:
        self._client.writes_left = writes
        try:
            self._engine.ingest.ingest(self._tenant, given, ENDLESS)
        except Death:
            pass
        else:
            raise RuntimeError(f"an ingest has no write after {writes}")
        finally:
            self._client.writes_left = None


def small_table(clock: ManualClock) -> MemoryDynamoDB:
    """A table without a past: its indexes do not lag here, and a state of so many rows is large."""
    return MemoryDynamoDB(clock.monotonic, states_kept=1)


def least(rows: Rows) -> dict[str, int]:
    """The least requests that could settle these documents, by operation."""
    failing = [head for head in rows.heads.values() if head.state.in_progress]
    removing = [head for head in rows.heads.values() if head.state == DocumentState.SUPERSEDED]
    due = len(failing) + len(removing)
    chunks = sum(len(head.chunk_ids()) for head in (*failing, *removing))
    return {
        "query": 2 * SWEEP_SHARDS * RANGES,
        "batch_get_item": ceil((due + len(failing)) / GET_LIMIT) + ceil(due / GET_LIMIT),
        "transact_write_items": due,
        "update_item": len(failing),
        "batch_write_item": ceil(chunks / WRITE_LIMIT) + ceil((chunks + len(removing)) / WRITE_LIMIT),
    }


def prove(options: Options, tell: Callable[[str], None], tenants: int = TENANTS) -> Report:
    """Stalls the documents of so many tenants, and sweeps."""
    tell("documents stall")
    world = World(tenants * options.rounds)
    before = world.rows()
    fewest = least(before)
    tell("the sweep drains them")
    start = perf_counter()
    first = world.drain()
    world.clock.advance(LIFE_S + 1)
    tell("the sweep cleans them a last time")
    second = world.drain()
    drained = perf_counter() - start
    problems = [*world.problems(), *_miscounted(world, first, second), *stuck_problems()]
    requests = sum(world.client.requests.values())
    return {
        "documents": EACH * world.tenants,
        "tenants": world.tenants,
        "failed": first.failed,
        "purged": first.purged,
        "cleaned": second.cleaned,
        "requests": requests,
        "requests_least": sum(fewest.values()),
        "requests_by_operation": dict(sorted(world.client.requests.items())),
        "least_by_operation": fewest,
        "requests_a_document": round(requests / (EACH * world.tenants), 2),
        "seconds_draining": round(drained, 1),
        "problems": len(problems),
        "broken": [f"{one.kind}: {one.detail}" for one in problems[:SHOWN]],
    }


def _miscounted(world: World, first: RecoveryResult, second: RecoveryResult) -> Iterator[Problem]:
    failed, purged = (EACH - 1) * world.tenants, world.tenants
    if first.failed != failed or first.purged != purged or first.left:
        yield Problem("other", f"the first drain is to fail {failed} and purge {purged}, and answers {first}")
    if second.cleaned != failed + purged or second.left:
        yield Problem("other", f"the second drain is to clean {failed + purged}, and answers {second}")


def stuck_problems() -> list[Problem]:
    """A sweep's worth of the oldest documents cannot be cleaned: the sweeps after it still reach the others."""
    world = World(SETTINGS.sweep_size)
    heads = world.rows().heads.values()
    oldest = [head.document_id for head in heads if head.state == DocumentState.SUPERSEDED]
    world.vectors.stuck = frozenset(oldest)
    reached = 0
    for _ in range(SWEEPS):
        with suppress(Unavailable):  # what it answers when not all could be cleaned
            reached += world.engine.recovery.sweep().failed
    expected = (SWEEPS - 1) * SETTINGS.sweep_size
    if reached == expected:
        return []
    return [Problem("left", f"{SWEEPS} sweeps reach {reached} of {expected} documents behind {len(oldest)} stuck ones")]


def held(report: Report) -> bool:
    return not report["problems"]


if __name__ == "__main__":
    main("sweep", prove, held=held)

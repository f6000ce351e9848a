"""Proof of the sweep: every stalled document of every tenant ends, and the sweeps ask DynamoDB for little more than
they must.

Ten documents of each tenant have stalled. Each ingest died before another of its writes; one document of each tenant is
a version that was replaced and not yet removed. Sweeps drain the index, a writer's life passes, and sweeps drain what
is due for its last cleaning. Then nothing may be left but what is served.

Keys of the last line:

- ``documents``, ``tenants``: the stalled documents, and whose they are.
- ``failed``, ``purged``, ``cleaned``: documents that the first drain failed, that it purged, and that the second drain
  cleaned a last time.
- ``requests``, ``requests_by_operation``: the requests of the sweeps. ``requests_a_document``: the same per document.
- ``requests_least``, ``least_by_operation``: the least number of requests that could do the same, as listed below.
- ``seconds_draining``, ``seconds``: the duration of the drains, and of the whole proof.
- ``problems``: promises that were seen broken. ``broken`` shows the first of them.

The least number of requests:

- Listing: one query for each of the two ranges of each shard of the index, for each of the two drains.
- Reading, in batches of 100: the row of each document, with the row of its source or content that the document is to
  leave; and in the second drain the row, or the mark, of each document.
- Writing: one transaction for each document that is failed or removed, since its guard is its own: a batch has no
  conditions, and one transaction for several documents would fail for all of them when one of them lives. In the second
  drain one guarded write for each failed document, which takes it out of the index.
- Deleting: the chunk rows that may have been written, in batches of 25, in both drains; and the marks.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import ceil
from time import perf_counter
from typing import Any

from core.metadata.dynamo import GET_LIMIT, WRITE_LIMIT
from core.metadata.table import SWEEP_SHARDS
from core.model.collection import NewCollection
from core.model.document import DocumentState
from core.model.errors import Unavailable
from core.model.ids import ChunkId, DocumentId
from core.model.ingest import IngestInput
from core.model.recovery import RecoveryResult
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.vectors.types import VectorRecord, VectorStore
from tests.proofs.calls import Call, Death, Plan, let_pass
from tests.proofs.command import Options, Report, main
from tests.proofs.harness import LIFE_S, SETTINGS, STALLED_S, Actor, Mirror, Outcome, World
from tests.support.books import Problem, moment_problems, quiet_problems
from tests.support.dynamodb import Items, MemoryDynamoDB
from tests.support.rows import Rows, read_rows

TENANTS = 1000
EACH = 10
SHOWN = 10
ENDLESS = 1e9
INGEST_WRITES = 7
"""Writes of one ingest to DynamoDB: begin, three heartbeats, chunk rows, heartbeat, swap."""
RANGES = 2
OLDER_S = 600.0
SWEEPS = 4
SENTENCES = 6
"""Of a document. A sentence has four words, and two sentences fill a chunk."""


class Texts(Mirror):
    """A vector store that keeps the texts of its records alone: this proof searches nothing.

    Attributes:
        stuck: documents whose vectors cannot be deleted.
    """

    def __init__(self, store: VectorStore) -> None:
        super().__init__(store)
        self.texts: dict[ChunkId, str] = {}
        self.stuck: frozenset[DocumentId] = frozenset()

    def write(self, tenant: Tenant, space: VectorSpace, records: Sequence[VectorRecord]) -> None:
        self.texts |= {record.chunk_id: record.text for record in records}

    def delete(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> int:
        if self.stuck.intersection(chunk_id.document_id for chunk_id in chunk_ids):
            raise Unavailable("These vectors cannot be deleted")
        return sum(self.texts.pop(chunk_id, None) is not None for chunk_id in chunk_ids)


class StalledTenants(World):
    """A world of tenants whose documents have stalled.

    Attributes:
        sweeper: the process that sweeps.
    """

    def __init__(self, tenants: int) -> None:
        super().__init__()
        self.mirror = self.texts = Texts(self.vectors)
        self.tenants = tenants
        items: Items = {}
        makers = [Maker(self, Tenant(f"tenant-{number:04}")) for number in range(tenants)]
        for maker in makers:
            maker.leave_replaced()
        self.clock.advance(OLDER_S)
        for maker in makers:
            maker.leave_unfinished()
            items |= maker.table.items
        self.dynamodb = self.small_table()
        self.dynamodb.set_back(items)
        self.sweeper = Actor(self)
        self.sweeper.most_calls = sys.maxsize  # it sweeps the documents of a thousand tenants
        self.clock.advance(STALLED_S + 1)

    def small_table(self) -> MemoryDynamoDB:
        """A table without a past: no index lags in this proof, and a state of so many rows is large."""
        return MemoryDynamoDB(self.clock.monotonic, states_kept=1)

    def drain(self) -> RecoveryResult:
        return self.sweeper.engine.recovery.drain(ENDLESS)

    def vector_texts(self) -> dict[ChunkId, str]:
        return self.texts.texts

    def problems(self) -> list[Problem]:
        """What is wrong when the sweeps are through."""
        rows, texts = read_rows(self.items), self.vector_texts()
        now = self.clock.now().strftime("%Y-%m-%dT%H:%M:%S")
        return moment_problems(rows, texts) + quiet_problems(rows, texts, now)


class Maker:
    """Leaves the rows of one tenant as its ingests died, in a table of the tenant's own, which is small and quick."""

    def __init__(self, world: StalledTenants, tenant: Tenant) -> None:
        self._world = world
        self._tenant = tenant
        self.table = world.small_table()
        new = NewCollection(name=str(tenant), chunk_size=8, chunk_overlap=0)
        self._collection = self._run(lambda actor: actor.engine.collections.create(tenant, new)).answer.id

    def leave_replaced(self) -> None:
        """A version that was replaced, and is not removed yet."""
        self._run(self._ingest(0, "replaced.txt"))
        self._die(self._ingest(1, "replaced.txt"), INGEST_WRITES)

    def leave_unfinished(self) -> None:
        """Ingests of which each died before another of its writes."""
        for number in range(EACH - 1):
            key = f"{number}.txt" if number % 3 else None
            self._die(self._ingest(number, key), 1 + number % (INGEST_WRITES - 1))

    def _run(self, step: Callable[[Actor], Any], plan: Plan = let_pass) -> Outcome:
        self._world.dynamodb = self.table
        return self._world.run(step, plan)

    def _ingest(self, number: int, key: str | None) -> Callable[[Actor], Any]:
        content = (f"{self._tenant}-{number} alpha beta gamma. " * SENTENCES).encode()
        request = IngestInput(collection_id=self._collection, content=content, source_key=key)
        return lambda actor: actor.engine.ingest.ingest(self._tenant, request, ENDLESS)

    def _die(self, step: Callable[[Actor], Any], writes: int) -> None:
        def plan(call: Call) -> Any:
            if call.write and call.store == "dynamodb" and sum(map(_is_of_table, call.actor.writes)) > writes:
                raise Death
            return call.perform()

        if not self._run(step, plan).died:
            raise RuntimeError(f"an ingest has no write after {writes}")


def _is_of_table(label: str) -> bool:
    return label.startswith("dynamodb.")


def least(rows: Rows) -> dict[str, int]:
    """The least requests by which sweeps could finish with these documents, by operation."""
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
    """Stalls the documents of that many tenants, and sweeps."""
    tell("documents stall")
    world = StalledTenants(tenants * options.rounds)
    fewest = least(read_rows(world.items))
    tell("the sweep drains them")
    start = perf_counter()
    first = world.drain()
    world.clock.advance(LIFE_S + 1)
    tell("the sweep cleans them a last time")
    second = world.drain()
    drained = perf_counter() - start
    problems = [*world.problems(), *_miscounted(world, first, second), *stuck_problems()]
    requests = world.sweeper.requests.total()
    return {
        "documents": EACH * world.tenants,
        "tenants": world.tenants,
        "failed": first.failed,
        "purged": first.purged,
        "cleaned": second.cleaned,
        "requests": requests,
        "requests_least": sum(fewest.values()),
        "requests_by_operation": dict(sorted(world.sweeper.requests.items())),
        "least_by_operation": fewest,
        "requests_a_document": round(requests / (EACH * world.tenants), 2),
        "seconds_draining": round(drained, 1),
        "problems": len(problems),
        "broken": [f"{problem.kind}: {problem.detail}" for problem in problems[:SHOWN]],
    }


def _miscounted(world: StalledTenants, first: RecoveryResult, second: RecoveryResult) -> Iterator[Problem]:
    failed, purged = (EACH - 1) * world.tenants, world.tenants
    if first.failed != failed or first.purged != purged or first.left:
        yield Problem("other", f"the first drain is to fail {failed} and purge {purged}, and answers {first}")
    if second.cleaned != failed + purged or second.left:
        yield Problem("other", f"the second drain is to clean {failed + purged}, and answers {second}")


def stuck_problems() -> list[Problem]:
    """As many of the oldest documents as one sweep takes cannot be cleaned: the next sweeps still reach the others."""
    world = StalledTenants(SETTINGS.sweep_size)
    heads = read_rows(world.items).heads.values()
    oldest = [head.document_id for head in heads if head.state == DocumentState.SUPERSEDED]
    world.texts.stuck = frozenset(oldest)
    reached = 0
    for _ in range(SWEEPS):
        with suppress(Unavailable):  # the answer of a sweep that could not clean everything
            reached += world.sweeper.engine.recovery.sweep().failed
    expected = (SWEEPS - 1) * SETTINGS.sweep_size
    if reached == expected:
        return []
    return [Problem("left", f"{SWEEPS} sweeps reach {reached} of {expected} documents behind {len(oldest)} stuck ones")]


def held(report: Report) -> bool:
    return not report["problems"]


if __name__ == "__main__":
    main("sweep", prove, held=held)

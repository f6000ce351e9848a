"""Proof of late writers: an ingest that wakes up after its document was taken raises IngestInterrupted, and nothing
that it wrote survives.

An ingest is held at each of its writes, while a sweep, a claim or a delete takes its document. Then the ingest goes on,
or dies right after that write, or dies after the next one. An ingest that is held for longer than a writer lives must
write nothing more at all.

Keys of the last line:

- ``cases``: every combination of an ingest, a write, a taker and an end that was tried.
- ``lost``: served or acknowledged data that is gone, or a state that is neither the one before nor the one after.
- ``mixed``: an answer or a document that holds what it must not: two versions, hidden or foreign chunks.
- ``orphans``: chunk rows, vectors and rows of documents that belong to nothing once the sweeps are through.
- ``counters_wrong``: counters of a collection that differ from a recount.
- ``empty_answers``: answers that lack chunks that are served.
- ``left``: work, marks, jobs or states that the sweeps have not finished.
- ``other``: anything else that must not happen; ``broken`` says what.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Any

from core.model.errors import IngestInterrupted
from core.model.ids import DocumentId
from tests.proofs import operations as do
from tests.proofs.calls import Call, Death
from tests.proofs.command import Options, Report, main, spread
from tests.proofs.harness import LIFE_S, STALLED_S, Actor, Outcome, World, seeded
from tests.proofs.judge import look, sweep_until_quiet
from tests.proofs.operations import Scene, newest, serving, stalled
from tests.proofs.tally import Tally, total
from tests.support.books import Problem
from tests.support.rows import read_rows

KINDS = ("lost", "mixed", "orphans", "counters_wrong", "empty_answers", "left", "other")


class End(StrEnum):
    """How the ingest ends after the write at which it was held."""

    GOES_ON = "goes on"
    DIES = "dies after that write"
    DIES_NEXT = "dies after the next write"


@dataclass(frozen=True)
class Writer:
    """An ingest that is held."""

    name: str
    prepare: Callable[[World], Scene]
    step: Callable[[Actor, Scene], Any]
    key: str | None = do.KEY
    chunks: int = 2


Taker = Callable[[World, Scene, Writer], None]


def _stall(world: World) -> None:
    world.clock.advance(STALLED_S + 60)


def sweep(world: World, scene: Scene, writer: Writer) -> None:
    _stall(world)
    world.engine.recovery.sweep()


def sweep_at_once(world: World, scene: Scene, writer: Writer) -> None:
    world.engine.recovery.sweep(timedelta(0))


def claim(world: World, scene: Scene, writer: Writer) -> None:
    """Another ingest of the same content claims the document, and runs to its end."""
    _stall(world)
    world.run(lambda actor: do.ingest("new", writer.chunks, writer.key)(actor, scene))


def claim_and_die(name: str) -> Taker:
    """Another ingest claims the document, and dies after its first write of that name."""

    def take(world: World, scene: Scene, writer: Writer) -> None:
        _stall(world)

        def plan(call: Call) -> Any:
            answer = call.perform()
            if call.label == name:
                raise Death
            return answer

        world.run(lambda actor: do.ingest("new", writer.chunks, writer.key)(actor, scene), plan)

    return take


def delete_document(world: World, scene: Scene, writer: Writer) -> None:
    document = newest(world, scene)
    world.run(lambda actor: do.delete_document(actor, Scene(scene.collection, document)))


def delete_and_sweep(world: World, scene: Scene, writer: Writer) -> None:
    delete_document(world, scene, writer)
    world.engine.recovery.sweep(timedelta(0))


def claim_die_and_sweep(world: World, scene: Scene, writer: Writer) -> None:
    claim_and_die(do.VECTORS)(world, scene, writer)
    world.engine.recovery.sweep(timedelta(0))


def delete_source(world: World, scene: Scene, writer: Writer) -> None:
    world.run(lambda actor: do.delete_source()(actor, scene))


def delete_collection(world: World, scene: Scene, writer: Writer) -> None:
    world.run(lambda actor: do.delete_collection(actor, scene))


TAKERS: dict[str, Taker] = {
    "a sweep": sweep,
    "a sweep of all that is in progress": sweep_at_once,
    "a claim": claim,
    "a claim that dies at once": claim_and_die(do.BEGIN),
    "a claim that dies after its vectors": claim_and_die(do.VECTORS),
    "a claim that dies, and a sweep": claim_die_and_sweep,
    "a delete of the document": delete_document,
    "a delete of the document, and a sweep": delete_and_sweep,
    "a delete of the source": delete_source,
    "a delete of the collection": delete_collection,
}

WRITERS = (
    Writer("first ingest", do.empty, do.ingest()),
    Writer("first ingest of many chunks", do.empty, do.ingest(chunks=do.LARGE), chunks=do.LARGE),
    Writer("replace", serving(3), do.ingest()),
    Writer("ingest without a key", do.empty, do.ingest(key=None), key=None),
    Writer("claim", stalled(serving(), do.VECTORS), do.ingest()),
    Writer("ingest that fails", serving(), do.ingest_badly),
)


@dataclass
class Hold:
    """A plan that holds an ingest at one write, lets its document be taken, and lets the ingest go on.

    Attributes:
        at: the number of the write.
        take: takes the document.
        owned: the documents in progress, with their attempts.
        taken: the documents and attempts that were no longer the ingest's when it woke up.
    """

    at: int
    end: End
    take: Callable[[], None]
    owned: Callable[[], dict[DocumentId, int]]
    taken: set[tuple[DocumentId, int]] = field(default_factory=set)
    done: bool = False

    def __call__(self, call: Call) -> Any:
        if call.write and call.number == self.at and not self.done:
            self.done = True
            before = self.owned() if self.at > 1 else {}  # the first write begins the document
            self.take()
            after = self.owned()
            self.taken = {(one, attempt) for one, attempt in before.items() if after.get(one) != attempt}
        answer = call.perform()
        if call.write and (self.end, call.number) in ((End.DIES, self.at), (End.DIES_NEXT, self.at + 1)):
            raise Death
        return answer


class Trial:
    """One ingest in a world of its own, which is held again and again from the same state."""

    def __init__(self, writer: Writer, world: World) -> None:
        self.writer = writer
        self.world = world
        self.scene = writer.prepare(world)
        self._saved = world.save()
        outcome = self._run(lambda call: call.perform())
        self.writes = list(outcome.actor.writes)

    def _run(self, plan: Callable[[Call], Any], patience: float = LIFE_S - 60) -> Outcome:
        def step(actor: Actor) -> Any:
            actor.patience = patience
            return self.writer.step(actor, self.scene)

        return self.world.run(step, plan, chance=1)

    def _owned(self) -> dict[DocumentId, int]:
        """The documents in progress, with their attempts."""
        heads = read_rows(self.world.items).heads.values()
        return {head.document_id: head.attempt for head in heads if head.state.in_progress}

    def judge(self, at: int, taker: Taker, end: End) -> list[Problem]:
        """Holds the ingest at one write, and says what is wrong when it has ended."""
        self.world.set_back(self._saved)
        hold = Hold(at, end, lambda: taker(self.world, self.scene, self.writer), self._owned)
        outcome = self._run(hold)
        problems = look(self.world)[1]
        if hold.taken and end == End.GOES_ON and not self._fails_itself(outcome):
            problems += self._interrupted(outcome)
            problems += self._nothing_left(hold.taken, "when it raised")
        problems += sweep_until_quiet(self.world)[1]
        return problems + self._nothing_left(hold.taken, "in the end")

    def _fails_itself(self, outcome: Outcome) -> bool:
        """Whether the embedder's failure came first: then the ingest raises that failure."""
        return self.writer.step is do.ingest_badly and getattr(outcome.failure, "code", "") == "unavailable"

    @staticmethod
    def _interrupted(outcome: Outcome) -> list[Problem]:
        if isinstance(outcome.failure, IngestInterrupted):
            return []
        return [Problem("other", f"not interrupted: {outcome.failure!r} {outcome.answer!r}")]

    def _nothing_left(self, taken: set[tuple[DocumentId, int]], when: str) -> list[Problem]:
        rows = read_rows(self.world.items).chunks
        left = [one for one in (*rows, *self.world.vector_texts()) if (one.document_id, one.attempt) in taken]
        return [Problem("orphans", f"{len(left)} chunks that the ingest wrote are left {when}")] if left else []

    def judge_dead(self, at: int) -> list[Problem]:
        """Holds the ingest after one write for longer than a writer lives, while the sweeps clean up for good."""
        self.world.set_back(self._saved)
        written: list[str] = []

        def plan(call: Call) -> Any:
            answer = call.perform()
            if call.write and call.number == at:
                self.world.clock.advance(LIFE_S + 1)
                sweep_until_quiet(self.world)
            elif call.write and call.number > at:
                written.append(call.label)
            return answer

        owned_before = at < len(self.writes)
        self._run(plan, patience=10 * LIFE_S)
        late = [label for label in written if not label.endswith(("delete", "batch_write_item"))]
        problems = [Problem("other", f"wrote {late} after its life")] if late and owned_before else []
        return problems + look(self.world)[1] + sweep_until_quiet(self.world)[1]

    def cases(self) -> Iterator[tuple[str, Callable[[], list[Problem]]]]:
        """The name of every case, and the function that judges it."""
        for at, label in enumerate(self.writes, 1):
            for name, taker in TAKERS.items():
                if at == 1 and taker in (delete_document, delete_and_sweep):
                    continue  # there is no document yet
                for end in End:
                    yield f"write {at} ({label}), {name}, {end}", partial(self.judge, at, taker, end)
            yield f"write {at} ({label}), held beyond its life", partial(self.judge_dead, at)


def try_writer(writer: Writer, options: Options, share: float = 1.0) -> Tally:
    """Holds one ingest at every write.

    Args:
        share: the share of all cases that is tried, drawn by the seed.
    """
    world = World(options.store(), options.seed)
    tally = Tally()
    chance = seeded("late", options.seed, writer.name)
    try:
        for name, judge in Trial(writer, world).cases():
            if share >= 1 or chance.random() < share:
                tally.add(f"{writer.name}, {name}", judge())
    finally:
        world.close()
    return tally


def _work(job: tuple[int, Options, float]) -> Tally:
    number, options, share = job
    return try_writer(WRITERS[number], options, share)


def prove(options: Options, tell: Callable[[str], None], share: float | None = None) -> Report:
    """Holds every kind of ingest at every write."""
    share = options.share() if share is None else share
    jobs = [(number, options, share) for number in range(len(WRITERS))]
    return report(list(spread(_work, jobs, options.processes, tell)))


def report(tallies: Sequence[Tally]) -> Report:
    whole = total(tallies)
    return {"cases": whole.tried, **whole.report(KINDS)}


def held(report: Report) -> bool:
    return not any(report[kind] for kind in KINDS)


if __name__ == "__main__":
    main("late_writers", prove, held=held)

"""Proof of races: whichever processes meet, in whatever order, a source is served whole in one version, and nothing is
left behind.

Pairs of processes are interleaved at every call to a store: in every schedule with one switch, and in as many with two
switches as the size allows. Then scripts try exact meetings (`tests.proofs.scripts`). Then storms draw the order of
three processes, faults, late writes, deaths and a listing that lags (`tests.proofs.storms`). Then eight threads run at
once.

Keys of the last line:

- ``pairs``: the pairs of processes, each in one setting.
- ``interleavings``: everything that was run in an order of its own: schedules of pairs, scripts and storms.
- ``scripts``, ``storms``: those among the interleavings. ``crowd``: the operations of the eight threads.
- ``living_failed``: processes that were failed or interrupted although nobody may have done so.
- ``lost``: served or acknowledged data that is gone, or a state that is neither the one before nor the one after.
- ``mixed``: an answer or a document that holds what it must not: two versions, hidden or foreign chunks.
- ``orphans``: chunk rows, vectors and rows of documents that belong to nothing once the sweeps are through.
- ``counters_wrong``: counters of a collection that differ from a recount.
- ``empty_answers``: answers that lack chunks that are served.
- ``left``: work, marks, jobs or states that the sweeps have not finished.
- ``other``: anything else that must not happen; ``broken`` says what.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from core.model.document import DocumentState
from core.model.errors import CollectionNotFound, IngestInterrupted, WeftError
from core.model.hit import RetrieveResult
from core.model.ids import ChunkId
from core.model.ingest import Deletion, IngestResult
from tests.proofs import operations as do
from tests.proofs.command import Options, Report, main, spread
from tests.proofs.harness import STALLED_S, TENANT, Actor, Outcome, Saved, World, seeded
from tests.proofs.judge import look, sweep_until_quiet
from tests.proofs.operations import Scene, failed, serving, stalled
from tests.proofs.schedule import Run, Schedule, children, interleave
from tests.proofs.scripts import SCRIPTS, try_script
from tests.proofs.storms import crowd, try_storms
from tests.proofs.tally import Tally, total
from tests.proofs.watch import Watch, question
from tests.support.books import Problem, moment_problems
from tests.support.contents import tag_of
from tests.support.rows import Rows, read_rows

KINDS = ("lost", "mixed", "orphans", "counters_wrong", "living_failed", "empty_answers", "left", "other")
STORMS_AT_ONCE = 100


@dataclass(frozen=True)
class Size:
    """The size of the proof.

    Attributes:
        pairs: the number of pairs, drawn by the seed from all pairs.
        per_pair: the number of schedules of each pair; those with one switch come first.
        storms: the number of storms.
        crowd: the number of operations of each of eight threads.
    """

    pairs: int
    per_pair: int
    storms: int
    crowd: int


ON_A_SERVER = Size(pairs=80, per_pair=4, storms=100, crowd=20)
FULL = Size(pairs=10_000, per_pair=100, storms=4000, crowd=300)


@dataclass(frozen=True)
class Part:
    """What one process does in a race.

    Attributes:
        effect: the tag of the content that the source serves once the process has succeeded; empty after a removal.
        version: the source version of the content or the removal.
    """

    name: str
    step: Callable[[Actor, Scene], Any]
    effect: str | None = None
    version: str | None = None


@dataclass(frozen=True)
class Setting:
    """A scene of races, and the processes that may take part.

    Attributes:
        versions: whether every content has a source version, so that the highest one must be served in the end.
        tick: whether time passes at some moment of the race, long enough for documents in progress to stall.
        lag: the seconds by which the listing is behind.
    """

    name: str
    prepare: Callable[[World], Scene]
    parts: Sequence[Part]
    versions: bool = False
    tick: bool = False
    lag: float = 0.0


def retrieve(top_k: int) -> Callable[[Actor, Scene], RetrieveResult]:
    return lambda actor, scene: actor.engine.retrieve(TENANT, question(scene.collection, top_k))


def pass_time(actor: Actor, scene: Scene) -> None:
    """Lets time pass: documents in progress stall, and their writers may still live."""
    actor.world.clock.advance(STALLED_S + 60)


def ingest_part(name: str, tag: str, key: str | None = do.KEY, chunks: int = 2, **fields: Any) -> Part:
    return Part(name, do.ingest(tag, chunks, key, **fields), tag, fields.get("source_version"))


SAME = ingest_part("ingest", "new")
OTHER = ingest_part("ingest of other content", "other", chunks=3)
UNCHANGED = ingest_part("ingest of what is served", "old", title="A title")
FAILING = Part("ingest that fails", do.ingest_badly)
DELETE_SOURCE = Part("delete source", do.delete_source(), "")
DELETE_DOCUMENT = Part("delete document", do.delete_document)
DELETE_COLLECTION = Part("delete collection", do.delete_collection)
SWEEP = Part("sweep", do.sweep)
UPDATE = Part("rename", do.update(name="renamed"))
DESCRIBE = Part("describe", do.update(description="what it is"))
TOP_K = {"retrieve 1": 1, "retrieve 10": 10}
RETRIEVE_1 = Part("retrieve 1", retrieve(1))
RETRIEVE_10 = Part("retrieve 10", retrieve(10))
REINDEX = Part("reindex", do.reindex)
RECONCILE = Part("reconcile", do.reconcile)

EVERYBODY = (
    SAME,
    OTHER,
    UNCHANGED,
    FAILING,
    DELETE_SOURCE,
    DELETE_DOCUMENT,
    DELETE_COLLECTION,
    SWEEP,
    UPDATE,
    DESCRIBE,
    RETRIEVE_1,
    RETRIEVE_10,
    REINDEX,
    RECONCILE,
)
SERVED_VERSION = "5"
LOOSE = ingest_part("ingest without a key", "new", None)
LOOSE_OTHER = ingest_part("ingest of other content without a key", "other", None)
UNKEYED = (LOOSE, LOOSE_OTHER, DELETE_DOCUMENT, DELETE_COLLECTION, SWEEP, RETRIEVE_1, RETRIEVE_10, REINDEX, RECONCILE)
VERSIONED = (
    ingest_part("ingest at 6", "new", source_version="6"),
    ingest_part("ingest at 7", "other", source_version="7"),
    ingest_part("ingest at 4", "older", source_version="4"),
    ingest_part("ingest of what is served at a", "old", source_version="a"),
    ingest_part("ingest of the same at 8", "new", source_version="8"),
    Part("delete source at 6", do.delete_source("6"), "", "6"),
    Part("delete source at 9", do.delete_source("9"), "", "9"),
    Part("delete source at 3", do.delete_source("3"), "", "3"),
    SWEEP,
    RETRIEVE_10,
)
LASTING = (SAME, OTHER, FAILING, DELETE_SOURCE, DELETE_DOCUMENT, DELETE_COLLECTION, SWEEP, REINDEX, RECONCILE)

SETTINGS: tuple[Setting, ...] = (
    Setting("served", serving(), EVERYBODY),
    Setting("empty", do.empty, (SAME, OTHER, FAILING, DELETE_SOURCE, DELETE_COLLECTION, SWEEP, UPDATE, RETRIEVE_1)),
    Setting("stalled", stalled(serving(), do.VECTORS), EVERYBODY),
    Setting(
        "superseded, not purged",
        do.later(do.superseded),
        (SAME, OTHER, DELETE_SOURCE, DELETE_COLLECTION, SWEEP, RECONCILE),
    ),
    Setting("failed", failed(serving()), (OTHER, DELETE_SOURCE, DELETE_DOCUMENT, DELETE_COLLECTION, SWEEP, RECONCILE)),
    Setting("failed and due", do.failed_and_due, (SAME, DELETE_SOURCE, DELETE_DOCUMENT, DELETE_COLLECTION, SWEEP)),
    Setting("removed and due", do.removed_and_due, (SAME, DELETE_SOURCE, DELETE_COLLECTION, SWEEP, RECONCILE)),
    Setting("time passes", serving(), LASTING, tick=True),
    Setting(
        "time passes, first version", do.empty, (SAME, FAILING, DELETE_SOURCE, DELETE_COLLECTION, SWEEP), tick=True
    ),
    Setting("unkeyed, empty", do.empty, tuple(one for one in UNKEYED if one is not DELETE_DOCUMENT)),
    Setting("unkeyed, served", serving(key=None), UNKEYED),
    Setting("unkeyed, stalled", stalled(do.empty, do.VECTORS, None), UNKEYED),
    Setting("unkeyed, time passes", serving(key=None), (LOOSE, DELETE_DOCUMENT, DELETE_COLLECTION, SWEEP), tick=True),
    Setting("versions", serving(source_version=SERVED_VERSION), VERSIONED, versions=True),
    Setting("listing lags", do.everything, (DELETE_COLLECTION, SWEEP, OTHER, REINDEX, RECONCILE), lag=0.4),
)


@dataclass(frozen=True)
class Pair:
    """A race: two parts, and the passing of time where the setting has it."""

    setting: Setting
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        return f"{self.setting.name}: {' | '.join(part.name for part in self.parts)}"


TICK = Part("time passes", pass_time)


def pairs() -> list[Pair]:
    """Every pair of every setting."""
    return [
        Pair(setting, (*two, TICK) if setting.tick else two)
        for setting in SETTINGS
        for two in combinations_with_replacement(setting.parts, 2)
    ]


class Race:
    """One pair in a world of its own, which is interleaved again and again from the same state.

    Attributes:
        problems: what was wrong in the last interleaving.
    """

    def __init__(self, pair: Pair, world: World) -> None:
        self.pair = pair
        self.world = world
        self.scene = pair.setting.prepare(world)
        self.saved: Saved = world.save()
        self._known_ends: dict[int, list[Problem]] = {}
        self._known_moments: set[int] = set()
        self._watch = Watch(world)
        self.problems: list[Problem] = []

    def run(self, schedule: Schedule) -> Run:
        """Runs one interleaving."""
        self.world.set_back(self.saved)
        self.world.dynamodb.lag = self.pair.setting.lag
        names = {part.name for part in self.pair.parts}
        # A delete that finds no source takes no version number: it removes the versions that it lists.
        by_source = self.scene.document is not None and not names & {DELETE_DOCUMENT.name, DELETE_COLLECTION.name}
        self._watch = Watch(self.world, by_source=by_source)
        steps = [self._watched(part) for part in self.pair.parts]
        run = interleave(self.world, steps, schedule, on_switch=self._look)
        self.world.dynamodb.lag = 0.0
        self.problems = self._watch.problems + self._told(run) + self._end()
        return run

    def _watched(self, part: Part) -> Callable[[Actor], Any]:
        def step(actor: Actor) -> Any:
            start = self._watch.moment
            answer = part.step(actor, self.scene)
            if isinstance(answer, RetrieveResult):
                self._watch.check_answer(answer, start, TOP_K[part.name])
            return answer

        return step

    def _look(self) -> None:
        """Checks the rows and vectors at a switch, as another process would find them."""
        print_of = self.world.fingerprint()
        if print_of not in self._known_moments:
            self._known_moments.add(print_of)
            rows = read_rows(self.world.items)
            self._watch.problems += moment_problems(rows, self.world.vector_texts())

    def _end(self) -> list[Problem]:
        """What is wrong once the sweeps are through. Equal ends are judged once."""
        print_of = self.world.fingerprint()
        if print_of not in self._known_ends:
            problems = look(self.world)[1] + sweep_until_quiet(self.world)[1]
            self._known_ends[print_of] = problems
        return self._known_ends[print_of]

    # -- answers of the processes -------------------------------------------------------------------

    def _told(self, run: Run) -> list[Problem]:
        problems = []
        for part, outcome in zip(self.pair.parts, run.outcomes, strict=True):
            problems += self._told_one(part, outcome)
        if self.pair.setting.versions:
            problems += self._highest(run)
        return problems

    def _told_one(self, part: Part, outcome: Outcome) -> list[Problem]:
        failure = outcome.failure
        if failure is None:
            return self._acknowledged(part, outcome)
        if isinstance(failure, IngestInterrupted) and not self._others(part) & INTERRUPTING:
            return [Problem("living_failed", f"{part.name} was interrupted by {sorted(self._others(part))}")]
        return [] if self._may_fail_so(part, failure) else [Problem("other", f"{part.name}: {failure!r}")]

    def _may_fail_so(self, part: Part, failure: Exception) -> bool:
        if not isinstance(failure, WeftError):
            return False
        if failure.code == "unavailable":
            return part is FAILING
        if failure.code == "version_conflict":
            return self._same_version(part)
        return DELETE_COLLECTION.name in self._others(part) or not isinstance(failure, CollectionNotFound)

    def _others(self, part: Part) -> set[str]:
        """The names of the other parts of the pair; a part that is there twice meets itself."""
        others = list(self.pair.parts)
        others.remove(part)
        return {other.name for other in others}

    def _same_version(self, part: Part) -> bool:
        """Whether another process, or the served document, has the version of a part."""
        return part.version == SERVED_VERSION or [other.version for other in self.pair.parts].count(part.version) > 1

    def _acknowledged(self, part: Part, outcome: Outcome) -> list[Problem]:
        """Acknowledged operations that have no effect."""
        answer = outcome.answer
        ready = isinstance(answer, IngestResult) and answer.state == DocumentState.READY
        if ready and answer.document_id not in self._watch.served:
            return [Problem("lost", f"{answer.document_id} was acknowledged and never served")]
        if isinstance(answer, Deletion) and not answer.complete:
            return [Problem("other", "a delete was not complete")]
        if part is DELETE_DOCUMENT and self.scene.document in read_rows(self.world.items).heads:
            return [Problem("lost", "a document is there whose delete was acknowledged")]
        return []

    def _highest(self, run: Run) -> list[Problem]:
        """Whether the highest of all acknowledged versions is served."""
        done = [(SERVED_VERSION, "old")]
        for part, outcome in zip(self.pair.parts, run.outcomes, strict=True):
            if part.version is None or part.effect is None or not outcome.acknowledged:
                continue
            answer = outcome.answer
            if isinstance(answer, Deletion) or answer.state == DocumentState.READY:
                done.append((part.version, part.effect))
        right = max(done)[1]
        served = served_tag(read_rows(self.world.items))
        return [] if served == right else [Problem("lost", f"serves {served!r}, the highest version is {right!r}")]


INTERRUPTING = {DELETE_SOURCE.name, DELETE_DOCUMENT.name, DELETE_COLLECTION.name, TICK.name} | {
    part.name for part in VERSIONED if part.name.startswith("delete")
}


def served_tag(rows: Rows) -> str:
    """The tag of the content that the only source serves; empty when it serves none."""
    for head in rows.served():
        return tag_of(rows.chunks[ChunkId.of(head.document_id, head.attempt, 0)])
    return ""


def try_pair(pair: Pair, options: Options, limit: int) -> Tally:
    """Interleaves one pair in at most ``limit`` schedules: few switches first, the rest drawn by the seed."""
    world = World(options.store(), options.seed)
    tally = Tally()
    try:
        race = Race(pair, world)
        for schedule in _some(race, limit, options.seed):
            tally.add(f"{pair.name}, {schedule}", race.problems)
    finally:
        world.close()
    return tally


def _some(race: Race, limit: int, seed: int) -> Iterator[Schedule]:
    """Runs schedules and yields each: first those without a switch, then with one, then with two, in an order drawn by
    the seed."""
    level = [Schedule(first) for first in range(len(race.pair.parts))]
    tried = 0
    chance = seeded("races", seed, race.pair.name)
    while level and tried < limit:
        following: list[Schedule] = []
        chance.shuffle(level)
        for schedule in level[: limit - tried]:
            run = race.run(schedule)
            tried += 1
            yield schedule
            following += list(children(schedule, run))
        level = following


def _work(job: tuple[int, Options, int]) -> Tally:
    number, options, limit = job
    return try_pair(pairs()[number], options, limit)


def _storms(job: tuple[int, Options, int]) -> Tally:
    number, options, storms = job
    return try_storms(options.store(), f"{options.seed}-{number}", storms)


def prove(options: Options, tell: Callable[[str], None], size: Size | None = None) -> Report:
    """Interleaves pairs, then runs storms, a crowd and the scripts."""
    size = size or (FULL if options.vectors == "embedded" else ON_A_SERVER)
    every = pairs()
    numbers = (
        range(len(every))
        if size.pairs >= len(every)
        else seeded("pairs", options.seed).sample(range(len(every)), size.pairs)
    )
    races = list(
        spread(_work, [(one, options, size.per_pair * options.rounds) for one in numbers], options.processes, tell)
    )
    batches = [(one, options, STORMS_AT_ONCE) for one in range(size.storms * options.rounds // STORMS_AT_ONCE)]
    storms = list(spread(_storms, batches, options.processes, tell))
    done, problems = crowd(options.store(), options.seed, size.crowd * options.rounds)
    crowded = Tally()
    crowded.add("a crowd", problems)
    scripts = [try_script(one, options) for one in SCRIPTS]
    whole = total([*races, *storms, *scripts, crowded])
    return {
        "pairs": len(numbers),
        "interleavings": whole.tried - crowded.tried,
        "scripts": len(scripts),
        "storms": sum(tally.tried for tally in storms),
        "crowd": done,
        **whole.report(KINDS),
    }


def held(report: Report) -> bool:
    return not any(report[kind] for kind in KINDS)


if __name__ == "__main__":
    main("races", prove, held=held)

"""Proof: whoever meets whom, in whatever order, a source is served whole in one version, and nothing is left behind.

Pairs of processes are interleaved at every call to a store: every schedule with one switch, and as many with two as the
size allows. Then scripts of exact meetings. Then storms: three processes at chance's mercy, with faults, late writes,
deaths, deletes that fail and a listing that lags. Then eight threads at once.
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
    """How much is tried.

    Attributes:
        pairs: of all there are, drawn by the seed.
        per_pair: schedules of a pair; all those with one switch come first.
        crowd: operations of each of eight threads.
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
        effect: the content that its source serves once it has succeeded; empty: none, after a removal.
        version: the source version that it brings.
    """

    name: str
    step: Callable[[Actor, Scene], Any]
    effect: str | None = None
    version: str | None = None


@dataclass(frozen=True)
class Setting:
    """Where a race takes place, and who takes part.

    Attributes:
        versions: everybody brings a version, the one that is served too: the highest must win.
        tick: time passes at some moment, long enough for what is in progress to stall.
        lag: the listing is behind.
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
    """Time passes: what is in progress stalls, and its writer may still live."""
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
    """A race: two parts, and time where it passes."""

    setting: Setting
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        return f"{self.setting.name}: {' | '.join(part.name for part in self.parts)}"


TICK = Part("time passes", pass_time)


def pairs() -> list[Pair]:
    """Every race."""
    found = []
    for setting in SETTINGS:
        for two in combinations_with_replacement(setting.parts, 2):
            found.append(Pair(setting, (*two, TICK) if setting.tick else two))
    return found


class Race:
    """One pair in a world of its own, interleaved again and again."""

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
        """One interleaving; what was wrong is in ``problems``."""
        self.world.set_back(self.saved)
        self.world.dynamodb.lag = self.pair.setting.lag
        names = {part.name for part in self.pair.parts}
        # A delete that finds no source takes no number: it removes what is there when it lists.
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
        """What another process would find now."""
        print_of = self.world.fingerprint()
        if print_of not in self._known_moments:
            self._known_moments.add(print_of)
            rows = read_rows(self.world.items)
            self._watch.problems += moment_problems(rows, self.world.vector_texts())

    def _end(self) -> list[Problem]:
        """What is left once all is quiet. Equal ends are looked at once."""
        print_of = self.world.fingerprint()
        if print_of not in self._known_ends:
            problems = look(self.world)[1] + sweep_until_quiet(self.world)[1]
            self._known_ends[print_of] = problems
        return self._known_ends[print_of]

    # -- what the processes were told --------------------------------------------------------------

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
        """Whom a part meets: itself too, when it is there twice."""
        others = list(self.pair.parts)
        others.remove(part)
        return {one.name for one in others}

    def _same_version(self, part: Part) -> bool:
        """Whether anybody else brings the version of a part."""
        return part.version == SERVED_VERSION or sum(one.version == part.version for one in self.pair.parts) > 1

    def _acknowledged(self, part: Part, outcome: Outcome) -> list[Problem]:
        """What was acknowledged did happen."""
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
        """Of all versions that were acknowledged, the highest is served."""
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
    """The content that the one source serves; empty: none."""
    for head in rows.served():
        return tag_of(rows.chunks[ChunkId.of(head.document_id, head.attempt, 0)])
    return ""


def try_pair(pair: Pair, options: Options, limit: int) -> Tally:
    """Interleaves one pair: at most ``limit`` schedules, those with few switches first, the rest drawn by the seed."""
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
    """Schedules, each run: first all with at most one switch, then two, in an order drawn by the seed."""
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
    """Interleaves pairs, then storms, then a crowd."""
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
        **{kind: whole.problems[kind] for kind in KINDS},
        "broken": whole.broken,
    }


def held(report: Report) -> bool:
    return not any(report[kind] for kind in KINDS)


if __name__ == "__main__":
    main("races", prove, held=held)

"""Proof of redelivery: however often, in whatever order and by however many handlers at once the bucket's events are
delivered, each version is embedded once, the last state of an object is served, and a removed object stays removed.

Objects are put, replaced, removed and purged while eight handlers work through the queue; each event is delivered one
to ten times. In half of the parts no handler dies: there the embedder must be called once for each content that was
begun. In the other half handlers die at any call to a store: no message may be acknowledged before its change has taken
effect, and after redelivery and sweeps the stores must hold the bucket's last state. Messages that can never succeed
must end among the dead letters, with a failed document that says why.

Keys of the last line:

- ``objects``, ``changes``, ``deliveries``: the objects, the changes of the bucket, and the deliveries of messages.
- ``contents``, ``embedding_calls``, ``embeddings_per_content``: where no handler died, the contents that were begun and
  not removed before they were embedded, the calls of the embedder, and their ratio.
- ``deaths``, ``dead_letters``: the handlers that died, and the messages that were received too often.
- ``revived``: objects that were removed and are served. ``twice``: contents that were begun or embedded too often.
- ``unsettled``: changes that were acknowledged and had no effect.
- ``lost``: objects whose last content is not served, and messages that vanished.
- ``orphans``, ``mixed``, ``counters_wrong``, ``empty_answers``, ``left``, ``other``: as in the proof of crashes.
"""

import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from threading import Lock
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from core.ingest.fingerprint import content_hash
from core.metadata import table
from core.metadata.rows import Head, Source
from core.model.document import DocumentState, normalize_source_version, source_id
from functions.ingest.events import REDELIVER_AFTER_S, handle_batch
from infra import template
from tests.proofs.calls import Call, Death
from tests.proofs.command import Options, Report, main, spread
from tests.proofs.harness import TENANT, Actor, World, seeded
from tests.proofs.judge import sweep_until_quiet
from tests.proofs.objects import BUCKET, Bucket, Change, Message, Queue
from tests.proofs.operations import while_embedding
from tests.proofs.tally import Tally, total
from tests.support.books import Problem
from tests.support.contents import tag_of, text
from tests.support.rows import Rows, plain, read_rows

OBJECTS = 1000
AT_ONCE = 25
HANDLERS = 8
MOST_COPIES = 10
MOST_CHANGES = 7
WAVES = 4
LARGEST_BATCH = 5
DIES = 0.35
CALLS = 40
"""About as many calls as a batch makes."""
FUNCTION_MS = 900_000
BAD, POISON = b"", "poison"
IN_PROGRESS = tuple({"S": state.value} for state in DocumentState if state.in_progress)
NAMES = ("plain.txt", "a b+c.txt", "ünï/文書 %d.txt", "100% & more=yes?.txt", "deep/er/a%2Fb#c.txt")
KINDS = (
    "lost",
    "revived",
    "orphans",
    "twice",
    "unsettled",
    "mixed",
    "counters_wrong",
    "empty_answers",
    "left",
    "other",
)


class Context(LambdaContext):
    """The context of a function's call."""

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return FUNCTION_MS


# -- the stories -----------------------------------------------------------------------------------


class Story:
    """The changes of one object.

    Attributes:
        contents: the hashes of all its contents that can be ingested, by tag.
        purged: the number of versions that were deleted for good.
        left: the number of changes that are still to come.
    """

    def __init__(self, bucket: Bucket, collection: str, number: int, chance: random.Random) -> None:
        self._bucket, self._chance, self._number = bucket, chance, number
        self.source_key = f"{number}/{NAMES[number % len(NAMES)]}"
        self.key = f"{TENANT}/{collection}/{self.source_key}"
        self.contents: dict[str, str] = {}
        self.purged = 0
        self.left = chance.randint(1, MOST_CHANGES)
        # Some objects lose versions for good, and some hold contents that no loader reads.
        self._purges, self._bad = number % 5 == 0, number % 5 == 3

    def go_on(self) -> Change:
        """Changes the object once more."""
        self.left -= 1
        versions = self._bucket.versions(self.key)
        if self._purges and versions and self._chance.random() < 0.4:
            self.purged += 1
            return self._bucket.expunge(self.key, self._chance.choice(versions[-2:]))
        if self._bucket.current(self.key) and self._chance.random() < 0.35:
            return self._bucket.remove(self.key)
        if self._bad and self._chance.random() < 0.4:
            return self._bucket.put(self.key, BAD)
        tag = f"object{self._number}version{len(self.contents)}"
        content = text(tag, self._chance.randint(1, 3)).encode()
        self.contents[tag] = content_hash(content)
        return self._bucket.put(self.key, content)


# -- the handlers ----------------------------------------------------------------------------------


@dataclass
class Seen:
    """What all handlers together did.

    Attributes:
        begun: the keys of the documents that were begun, by the hash of their content.
        removed: the keys of documents that a removal took while they were in progress.
        embedded: the calls of the embedder, by the tag of the content.
    """

    begun: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    removed: set[str] = field(default_factory=set)
    embedded: Counter[str] = field(default_factory=Counter)
    deaths: int = 0
    problems: list[Problem] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)


class Stage:
    """A world with a bucket, its queue, and handlers.

    Args:
        deadly: whether handlers die.
    """

    def __init__(self, options: Options, name: str, objects: int, *, deadly: bool) -> None:
        self.chance = seeded("redelivery", options.seed, name)
        self.world = World(options.store(), options.seed)
        self.world.wait_in_real_time()
        self.collection = self.world.collection().id
        self.bucket = Bucket(self.chance)
        queue = template.queue(template.load())
        self._visibility_s = queue.visibility_s
        self.queue = Queue(queue.max_receives)
        self.stories = [Story(self.bucket, self.collection, number, self.chance) for number in range(objects)]
        self.seen = Seen()
        self._send_what_never_succeeds()
        self._deadly = deadly
        self._handlers = count()
        self._interval = template.schedule(template.load()).interval.total_seconds()
        self._sweep_at = self.world.clock.monotonic() + self._interval

    def _send_what_never_succeeds(self) -> None:
        """Sends messages that can never succeed, and the test message of a new notification, which does succeed."""
        self.queue.send(json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": BUCKET}))
        nowhere = self.bucket.put(f"{TENANT}/looms.md", text("nowhere").encode())
        gone = self.bucket.put(f"{TENANT}/{self.collection[:-1]}0/looms.md", text("gone").encode())
        unknown = replace(self.bucket.put(f"{TENANT}/{self.collection}/unknown.txt", b""), event="ObjectTagging:Put")
        poison = self.bucket.put(f"{TENANT}/{self.collection}/{POISON}.txt", text(POISON).encode())
        self.hopeless = {change.number for change in (nowhere, unknown, poison)}
        # A change of a collection that does not exist needs no work.
        self.needs_no_work = gone.number
        for change in (nowhere, unknown, poison, gone):
            self.queue.send([change])
        self.queue.send("no notification")

    def handle(self, batch: Sequence[Message]) -> None:
        """Calls the function with one batch of messages."""
        actor = self._actor()
        event = {"Records": [message.record() for message in batch]}
        s3: Any = self.bucket
        try:
            answer = handle_batch(event, Context(), actor.engine, s3)
        except Death:
            with self.seen.lock:
                self.seen.deaths += 1
            back = {message.id: self._now() + self._visibility_s for message in batch}
        else:
            failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
            back = dict.fromkeys(failed, self._now() + REDELIVER_AFTER_S)
        with self.seen.lock:
            for message in self.queue.acknowledge(batch, back):
                self.seen.problems += self._unsettled(message)

    def _actor(self) -> Actor:
        number = next(self._handlers)
        chance = seeded("handler", self.chance.random(), number)
        dies_at = chance.randint(1, CALLS) if self._deadly and chance.random() < DIES else 0
        actor = Actor(self.world, partial(self._plan, dies_at, chance.random() < 0.5), number)
        while_embedding(actor, self._note_embedding)
        return actor

    def _note_embedding(self, texts: Sequence[str]) -> None:
        if any(POISON in text for text in texts):
            raise RuntimeError("no vector for this")
        with self.seen.lock:
            self.seen.embedded.update({tag_of(text) for text in texts})

    def _plan(self, dies_at: int, before: bool, call: Call) -> Any:
        time.sleep(0)  # another thread's turn
        dies = call.actor.calls == dies_at
        if dies and before:
            raise Death
        answer = call.perform()
        if call.name == "transact_write_items":
            self._note(call.arguments["TransactItems"])
        if dies:
            raise Death
        return answer

    def _note(self, actions: Sequence[Any]) -> None:
        """Notes the documents that a transaction begins, and those in progress that it removes."""
        for action in actions:
            for kind, write in action.items():
                place = write.get("Item") or write.get("Key") or {}
                state = place.get("state") or write.get("ExpressionAttributeValues", {}).get(":state")
                if place["sk"] != {"S": "HEAD"} or state not in IN_PROGRESS:
                    continue
                with self.seen.lock:
                    if kind == "Put":
                        self.seen.begun[place["content_hash"]["S"]].add(place["pk"]["S"])
                    elif kind == "Delete":
                        self.seen.removed.add(place["pk"]["S"])

    def _now(self) -> float:
        return self.world.clock.monotonic()

    # -- waves of deliveries ------------------------------------------------------------------------

    def wave(self, *, changing: bool) -> None:
        """Handles the visible messages by eight handlers at once, while the bucket changes."""
        tasks: list[Callable[[], Any]] = [
            partial(self.handle, batch) for batch in self.queue.receive(self._now(), LARGEST_BATCH, self.chance)
        ]
        if changing:
            tasks += [
                partial(self._change, story) for story in self.stories if story.left and self.chance.random() < 0.6
            ]
        if self.chance.random() < 0.3:
            tasks.append(self.sweep)
        self.chance.shuffle(tasks)
        with ThreadPoolExecutor(HANDLERS) as pool:
            for done in [pool.submit(task) for task in tasks]:
                done.result()

    def _change(self, story: Story) -> None:
        with self.seen.lock:
            change = story.go_on()
            # Some messages come at once, some when much has happened since.
            visible = self._now() + self.chance.choice([0, 0, 50, 5000])
            self.queue.send([change], self.chance.randint(1, MOST_COPIES), visible)

    def sweep(self) -> None:
        """Sweeps, as the schedule of the deployed function does."""
        self.world.run(lambda actor: actor.engine.recovery.sweep(), chance=next(self._handlers))

    def run(self) -> None:
        """Runs waves until the objects change no more and the queue is empty."""
        while any(story.left for story in self.stories):
            self.wave(changing=True)
            self.world.clock.advance(20)
        while self.queue.waiting:
            soonest = min(message.visible for message in self.queue.waiting)
            self._pass_until(max(soonest, self._now()))
            self.wave(changing=False)

    def _pass_until(self, moment: float) -> None:
        while self._sweep_at <= moment:
            self.world.clock.advance(max(0.0, self._sweep_at - self._now()))
            self.sweep()
            self._sweep_at += self._interval
        self.world.clock.advance(max(0.0, moment - self._now()))

    # -- acknowledged changes -----------------------------------------------------------------------

    def _unsettled(self, message: Message) -> Iterator[Problem]:
        for change in message.changes:
            trouble = self._trouble(change)
            if trouble:
                yield Problem("unsettled", f"{change.event} {change.number} of {change.key}: {trouble}")

    def _trouble(self, change: Change) -> str:
        """Why a change that was acknowledged has no effect; empty when it has."""
        if change.number == self.needs_no_work:
            return ""
        source = self._source(change.key.split("/", 2)[2])
        seen = source.seen.version if source and source.seen else ""
        place = normalize_source_version(change.sequencer.ljust(64, "0"))
        gone = change.version not in self.bucket.versions(change.key)
        if change.event.endswith(":Delete"):  # a version was deleted for good: a later change of the key may hide it
            gone = any(other.key == change.key and other.number > change.number for other in self.bucket.changes)
        if seen > place or gone:
            return ""
        if seen < place:
            return "the source has not seen it"
        if source is None or source.seen is None or source.seen.content_hash in (None, ""):
            return ""
        current = source.current
        if current is None or current.content_hash != source.seen.content_hash:
            return "another content is served"
        head = self._row(table.head(TENANT, current.document_id))
        return "" if head and Head.read(head).state == DocumentState.READY else "its document is not ready"

    def _source(self, key: str) -> Source | None:
        row = self._row(table.source(TENANT, self.collection, source_id(key)))
        return None if row is None else Source.read(row)

    def _row(self, key: table.Key) -> dict[str, Any] | None:
        item = self.world.items.get((key.pk, key.sk))
        return None if item is None else plain(item)


# -- the end ---------------------------------------------------------------------------------------


def end_problems(stage: Stage) -> Iterator[Problem]:
    """What is wrong once the sweeps are through."""
    rows, problems = sweep_until_quiet(stage.world)
    yield from problems
    served = {rows.infos[head.document_id].source_key: tag_of(rows.chunks[_first(head)]) for head in rows.ready()}
    for story in stage.stories:
        yield from _story_problems(stage, story, served.get(story.source_key), rows)


def _first(head: Head) -> Any:
    return head.served_chunk_ids()[0]


def _story_problems(stage: Stage, story: Story, served: str | None, rows: Rows) -> Iterator[Problem]:
    current = stage.bucket.current(story.key)
    if current is None:
        if served is not None:
            yield Problem("revived", f"{story.source_key} was removed, and serves {served}")
    elif current.content == BAD:
        failed = [
            head
            for head in rows.heads.values()
            if head.source_id == source_id(story.source_key) and head.state == DocumentState.FAILED and head.error
        ]
        if not failed:
            yield Problem("lost", f"{story.source_key} cannot be read, and no document says why")
    elif served != tag_of((current.content or b"").decode()):
        yield Problem("lost", f"{story.source_key} serves {served}, and not {current.content!r}")


def dead_problems(stage: Stage) -> Iterator[Problem]:
    """Messages that can never succeed must end among the dead letters, after the greatest number of receives, and leave
    a document that says why."""
    hopeless = set(stage.hopeless)
    for message in stage.queue.dead:
        numbers = {change.number for change in message.changes}
        if message.received != stage.queue.max_receives:
            yield Problem("other", f"{message.id} died after {message.received} receives")
        if numbers - hopeless and not stage.seen.deaths:
            yield Problem("lost", f"the change {numbers} is a dead letter")
    dead = {change.number for message in stage.queue.dead for change in message.changes}
    if hopeless - dead or not any(not message.changes for message in stage.queue.dead):
        yield Problem("lost", f"messages that can never succeed vanished: {hopeless - dead}")
    heads = read_rows(stage.world.items).heads.values()
    codes = {head.error.code for head in heads if head.source_id == source_id(f"{POISON}.txt") and head.error}
    if "internal_error" not in codes or codes - {"internal_error", "ingest_interrupted"}:
        yield Problem("lost", f"a content that no embedder takes failed with {codes}")


def embedding_problems(stage: Stage) -> Iterator[Problem]:
    """Where no handler dies, each content must be begun once, unless a version came back, and be embedded once each
    time, unless a removal took its document before."""
    for story in stage.stories:
        for tag, hashed in story.contents.items():
            begun, embedded = stage.seen.begun[hashed], stage.seen.embedded[tag]
            if len(begun) > 1 + story.purged:
                yield Problem("twice", f"{tag} was begun {len(begun)} times")
            if embedded > len(begun):
                yield Problem("twice", f"{tag} was begun {len(begun)} times and embedded {embedded} times")
            if len(begun) - embedded > len(begun & stage.seen.removed):
                yield Problem("lost", f"{tag} was begun and not embedded")


# -- the proof -------------------------------------------------------------------------------------


@dataclass
class Result:
    """What came of some objects. Contents are those that were begun and not taken away before they were embedded."""

    objects: int
    changes: int
    deliveries: int
    contents: int
    embedding_calls: int
    deaths: int
    dead_letters: int
    tally: Tally


@contextmanager
def hurried() -> Iterator[None]:
    """Makes threads hand over to one another often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@hurried()
def try_objects(options: Options, name: str, objects: int, *, deadly: bool) -> Result:
    """Runs some objects from their first change to the end, and says what is wrong."""
    stage = Stage(options, name, objects, deadly=deadly)
    try:
        stage.run()
        seen = stage.seen
        problems = [*seen.problems, *end_problems(stage), *dead_problems(stage)]
        if not deadly:
            problems += embedding_problems(stage)
        tally = Tally()
        tally.add(f"{name}{', handlers die' if deadly else ''}", problems)
        tags = {tag: hashed for story in stage.stories for tag, hashed in story.contents.items()}
        untouched = sum(len(seen.begun[one] & seen.removed) for tag, one in tags.items() if not seen.embedded[tag])
        return Result(
            objects,
            len(stage.bucket.changes),
            stage.queue.deliveries,
            sum(len(seen.begun[one]) for one in tags.values()) - untouched,
            sum(seen.embedded[tag] for tag in tags),
            seen.deaths,
            len(stage.queue.dead),
            tally,
        )
    finally:
        stage.world.close()


def _work(job: tuple[Options, str, int, bool]) -> Result:
    options, name, objects, deadly = job
    return try_objects(options, name, objects, deadly=deadly)


def prove(options: Options, tell: Callable[[str], None], objects: int | None = None) -> Report:
    """Runs half of the objects with handlers that live, and half with handlers of which some die."""
    objects = int(OBJECTS * options.rounds * options.share()) if objects is None else objects
    jobs = [
        (options, f"part {number}", min(AT_ONCE, objects), deadly)
        for deadly in (False, True)
        for number in range(max(1, objects // 2 // AT_ONCE))
    ]
    results = list(spread(_work, jobs, options.processes, tell))
    living = [one for one in results if not one.deaths]
    whole = total([one.tally for one in results])
    contents, calls = (sum(getattr(one, name) for one in living) for name in ("contents", "embedding_calls"))
    return {
        "objects": sum(one.objects for one in results),
        "changes": sum(one.changes for one in results),
        "deliveries": sum(one.deliveries for one in results),
        "contents": contents,
        "embedding_calls": calls,
        "embeddings_per_content": round(calls / contents, 4) if contents else 0.0,
        "deaths": sum(one.deaths for one in results),
        "dead_letters": sum(one.dead_letters for one in results),
        **whole.report(KINDS),
    }


def held(report: Report) -> bool:
    return report["embedding_calls"] == report["contents"] > 0 and not any(report[kind] for kind in KINDS)


if __name__ == "__main__":
    main("redelivery", prove, held=held)

"""Proof of isolation: whatever a tenant sends, the tenant hears nothing of another tenant, changes nothing of another
tenant's, and cannot tell another tenant's things from things that do not exist.

A thousand tenants share one table and one vector store. Each tenant makes every kind of call, with another tenant's
things in every place that takes a name, an identifier, a token, a filter or a body (`tests.proofs.intrusions`). The
proof looks at:

- every answer with its headers and the insides of its page tokens: for words, identifiers and names of other tenants;
- the status of every answer: no call may fail with a server error;
- a second call with identifiers that do not exist, wherever the call changes nothing: its answer must be the same;
- in the end, everything that each tenant had in the beginning.

Keys of the last line:

- ``tenants``, ``requests``, ``stores``, ``answers``: the tenants, the calls, the vector stores, and the answers by
  status.
- ``foreign_chunks``: words, identifiers and names of other tenants in answers.
- ``server_errors``: answers with a status of 500 or above.
- ``told_apart``: calls whose answer differs from the answer for things that do not exist.
- ``harmed``: tenants' own things that are gone or changed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from threading import Lock
from typing import Any

import boto3
from botocore.config import Config

from core.engine import Engine
from core.metadata.table import Key, tenant_of
from core.model.ids import ChunkId
from core.settings import Settings
from tests.proofs.command import Options, Report, main, spread
from tests.proofs.harness import TABLE, seeded
from tests.proofs.intrusions import FAILED, INTRUSIONS, OK, Answer, Door, Intrusion, Kind
from tests.proofs.residents import (
    IDENTIFIERS,
    Resident,
    Things,
    album,
    caller,
    calling,
    marks,
    mixed,
    move_in,
    nowhere,
    tenant_name,
)
from tests.proofs.tally import Tally, total
from tests.support.books import Problem
from tests.support.clock import ManualClock
from tests.support.dynamodb import LargeDynamoDB
from tests.support.embedder import HashedEmbedder
from tests.support.engines import REGION, make_engine
from tests.support.gateway import served

TENANTS = 1_000
REQUESTS = 100_000
"""The calls on all stores together."""
AT_ONCE = 4
SETTINGS = Settings(table=TABLE, bucket="weft-proof", embedder="none", vectors="none")


class City:
    """All tenants, in one table and one vector store.

    Attributes:
        owners: the tenant for whom an identifier was first written, told from the rows of the table, not from answers.
    """

    def __init__(self, options: Options, tenants: int) -> None:
        self.store = options.store()
        self.embedder = HashedEmbedder()
        self.owners: dict[str, str] = {}
        table = LargeDynamoDB()
        table.written = self._own
        self.engine = self._engine(table)
        chance = seeded("isolation", options.seed)
        newcomers = [(tenant_name(number), Random(chance.getrandbits(64))) for number in range(tenants)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            self.residents = list(pool.map(lambda newcomer: move_in(self.engine, *newcomer), newcomers))
        for resident in self.residents:
            things = (resident.things, resident.spare)
            words = {text for each in things for text in vars(each).values() if isinstance(text, str)}
            self.owners |= dict.fromkeys(marks(" ".join((*words, *resident.secrets))), str(resident.tenant))

    def _engine(self, table: Any) -> Engine:
        signing = Config(signature_version="s3v4")
        # The client signs URLs, and sends nothing.
        s3 = boto3.client(
            "s3", region_name=REGION, aws_access_key_id="proof", aws_secret_access_key="proof", config=signing
        )
        return make_engine(table, self.store, [self.embedder], ManualClock(), SETTINGS, s3=s3)

    def _own(self, partition: str, sort: str) -> None:
        tenant = caller() or tenant_of(Key(partition, sort))
        if tenant is not None:
            # T#tenant#kind#identifier…, or a collection's own row among those of its tenant
            parts = partition.split("#")
            identifier = parts[3] if len(parts) > 3 else sort.removeprefix("COL#")
            self.owners.setdefault(identifier, str(tenant))

    def owner(self, mark: str) -> str | None:
        """The tenant that a word, an identifier or a name belongs to."""
        if mark.lower().startswith("orgq"):
            return mark
        return self.owners.get(ChunkId(mark).document_id if mark.startswith("chk_") else mark)

    def door(self, resident: Resident) -> Door:
        return Door(self.engine, self.store, self.embedder, resident.tenant, resident.things)

    def foreign(self, resident: Resident, answer: Answer, sent: set[str]) -> list[str]:
        """Words, identifiers and names of other tenants in an answer, which the caller has not sent itself."""
        return [
            f"{mark} of {self.owner(mark)}"
            for mark in marks(answer.text)
            if self.owner(mark) != resident.tenant
            and (mark.startswith("sec") or (mark not in sent and mark not in resident.stored))
        ]


@dataclass
class Asked:
    """The answers that a thread has seen.

    Attributes:
        statuses: the number of answers with each status.
    """

    tally: Tally = field(default_factory=Tally)
    statuses: Counter[int] = field(default_factory=Counter)


class Intruder:
    """Makes the calls of one tenant."""

    def __init__(self, city: City, place: int, chance: Random, asked: Asked) -> None:
        self._city = city
        self._place = place
        self._resident = city.residents[place]
        self._chance = chance
        self._asked = asked
        self._kinds = [one for one in INTRUSIONS for _ in range(one.weight)]

    def send(self) -> None:
        """Makes one call, and judges its answer."""
        chance = self._chance
        intrusion = chance.choice(self._kinds)
        victim = self._victim()
        none = nowhere(chance)
        own = {Kind.READ: self._resident.things, Kind.WRITE: self._resident.spare, Kind.REFUSED: none}[intrusion.kind]
        real, twin = mixed(victim.things, own, none, chance)
        draws = chance.getrandbits(64)
        answer, sent = self._call(intrusion, real, draws)
        if intrusion.kind is Kind.WRITE:
            self._resident.stored |= sent
        problems = [Problem("foreign", each) for each in self._city.foreign(self._resident, answer, sent)]
        if answer.status >= FAILED:
            problems.append(Problem("server_errors", answer.text[-300:]))
        if intrusion.kind is not Kind.WRITE and real != twin:
            control, _ = self._call(intrusion, twin, draws)
            if _blank(answer, real) != _blank(control, twin):
                problems.append(Problem("told_apart", f"{answer} but nowhere: {control}"[:600]))
        self._asked.statuses[answer.status] += 1
        name = intrusion.make.__name__
        self._asked.tally.add(f"{self._resident.tenant} on {victim.tenant}, {name} {draws}", problems)

    def _victim(self) -> Resident:
        """Another tenant; often a tenant whose name is nearly the same."""
        residents, place = self._city.residents, self._place
        near = residents[max(0, place - 4) : place + 5] if self._chance.random() < 0.3 else residents
        while (other := self._chance.choice(near)) is self._resident:
            pass
        return other

    def _call(self, intrusion: Intrusion, things: Things, draws: int) -> tuple[Answer, set[str]]:
        door = self._city.door(self._resident)
        with calling(door.tenant):
            return intrusion.make(door, things, Random(draws)), door.sent


def _blank(answer: Answer, things: Things) -> tuple[int, str]:
    """An answer without the identifiers that its call was made with."""
    text = answer.text
    for name in IDENTIFIERS:
        value = getattr(things, name)
        for each in value.values() if name == "tokens" else [value]:
            text = text.replace(each, name) if each else text
    return answer.status, text


def _intrude(city: City, places: Sequence[int], seed: int, calls: int, tell: Callable[[], None]) -> Asked:
    """Makes that many calls of each of these tenants, who take turns."""
    asked = Asked()
    intruders = [Intruder(city, place, seeded("intruder", seed, place), asked) for place in places]
    for _ in range(calls):
        for intruder in intruders:
            intruder.send()
            tell()
    return asked


def try_store(options: Options, tenants: int, requests: int, tell: Callable[[str], None]) -> tuple[Tally, Counter[int]]:
    """Makes the calls of all tenants on one store."""
    city = City(options, tenants)
    lanes = [range(first, tenants, AT_ONCE) for first in range(AT_ONCE)]
    calls = -(-requests // tenants)
    told = _Told(tell, tenants * calls)
    try:
        before = _albums(city)
        with served(city.engine), ThreadPoolExecutor(AT_ONCE) as pool:
            asked = list(pool.map(lambda lane: _intrude(city, lane, options.seed, calls, told), lanes))
        tally = total([one.tally for one in asked])
        harm = Tally()
        for resident, one, other in zip(city.residents, before, _albums(city), strict=True):
            harm.add(f"{resident.tenant}", _harm(resident, one, other))
        return Tally(tally.tried, tally.problems + harm.problems, tally.broken + harm.broken), sum(
            (one.statuses for one in asked), Counter[int]()
        )
    finally:
        city.store.close()


def _albums(city: City) -> list[list[Answer]]:
    """Everything that each tenant sees of its own."""

    def look(resident: Resident) -> list[Answer]:
        return [city.door(resident).direct(view) for view in album(city.engine, resident)]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(look, city.residents))


def _harm(resident: Resident, before: list[Answer], after: list[Answer]) -> Iterator[Problem]:
    for one, other in zip(before, after, strict=True):
        if one != other:
            yield Problem("harmed", f"was {one}, is {other}"[:600])
        if other.status != OK or not all(secret in other.text for secret in resident.secrets):
            yield Problem("harmed", f"it does not see its own: {other}"[:600])


class _Told:
    """Counts the calls of all threads, and shows the progress now and then."""

    def __init__(self, tell: Callable[[str], None], whole: int) -> None:
        self._tell, self._whole, self._done, self._lock = tell, whole, 0, Lock()

    def __call__(self) -> None:
        with self._lock:
            self._done += 1
            if self._done % 500 == 0:
                self._tell(f"{self._done} of {self._whole} requests")


def _work(job: tuple[Options, int, int]) -> tuple[Tally, Counter[int]]:
    return try_store(*job, lambda line: None)


def prove(options: Options, tell: Callable[[str], None], tenants: int = TENANTS, requests: int = REQUESTS) -> Report:
    """Makes the calls of all tenants on each store."""
    stores = options.of_each_store()
    jobs = [(one, tenants, requests * options.rounds // len(stores)) for one in stores]
    found = list(spread(_work, jobs, options.processes, tell))
    whole = total([tally for tally, _ in found])
    return {
        "tenants": tenants,
        "requests": whole.tried,
        "foreign_chunks": whole.problems["foreign"],
        "server_errors": whole.problems["server_errors"],
        "told_apart": whole.problems["told_apart"],
        "harmed": whole.problems["harmed"],
        "stores": [one.vectors for one in stores],
        "answers": dict(sorted(sum((statuses for _, statuses in found), Counter[int]()).items())),
        "broken": whole.broken,
    }


def held(report: Report) -> bool:
    """Whether nothing was wrong and enough calls succeeded: a call that is refused at once shows nothing."""
    wrong = ("foreign_chunks", "server_errors", "told_apart", "harmed")
    return not any(report[name] for name in wrong) and report["answers"].get(OK, 0) > report["requests"] / 10


if __name__ == "__main__":
    main("isolation", prove, held=held, every_store=True)

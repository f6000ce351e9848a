"""Real processes, killed by SIGKILL at random moments: moto's server holds the table, and a file on disk the vectors.

Three processes take part beside the proof itself. The *server* is moto. The *nursery* has everything imported and forks
*workers*, which do one operation after another until they are killed. A worker writes into a journal what it begins,
before it begins, and what was acknowledged. After some kills the judge looks at the stores: each source must serve the
content that was acknowledged last, or one that was begun since. Each worker lives a while later than the worker before
it, so that it meets what that worker left.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from core.clock import SystemClock
from core.engine import Engine
from core.model.collection import NewCollection
from core.model.errors import Unavailable, WeftError
from core.model.ids import ChunkId, CollectionId
from core.model.ingest import IngestInput, IngestResult
from core.vectors.embedded import EmbeddedVectorStore
from infra.template import create_table
from tests.proofs.harness import LIFE_S, SETTINGS, STALLED_S, TABLE, TENANT, seeded
from tests.proofs.judge import look, summary, sweep_until_quiet
from tests.support.books import Problem
from tests.support.contents import text
from tests.support.embedder import HashedEmbedder
from tests.support.engines import World, make_engine

HOST = "127.0.0.1"
KEYS = ("one.md", "two.md")
SEPARATION_S = 2 * LIFE_S
LONGEST_WAIT_S = 0.6
SIZES = (1, 3, 30)


class LaterClock(SystemClock):
    """The machine's clock, moved ahead by some seconds."""

    def __init__(self, ahead: float) -> None:
        super().__init__()
        self.ahead = ahead

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead)

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead

    def advance(self, seconds: float) -> None:
        self.ahead += seconds


def _client(url: str) -> Any:
    retries: Any = {"mode": "standard", "max_attempts": 4}
    return boto3.client(
        "dynamodb",
        endpoint_url=url,
        region_name="eu-central-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",  # moto takes any
        config=Config(connect_timeout=2, read_timeout=5, retries=retries),
    )


def _engine(url: str, path: Path, clock: SystemClock) -> tuple[Engine, HashedEmbedder]:
    embedder = HashedEmbedder()
    return make_engine(_client(url), EmbeddedVectorStore(path), [embedder], clock, SETTINGS), embedder


# -- the worker --------------------------------------------------------------------------------------


class Worker:
    """A process that does one operation after another, and writes into a journal what it begins and what was
    acknowledged."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._engine, self._embedder = _engine(order["url"], Path(order["vectors"]), LaterClock(order["ahead"]))
        self._chance = seeded("worker", order["seed"])
        self._collection = CollectionId(order["collection"])
        self._journal = os.open(order["journal"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def run(self) -> None:
        """Works until the process is killed."""
        steps = (self._ingest, self._ingest, self._ingest, self._loose, self._fail, self._delete, self._sweep)
        for number in range(1_000_000):
            try:
                self._chance.choice((*steps, self._reindex))(f"{self._chance.getrandbits(40):010x}n{number}")
            except WeftError:
                continue

    def _write(self, what: str, name: str, effect: str | None) -> None:
        os.write(self._journal, (json.dumps([what, name, effect]) + "\n").encode())

    def _request(self, tag: str, key: str | None) -> IngestInput:
        content = text(tag, self._chance.choice(SIZES)).encode()
        return IngestInput(collection_id=self._collection, content=content, source_key=key)

    def _ingest(self, tag: str) -> None:
        key = self._chance.choice(KEYS)
        # Now and then the content of an earlier worker, so that its document is joined or claimed.
        tag = self._chance.choice([tag, "again"])
        self._write("begins", key, tag)
        result = self._engine.ingest.ingest(TENANT, self._request(tag, key), self._deadline())
        self._acknowledge(result, key, tag)

    def _loose(self, tag: str) -> None:
        self._write("begins", f"loose {tag}", tag)
        result = self._engine.ingest.ingest(TENANT, self._request(tag, None), self._deadline())
        self._acknowledge(result, f"loose {tag}", tag)

    def _acknowledge(self, result: IngestResult, name: str, tag: str) -> None:
        if result.state == "ready":
            self._write("done", name, tag)

    def _fail(self, tag: str) -> None:
        self._embedder.failure = Unavailable("The embedder does not answer")
        try:
            self._engine.ingest.ingest(TENANT, self._request(tag, KEYS[0]), self._deadline())
        finally:
            self._embedder.failure = None

    def _delete(self, tag: str) -> None:
        key = self._chance.choice(KEYS)
        self._write("begins", key, None)
        self._engine.documents.delete_source(TENANT, self._collection, key, self._deadline())
        self._write("done", key, None)

    def _sweep(self, tag: str) -> None:
        self._engine.recovery.sweep()

    def _reindex(self, tag: str) -> None:
        self._engine.reindex.start(TENANT, self._collection, self._deadline())

    def _deadline(self) -> float:
        return self._engine.clock.monotonic() + LIFE_S - 60


def nursery() -> None:
    """Forks a worker for each line of standard input, and kills it at the next line."""
    for line in sys.stdin:
        ready, tell = os.pipe()
        child = os.fork()
        if child == 0:
            worker = Worker(json.loads(line))
            os.write(tell, b"r")
            worker.run()
        os.close(tell)
        os.read(ready, 1)
        os.close(ready)
        print("ready", flush=True)
        sys.stdin.readline()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print("killed", flush=True)


def serve() -> None:
    """Runs moto's server. It answers one request at a time: in threads its transactions do not exclude one another."""
    application = DomainDispatcherApplication(create_backend_app)
    lock = threading.Lock()

    def one_at_a_time(environ: Any, start_response: Any) -> list[bytes]:
        with lock:
            return list(application(environ, start_response))

    server = make_server(HOST, 0, one_at_a_time, threaded=True, request_handler=MotoRequestHandler)
    print(f"http://{HOST}:{server.server_port}", flush=True)
    server.serve_forever()


@contextmanager
def _process(role: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.proofs.killed", role],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _say(process: "subprocess.Popen[str]", line: str) -> str:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process without pipes")
    if line:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    answer = process.stdout.readline().strip()
    if not answer:
        raise RuntimeError("a process of the proof has ended")
    return answer


# -- the judge ---------------------------------------------------------------------------------------


class RealWorld(World):
    """The world that the judge looks at: the table over HTTP, and the file of the vectors as SQLite itself reads it."""

    clock: LaterClock  # one that is ahead of the machine's

    def __init__(self, url: str, path: Path) -> None:
        super().__init__(_client(url), EmbeddedVectorStore(path), HashedEmbedder(), LaterClock(0), SETTINGS)
        self._path = path

    def vector_texts(self) -> dict[ChunkId, str]:
        with closing(sqlite3.connect(self._path)) as connection:
            rows = connection.execute("SELECT chunk_id, text FROM vectors")
            return {ChunkId(chunk_id): content for chunk_id, content in rows}

    def store_problems(self) -> list[str]:
        return []


def expected(journal: str) -> dict[str, set[str | None]]:
    """The tags that each source, or each content without a source key, may serve: the tag that was acknowledged last,
    and those that were begun since; None: nothing."""
    possible: dict[str, set[str | None]] = {}
    for line in journal.splitlines():
        what, name, effect = json.loads(line)
        if what == "done":
            possible[name] = {effect}
        else:
            possible.setdefault(name, {None}).add(effect)
    return possible


def judge(world: Any, journal: Path) -> list[Problem]:
    """Looks at the stores at once, then sweeps, and compares them with the journal of the workers."""
    problems = look(world)[1]
    rows, found = sweep_until_quiet(world)
    problems += found
    served: dict[str, str] = {}
    for _, _, key, tag, *_ in (entry for entry in summary(rows) if entry[0] == "served"):
        served[key or f"loose {tag}"] = tag
    possible = expected(journal.read_text())
    for name in possible.keys() | served.keys():
        if served.get(name) not in possible.get(name, set()):
            problems.append(Problem("lost", f"{name} serves {served.get(name)}, not one of {possible.get(name)}"))
    lines = [json.dumps(["done", name, served.get(name)]) + "\n" for name in possible]
    journal.write_text("".join(lines))
    return problems


def kill(kills: int, seed: int, tell: Callable[[str], None], *, per_judge: int = 5) -> list[Problem]:
    """Starts and kills that many workers; answers what the judge found."""
    chance = seeded("kills", seed)
    problems: list[Problem] = []
    with tempfile.TemporaryDirectory() as folder, _process("serve") as server, _process("nursery") as nurse:
        url = _say(server, "")
        create_table(_client(url), TABLE)
        world = RealWorld(url, Path(folder) / "vectors.sqlite")
        new = NewCollection(name="notes", chunk_size=4, chunk_overlap=0)
        order = {
            "url": url,
            "vectors": str(Path(folder) / "vectors.sqlite"),
            "journal": str(Path(folder) / "journal"),
            "collection": world.engine.collections.create(TENANT, new).id,
        }
        for number in range(1, kills + 1):
            world.clock.advance(chance.choice([1, STALLED_S + 60, LIFE_S + 60]))
            _kill_one(nurse, order | {"ahead": world.clock.ahead, "seed": f"{seed}-{number}"}, chance)
            if number % per_judge == 0 or number == kills:
                problems += judge(world, Path(order["journal"]))
            tell(f"{number} of {kills} kills")
        world.engine.stop()
    return problems


def _kill_one(nurse: "subprocess.Popen[str]", order: dict[str, Any], chance: random.Random) -> None:
    _say(nurse, json.dumps(order))
    time.sleep(chance.uniform(0, LONGEST_WAIT_S))  # the random moment
    _say(nurse, "now")


if __name__ == "__main__":
    {"serve": serve, "nursery": nursery}[sys.argv[1]]()

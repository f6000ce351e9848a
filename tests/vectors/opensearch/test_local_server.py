"""``python -m infra.opensearch up``: starts a real server, keeps what it holds, and leaves nothing running."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from core.model.errors import Unavailable
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.vectors.opensearch.store import OpenSearchVectorStore
from infra.opensearch import java
from infra.opensearch.server import HELP
from tests.support.clock import ManualClock
from tests.support.opensearch import ON_OPENSEARCH, store_on
from tests.support.waiting import until
from tests.vectors.records import chunk_id, direction, record

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "infra.opensearch", "up"]
SPACE = VectorSpace(model="model", dimensions=64)
TENANT = Tenant("tenant")

on_java = pytest.mark.skipif(not java.available(), reason="looks at the process of a Java on this machine")


@contextmanager
def up(data: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the URL that it prints."""
    command = [*COMMAND, "--data", str(data), "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), process.stderr and process.stderr.read()
            yield process, url
        finally:
            process.terminate()
            process.communicate()


def child_of(process: subprocess.Popen[str]) -> int:
    [child] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(child)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def a_store(url: str) -> OpenSearchVectorStore:
    return store_on(url, clock=ManualClock())


def write(store: OpenSearchVectorStore, batch: int) -> set[str]:
    """Writes ten records; which of them are there when the server says so."""
    records = [record(chunk_id(10 * batch + place), direction(10 * batch + place, 64)) for place in range(10)]
    try:
        store.write(TENANT, SPACE, records)
    except Unavailable:
        return set()
    return {one.chunk_id for one in records}


@ON_OPENSEARCH
@on_java
@pytest.mark.usefixtures("opensearch")
class TestLife:
    def test_a_node_that_is_killed_in_the_middle_of_writes_loses_nothing_that_it_said_it_had(
        self, tmp_path: Path
    ) -> None:
        # Its clock does not wait, so a write to a node that is gone fails at once.
        with ThreadPoolExecutor(4) as pool, up(tmp_path) as (process, url), closing(a_store(url)) as store:
            store.prepare(SPACE)
            batches = [pool.submit(write, store, batch) for batch in range(60)]
            until(lambda: sum(batch.done() for batch in batches) >= 20)
            os.kill(child_of(process), signal.SIGKILL)
            assert process.wait(60) == 1, "the command does not outlive its server"
            acknowledged = set().union(*(batch.result() for batch in batches))
        assert 200 <= len(acknowledged) < 600
        with up(tmp_path) as (process, url), closing(a_store(url)) as store:
            assert acknowledged <= store.present(TENANT, SPACE, [chunk_id(place) for place in range(600)])
            node = child_of(process)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, "asked to end, it ends in order"
            assert is_gone(node)

    def test_a_node_does_not_outlive_a_command_that_is_killed(self, tmp_path: Path) -> None:
        with up(tmp_path) as (process, _):
            node = child_of(process)
            process.kill()
            until(lambda: is_gone(node))


class TestMissing:
    def test_without_java_and_docker_it_says_what_to_install(self, tmp_path: Path) -> None:
        done = subprocess.run(
            COMMAND, cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert done.stderr == f"weft: {HELP}\n"

    @pytest.mark.parametrize(("ci", "said"), [("", "left out"), ("true", "1 error")])
    def test_tests_without_a_server_are_left_out_in_plain_words_and_fail_in_a_build(
        self, ci: str, said: str, tmp_path: Path
    ) -> None:
        one = "tests/vectors/opensearch/test_index.py::TestVerified"
        command = [sys.executable, "-m", "pytest", one, "-p", "no:cacheprovider", "-k", "until_the_index"]
        environ = {"PATH": str(tmp_path), "CI": ci}
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
        assert said in done.stdout.splitlines()[-2] + done.stdout.splitlines()[-1]
        assert HELP in done.stdout
        assert (done.returncode == 0) is (ci == "")

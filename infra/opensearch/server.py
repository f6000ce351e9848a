"""``running_server``: an OpenSearch for as long as a block runs."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http import HTTPStatus
from pathlib import Path

import urllib3

from infra.opensearch import docker, java
from infra.opensearch.process import Server, ServerFailed

Say = Callable[[str], None]
Runner = Callable[[Path, int, Say], AbstractContextManager[Server]]

READY_S = 180.0
HELP = (
    "OpenSearch needs a Java Development Kit 17 to 23 with Maven (Debian: apt-get install openjdk-17-jdk-headless "
    "maven), or a running Docker with its compose plugin; neither is here"
)


class ServerMissing(Exception):
    """This machine has nothing that runs OpenSearch. The text says what to install."""


def available() -> bool:
    """Whether this machine can run a server."""
    return java.available() or docker.available()


@contextmanager
def running_server(data: Path | None = None, port: int = 0, *, say: Say | None = None) -> Iterator[Server]:
    """A server for the block, that takes writes. It ends with the block, and with this process.

    Args:
        data: the folder of what it holds, made when missing; None: nothing is kept.
        port: of the loopback interface; 0: any free one.
        say: is told what takes long.

    Raises:
        ServerMissing: neither Java with Maven nor Docker is here.
        ServerFailed: it does not start; the text has its last words.
    """
    say = say or (lambda line: print(line, file=sys.stderr))
    run = _runner()
    with tempfile.TemporaryDirectory(prefix="weft-opensearch-", ignore_cleanup_errors=True) as temporary:
        folder = data or Path(temporary) / "data"
        folder.mkdir(parents=True, exist_ok=True)
        with run(folder.absolute(), port, say) as server:
            _wait_until_ready(server)
            yield server


def _runner() -> Runner:
    if java.available():
        return java.running
    if docker.available():
        return docker.running
    raise ServerMissing(HELP)


def _wait_until_ready(server: Server) -> None:
    """Returns when the node has its state back and takes writes."""
    deadline = time.monotonic() + READY_S
    with urllib3.PoolManager(timeout=5.0, retries=False) as http:
        while time.monotonic() < deadline and server.is_running():
            try:
                answer = http.request("GET", f"{server.url}/_cluster/health?wait_for_status=yellow&timeout=1s")
                if answer.status == HTTPStatus.OK:
                    return
            except urllib3.exceptions.HTTPError:
                pass
            time.sleep(0.2)
    raise ServerFailed(f"OpenSearch did not become ready within {READY_S:.0f} seconds")

"""The server from the official image, run by Docker: compose.yaml."""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from infra.opensearch.process import Server, run

COMPOSE = Path(__file__).parent / "compose.yaml"


@cache
def available() -> bool:
    """Whether Docker runs here and has its compose plugin."""
    if not shutil.which("docker"):
        return False
    checks = (["docker", "info"], ["docker", "compose", "version"])
    # A client without its daemon says so and fails.
    return all(subprocess.run(check, check=False, capture_output=True).returncode == 0 for check in checks)


@contextmanager
def running(data: Path, port: int, say: Callable[[str], None]) -> Iterator[Server]:
    """A container for the block."""
    port = port or _free_port()
    environ = {**os.environ, "WEFT_OPENSEARCH_PORT": str(port), "WEFT_OPENSEARCH_DATA": str(data)}
    compose = ["docker", "compose", "--file", str(COMPOSE), "--project-name", f"weft-opensearch-{port}"]
    # The image's user is not ours, and what was copied here is not its.
    for path in (data, *data.rglob("*")):
        if path.stat().st_uid == os.getuid():
            path.chmod(0o777)
    say("OpenSearch's image is fetched once by Docker, then started...")
    try:
        run([*compose, "up", "--detach"], "Docker cannot start OpenSearch:", environ)
        yield Server(
            f"http://127.0.0.1:{port}", lambda: bool(run([*compose, "ps", "--quiet"], "Docker fails:", environ))
        )
    finally:
        run([*compose, "down"], "Docker cannot stop OpenSearch:", environ)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

"""The server from Maven Central's artifacts, run by a Java of this machine."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from infra.opensearch.process import Server, ServerFailed, last_lines, run

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".weft" / "opensearch"
POM = HERE / "pom.xml"
JAVA_VERSIONS = range(17, 24)
"""OpenSearch 2.19 needs 17, and Java 24 has dropped the security manager that it asks for."""
HEAP = "512m"
STOP_S = 30.0


@cache
def available() -> bool:
    """Whether a Java that can run the server, and Maven, are on the path."""
    if not shutil.which("java") or not shutil.which("mvn"):
        return False
    said = subprocess.run(["java", "-version"], check=False, capture_output=True, text=True)
    version = re.search(r'version "(\d+)', said.stderr)
    return version is not None and int(version[1]) in JAVA_VERSIONS


@contextmanager
def running(data: Path, port: int, say: Callable[[str], None]) -> Iterator[Server]:
    """A node for the block."""
    library = fetched(say)
    log = data / "node.log"
    (data / "tmp").mkdir(exist_ok=True)
    # In a session of its own, Ctrl-C reaches this process alone, which then ends the node in order.
    with (
        log.open("w") as errors,
        subprocess.Popen(
            _command(library, data, port),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as node,
    ):
        try:
            bound = node.stdout.readline().strip() if node.stdout else ""
            if not bound:
                node.wait()
                raise ServerFailed(f"OpenSearch does not start. The end of {log}:\n{last_lines(log.read_text())}")
            yield Server(f"http://127.0.0.1:{bound}", lambda: node.poll() is None)
        finally:
            _stop(node)


def fetched(say: Callable[[str], None]) -> Path:
    """The folder with the server's jars, fetched when it is not there. Several processes may ask at once.

    Raises:
        ServerFailed: Maven does not get them.
    """
    # Another list of jars is another folder.
    library = CACHE / f"server-{hashlib.sha256(POM.read_bytes()).hexdigest()[:12]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            say("OpenSearch is fetched once with Maven (about 55 MB)...")
            partial = library.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            command = ["mvn", "--batch-mode", "--quiet", "--file", str(POM), f"-Dtarget={partial}", "package"]
            run(command, "Maven cannot fetch OpenSearch:")
            partial.rename(library)
    return library


def _command(library: Path, data: Path, port: int) -> list[str]:
    return [
        "java",
        f"-Xms{HEAP}",
        f"-Xmx{HEAP}",
        # For a small heap on a few processors.
        "-XX:+UseSerialGC",
        f"-Djava.io.tmpdir={data / 'tmp'}",
        "-Dlog4j2.disable.jmx=true",
        f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
        "-Dio.netty.noUnsafe=true",
        "-Djna.nosys=true",
        "-cp",
        os.pathsep.join(str(library / folder / "*") for folder in ("lib", "knn")),
        str(HERE / "OpenSearchNode.java"),
        str(data),
        str(port),
    ]


def _stop(node: subprocess.Popen[str]) -> None:
    """Asks the node to end, and makes it end."""
    node.terminate()
    try:
        node.wait(STOP_S)
    except subprocess.TimeoutExpired:
        node.kill()

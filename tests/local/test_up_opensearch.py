"""``python -m infra.local up --vectors opensearch``: a real server comes and goes with the stack."""

import os
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from infra.opensearch.server import HELP
from tests.local.calls import TEXT, ingest, new_collection, ready, retrieve, upload
from tests.local.running import ROOT, Running, command, stack
from tests.support.opensearch import ON_OPENSEARCH

OPENSEARCH = ("--vectors", "opensearch")


def vectors(running: Running) -> int:
    """How many the server itself counts."""
    answer = httpx.post(f"{running.opensearch_url}/weft-*/_count", trust_env=False)
    return int(answer.raise_for_status().json()["count"])


def found(running: Running, collection: str) -> set[str]:
    return {hit["document"]["source_key"] for hit in retrieve(running, collection)}


@ON_OPENSEARCH
@pytest.mark.usefixtures("can_run_opensearch")
def test_documents_are_found_in_opensearch_which_ends_with_the_stack_and_comes_back_with_what_a_stop_kept(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    with stack(folder, *OPENSEARCH) as running:
        components = running.call("GET", "/v1/components")
        assert (components["vector_store"]["name"], components["tenant_filter"]) == ("opensearch", "verified")
        collection = new_collection(running, "kept")
        ingest(running, collection, "a.md")
        upload(running, collection, "b.md", f"{TEXT} In the bucket.".encode())
        ready(running, collection, "b.md")
        assert found(running, collection) == {"a.md", "b.md"}
        assert vectors(running) == 2
        assert running.stop(signal.SIGINT) == 0
        with pytest.raises(httpx.ConnectError):
            vectors(running)
    with stack(folder, *OPENSEARCH) as running:
        assert found(running, collection) == {"a.md", "b.md"}
        ingest(running, collection, "c.md", "Yarn is dyed.")
        assert vectors(running) == 3
        assert running.stop(signal.SIGKILL) == -signal.SIGKILL
    # What it was given after the last stop went with the rows that speak of it.
    with stack(folder, *OPENSEARCH) as running:
        assert vectors(running) == 2
        assert found(running, collection) == {"a.md", "b.md"}
        assert not ingest(running, collection, "c.md", "Yarn is dyed.")["unchanged"]
    ran = subprocess.run(command("up", "--data", str(folder)), cwd=ROOT, check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "start with the same --vectors" in ran.stderr


def test_without_java_and_docker_it_is_one_clear_line(tmp_path: Path) -> None:
    environ = {**os.environ, "PATH": str(tmp_path)}
    up = command("up", "--port", "0", *OPENSEARCH)
    ran = subprocess.run(up, cwd=ROOT, env=environ, check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", f"weft: {HELP}\n")

"""``python -m infra.local up`` and ``token``: everything starts, works together, and ends."""

import base64
import json
import os
import re
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.local.calls import TEXT, documents, ingest, new_collection, ready, retrieve, s3, upload
from tests.local.running import ROOT, command, stack
from tests.support.waiting import until


def test_the_sweep_runs_on_its_schedule_in_the_real_handler(tmp_path: Path) -> None:
    with stack(tmp_path / "data", "--sweep-every", "0.2", environ={"POWERTOOLS_LOG_LEVEL": "INFO"}) as running:
        until(lambda: running.log.read_text().count('"message":"Swept"') >= 2)


def test_what_it_holds_survives_a_stop_whole_and_a_crash_leaves_what_the_last_stop_kept(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with stack(folder) as running:
        collection = new_collection(running, "kept")
        ingest(running, collection, "a.md")
        upload(running, collection, "b.md", f"{TEXT} In the bucket.".encode())
        ready(running, collection, "b.md")
        # What has begun when the signal comes is finished and kept.
        long = " ".join(f"Thread {number} crosses the warp." for number in range(300))
        with ThreadPoolExecutor(1) as pool:
            last = pool.submit(ingest, running, collection, "c.md", long)
            until(lambda: documents(running, collection, "c.md"))
            running.process.send_signal(signal.SIGTERM)
            assert last.result()["state"] == "ready"
        assert running.stop() == 0
    with stack(folder) as running:
        before = retrieve(running, collection)
        assert {hit["document"]["source_key"] for hit in before} == {"a.md", "b.md", "c.md"}
        assert ingest(running, collection, "a.md")["unchanged"]
        # The bucket's sequence goes on, so a newer object still replaces the one that was kept.
        kept = ready(running, collection, "b.md")
        upload(running, collection, "b.md", f"{TEXT} Newer.".encode())
        until(lambda: ready(running, collection, "b.md")["id"] != kept["id"])
        assert running.call("GET", f"/v1/collections/{collection}/stats")["document_count"] == 3
        assert running.stop(signal.SIGKILL) == -signal.SIGKILL
    with stack(folder) as running:
        assert retrieve(running, collection) == before
        assert ready(running, collection, "b.md")["id"] == kept["id"]
        assert [item["Key"] for item in s3(running).list_objects_v2(Bucket=running.bucket)["Contents"]] == [
            f"acme/{collection}/b.md"
        ]


@pytest.mark.parametrize(
    "signals", [[signal.SIGINT], [signal.SIGTERM] * 300], ids=["Ctrl-C", "one signal upon the other"]
)
def test_a_signal_ends_all_of_it_and_without_a_data_folder_nothing_is_kept(
    tmp_path: Path, signals: list[signal.Signals]
) -> None:
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command("up", "--port", "0"), cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            told = [process.stdout.readline() for _ in range(5)]
            for number in signals:
                process.send_signal(number)
            assert process.wait(60) == 0
            assert process.stdout.read() == ""
        finally:
            process.kill()
    assert re.fullmatch(r"Weft answers at http://127\.0\.0\.1:\d+\n", told[0])
    assert "infra.local token TENANT" in told[1]
    assert list(tmp_path.iterdir()) == []
    for url in re.findall(r"http://127\.0\.0\.1:\d+", "".join(told)):
        with pytest.raises(httpx.ConnectError):
            httpx.get(url, trust_env=False)


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = subprocess.run(command("up", "--port", str(port)), cwd=ROOT, check=False, capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert re.fullmatch(rf"weft: Port {port} cannot be used.*\n", ran.stderr)


@pytest.mark.parametrize("arguments", [("token", "acme"), ("up", "--port", "0")], ids=" ".join)
def test_a_wrong_setting_is_one_clear_line(arguments: tuple[str, ...]) -> None:
    environ = {**os.environ, "WEFT_INLINE_BYTES": "many"}
    ran = subprocess.run(command(*arguments), cwd=ROOT, env=environ, check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert re.fullmatch(r"weft: WEFT_INLINE_BYTES: .*\n", ran.stderr)


def test_a_token_is_alone_on_its_line_and_names_the_tenant(tmp_path: Path) -> None:
    ran = subprocess.run(
        command("token", "acme:eu", "--data", str(tmp_path), "--expires", "60"),
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]+\n", ran.stdout)
    claims = json.loads(base64.urlsafe_b64decode(ran.stdout.split(".")[1] + "=="))
    assert claims["tenant"] == "acme:eu"
    assert claims["exp"] - claims["iat"] == 60


def test_a_name_that_could_be_no_tenant_gets_no_token(tmp_path: Path) -> None:
    ran = subprocess.run(
        command("token", "a#b", "--data", str(tmp_path)), cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("weft: A tenant is")

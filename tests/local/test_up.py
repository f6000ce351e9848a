"""``python -m infra.local up`` and ``token``: everything starts, works together, and ends."""

import base64
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import httpx
import jwt
import pytest

from tests.local.running import ROOT, Json, Running, command, stack, token
from tests.local.waiting import until

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

TEXT = "# Looms\n\nA loom holds the warp threads under tension while the weft is woven in."


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with stack(tmp_path_factory.mktemp("shared") / "data") as shared:
        yield shared


def new_collection(running: Running, name: str) -> str:
    return str(running.call("POST", "/v1/collections", {"name": name})["id"])


def ingest(running: Running, collection: str, key: str, text: str = TEXT) -> Json:
    return running.call(
        "POST", f"/v1/collections/{collection}/documents", {"content": text, "source_key": key, "title": key}
    )


def upload(running: Running, collection: str, key: str, content: bytes) -> None:
    told = running.call(
        "POST",
        f"/v1/collections/{collection}/uploads",
        {"source_key": key, "source_type": "text/markdown", "title": "uploaded", "size": len(content)},
    )
    answer = httpx.request(told["method"], told["url"], headers=told["headers"], content=content, trust_env=False)
    assert answer.is_success, answer.text


def documents(running: Running, collection: str, key: str) -> list[Json]:
    return list(running.call("GET", "/v1/documents", collection_id=collection, source_key=key)["items"])


def ready(running: Running, collection: str, key: str) -> Json:
    """Waits until a source is ready."""

    def found() -> Json | None:
        return next((item for item in documents(running, collection, key) if item["state"] == "ready"), None)

    document = until(found)
    assert document is not None
    return document


def retrieve(running: Running, collection: str, query: str = "What holds the warp?") -> list[Json]:
    return list(running.call("POST", "/v1/retrieve", {"query": query, "collections": [collection]})["hits"])


def s3(running: Running) -> "S3Client":
    return boto3.Session("any", "any", region_name="us-east-1").client("s3", endpoint_url=running.aws_url)


def test_a_document_sent_over_http_is_found(running: Running) -> None:
    collection = new_collection(running, "http")
    assert ingest(running, collection, "a.md")["state"] == "ready"
    [hit] = retrieve(running, collection)
    assert hit["document"]["source_key"] == "a.md"
    assert TEXT[hit["chunk"]["start_index"] : hit["chunk"]["end_index"]] == hit["chunk"]["text"]


def test_an_uploaded_object_is_ingested_replaced_and_removed_by_the_queue_s_handler(running: Running) -> None:
    collection = new_collection(running, "bucket")
    upload(running, collection, "docs/a b.md", TEXT.encode())
    first = ready(running, collection, "docs/a b.md")
    assert first["title"] == "uploaded"
    upload(running, collection, "docs/a b.md", f"{TEXT} And more.".encode())
    until(lambda: ready(running, collection, "docs/a b.md")["id"] != first["id"])
    s3(running).delete_object(Bucket=running.bucket, Key=f"acme/{collection}/docs/a b.md")
    until(lambda: documents(running, collection, "docs/a b.md") == [])
    assert retrieve(running, collection) == []


def test_health_needs_no_token_and_everything_else_does(running: Running) -> None:
    with httpx.Client(base_url=running.url, trust_env=False) as client:
        assert client.get("/v1/health").json()["status"] == "ok"
        for path in ("/v1/collections", "/v1/unknown"):
            answer = client.get(path)
            assert (answer.status_code, answer.json()) == (401, {"message": "Unauthorized"})


def test_an_unknown_route_is_a_problem_of_the_functions(running: Running) -> None:
    answer = running.http.get("/v1/unknown")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "route_not_found"


def test_a_body_over_the_gateway_s_limit_is_refused_by_the_gateway(running: Running) -> None:
    answer = running.http.post("/v1/retrieve", content=b"x" * (11 * 1024 * 1024))
    assert (answer.status_code, answer.json()) == (413, {"message": "Request Entity Too Large"})


def test_several_requests_are_answered_at_once(running: Running) -> None:
    collection = new_collection(running, "parallel")
    body = {"documents": [{"content": f"{TEXT} {number}", "source_key": f"{number}.md"} for number in range(6)]}
    results = running.call("POST", f"/v1/collections/{collection}/documents/batch", body)["results"]
    assert [result["result"]["state"] for result in results] == ["ready"] * 6
    assert running.call("GET", f"/v1/collections/{collection}/stats")["document_count"] == 6


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
        long = " ".join(f"Thread {number} crosses the warp." for number in range(1500))
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


def test_ctrl_c_ends_all_of_it_and_without_a_data_folder_nothing_is_kept(tmp_path: Path) -> None:
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(command("up", "--port", "0"), cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(5)]
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    assert process.stdout.read() == ""
    process.stdout.close()
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


def test_a_folder_in_use_is_one_clear_line(running: Running) -> None:
    ran = subprocess.run(
        command("up", "--port", "0", "--data", str(running.key_folder)),
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1
    assert re.fullmatch(r"weft: Another stack runs on .*\n", ran.stderr)


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


def test_a_token_of_another_folder_s_key_is_refused(running: Running, tmp_path: Path) -> None:
    answer = running.http.get("/v1/collections", headers={"authorization": f"Bearer {token('acme', tmp_path)}"})
    assert answer.status_code == 401
    assert jwt.get_unverified_header(token("acme", running.key_folder))["alg"] == "RS256"

"""A running stack does what the deployed one does, through the real handlers."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import jwt
import pytest

from tests.local.calls import TEXT, documents, ingest, new_collection, ready, retrieve, s3, upload
from tests.local.running import ROOT, Running, command, stack, token
from tests.support.waiting import until

# One stack for all of them.
pytestmark = pytest.mark.xdist_group("local")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with stack(tmp_path_factory.mktemp("shared") / "data") as shared:
        yield shared


def test_a_document_sent_over_http_is_found(running: Running) -> None:
    collection = new_collection(running, "http")
    assert ingest(running, collection, "a.md")["state"] == "ready"
    [hit] = retrieve(running, collection)
    assert hit["document"]["source_key"] == "a.md"
    assert TEXT[hit["chunk"]["start_index"] : hit["chunk"]["end_index"]] == hit["chunk"]["text"]


def test_it_reranks_with_the_installed_model(running: Running) -> None:
    reranker = running.call("GET", "/v1/components")["reranker"]
    assert (reranker["name"], reranker["type"]) == ("ms-marco-MiniLM-L-12-v2-int8", "onnx")


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


def test_a_token_of_another_folder_s_key_is_refused(running: Running, tmp_path: Path) -> None:
    answer = running.http.get("/v1/collections", headers={"authorization": f"Bearer {token('acme', tmp_path)}"})
    assert answer.status_code == 401
    assert jwt.get_unverified_header(token("acme", running.key_folder))["alg"] == "RS256"

"""What the demo does over HTTP, and the stack that it does it with."""

import base64
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from infra.demo.documents import SourceText

ROOT = Path(__file__).parents[2]
STOP_S = 60.0
CALL_S = 40.0
SETTLE_S = 120.0
TRIES = 5
POLL_S = 0.2

Json = dict[str, Any]


class DemoError(Exception):
    """The demo cannot go on. The text is for whoever started it."""


class Client:
    """Calls of one tenant."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.Client(
            base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=CALL_S, trust_env=False
        )
        self._bucket = httpx.Client(timeout=CALL_S, trust_env=False)

    def call(self, method: str, path: str, body: Json | None = None, **query: str) -> Json:
        """One call and its answer. A call that the stack has no time for is made again; none of the demo's calls
        does anything twice.

        Raises:
            DemoError: the answer is a refusal.
        """
        for _ in range(TRIES):
            answer = self._http.request(method, path, json=body, params=query)
            if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
                break
            time.sleep(float(answer.headers.get("retry-after", 2)))
        if answer.is_error:
            raise DemoError(f"{method} {path} answered {answer.status_code}: {answer.text}")
        return dict(answer.json())

    def ingest(self, collection: str, text: SourceText) -> Json:
        """One document in a request's body."""
        return self.call("POST", f"/v1/collections/{collection}/documents", document_body(text))

    def ingest_batch(self, collection: str, texts: list[SourceText]) -> list[Json]:
        """Several documents in one request. What the stack had no time for is sent again alone.

        Raises:
            DemoError: one of them was refused.
        """
        body = {"documents": [document_body(text) for text in texts]}
        answers = self.call("POST", f"/v1/collections/{collection}/documents/batch", body)["results"]
        results = []
        for text, answer in zip(texts, answers, strict=True):
            error = answer.get("error")
            if error and error["status"] != HTTPStatus.SERVICE_UNAVAILABLE:
                raise DemoError(f"{text.key} was refused: {json.dumps(error)}")
            results.append(self.ingest(collection, text) if error else answer["result"])
        return results

    def upload(self, collection: str, text: SourceText) -> None:
        """Puts a document into the bucket. The queue's handler ingests it from there."""
        upload = self.call(
            "POST",
            f"/v1/collections/{collection}/uploads",
            {
                "source_key": text.key,
                "source_type": text.media_type,
                "title": text.title,
                "size": len(text.content),
            },
        )
        answer = self._bucket.request(upload["method"], upload["url"], headers=upload["headers"], content=text.content)
        if answer.is_error:
            raise DemoError(f"The bucket answered {answer.status_code} to {text.key}")

    def wait_for(self, collection: str, text: SourceText) -> None:
        """Returns when an uploaded document is ready.

        Raises:
            DemoError: it failed, or took too long.
        """
        ends = time.monotonic() + SETTLE_S
        while time.monotonic() < ends:
            found = self.call("GET", "/v1/documents", collection_id=collection, source_key=text.key)["items"]
            states = {document["state"]: document for document in found}
            if "ready" in states:
                return
            if "failed" in states:
                raise DemoError(f"{text.key} failed: {states['failed']['error']['detail']}")
            time.sleep(POLL_S)
        raise DemoError(f"{text.key} was not ingested in {SETTLE_S:.0f} s")


def document_body(text: SourceText) -> Json:
    """A document as a request's body has it."""
    return {
        "content_base64": base64.b64encode(text.content).decode(),
        "source_key": text.key,
        "source_type": text.media_type,
        "title": text.title,
        "source": text.key,
    }


@contextmanager
def local_stack(tenant: str, vectors: str) -> Iterator[Client]:
    """A stack of its own, on a free port, until the block ends.

    Args:
        vectors: its vector store.

    Raises:
        DemoError: it did not start.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "infra.local", "up", "--port", "0", "--json", "--vectors", vectors],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            yield Client(_where(process, log), _token(tenant))
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout:
                process.stdout.close()


def _where(process: "subprocess.Popen[str]", log: Any) -> str:
    # The line comes when everything answers; the pipe closes when the process ends before.
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        log.seek(0)
        raise DemoError(f"The local stack did not start:\n{log.read().strip()}")
    return str(json.loads(line)["url"])


def _token(tenant: str) -> str:
    command = [sys.executable, "-m", "infra.local", "token", tenant]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()

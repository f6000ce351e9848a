"""A proxy that makes OpenSearch behave like a NextGen collection of OpenSearch Serverless.

After Amazon's "Supported operations and plugins in Amazon OpenSearch Serverless" and "Working with vector search
collections". It knows documents, searches and indexes, and has no refresh: a write is seen by searches after some
more of them, while a read by ID sees it at once.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import urllib3

from tests.support.loopback import Answer, Request, serving

LATER = 2
"""The first search after a write does not see it; this one does."""


def _error(status: int, kind: str, reason: str) -> Answer:
    error = {"type": kind, "reason": reason, "root_cause": [{"type": kind, "reason": reason}]}
    return Answer(status, json.dumps({"error": error, "status": status}).encode())


class NextGen:
    """What the proxy does, and what a test may change.

    Attributes:
        url: where it answers.
        takes_ids: false for a collection of the older generation.
        refreshes: false: no write is ever searchable.
        requests: the method and the path of each.
    """

    def __init__(self, server: str) -> None:
        self.url = ""
        self.takes_ids = True
        self.refreshes = True
        self.requests: list[tuple[str, str]] = []
        self._server = server
        self._http = urllib3.PoolManager(maxsize=32, retries=False, timeout=30.0)
        self._lock = threading.Lock()
        self._searches: dict[str, int] = {}

    def close(self) -> None:
        self._http.clear()

    def answer(self, request: Request) -> Answer:
        target = urlsplit(request.target)
        self.requests.append((request.method, target.path))
        parts = target.path.strip("/").split("/")
        match request.method, parts:
            case "PUT", [name] if not name.startswith("_"):
                return self._create(request)
            case "GET" | "HEAD" | "DELETE", [name] if name and not name.startswith("_"):
                return self._forward(request)
            case "GET" | "HEAD", [_, "_mapping" | "_settings"] | [_, "_doc", _]:
                return self._forward(request)
            case "POST", [_, "_bulk"]:
                return self._bulk(request, parse_qs(target.query))
            case "POST" | "GET", [name, "_search"]:
                return self._search(request, name)
        return _error(404, "invalid_request", "not supported")

    def _create(self, request: Request) -> Answer:
        body = json.loads(request.body)
        settings = body.get("settings", {}).get("index", {})
        vector = body["mappings"]["properties"]["vector"]
        if settings != {"knn": True}:
            return _error(400, "illegal_argument_exception", "unsupported settings")
        if vector.get("method", {}).get("engine", "faiss") != "faiss":
            return _error(400, "mapper_parsing_exception", "unsupported engine")
        if vector.pop("compression_level", "32x") != "1x":
            return _error(400, "test", "this server has no native library to compress with")
        # What this server needs to search without its native library, and a refresh only when it is asked for.
        settings |= {"knn.advanced.approximate_threshold": -1, "refresh_interval": "-1", "number_of_replicas": 0}
        return self._forward(request._replace(body=json.dumps(body).encode()))

    def _bulk(self, request: Request, params: dict[str, list[str]]) -> Answer:
        if "refresh" in params:
            return _error(400, "illegal_argument_exception", "refresh is not supported")
        lines = request.body.splitlines()
        if not self.takes_ids and any(b'"_id"' in line for line in lines):
            return _error(400, "illegal_argument_exception", "Document ID is not supported in create/index operation")
        answer = self._forward(request)
        with self._lock:
            self._searches[urlsplit(request.target).path.split("/")[1]] = 0
        return answer

    def _search(self, request: Request, name: str) -> Answer:
        with self._lock:
            self._searches[name] = self._searches.get(name, 0) + 1
            due = self._searches[name] == LATER and self.refreshes
        if due:
            self._http.request("POST", f"{self._server}/{name}/_refresh")
        answer = self._forward(request)
        body = json.loads(answer.body)
        if "vector" not in _included(json.loads(request.body or b"{}")):
            for hit in body.get("hits", {}).get("hits", []):
                hit.get("_source", {}).pop("vector", None)
        return answer._replace(body=json.dumps(body).encode())

    def _forward(self, request: Request) -> Answer:
        answer = self._http.request(
            request.method,
            self._server + request.target,
            body=request.body or None,
            headers={"content-type": "application/json"},
        )
        return Answer(answer.status, answer.data, answer.headers["content-type"])


def _included(body: dict[str, Any]) -> list[str]:
    source = body.get("_source")
    return source if isinstance(source, list) else []


@contextmanager
def nextgen(server: str) -> Iterator[NextGen]:
    """The proxy in front of a server."""
    proxy = NextGen(server)
    with serving(proxy.answer) as url:
        proxy.url = url
        yield proxy
    proxy.close()

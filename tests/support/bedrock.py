"""Titan Text Embeddings V2 and the Rerank operation on loopback, as far as their documentation says: shapes, not
meaning."""

import json
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import unquote

import boto3
from botocore.config import Config

from core.reranking.bedrock import RerankingClient
from tests.support.embedder import HashedEmbedder
from tests.support.reranker import word_overlap

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

Server = TypeVar("Server", bound=ThreadingHTTPServer)

RERANK_PAGE = 3
"""Results of one answer: few, so that there are several pages."""


class TitanServer(ThreadingHTTPServer):
    """Answers with vectors of hashed words.

    Attributes:
        paths: of the requests.
        gathering: when set, no request is answered before that many wait together.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.paths: list[str] = []
        self.gathering: threading.Barrier | None = None


class _Handler(BaseHTTPRequestHandler):
    server: TitanServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.paths.append(unquote(self.path))
        if self.server.gathering is not None:
            self.server.gathering.wait(timeout=10)
        model = HashedEmbedder(dimensions=request["dimensions"], max_tokens=8192)
        embedded = model.embed([request["inputText"]])
        answer = {"embedding": embedded.vectors[0], "inputTextTokenCount": embedded.input_tokens}
        send_json(self, answer)

    def log_message(self, format: str, *args: object) -> None:
        return


class RerankServer(ThreadingHTTPServer):
    """Answers with the share of the query's words that a text has, best first and in pages."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _RerankHandler)


class _RerankHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [source["inlineDocumentSource"]["textDocument"]["text"] for source in request["sources"]]
        [query] = request["queries"]
        scores = [word_overlap(query["textQuery"]["text"], text) for text in texts]
        best_first = sorted(range(len(texts)), key=lambda index: -scores[index])
        start = int(request.get("nextToken", 0))
        page = best_first[start : start + RERANK_PAGE]
        answer: dict[str, Any] = {"results": [{"index": index, "relevanceScore": scores[index]} for index in page]}
        if start + RERANK_PAGE < len(texts):
            answer["nextToken"] = str(start + RERANK_PAGE)
        send_json(self, answer)

    def log_message(self, format: str, *args: object) -> None:
        return


def send_json(handler: BaseHTTPRequestHandler, answer: dict[str, Any]) -> None:
    """Answers with 200 and a body."""
    body = json.dumps(answer).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """The server, answering until the block ends."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def titan_server() -> AbstractContextManager[TitanServer]:
    """A server on a free port."""
    return running(TitanServer())


def rerank_server() -> AbstractContextManager[RerankServer]:
    """A server on a free port."""
    return running(RerankServer())


@contextmanager
def loopback_client(port: int) -> "Iterator[BedrockRuntimeClient]":
    """A client that reaches loopback alone, and tries once."""
    client = boto3.client("bedrock-runtime", **_loopback(port))
    try:
        yield client
    finally:
        client.close()


@contextmanager
def loopback_rerank_client(port: int) -> Iterator[RerankingClient]:
    """As ``loopback_client``, for reranking."""
    client: Any = boto3.client("bedrock-agent-runtime", **_loopback(port))
    try:
        yield cast(RerankingClient, client)
    finally:
        client.close()


def _loopback(port: int) -> dict[str, Any]:
    return {
        "endpoint_url": f"http://127.0.0.1:{port}",
        "region_name": "us-east-1",
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        "config": Config(retries={"total_max_attempts": 1}, max_pool_connections=16, proxies={}),
    }

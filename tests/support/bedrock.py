"""Titan Text Embeddings V2 on loopback, as far as its documentation says: shapes, not meaning."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import unquote

import boto3
from botocore.config import Config

from tests.support.embedder import HashedEmbedder

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient


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
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def titan_server() -> Iterator[TitanServer]:
    """A server on a free port."""
    with TitanServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def loopback_client(port: int) -> "Iterator[BedrockRuntimeClient]":
    """A client that reaches loopback alone, and tries once."""
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}, max_pool_connections=16, proxies={}),
    )
    try:
        yield client
    finally:
        client.close()

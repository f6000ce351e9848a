"""HTTP servers of a few lines on the loopback interface."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Request(NamedTuple):
    method: str
    target: str
    body: bytes


class Answer(NamedTuple):
    status: int
    body: bytes = b"{}"
    content_type: str = "application/json"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Many stores of one test connect at once.
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what some tests are about."""


@contextmanager
def serving(answer: Callable[[Request], Answer], server_class: type[ThreadingHTTPServer] = _Server) -> Iterator[str]:
    """A server that answers every request so; its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, content, content_type = answer(Request(self.command, self.path, body))
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _do  # noqa: N815 - the library calls these names

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with server_class(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()

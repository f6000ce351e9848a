"""HTTP servers of a few lines on the loopback interface."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Request(NamedTuple):
    """``headers``: by their names in lower case."""

    method: str
    target: str
    body: bytes
    headers: Mapping[str, str]


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
def serving(answer: Callable[[Request], Answer], *, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server that answers every request so; its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, content, content_type = answer(Request(self.command, self.path, body, headers))
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        # The library calls these names.
        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _do  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with _Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            # The handshake is left to the connection's own thread.
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()

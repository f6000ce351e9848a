"""moto and ministack as processes of their own, so that their work takes no time from the process that is tested.

Run as a module, this is moto's server. It ends with its standard input, so that it cannot outlive the process that
started it.
"""

import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

HOST = "127.0.0.1"
MINISTACK = Path(__file__).parents[2] / ".venv-ministack" / "bin" / "ministack"


@contextmanager
def moto_process() -> Iterator[str]:
    """moto's server, empty, on a free port; its URL.

    Raises:
        RuntimeError: it did not start.
    """
    command = [sys.executable, "-m", "tests.support.double"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            if not port:
                raise RuntimeError("moto's server did not start")
            yield f"http://{HOST}:{port}"
        finally:
            process.terminate()


@contextmanager
def ministack_process() -> Iterator[str]:
    """ministack, empty, on a free port; its URL.

    Raises:
        RuntimeError: it is not installed, or did not start.
    """
    if not MINISTACK.exists():
        raise RuntimeError("ministack is not installed: make .venv-ministack/.done")
    with tempfile.TemporaryDirectory() as folder:
        port = _free_port()
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "TMPDIR": folder,
            "BIND_HOST": HOST,
            "GATEWAY_PORT": str(port),
            "SERVICES": "dynamodb",
            "LOG_LEVEL": "ERROR",
        }
        with subprocess.Popen([MINISTACK], env=environ, stdout=subprocess.DEVNULL) as process:
            try:
                url = f"http://{HOST}:{port}"
                while not _answers(f"{url}/_ministack/health"):
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(0.05)
                        raise RuntimeError("ministack did not start")
                yield url
            finally:
                process.terminate()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        port: int = found.getsockname()[1]
        return port


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.TransportError:
        return False


def _serve() -> None:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server(HOST, 0, application, threaded=True, request_handler=MotoRequestHandler)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    _serve()

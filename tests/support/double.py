"""moto's server as a process of its own: a DynamoDB whose work takes nothing from the process that is measured.

Run as a module it serves until its standard input ends, so that it cannot outlive who started it.
"""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

HOST = "127.0.0.1"


@contextmanager
def moto_process() -> Iterator[str]:
    """An empty server on a free port; its URL.

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


def _serve() -> None:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server(HOST, 0, application, threaded=True, request_handler=MotoRequestHandler)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    _serve()

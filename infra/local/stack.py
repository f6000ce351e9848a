"""The whole stack in this process: services, functions, the API, the queue and the schedule."""

import logging
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from core.reranking.models import PACKAGED
from core.settings import Settings
from infra import template
from infra.local import snapshot
from infra.local.authorizer import Authorizer, DevelopmentKey
from infra.local.aws import HOST, AwsServer, lead_clients_to
from infra.local.function import LambdaFunction
from infra.local.gateway import Gateway, Route, Router
from infra.local.names import BUCKET, QUEUE, TABLE
from infra.local.workers import QueueWorker, ScheduleWorker, ServerWatch, Worker
from infra.opensearch.process import Server, ServerFailed
from infra.opensearch.server import ServerMissing, running_server

GRACE_S = 30.0
"""How long what has begun may take to end: as long as the API waits for a function."""
VECTORS = {"embedded": "vectors.sqlite3", "opensearch": "opensearch"}
"""Each vector store's file or folder."""

logger = logging.getLogger(__name__)


class StartError(Exception):
    """The stack cannot start. The text says what to do."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says.

    Attributes:
        port: of the API; 0: any free one.
        key_folder: where the development key is.
        data: where a snapshot is kept; None: nothing survives.
        vectors: the vector store: ``embedded``, or ``opensearch``, which is started with the stack.
        sweep_every_s: seconds between sweeps; 0: as template.yaml has it.
    """

    port: int
    key_folder: Path
    data: Path | None
    vectors: str
    sweep_every_s: float


class Stack:
    """Everything, from ``start`` to ``stop``. One a process, since functions read the process's environment.

    Args:
        options: see there.
        on_failure: called when a part ends by itself.

    Attributes:
        ended: after ``stop``: whether no thread of a function is left.
    """

    def __init__(self, options: Options, on_failure: Callable[[], None]) -> None:
        self._options = options
        self._on_failure = on_failure
        self._opened = ExitStack()
        self._search = ExitStack()
        self._opensearch: Server | None = None
        self.ended = True
        self._template = template.load()
        self._functions: dict[str, LambdaFunction] = {}
        self._workers: list[Worker] = []

    def start(self) -> None:
        """Returns when the API answers.

        Raises:
            StartError: the port or the data folder is in use, the snapshot cannot be read, or OpenSearch does not
                start.
            ConfigurationError: a setting of the environment is wrong.
            KeyUnusable: the development key cannot be used.
        """
        with ExitStack() as opened:
            self._socket = _listen(self._options.port)
            opened.callback(self._socket.close)
            self._folder = self._open_folder()
            if self._folder:
                opened.callback(self._folder.close)
            # Another user's, where Docker runs OpenSearch.
            folder = tempfile.TemporaryDirectory(prefix="weft-", ignore_cleanup_errors=True)
            self._vectors = Path(opened.enter_context(folder)) / VECTORS[self._options.vectors]
            self._start_services(opened)
            if self._options.vectors == "opensearch":
                self._start_opensearch(opened)
            self._load_functions()
            self._start_api()
            self._start_workers()
            self._opened = opened.pop_all()

    @property
    def url(self) -> str:
        """Where the API answers."""
        return f"http://{HOST}:{self._socket.getsockname()[1]}"

    @property
    def aws_url(self) -> str:
        """Where DynamoDB, S3 and SQS answer."""
        return self._aws.url

    @property
    def opensearch_url(self) -> str | None:
        """Where OpenSearch answers; None: it is not used."""
        return self._opensearch.url if self._opensearch else None

    def stop(self) -> list[str]:
        """Ends everything; what has begun may end first, within ``GRACE_S``.

        Returns:
            What was not kept although a data folder was given, and why; nothing when all is well.
        """
        self.ended = self._end_work(time.monotonic() + GRACE_S)
        self._aws.notifications.close()
        try:
            self._search.close()  # what is kept of it is what it has written when it ends
            return self._save(self._folder) if self._folder else []
        finally:
            self._opened.close()

    def _save(self, folder: snapshot.DataFolder) -> list[str]:
        why = "something did not end in time, or failed"
        if self.ended and not any(worker.failed for worker in self._workers):
            try:
                folder.save(self._aws, self._vectors)
                return []
            except OSError as error:
                why = str(error)
        return [f"Nothing was saved: {why}. What was kept before is still there."]

    def _open_folder(self) -> snapshot.DataFolder | None:
        if self._options.data is None:
            return None
        try:
            return snapshot.DataFolder(self._options.data)
        except BlockingIOError as error:
            raise StartError(f"Another stack runs on {self._options.data}; stop it or name another --data") from error
        except OSError as error:
            raise StartError(f"{self._options.data} cannot be used: {error.strerror}") from error

    def _start_services(self, opened: ExitStack) -> None:
        self._aws = AwsServer()
        lead_clients_to(self._aws.url, os.environ)
        self._aws.start()
        opened.callback(self._aws.stop)
        self._aws.create_resources()
        latest = self._folder.latest if self._folder else None
        if latest:
            try:
                snapshot.restore(latest, self._aws, self._vectors)
            except ValueError as error:
                raise StartError(str(error)) from error
        self._aws.start_notifications()

    def _start_opensearch(self, opened: ExitStack) -> None:
        opened.callback(self._search.close)
        try:
            self._opensearch = self._search.enter_context(running_server(self._vectors))
        except (ServerMissing, ServerFailed) as error:
            raise StartError(str(error)) from error
        os.environ |= {
            "WEFT_OPENSEARCH_URL": self._opensearch.url,
            "WEFT_OPENSEARCH_AUTH": "none",
            "WEFT_OPENSEARCH_DIALECT": "domain",
        }

    def _load_functions(self) -> None:
        described = template.functions(self._template)
        os.environ.setdefault("WEFT_RERANKER", "embedded" if PACKAGED.is_installed() else "none")
        for function in described.values():
            for name, value in function.environment.items():
                os.environ.setdefault(name, value)
        os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "WARNING")
        os.environ |= {
            "WEFT_TABLE": TABLE,
            "WEFT_BUCKET": BUCKET,
            "WEFT_EMBEDDER": "embedded",
            "WEFT_VECTORS": self._options.vectors,
            "WEFT_VECTORS_PATH": str(self._vectors),
            # Nothing here reads the metrics that functions would print.
            "POWERTOOLS_METRICS_DISABLED": "true",
        }
        Settings.read(os.environ)
        self._functions = {name: LambdaFunction.load(function) for name, function in described.items()}

    def _start_api(self) -> None:
        routes = [
            Route(route.method, route.path, self._functions[route.function], route.authorizer is not None)
            for route in template.routes(self._template)
        ]
        authorizer = Authorizer(DevelopmentKey.in_folder(self._options.key_folder))
        self._server = uvicorn.Server(
            uvicorn.Config(
                Gateway(Router(routes), authorizer),
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
            )
        )
        self._api = threading.Thread(target=self._server.run, args=([self._socket],), name="api", daemon=True)
        self._api.start()
        while not self._server.started:
            time.sleep(0.01)

    def _start_workers(self) -> None:
        queue, schedule = template.queue(self._template), template.schedule(self._template)
        every_s = self._options.sweep_every_s or schedule.interval.total_seconds()
        ingest, recovery = self._functions[queue.function], self._functions[schedule.function]
        self._workers = [
            QueueWorker(self._aws.sqs, self._aws.queue_url(QUEUE), ingest, queue, self._on_failure),
            ScheduleWorker(recovery, every_s, self._on_failure),
        ]
        if self._opensearch:
            self._workers.append(ServerWatch("OpenSearch", self._opensearch.is_running, self._on_failure))
        for worker in self._workers:
            worker.start()

    def _end_work(self, until: float) -> bool:
        """Whether the API, the queue, the schedule and every function ended in time."""
        self._server.should_exit = True
        for worker in self._workers:
            worker.stop()
        self._api.join(max(0.0, until - time.monotonic()))
        ended = [not self._api.is_alive()]
        ended += [worker.join(max(0.0, until - time.monotonic())) for worker in self._workers]
        ended += [function.join(until) for function in self._functions.values()]
        return all(ended)


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise StartError(f"Port {port} cannot be used ({error}); name another with --port, or 0 for any") from error
    return listening

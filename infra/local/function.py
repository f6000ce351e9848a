"""A Lambda function on this machine: its handler, called as the service calls it."""

import importlib
import json
import logging
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from infra import template
from infra.local.names import ACCOUNT, REGION

Handler = Callable[[dict[str, Any], Any], Any]

MAX_PAYLOAD_BYTES = 6 * 1024 * 1024 + 100
"""The service's limit on an event and on an answer."""

logger = logging.getLogger(__name__)


class FunctionError(Exception):
    """The handler raised, or its answer cannot be handed on."""


class PayloadTooLarge(Exception):
    """The event is larger than a function takes."""


class Context:
    """What a handler is told about its invocation."""

    function_version = "$LATEST"
    memory_limit_in_mb = 1024
    client_context = None
    identity = None

    def __init__(self, name: str, timeout_s: float) -> None:
        self.function_name = name
        self.invoked_function_arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
        self.aws_request_id = str(uuid.uuid4())
        self.log_group_name = f"/aws/lambda/{name}"
        self.log_stream_name = "local"
        self._ends = time.monotonic() + timeout_s

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the service would stop the function."""
        return max(0, int((self._ends - time.monotonic()) * 1000))


class LambdaFunction:
    """One function of the template. It can be invoked from any thread, and several times at once."""

    def __init__(self, name: str, handler: Handler, timeout_s: float) -> None:
        self.name = name
        self.timeout_s = timeout_s
        self._handler = handler
        self._running: set[threading.Thread] = set()
        self._lock = threading.Lock()

    @classmethod
    def load(cls, described: template.Function) -> "LambdaFunction":
        """Imports the handler. The environment that it reads must be there."""
        module, _, function = described.handler.rpartition(".")
        return cls(described.name, getattr(importlib.import_module(module), function), described.timeout_s)

    def invoke(self, event: dict[str, Any]) -> Future[Any]:
        """Starts one invocation in a thread of its own.

        Returns:
            The answer to come, or ``FunctionError``.

        Raises:
            PayloadTooLarge: the event is over the service's limit.
        """
        payload = json.dumps(event)
        if len(payload.encode()) > MAX_PAYLOAD_BYTES:
            raise PayloadTooLarge
        answer: Future[Any] = Future()
        # Whoever gives up waiting does not cancel it: it goes on, as on AWS.
        answer.set_running_or_notify_cancel()
        thread = threading.Thread(target=self._run, args=(payload, answer), name=self.name, daemon=True)
        with self._lock:
            self._running.add(thread)
        thread.start()
        return answer

    def _run(self, payload: str, answer: Future[Any]) -> None:
        try:
            answer.set_result(self._call(payload))
        except Exception as error:  # a handler is the function's code: whatever it raises is a failed invocation
            logger.exception("Function %s failed", self.name)
            answer.set_exception(FunctionError(type(error).__name__))
        finally:
            with self._lock:
                self._running.discard(threading.current_thread())

    def _call(self, payload: str) -> Any:
        answer = json.dumps(self._handler(json.loads(payload), Context(self.name, self.timeout_s)))
        if len(answer.encode()) > MAX_PAYLOAD_BYTES:
            raise FunctionError("The answer is over the service's limit")
        return json.loads(answer)

    def join(self, until: float) -> bool:
        """Waits for the running invocations until ``time.monotonic()`` says ``until``; whether all have ended."""
        with self._lock:
            running = list(self._running)
        for thread in running:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in running)

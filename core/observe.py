"""What watches an engine: the hooks of extensions, and metrics."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from core.clock import Clock
from core.model.component import ExtensionInfo

logger = logging.getLogger(__name__)

HOOKS = (
    "collection_created",
    "collection_deleted",
    "ingest_started",
    "ingest_chunked",
    "ingest_embedded",
    "ingest_completed",
    "ingest_failed",
    "retrieval_started",
    "retrieval_completed",
    "retrieval_failed",
    "document_deleted",
    "reindex_started",
    "reindex_completed",
    "shutdown",
)
"""The hooks that an extension may implement, each a method of that name."""


class Extension(Protocol):
    """An object with a name and any methods named as in ``HOOKS``.

    The engine calls hooks with keyword arguments; every hook but ``shutdown`` gets ``tenant``.
    """

    name: str


class Metrics(Protocol):
    """Where measurements go. Units are CloudWatch's: Milliseconds, Seconds, Count."""

    def record(self, name: str, value: float, unit: str, **dimensions: str) -> None:
        """Records one measurement."""
        ...


class NoMetrics:
    """Metrics that record nothing."""

    def record(self, name: str, value: float, unit: str, **dimensions: str) -> None:
        """Drops the measurement."""
        return


class Observer:
    """Passes events to the extensions and measurements to the metrics of one engine.

    Args:
        extensions: in the order in which their hooks are called.
        metrics: None: nothing is recorded.
    """

    def __init__(self, clock: Clock, extensions: Sequence[Extension] = (), metrics: Metrics | None = None) -> None:
        self._clock = clock
        self._extensions = tuple(extensions)
        self._metrics: Metrics = metrics or NoMetrics()

    def describe(self) -> list[ExtensionInfo]:
        """Lists the extensions' names and the hooks that they implement, in registration order."""
        return [
            ExtensionInfo(
                name=extension.name,
                hooks=[hook for hook in HOOKS if callable(getattr(extension, hook, None))],
            )
            for extension in self._extensions
        ]

    def fire(self, hook: str, **details: Any) -> None:
        """Calls one hook of every extension that implements it. A hook's error is logged and changes nothing."""
        for extension in self._extensions:
            function = getattr(extension, hook, None)
            if not callable(function):
                continue
            try:
                function(**details)
            except Exception:  # an extension is foreign code: its error must not reach the caller of the engine
                logger.exception("Hook %s of extension %s failed", hook, extension.name)

    def record(self, name: str, value: float, unit: str, **dimensions: str) -> None:
        """Records one measurement."""
        self._metrics.record(name, value, unit, **dimensions)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Records how long the block took, in milliseconds, whether or not the block raised."""
        start = self._clock.monotonic()
        try:
            yield
        finally:
            self.record(name, (self._clock.monotonic() - start) * 1000, "Milliseconds")

    @contextmanager
    def model_call(self, model: str) -> Iterator[None]:
        """Records how long a call to a model took, in seconds, whether or not the call failed.

        The metric's name is OpenTelemetry's, from its semantic conventions for generative AI clients.
        """
        start = self._clock.monotonic()
        try:
            yield
        finally:
            self.record("gen_ai.client.operation.duration", self._clock.monotonic() - start, "Seconds", model=model)

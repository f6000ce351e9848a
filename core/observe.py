"""What can be watched: hooks of extensions, and metrics."""

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


class Extension(Protocol):
    """Anything with a name and methods named as in ``HOOKS``. Hooks take keyword arguments, ``tenant`` among them."""

    name: str


class Extensions:
    """The registered extensions, in order. A hook's error is logged and changes nothing."""

    def __init__(self, extensions: Sequence[Extension] = ()) -> None:
        self._extensions = tuple(extensions)

    def describe(self) -> list[ExtensionInfo]:
        """Names and hooks, in registration order."""
        return [
            ExtensionInfo(
                name=extension.name,
                hooks=[hook for hook in HOOKS if callable(getattr(extension, hook, None))],
            )
            for extension in self._extensions
        ]

    def fire(self, hook: str, **details: Any) -> None:
        """Calls one hook of every extension that has it."""
        for extension in self._extensions:
            function = getattr(extension, hook, None)
            if not callable(function):
                continue
            try:
                function(**details)
            except Exception:  # an extension is another's code: whatever it raises stays there
                logger.exception("Hook %s of extension %s failed", hook, extension.name)


class Metrics(Protocol):
    """Where measurements go. Units are CloudWatch's: Milliseconds, Seconds, Count."""

    def record(self, name: str, value: float, unit: str, **dimensions: str) -> None: ...


class NoMetrics:
    """Records nothing."""

    def record(self, name: str, value: float, unit: str, **dimensions: str) -> None:
        return


@contextmanager
def timed(metrics: Metrics, clock: Clock, name: str, **dimensions: str) -> Iterator[None]:
    """Records how long the block took, in milliseconds, whether or not it raised."""
    start = clock.monotonic()
    try:
        yield
    finally:
        metrics.record(name, (clock.monotonic() - start) * 1000, "Milliseconds", **dimensions)

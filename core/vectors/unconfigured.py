"""The vector store of an engine that has none: every use of it is refused."""

from typing import Never, cast

from core.model.errors import NotConfigured
from core.vectors.types import VectorStore


class _UnconfiguredVectorStore:
    def __getattr__(self, name: str) -> Never:
        raise NotConfigured("No vector store is configured")


UNCONFIGURED = cast(VectorStore, _UnconfiguredVectorStore())
"""Stands for a store that is not configured, so that services need not ask before each use."""


def require_vector_store(store: VectorStore) -> None:
    """Refuses a call that needs vectors before the call has done anything.

    Raises:
        NotConfigured: no vector store is configured.
    """
    if store is UNCONFIGURED:
        raise NotConfigured("No vector store is configured")

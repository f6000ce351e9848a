"""Fixtures of an engine on a table in memory, which a test can watch and damage."""

from collections.abc import Iterator

import pytest

from core.settings import Settings
from tests.support.clock import ManualClock
from tests.support.dynamodb import MemoryDynamoDB
from tests.support.embedder import HashedEmbedder
from tests.support.engines import World, make_world
from tests.support.meddling import MeddlingVectors, Recorder


@pytest.fixture
def recorder() -> Recorder:
    """The world's one extension."""
    return Recorder()


@pytest.fixture
def vectors() -> Iterator[MeddlingVectors]:
    """The world's vector store."""
    store = MeddlingVectors()
    yield store
    store.close()


@pytest.fixture
def world(recorder: Recorder, vectors: MeddlingVectors) -> Iterator[World]:
    """An engine with a recorder as its extension."""
    world = memory_world(recorder, vectors)
    yield world
    world.close()


def memory_world(
    recorder: Recorder,
    vectors: MeddlingVectors,
    settings: Settings | None = None,
    embedder: HashedEmbedder | None = None,
) -> World:
    """A world on a table of its own."""
    clock = ManualClock()
    table = MemoryDynamoDB(clock.monotonic)
    return make_world(
        settings=settings,
        embedder=embedder,
        vectors=vectors,
        clock=clock,
        extensions=[recorder],
        dynamodb=table,
        create=False,
    )

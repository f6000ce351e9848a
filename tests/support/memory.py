"""Fixtures of an engine on a DynamoDB table in memory, which a test can watch and damage."""

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
    """The only extension of the world's engine. It records every hook."""
    return Recorder()


@pytest.fixture
def vectors() -> Iterator[MeddlingVectors]:
    """The vector store of the world, which a test can interrupt."""
    store = MeddlingVectors()
    yield store
    store.close()


@pytest.fixture
def world(recorder: Recorder, vectors: MeddlingVectors) -> Iterator[World]:
    """An engine on a table and a vector store of its own."""
    world = memory_world(recorder, vectors)
    yield world
    world.close()


def memory_world(
    recorder: Recorder,
    vectors: MeddlingVectors,
    settings: Settings | None = None,
    embedder: HashedEmbedder | None = None,
) -> World:
    """Makes a world on a new table in memory."""
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

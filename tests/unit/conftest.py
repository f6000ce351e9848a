"""An engine that can be watched and meddled with."""

from collections.abc import Iterator

import pytest
from moto import mock_aws

from tests.support.engines import World, make_world
from tests.support.meddling import MeddlingVectors, Recorder


@pytest.fixture
def recorder() -> Recorder:
    """The world's one extension."""
    return Recorder()


@pytest.fixture
def vectors() -> MeddlingVectors:
    """The world's vector store."""
    return MeddlingVectors()


@pytest.fixture
def world(recorder: Recorder, vectors: MeddlingVectors) -> Iterator[World]:
    """An engine on a table in this process, with a recorder as its extension."""
    with mock_aws():
        yield make_world(vectors=vectors, extensions=[recorder])
        vectors.close()

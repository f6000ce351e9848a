"""The embedder that tests use."""

import pytest

from core.model.errors import Unavailable
from core.model.vector import Vector
from tests.support.embedder import HashedEmbedder


def similarity(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_texts_that_share_words_are_more_alike() -> None:
    query, near, far = HashedEmbedder().embed(["red wool", "wool dyed Red", "a tall loom"]).vectors
    assert similarity(query, near) > 0.7 > similarity(query, far)


def test_it_tells_what_it_embedded() -> None:
    embedder = HashedEmbedder()
    embedder.embed(["one", "two"])
    embedder.embed(["one"])
    assert embedder.embedded == ["one", "two", "one"]
    assert embedder.calls == 2


def test_it_fails_when_told_to() -> None:
    embedder = HashedEmbedder()
    embedder.failure = Unavailable("throttled")
    with pytest.raises(Unavailable):
        embedder.embed(["one"])
    embedder.failure = None
    embedder.embed(["two"])
    assert embedder.embedded == ["two"]
    assert embedder.calls == 2

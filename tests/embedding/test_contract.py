"""What every embedder keeps, whichever model is behind it."""

import math
from bisect import bisect_right
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.clock import SystemClock
from core.embedding.bedrock import MODEL, BedrockEmbedder
from core.embedding.models import find_embedding_model
from core.embedding.onnx import OnnxEmbedder
from core.embedding.types import Embedder
from core.model.component import Component
from core.model.errors import InvalidArgument
from core.model.vector import Vector
from tests.support.bedrock import loopback_client, titan_server
from tests.support.embedder import HashedEmbedder

TEXTS = [
    "The warp is held under tension on the loom.",
    "weft",
    "El gato duerme sobre la alfombra, y llueve.",
    "雨が降っています。",
    "The weft is drawn through the warp, over and under, row after row, until there is cloth. " * 6,
    "x = [1, 2, 3]  # 👩‍👩‍👧‍👧",
]
ROUNDING = 1e-6


@pytest.fixture(scope="module", params=["hashed", "onnx", "bedrock"])
def embedder(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    if request.param == "hashed":
        yield HashedEmbedder()
    elif request.param == "onnx":
        yield OnnxEmbedder(find_embedding_model(None))
    else:
        with titan_server() as server, loopback_client(server.server_port) as client:
            yield BedrockEmbedder(client, SystemClock(), model=MODEL, dimensions=256)


def distance(one: Vector, other: Vector) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def longest_text(embedder: Embedder) -> str:
    """As many single letters as the embedder says it takes."""
    letters = range(5 * embedder.max_tokens)
    fitting = bisect_right(letters, embedder.max_tokens, key=lambda count: embedder.counter.count("a " * count)) - 1
    return "a " * fitting


def test_there_is_a_vector_of_unit_length_and_declared_dimensions_for_each_text(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS).vectors
    assert [len(vector) for vector in vectors] == [embedder.space.dimensions] * len(TEXTS)
    assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1.0] * len(TEXTS), abs=ROUNDING)


def test_vectors_are_lists_of_python_numbers(embedder: Embedder) -> None:
    [vector] = embedder.embed(["weft"]).vectors
    assert type(vector) is list
    assert {type(value) for value in vector} == {float}


def test_vectors_come_in_the_order_of_their_texts(embedder: Embedder) -> None:
    forwards, backwards = embedder.embed(TEXTS).vectors, embedder.embed(TEXTS[::-1]).vectors
    assert all(distance(one, other) < ROUNDING for one, other in zip(forwards, backwards[::-1], strict=True))
    assert distance(forwards[0], forwards[1]) > 0.01, "different texts have different vectors"


def test_the_same_text_always_has_the_same_vector(embedder: Embedder) -> None:
    assert embedder.embed(TEXTS[:2]) == embedder.embed(TEXTS[:2])


@settings(max_examples=10, deadline=None)
@given(companions=st.lists(st.sampled_from(TEXTS), max_size=5), place=st.integers(0, 5))
def test_a_vector_does_not_depend_on_the_texts_beside_it(embedder: Embedder, companions: list[str], place: int) -> None:
    text = "Wool takes dye better than linen does."
    [alone] = embedder.embed([text]).vectors
    together = [*companions[:place], text, *companions[place:]]
    assert distance(embedder.embed(together).vectors[together.index(text)], alone) < ROUNDING


def test_calls_at_the_same_time_do_not_disturb_each_other(embedder: Embedder) -> None:
    expected = [embedder.embed([text]).vectors[0] for text in TEXTS]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: embedder.embed(TEXTS).vectors, range(4)))
    for vectors in answers:
        assert all(distance(one, other) < ROUNDING for one, other in zip(vectors, expected, strict=True))


def test_without_texts_there_are_no_vectors(embedder: Embedder) -> None:
    assert embedder.embed([]) == ([], 0)


def test_the_tokens_that_the_model_read_add_up(embedder: Embedder) -> None:
    alone = [embedder.embed([text]).input_tokens for text in TEXTS]
    assert min(alone) > 0
    assert embedder.embed(TEXTS).input_tokens == sum(alone)


def test_the_longest_text_is_taken_whole(embedder: Embedder) -> None:
    longest = longest_text(embedder)
    assert embedder.counter.count(longest) == embedder.max_tokens
    different_at_the_end = longest[:-2] + "z "
    one, other = embedder.embed([longest, different_at_the_end]).vectors
    assert distance(one, other) > ROUNDING, "the last word counts"


def test_a_longer_text_is_refused_and_not_cut(embedder: Embedder) -> None:
    text = longest_text(embedder) + "secret words"
    with pytest.raises(InvalidArgument, match=f"Text 2 of 2 .* at most {embedder.max_tokens}") as refused:
        embedder.embed(["weft", text])
    assert "secret" not in refused.value.detail, "no text in an error"


@pytest.mark.parametrize("blank", ["", " ", "\n\t\u2003"])
def test_a_blank_text_is_refused(embedder: Embedder, blank: str) -> None:
    with pytest.raises(InvalidArgument, match="Text 2 of 2 is blank"):
        embedder.embed(["weft", blank])


def test_it_describes_itself(embedder: Embedder) -> None:
    component = embedder.describe()
    assert component == Component(
        name=embedder.space.model,
        type=component.type,
        configured=True,
        dimensions=embedder.space.dimensions,
        max_tokens=embedder.max_tokens,
    )
    assert component.type

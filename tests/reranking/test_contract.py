"""What every reranker keeps, whichever model is behind it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.clock import Clock
from core.inference.files import OnnxModel
from core.model.component import Component
from core.model.errors import InvalidArgument, Unavailable
from core.reranking.bedrock import BedrockReranker, RerankingClient
from core.reranking.models import find_reranking_model
from core.reranking.onnx import OnnxReranker
from core.reranking.types import Reranker
from tests.support.bedrock import loopback_rerank_client, rerank_server
from tests.support.clock import ManualClock
from tests.support.reranker import WordOverlapReranker

QUERY = "how is cotton cloth made"
BEST = "cotton cloth is made on a loom : how it is done"
TEXTS = [
    "The blue whale is the largest animal.",
    BEST,
    "cloth",
    "El gato duerme sobre la alfombra, y llueve.",
    "雨が降っています。",
    "cotton " * 2000,
    "x = [1, 2, 3]  # 👩‍👩‍👧‍👧",
]
SECONDS = 10.0

Make = Callable[[Clock], Reranker]


class HurryingClock(ManualClock):
    """Each look at it takes a second."""

    def monotonic(self) -> float:
        self.advance(1)
        return super().monotonic()


@pytest.fixture(scope="module")
def model() -> OnnxModel:
    return find_reranking_model(None)


@pytest.fixture(scope="module")
def client() -> Iterator[RerankingClient]:
    with rerank_server() as server, loopback_rerank_client(server.server_port) as client:
        yield client


@pytest.fixture(scope="module", params=["word_overlap", "onnx", "bedrock"])
def make(request: pytest.FixtureRequest) -> Make:
    """The reranker on a clock."""
    if request.param == "word_overlap":
        return lambda clock: WordOverlapReranker(clock, seconds=SECONDS)
    if request.param == "onnx":
        model = cast(OnnxModel, request.getfixturevalue("model"))
        return lambda clock: OnnxReranker(model, clock, seconds=SECONDS)
    client = cast(RerankingClient, request.getfixturevalue("client"))
    return lambda clock: BedrockReranker(client, clock, model="cohere.rerank-v3-5:0", seconds=SECONDS)


@pytest.fixture(scope="module")
def reranker(make: Make) -> Reranker:
    return make(ManualClock())


def test_there_is_a_score_from_0_to_1_for_each_text(reranker: Reranker) -> None:
    scores = reranker.rerank(QUERY, TEXTS)
    assert [type(score) for score in scores] == [float] * len(TEXTS)
    assert min(scores) >= 0
    assert max(scores) <= 1


def test_the_text_that_answers_has_the_highest_score_in_its_own_place(reranker: Reranker) -> None:
    for texts in (TEXTS, TEXTS[::-1]):
        scores = reranker.rerank(QUERY, texts)
        assert scores.index(max(scores)) == texts.index(BEST)


@settings(max_examples=10, deadline=None)
@given(companions=st.lists(st.sampled_from(TEXTS), max_size=4), place=st.integers(0, 4))
def test_a_score_does_not_depend_on_the_texts_beside_it(reranker: Reranker, companions: list[str], place: int) -> None:
    text = "Linen cloth is made of flax."
    together = [*companions[:place], text, *companions[place:]]
    assert reranker.rerank(QUERY, together)[together.index(text)] == reranker.rerank(QUERY, [text])[0]


def test_the_same_text_twice_has_the_same_score_twice(reranker: Reranker) -> None:
    one, other = reranker.rerank(QUERY, [BEST, BEST])
    assert one == other


def test_calls_at_the_same_time_do_not_disturb_each_other(reranker: Reranker) -> None:
    expected = reranker.rerank(QUERY, TEXTS)
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: reranker.rerank(QUERY, TEXTS), range(3)))
    assert answers == [expected] * 3


def test_without_texts_there_are_no_scores(reranker: Reranker) -> None:
    assert reranker.rerank(QUERY, []) == []


@pytest.mark.parametrize("blank", ["", " ", "\n\t\u2003"])
def test_a_blank_text_is_not_relevant_and_the_others_keep_their_places(reranker: Reranker, blank: str) -> None:
    [best] = reranker.rerank(QUERY, [BEST])
    assert reranker.rerank(QUERY, [blank, BEST, blank]) == [0.0, best, 0.0]
    assert reranker.rerank(QUERY, [blank]) == [0.0]


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_query_is_refused(reranker: Reranker, blank: str) -> None:
    with pytest.raises(InvalidArgument, match="blank"):
        reranker.rerank(blank, TEXTS)


def test_a_very_long_text_is_judged_by_its_beginning(reranker: Reranker) -> None:
    long = f"{BEST} {'and so on ' * 20_000}"
    other, score = reranker.rerank(QUERY, [TEXTS[0], long])
    assert score > other


def test_a_long_query_leaves_room_for_the_text(reranker: Reranker) -> None:
    query = "how is cotton cloth made on a loom " * 200
    one, other = reranker.rerank(query, [BEST, TEXTS[0]])
    assert one != other


@pytest.mark.parametrize("text", ["\x00\x01\x02", "a\x00b\x1b[31m\x7f", "\u202e\u200b\ufeff", "\ufffd\U0010ffff"])
def test_control_characters_are_a_text_like_any_other(reranker: Reranker, text: str) -> None:
    score, best = reranker.rerank(f"{QUERY} {text}", [text, f"{BEST} {text}"])
    assert 0 <= score < best


def test_a_deadline_that_is_over_is_unavailable(reranker: Reranker) -> None:
    with pytest.raises(Unavailable) as unavailable:
        reranker.rerank(QUERY, TEXTS, deadline=0.0)
    assert unavailable.value.extras["retry_after_s"] > 0


def test_a_deadline_far_away_changes_nothing(reranker: Reranker) -> None:
    assert reranker.rerank(QUERY, TEXTS, deadline=1e9) == reranker.rerank(QUERY, TEXTS)


def test_a_call_that_takes_longer_than_its_limit_is_unavailable_whatever_the_deadline(make: Make) -> None:
    with pytest.raises(Unavailable):
        make(HurryingClock()).rerank(QUERY, ["cotton cloth"] * 40, deadline=1e9)


def test_no_text_is_told_when_there_is_no_time(reranker: Reranker) -> None:
    with pytest.raises(Unavailable) as unavailable:
        reranker.rerank("secret query", ["secret text"], deadline=0.0)
    assert "secret" not in str(unavailable.value)


def test_it_describes_itself(reranker: Reranker) -> None:
    component = reranker.describe()
    assert component == Component(
        name=reranker.name, type=component.type, configured=True, max_tokens=component.max_tokens
    )
    assert component.type

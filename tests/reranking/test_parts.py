"""The reranker as a part of the engine."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from moto import mock_aws

from core.model.component import Component
from core.model.errors import NotConfigured, Unavailable
from core.observe import NoMetrics, Observer
from core.reranking.measured import MeasuredReranker, require_reranker
from core.reranking.types import Reranker
from core.settings import Settings
from core.wiring import build_engine
from tests.support.clock import ManualClock
from tests.support.engines import World, make_world
from tests.support.onnx_model import tiny_cross_encoder
from tests.support.reranker import WordOverlapReranker


class Recorder(NoMetrics):
    """Keeps what is recorded."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, float, dict[str, str]]] = []

    def record(self, name: str, value: float, unit: str, **dimensions: str) -> None:
        self.recorded.append((name, value, dimensions))


@contextmanager
def world_with(reranker: Reranker | None, clock: ManualClock | None = None) -> Iterator[World]:
    with mock_aws():
        world = make_world(reranker=reranker, clock=clock)
        yield world
        world.close()


def test_without_a_reranker_the_answer_says_what_to_do() -> None:
    with pytest.raises(NotConfigured, match=r"WEFT_RERANKER.* another strategy"):
        require_reranker(None)


def test_scores_are_the_rerankers_and_the_call_is_measured() -> None:
    clock = ManualClock()
    recorder = Recorder()
    reranker = MeasuredReranker(WordOverlapReranker(clock), Observer(clock, metrics=recorder))
    assert reranker.rerank("cotton cloth", ["cloth", "wool"]) == [0.5, 0.0]
    assert recorder.recorded == [("gen_ai.client.operation.duration", 0.0, {"model": "word-overlap"})]


def test_the_deadline_is_passed_on_and_a_failure_is_measured_too() -> None:
    clock = ManualClock()
    recorder = Recorder()
    reranker = MeasuredReranker(WordOverlapReranker(clock), Observer(clock, metrics=recorder))
    with pytest.raises(Unavailable):
        reranker.rerank("cotton cloth", ["cloth"], deadline=clock.monotonic())
    assert len(recorder.recorded) == 1


def test_components_tell_the_reranker() -> None:
    with world_with(WordOverlapReranker(ManualClock())) as world:
        told = world.engine.status.components().reranker
    assert told == Component(name="word-overlap", type="word-overlap", configured=True)


@pytest.mark.parametrize(
    ("environment", "kind"),
    [
        ({}, ""),
        ({"WEFT_RERANKER": "embedded"}, "onnx"),
        ({"WEFT_RERANKER": "bedrock"}, "bedrock"),
    ],
)
def test_the_setting_chooses_the_reranker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, environment: dict[str, str], kind: str
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    folder = tiny_cross_encoder(tmp_path / "tiny")
    settings = Settings.read({"WEFT_EMBEDDER": "none", "WEFT_RERANKER_MODEL": str(folder)} | environment)
    engine = build_engine(settings)
    assert engine.status.components().reranker.type == kind


def test_bedrocks_reranker_needs_neither_numpy_nor_onnxruntime() -> None:
    script = (
        "import sys, core.reranking.bedrock, core.engine; sys.exit(bool({'numpy', 'onnxruntime'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0

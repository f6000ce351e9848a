"""The reranker as a part of the engine."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from core.model.component import Component
from core.model.errors import NotConfigured, Unavailable
from core.observe import NoMetrics
from core.reranking.bedrock import BedrockReranker
from core.reranking.onnx import OnnxReranker
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
    with world_with(None) as world, pytest.raises(NotConfigured, match=r"WEFT_RERANKER.* another strategy"):
        world.engine._parts.rerank("cotton cloth", ["cloth"])


def test_scores_are_the_rerankers_and_the_call_is_measured() -> None:
    clock = ManualClock()
    with world_with(WordOverlapReranker(clock), clock) as world:
        recorder = Recorder()
        world.rebuild(metrics=recorder)
        assert world.engine._parts.rerank("cotton cloth", ["cloth", "wool"]) == [0.5, 0.0]
        assert recorder.recorded == [("gen_ai.client.operation.duration", 0.0, {"model": "word-overlap"})]


def test_the_deadline_is_passed_on_and_a_failure_is_measured_too() -> None:
    clock = ManualClock()
    with world_with(WordOverlapReranker(clock), clock) as world:
        recorder = Recorder()
        world.rebuild(metrics=recorder)
        with pytest.raises(Unavailable):
            world.engine._parts.rerank("cotton cloth", ["cloth"], deadline=clock.monotonic())
        assert len(recorder.recorded) == 1


def test_components_tell_the_reranker() -> None:
    with world_with(WordOverlapReranker(ManualClock())) as world:
        told = world.engine.components().reranker
    assert told == Component(name="word-overlap", type="word-overlap", configured=True)


@pytest.mark.parametrize(
    ("environment", "kind"),
    [
        ({}, type(None)),
        ({"WEFT_RERANKER": "embedded"}, OnnxReranker),
        ({"WEFT_RERANKER": "bedrock"}, BedrockReranker),
    ],
)
def test_the_setting_chooses_the_reranker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, environment: dict[str, str], kind: type[Any]
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    folder = tiny_cross_encoder(tmp_path / "tiny")
    settings = Settings.read({"WEFT_EMBEDDER": "none", "WEFT_RERANKER_MODEL": str(folder)} | environment)
    engine = build_engine(settings)
    assert type(engine._parts.reranker) is kind


def test_bedrocks_reranker_needs_neither_numpy_nor_onnxruntime() -> None:
    script = (
        "import sys, core.reranking.bedrock, core.parts; sys.exit(bool({'numpy', 'onnxruntime'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0

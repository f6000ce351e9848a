"""A long-running host starts and stops a loop that sweeps at an interval."""

from threading import Event, Thread

import pytest

from core.model.errors import Unavailable
from core.settings import Settings
from tests.support.engines import TABLE, World
from tests.support.meddling import MeddlingVectors, Recorder, die
from tests.support.memory import memory_world

PATIENCE_S = 20


class StepWait:
    """Stands for the time between two sweeps. The next sweep begins when the test says so."""

    def __init__(self, rounds: int) -> None:
        self.left = rounds
        self.waited: list[float] = []
        self.stopped = Event()
        self.idle = Event()

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        self.left -= 1
        if self.left >= 0:
            return False
        self.idle.set()
        return self.stopped.wait(PATIENCE_S)

    def set(self) -> None:
        self.stopped.set()

    def clear(self) -> None:
        self.stopped.clear()


@pytest.fixture
def host(recorder: Recorder, vectors: MeddlingVectors) -> World:
    settings = Settings(table=TABLE, embedder="none", vectors="none", recovery_interval_s=300)
    return memory_world(recorder, vectors, settings)


def paced(world: World, rounds: int) -> StepWait:
    pace = StepWait(rounds)
    world.engine.recovery._stop = pace  # type: ignore[assignment]  # no test waits for an interval
    return pace


def test_the_loop_sweeps_once_an_interval_until_it_is_stopped(host: World, recorder: Recorder) -> None:
    collection = host.collection()
    die(host, recorder, collection, "one", source_key="a")
    host.clock.advance(16 * 60)
    pace = paced(host, 2)
    host.engine.start()
    assert pace.idle.wait(PATIENCE_S)
    assert pace.waited == [300, 300, 300], "an interval passes before each sweep"
    assert len(recorder.of("ingest_failed")) == 1
    host.engine.stop()
    assert recorder.hooks[-1] == "shutdown"


def test_a_second_start_of_a_running_loop_does_nothing(host: World) -> None:
    pace = paced(host, 0)
    host.engine.start()
    assert pace.idle.wait(PATIENCE_S)
    host.engine.start()
    host.engine.stop()
    assert pace.waited == [300]


def test_stop_waits_for_a_running_sweep_before_it_closes_the_stores(
    host: World, recorder: Recorder, vectors: MeddlingVectors
) -> None:
    collection = host.collection()
    die(host, recorder, collection, "one", source_key="a")
    host.clock.advance(16 * 60)
    sweeping, go_on = Event(), Event()

    def hold() -> None:
        sweeping.set()
        assert go_on.wait(PATIENCE_S)

    vectors.before_delete = hold
    paced(host, 1)
    host.engine.start()
    assert sweeping.wait(PATIENCE_S)
    stopping = Thread(target=host.engine.stop)
    stopping.start()
    assert "shutdown" not in recorder.hooks
    go_on.set()
    stopping.join(PATIENCE_S)
    assert not stopping.is_alive()
    assert recorder.hooks[-2:] == ["ingest_failed", "shutdown"]


@pytest.mark.parametrize("error", ["unavailable", "anything"])
def test_the_loop_continues_after_a_sweep_that_fails(host: World, recorder: Recorder, error: str) -> None:
    collection = host.collection()
    die(host, recorder, collection, "one", source_key="a")
    host.clock.advance(16 * 60)
    query = host.dynamodb.query

    def fail_once(**arguments: object) -> object:
        host.dynamodb.query = query
        raise ConnectionError("no answer") if error == "anything" else Unavailable("The table does not answer")

    host.dynamodb.query = fail_once
    pace = paced(host, 2)
    host.engine.start()
    assert pace.idle.wait(PATIENCE_S)
    host.engine.stop()
    assert len(recorder.of("ingest_failed")) == 1, "the second sweep did the work"


def test_start_without_an_interval_starts_no_loop(world: World, recorder: Recorder) -> None:
    pace = paced(world, 0)
    world.engine.start()
    world.engine.stop()
    assert pace.waited == []
    assert recorder.hooks == ["shutdown"]

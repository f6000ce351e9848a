"""The harness of the proofs: processes die for good, journals say what may be served, and exit codes say what held."""

import json
import sys
from functools import partial
from typing import Any

import pytest

from tests.proofs.command import BROKEN, HELD, NOT_RUN, Options, main
from tests.proofs.cuts import Cut, Kind
from tests.proofs.harness import Actor, World
from tests.proofs.killed import expected
from tests.support.contents import text


def test_a_process_that_dies_writes_no_more_and_nothing_catches_its_death() -> None:
    world = World()
    collection = world.collection().id
    for at in range(1, 9):
        step = partial(Actor.ingest, collection_id=collection, content=text("new"), source_key=f"{at}.md")
        outcome = world.run(step, Cut(at, Kind.DIES_BEFORE))
        assert (outcome.died, len(outcome.actor.writes)) == (True, at)
    assert world.broken == []
    world.close()


def test_a_journal_allows_the_last_acknowledged_content_and_those_begun_since() -> None:
    journal = [("begins", "a", "x"), ("done", "a", "x"), ("begins", "a", "y"), ("begins", "b", "z")]
    lines = "\n".join(json.dumps(entry) for entry in journal)
    assert expected(lines) == {"a": {"x", "y"}, "b": {None, "z"}}


@pytest.mark.parametrize(
    ("report", "code"),
    [({"lost": 0}, HELD), ({"lost": 1}, BROKEN), (None, NOT_RUN)],
)
def test_a_proof_prints_one_line_of_JSON_and_exits_with_the_code_of_its_verdict(
    report: dict[str, Any] | None,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def prove(options: Options, tell: Any) -> dict[str, Any]:
        assert (options.seed, options.rounds, options.vectors) == (3, 2, "embedded")
        if report is None:
            raise OSError("nothing to run on")
        return dict(report)

    monkeypatch.setattr(sys, "argv", ["proof", "--seed", "3", "--rounds", "2", "--vectors", "embedded", "--json"])
    with pytest.raises(SystemExit) as ended:
        main("crash", prove, held=lambda found: not found["lost"])
    assert ended.value.code == code
    out = capsys.readouterr().out
    if report is None:
        assert out == ""
    else:
        assert json.loads(out)["lost"] == report["lost"]
        assert out.count("\n") == 1

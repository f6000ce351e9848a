"""The proofs at a small size; `make proofs` runs them whole. Each sees what it looks for: mutants turn it red."""

import json
import sys
from functools import partial
from typing import Any

import pytest

from tests.proofs import crash, late_writers, mutants, races
from tests.proofs.command import BROKEN, HELD, NOT_RUN, Options, main
from tests.proofs.cuts import Cut, Kind
from tests.proofs.harness import Actor, World
from tests.proofs.killed import expected, kill
from tests.proofs.mutation import Mutant
from tests.proofs.races import Size
from tests.support.contents import text

OPTIONS = Options(seed=0)


def silent(line: str) -> None:
    """Nobody watches."""


def test_whatever_write_is_cut_in_whatever_way_a_source_is_served_whole_and_nothing_is_left() -> None:
    report = crash.prove(OPTIONS, silent, share=0.03, kills=0)
    assert report["broken"] == []
    assert report["cuts"] > 200


def test_killed_processes_lose_nothing_that_was_acknowledged() -> None:
    assert kill(10, seed=0, tell=silent) == []


def test_whoever_meets_whom_a_source_is_served_whole_in_one_version_and_nothing_is_left() -> None:
    report = races.prove(OPTIONS, silent, Size(pairs=150, per_pair=5, storms=100, crowd=20))
    assert report["broken"] == []
    assert report["interleavings"] > 700


def test_an_ingest_whose_document_was_taken_is_interrupted_and_leaves_nothing() -> None:
    report = late_writers.prove(OPTIONS, silent, share=0.15)
    assert report["broken"] == []
    assert report["cases"] > 150


QUICK = (
    "the attempt is not compared before the swap",
    "chunks are written that are not reserved",
    "a version is swapped in over a newer one",
    "an attempt does not recognise that it has made its document ready",
    "an ingest does not recognise the document that it has begun itself",
    "a swap leaves the version in its source's work",
    "a match is shown whatever its source serves",
    "a further round searches among the hidden generations too",
    "the tenant of a match is not checked",
    "a sweep fails a document that has had a heartbeat since the cutoff",
    "the swap does not compare the attempt",
    "a removal leaves no late-writer mark",
    "a delete leaves vectors",
)


@pytest.mark.parametrize("mutant", mutants.named(*QUICK), ids=lambda mutant: mutant.name)
def test_a_protection_switched_off_turns_a_proof_red(mutant: Mutant) -> None:
    assert mutants.try_mutant(mutant, OPTIONS, probes=()).seen


def test_a_process_that_has_died_writes_no_more_and_is_caught_by_nothing() -> None:
    world = World()
    collection = world.collection().id
    for at in range(1, 9):
        step = partial(Actor.ingest, collection_id=collection, content=text("new"), source_key=f"{at}.md")
        outcome = world.run(step, Cut(at, Kind.DIES_BEFORE))
        assert (outcome.died, len(outcome.actor.writes)) == (True, at)
    assert world.broken == []
    world.close()


def test_what_was_acknowledged_last_or_begun_since_may_be_served() -> None:
    journal = [("begins", "a", "x"), ("done", "a", "x"), ("begins", "a", "y"), ("begins", "b", "z")]
    lines = "\n".join(json.dumps(one) for one in journal)
    assert expected(lines) == {"a": {"x", "y"}, "b": {None, "z"}}


@pytest.mark.parametrize(
    ("report", "code"),
    [({"lost": 0}, HELD), ({"lost": 1}, BROKEN), (None, NOT_RUN)],
)
def test_a_proof_ends_with_one_line_of_JSON_and_a_code_that_says_what_it_found(
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

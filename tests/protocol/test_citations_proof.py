"""The proof of citations at a small size. Each of its protections switched off turns it red."""

import pytest

from tests.proofs import citations, mutants
from tests.proofs.command import Options
from tests.proofs.mutation import Mutant


def test_every_marker_stands_before_the_text_that_it_cites_and_every_context_keeps_its_budget() -> None:
    report = citations.prove(Options(quiet=True), lambda line: None, parts=1, documents=8, questions=20)
    assert citations.held(report), report
    assert report["over_budget"] == 0
    assert report["contexts"] == 40
    assert report["markers"] == report["exact_spans"] > 100
    assert report["fills"], "hits abounded somewhere"


QUICK = ("what two chunks share", "what stands between", "a chunk stands once", "neighbours", "the whole is counted")


@pytest.mark.parametrize(
    "mutant",
    [one for name in QUICK for one in mutants.named(f"citations: {name}", "embedded")],
    ids=lambda one: one.name,
)
def test_a_protection_switched_off_turns_the_proof_red(mutant: Mutant) -> None:
    assert mutants.try_mutant(mutant, Options(), probes=()).seen

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


QUICK = (
    "the text that two chunks share stands twice",
    "the text between two chunks is not that of the document",
    "a chunk stands twice in a context",
    "hits have no neighbours",
    "a context is estimated, and not counted where it could fit",
)


@pytest.mark.parametrize("mutant", mutants.named(*QUICK), ids=lambda mutant: mutant.name)
def test_a_protection_switched_off_turns_the_proof_red(mutant: Mutant) -> None:
    assert mutants.try_mutant(mutant, Options(), probes=()).seen

"""The proof that answers explain themselves, at a small size. What it looks for, switched off, turns it red."""

import pytest

from tests.proofs import explain, mutants
from tests.proofs.command import Options
from tests.proofs.mutation import Mutant
from tests.support.opensearch import ON_OPENSEARCH


def silent(line: str) -> None:
    """Nobody watches."""


def test_every_order_follows_from_its_figures_and_every_reason_is_right() -> None:
    made = explain.cases()[::5]
    report = explain.prove(Options(quiet=True), silent, parts=1, documents=150, questions=60, made=made)
    assert explain.held(report), report
    assert report["answers"] == report["rebuilt_equal"] == 60
    assert report["reasons"] == report["reasons_right"] == 2 * len(made)


@ON_OPENSEARCH
def test_on_OpenSearch_too(opensearch: str) -> None:
    options = Options(vectors="opensearch", server=opensearch, quiet=True)
    report = explain.prove(options, silent, parts=1, documents=40, questions=20, made=explain.cases()[::60])
    assert explain.held(report), report


def test_a_proof_that_looked_at_no_reason_does_not_hold() -> None:
    report = explain.prove(Options(quiet=True), silent, parts=1, documents=10, questions=1, made=[])
    assert report["reasons"] == 0
    assert not explain.held(report), "what looked at no reason has shown none to be right"


QUICK = (
    "a fusion has another k than its answer says",
    "matches by terms have the weight of those by vector",
    "the penalty raises a marginal relevance",
    "more matches take part than the answer says",
    "a search that gave up is named before what min_score cut",
    "it is not seen that hits are few for want of words",
    "the filter is said to leave out what is lost",
    "orphans are subtracted from the counters, which do not count them",
)


@pytest.mark.parametrize("mutant", mutants.named(*QUICK), ids=lambda mutant: mutant.name)
def test_a_protection_switched_off_turns_the_proof_red(mutant: Mutant) -> None:
    assert mutants.try_mutant(mutant, Options(), probes=()).seen

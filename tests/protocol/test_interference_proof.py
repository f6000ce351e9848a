"""The proof that tenants do not disturb one another, at a small size. Its protections switched off turn it red."""

import pytest

from core.vectors.opensearch.index import Engine
from tests.proofs import interference, mutants
from tests.proofs.command import Options
from tests.proofs.mutation import Mutant
from tests.proofs.probes import beside
from tests.support.opensearch import ON_OPENSEARCH, store_on

DOCUMENTS, OWN, QUESTIONS = 160, 60, 50


def test_what_another_tenant_ingests_and_deletes_changes_no_answer() -> None:
    report = interference.prove(Options(quiet=True), lambda line: None, DOCUMENTS, OWN, QUESTIONS)
    assert interference.held(report), report
    assert report["queries"] > 5 * QUESTIONS


@ON_OPENSEARCH
def test_nor_does_it_in_an_index_that_both_share(opensearch: str) -> None:
    options = Options(vectors="opensearch", server=opensearch)
    report = interference.prove(options, lambda line: None, DOCUMENTS, OWN, QUESTIONS)
    assert interference.held(report), report


def test_a_graph_says_that_it_is_approximate_since_others_can_change_its_answers() -> None:
    store = store_on("http://127.0.0.1:9", engine=Engine.LUCENE)
    assert "approximate" in (store.describe().type or "")
    store.close()


@pytest.mark.parametrize("mutant", mutants.probed_by(beside, "embedded"), ids=lambda mutant: mutant.name)
def test_a_protection_switched_off_turns_the_proof_red(mutant: Mutant) -> None:
    assert mutants.try_mutant(mutant, Options(), probes=()).seen


@ON_OPENSEARCH
@pytest.mark.parametrize("mutant", mutants.probed_by(beside, "opensearch"), ids=lambda mutant: mutant.name)
def test_a_protection_of_OpenSearch_switched_off_turns_the_proof_red(mutant: Mutant, opensearch: str) -> None:
    assert mutants.try_mutant(mutant, Options(vectors="opensearch", server=opensearch), probes=()).seen

"""The proof of isolation at a small size. Each of its protections switched off turns it red."""

import pytest

from tests.proofs import isolation, mutants
from tests.proofs.command import Options, hush
from tests.proofs.mutation import Mutant
from tests.proofs.probes import isolated
from tests.support.opensearch import ON_OPENSEARCH

TENANTS = 25


@pytest.fixture(autouse=True)
def quiet() -> None:
    hush()


def test_no_tenant_hears_of_another_or_changes_anything_of_another() -> None:
    report = isolation.prove(Options(quiet=True), lambda line: None, TENANTS, 1000)
    assert isolation.held(report), report
    assert report["requests"] >= 1000


@ON_OPENSEARCH
def test_nor_do_tenants_who_share_an_index_of_OpenSearch(opensearch: str) -> None:
    report = isolation.prove(Options(vectors="opensearch", server=opensearch), lambda line: None, TENANTS, 400)
    assert isolation.held(report), report


@pytest.mark.parametrize("mutant", mutants.probed_by(isolated, "embedded"), ids=lambda mutant: mutant.name)
def test_a_protection_switched_off_turns_the_proof_red(mutant: Mutant) -> None:
    assert mutants.try_mutant(mutant, Options(), probes=()).seen


@ON_OPENSEARCH
@pytest.mark.parametrize("mutant", mutants.probed_by(isolated, "opensearch"), ids=lambda mutant: mutant.name)
def test_a_protection_of_OpenSearch_switched_off_turns_the_proof_red(mutant: Mutant, opensearch: str) -> None:
    assert mutants.try_mutant(mutant, Options(vectors="opensearch", server=opensearch), probes=()).seen

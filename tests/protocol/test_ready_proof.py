"""The proof that ready means retrievable, at a small size. Its protections switched off turn it red."""

from tests.proofs import mutants, ready
from tests.proofs.command import Options
from tests.proofs.probes import readied
from tests.support.opensearch import ON_OPENSEARCH

PAIRS = 160


def test_what_has_just_been_ingested_is_in_the_answer_to_its_own_text() -> None:
    report = ready.prove(Options(quiet=True), lambda line: None, PAIRS)
    assert ready.held(report), report
    assert report["found"] == report["pairs"] == PAIRS
    assert set(report["kinds"]) == {"with a key", "without a key", "new version"}


@ON_OPENSEARCH
def test_so_it_is_where_OpenSearch_becomes_searchable_now_and_then(opensearch: str) -> None:
    report = ready.prove(Options(vectors="opensearch", server=opensearch), lambda line: None, PAIRS // 2)
    assert ready.held(report), report


def test_a_store_that_does_not_see_what_another_process_wrote_turns_the_proof_red() -> None:
    (mutant,) = mutants.probed_by(readied, "embedded")
    assert mutants.try_mutant(mutant, Options(), probes=()).seen


@ON_OPENSEARCH
def test_a_refresh_that_is_not_waited_for_turns_the_proof_red(opensearch: str) -> None:
    (mutant,) = mutants.probed_by(readied, "opensearch")
    assert mutants.try_mutant(mutant, Options(vectors="opensearch", server=opensearch), probes=()).seen

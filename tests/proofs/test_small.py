"""Every proof at a small size; `make proofs` runs them whole. Mutants turn each proof red."""

from collections.abc import Callable
from typing import Any

import pytest

from core.vectors.opensearch.index import KnnEngine
from tests.proofs import (
    citations,
    crash,
    explain,
    interference,
    isolation,
    late_writers,
    mutants,
    races,
    ready,
    reconcile,
    redelivery,
    sweep,
)
from tests.proofs.command import Options, Report, hush
from tests.proofs.killed import kill
from tests.proofs.mutation import Mutant, switched_off
from tests.proofs.probes import Probe, beside, isolated, readied, redelivered, repaired, stuck
from tests.support.opensearch import ON_OPENSEARCH, store_on

OPTIONS = Options(quiet=True)
CASES = explain.cases()[::5]
FEW_CASES = explain.cases()[::60]
CHUNKS = 3000
TENANTS = 30


def silent(line: str) -> None:
    """Progress that nobody watches."""


@pytest.fixture(autouse=True)
def hushed() -> None:
    hush()


Prove = Callable[[Options], Report]
EMBEDDED: dict[Any, tuple[Prove, Callable[[Report], object]]] = {
    crash: (lambda o: crash.prove(o, silent, share=0.03, kills=0), lambda r: r["cuts"] > 200),
    races: (
        lambda o: races.prove(o, silent, races.Size(pairs=150, per_pair=5, storms=100, crowd=20)),
        lambda r: r["interleavings"] > 700,
    ),
    late_writers: (lambda o: late_writers.prove(o, silent, share=0.15), lambda r: r["cases"] > 150),
    redelivery: (
        lambda o: redelivery.prove(o, silent, 50),
        lambda r: r["embeddings_per_content"] == 1 and r["deaths"] > 5 and r["deliveries"] > 10 * r["objects"],
    ),
    reconcile: (
        lambda o: reconcile.prove(o, silent, CHUNKS, 6),
        lambda r: r["damaged"] >= 0.01 * CHUNKS and not r["false_repairs"] and r["deaths"],
    ),
    sweep: (
        lambda o: sweep.prove(o, silent, TENANTS),
        lambda r: (
            r["documents"] == r["failed"] + r["purged"] == sweep.EACH * TENANTS
            and r["requests"] <= 1.75 * r["requests_least"]
        ),
    ),
    isolation: (lambda o: isolation.prove(o, silent, 25, 1000), lambda r: r["requests"] >= 1000),
    interference: (lambda o: interference.prove(o, silent, 160, 60, 50), lambda r: r["queries"] > 250),
    ready: (
        lambda o: ready.prove(o, silent, 160),
        lambda r: r["found"] == r["pairs"] == 160 and set(r["kinds"]) == {"with a key", "without a key", "new version"},
    ),
    explain: (
        lambda o: explain.prove(o, silent, parts=1, documents=150, questions=60, made=CASES),
        lambda r: r["answers"] == r["rebuilt_equal"] == 60 and r["reasons"] == r["reasons_right"] == 2 * len(CASES),
    ),
    citations: (
        lambda o: citations.prove(o, silent, parts=1, documents=8, questions=20),
        lambda r: (
            r["contexts"] == 40 and r["markers"] == r["exact_spans"] > 100 and r["fills"] and not r["over_budget"]
        ),
    ),
}
"""By proof: how a small size of it runs, and what its report must show: that enough was tried."""

OPENSEARCH: dict[Any, Prove] = {
    isolation: lambda o: isolation.prove(o, silent, 25, 400),
    interference: lambda o: interference.prove(o, silent, 160, 60, 50),
    ready: lambda o: ready.prove(o, silent, 80),
    explain: lambda o: explain.prove(o, silent, parts=1, documents=40, questions=20, made=FEW_CASES),
}


def name_of(proof: Any) -> str:
    return str(proof.__name__.rpartition(".")[2])


@pytest.mark.parametrize("proof", EMBEDDED, ids=name_of)
def test_a_proof_holds_and_has_tried_enough_at_a_small_size(proof: Any) -> None:
    prove, tried_enough = EMBEDDED[proof]
    report = prove(OPTIONS)
    assert proof.held(report), report
    assert report["broken"] == []
    assert tried_enough(report), report


@ON_OPENSEARCH
@pytest.mark.parametrize("proof", OPENSEARCH, ids=name_of)
def test_a_proof_holds_on_OpenSearch_at_a_small_size(proof: Any, opensearch: str) -> None:
    report = OPENSEARCH[proof](Options(vectors="opensearch", server=opensearch, quiet=True))
    assert proof.held(report), report


def test_killed_processes_lose_nothing_that_was_acknowledged() -> None:
    assert kill(10, seed=0, tell=silent) == []


def test_documents_that_cannot_be_cleaned_keep_no_sweep_from_the_others() -> None:
    assert sweep.stuck_problems() == []


def test_a_proof_that_looked_at_no_reason_does_not_hold() -> None:
    report = explain.prove(OPTIONS, silent, parts=1, documents=10, questions=1, made=[])
    assert report["reasons"] == 0
    assert not explain.held(report), "a proof that looked at no reason has shown no reason to be right"


def test_a_graph_says_that_its_answers_are_approximate() -> None:
    store = store_on("http://127.0.0.1:9", engine=KnnEngine.LUCENE)
    assert "approximate" in (store.describe().type or "")
    store.close()


# -- mutants -----------------------------------------------------------------------------------------

QUICK = mutants.named(
    # crash, races, late_writers
    "the attempt is not compared before the swap",
    "chunks are written that are not reserved",
    "a version is swapped in over a newer one",
    "an attempt does not recognise that it has made its document ready",
    "an ingest does not recognise the document that it has begun itself",
    "a swap leaves the version among its source's versions in progress",
    "a match is shown whatever its source serves",
    "a further round searches among the hidden generations too",
    "the tenant of a match is not checked",
    "a sweep fails a document that has had a heartbeat since the cutoff",
    "the swap does not compare the attempt",
    "a removal leaves no late-writer mark",
    "a delete leaves vectors",
    # citations
    "the text that two chunks share stands twice",
    "the text between two chunks is not that of the document",
    "a chunk stands twice in a context",
    "hits have no neighbours",
    "a context is estimated, and not counted where it could fit",
    # explain
    "a fusion has another k than its answer says",
    "matches by terms have the weight of those by vector",
    "the penalty raises a marginal relevance",
    "more matches take part than the answer says",
    "a search that gave up is named before what min_score cut",
    "it is not seen that hits are few for want of words",
    "the filter is said to leave out what is lost",
    "orphans are subtracted from the counters, which do not count them",
)
PROBES = (beside, isolated, readied)


def probed_by_all(store: str) -> list[Mutant]:
    """The mutants of the proofs of interference, isolation and readiness."""
    return [mutant for probe in PROBES for mutant in mutants.probed_by(probe, store)]


@pytest.mark.parametrize("mutant", [*QUICK, *probed_by_all("embedded")], ids=lambda mutant: mutant.name)
def test_a_protection_switched_off_turns_its_proof_red(mutant: Mutant) -> None:
    assert mutants.try_mutant(mutant, Options(), probes=()).seen


@ON_OPENSEARCH
@pytest.mark.parametrize("mutant", probed_by_all("opensearch"), ids=lambda mutant: mutant.name)
def test_a_protection_of_OpenSearch_switched_off_turns_its_proof_red(mutant: Mutant, opensearch: str) -> None:
    assert mutants.try_mutant(mutant, Options(vectors="opensearch", server=opensearch), probes=()).seen


@pytest.mark.parametrize(
    ("name", "probe", "kind"),
    [
        ("reconcile removes vectors of documents in progress", repaired, "false_repairs"),
        ("reconcile leaves vectors without a document", repaired, "left"),
        ("a row whose handling has failed is due again at once", stuck, "left"),
        ("a message is acknowledged while its document is in progress", redelivered, "unsettled"),
    ],
)
def test_a_proof_names_the_kind_of_promise_that_a_mutant_breaks(name: str, probe: Probe, kind: str) -> None:
    [mutant] = mutants.named(name)
    with switched_off(mutant):
        assert any(tally.problems[kind] for tally in probe(OPTIONS))

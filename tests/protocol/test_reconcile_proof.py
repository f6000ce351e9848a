"""The proof of reconcile at a small size."""

import pytest

from tests.proofs import reconcile
from tests.proofs.command import Options

CHUNKS, TRIALS = 3000, 6


def test_everything_that_disagrees_is_found_and_repaired_and_nothing_else_is_touched() -> None:
    report = reconcile.prove(Options(quiet=True), lambda line: None, CHUNKS, TRIALS)
    assert reconcile.held(report), report
    assert report["damaged"] >= 0.01 * CHUNKS
    assert report["false_repairs"] == 0
    assert report["deaths"], "some workers died"


def test_the_proof_sees_a_reconcile_that_takes_what_is_in_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.recovery.reconcile._is_in_progress", lambda *_: False)
    assert reconcile.try_small(Options(), 1, lambda line: None).problems["false_repairs"]


def test_the_proof_sees_a_reconcile_that_leaves_vectors_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.recovery.reconcile.ReconcileService._without_document", lambda *_: [])
    assert reconcile.try_small(Options(), 1, lambda line: None).problems["left"]

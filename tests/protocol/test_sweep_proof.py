"""The proof of the sweep at a small size."""

import pytest

from core.recovery.sweep import RecoveryService
from tests.proofs import sweep
from tests.proofs.command import Options

TENANTS = 30


def test_sweeps_settle_every_stalled_document_and_ask_for_little_more_than_they_must() -> None:
    report = sweep.prove(Options(quiet=True), lambda line: None, TENANTS)
    assert sweep.held(report), report
    assert report["documents"] == report["failed"] + report["purged"] == sweep.EACH * TENANTS
    assert report["requests"] <= 1.75 * report["requests_least"], report


def test_documents_that_cannot_be_cleaned_keep_no_sweep_from_the_others() -> None:
    assert sweep.stuck_problems() == []


def test_the_proof_sees_a_sweep_that_comes_back_to_what_it_cannot_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecoveryService, "_postpone", lambda *_: None)
    assert sweep.stuck_problems()

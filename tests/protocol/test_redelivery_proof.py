"""The proof of redelivery at a small size."""

import pytest

from functions.ingest.events import QueueMessages
from tests.proofs import redelivery
from tests.proofs.command import Options

OBJECTS = 25


def test_events_delivered_again_and_again_are_embedded_once_and_the_last_state_wins() -> None:
    report = redelivery.prove(Options(quiet=True), lambda line: None, 2 * OBJECTS)
    assert redelivery.held(report), report
    assert report["embeddings_per_content"] == 1.0
    assert report["deaths"] > 5, report
    assert report["deliveries"] > 10 * report["objects"], report


def test_the_proof_sees_a_handler_that_acknowledges_what_another_is_still_at(monkeypatch: pytest.MonkeyPatch) -> None:
    ingest = QueueMessages._ingest

    def hastily(*arguments: object) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("functions.ingest.events.NotAcknowledgedError", HastilyError)
            try:
                ingest(*arguments)  # type: ignore[arg-type]  # what it was given
            except HastilyError:
                return

    monkeypatch.setattr(QueueMessages, "_ingest", hastily)
    tally = redelivery.try_objects(Options(), "hasty", OBJECTS, deadly=True).tally
    assert tally.problems["unsettled"], tally


class HastilyError(Exception):
    """Taken for success."""

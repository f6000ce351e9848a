"""Mutants of the queue's handler, which brings the bucket's changes into the engine."""

from functions.ingest import events
from functions.ingest.events import QueueMessages
from tests.proofs.edits import becomes, instead, skip, value
from tests.proofs.mutation import Mutant
from tests.proofs.probes import redelivered

MUTANTS = (
    Mutant(
        "a message is acknowledged while its document is in progress",
        instead(QueueMessages._ingest, "NotAcknowledgedError()", "return"),
        probes=[redelivered],
    ),
    Mutant(
        "sequencers of different lengths are compared as they are",
        becomes(events._source_version, "ljust()", "_0"),
        probes=[redelivered],
    ),
    Mutant(
        "an object that was created has no source version",
        value(events._input_without_content, "source_version", "None"),
        probes=[redelivered],
    ),
    Mutant(
        "an object that was removed has no source version",
        value(QueueMessages._remove, "source_version", "None"),
        probes=[redelivered],
    ),
    Mutant(
        "the current version of an object is ingested, not that of the event",
        becomes(QueueMessages._apply_change, "version_id", "None"),
        probes=[redelivered],
    ),
    Mutant(
        "a source is removed when one version of its object is deleted",
        becomes(QueueMessages._apply_change, "apply_current_version", "self._remove"),
        probes=[redelivered],
    ),
    Mutant(
        "a refused object leaves no document that says why",
        skip(QueueMessages._record_refusal, "refuse()"),
        probes=[redelivered],
    ),
    Mutant(
        "the keys of objects are not decoded",
        becomes(QueueMessages._handle_change, "unquote_plus()", "_1"),
        probes=[redelivered],
    ),
)

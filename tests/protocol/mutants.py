"""Mutants of the protocol: its transitions, its decisions, and what is served."""

from core.ingest.hold import DocumentHold
from core.protocol import transitions
from core.protocol.decide import decide, removal_number
from core.protocol.served import is_ready_under, source_serves
from core.protocol.transitions import Transitions
from core.protocol.writes import Writes
from tests.proofs.edits import always, becomes, clause, never, parameter, skip, value, without
from tests.proofs.mutation import Mutant
from tests.proofs.probes import LATE, cut, late, race, script

MUTANTS = (
    # -- attempt ---------------------------------------------------------------------------------------
    Mutant(
        "the swap does not compare the attempt",
        clause(Transitions.swap, "attempt"),
        probes=[script("an old attempt swaps")],
    ),
    Mutant(
        "neither a heartbeat nor the swap compares the attempt, nor is it read before the swap",
        clause(Transitions.swap, "attempt"),
        clause(Transitions.heartbeat, "attempt"),
        never(DocumentHold._swap, "attempt"),
        probes=[LATE],
    ),
    Mutant(
        "the failure does not compare the attempt",
        clause(Transitions.fail, "attempt"),
        probes=[script("an old attempt has read, and fails")],
    ),
    Mutant(
        "a claim does not raise the attempt",
        value(Transitions.claim, "next", "_1"),
        probes=[cut("claim")],
    ),
    Mutant(
        "a source serves whatever attempt wrote its current document",
        always(source_serves, "attempt"),
        probes=[LATE],
    ),
    Mutant(
        "a ready document is served whatever attempt wrote it",
        always(is_ready_under, "attempt"),
        probes=[LATE],
    ),
    # -- reserved --------------------------------------------------------------------------------------
    Mutant(
        "a removal does not compare how many chunks are reserved",
        clause(Transitions.remove, "reserved"),
        probes=[script("records how much")],
    ),
    # -- heartbeat -------------------------------------------------------------------------------------
    Mutant(
        "a sweep fails a document that has had a heartbeat since the cutoff",
        never(Transitions.fail, "cutoff"),
        probes=[script("a sweep has read")],
    ),
    Mutant(
        "a claim does not compare the heartbeat",
        clause(Transitions.claim, "heartbeat"),
        probes=[script("a claim has read")],
    ),
    # -- revision --------------------------------------------------------------------------------------
    Mutant(
        "a source is written whether it is as it was read or not",
        without(Writes.source, "condition"),
        probes=[race("served: ingest")],
    ),
    Mutant(
        "a source is written over without a look at its revision",
        clause(Writes.source, "revision"),
        probes=[race("served: ingest")],
    ),
    Mutant(
        "a content row is written whoever holds it",
        without(Writes.content_holder, "condition"),
        probes=[race("unkeyed")],
    ),
    # -- number ----------------------------------------------------------------------------------------
    Mutant(
        "the document's row keeps its number when the document is renumbered",
        parameter(Transitions.renumber, "number", "head.number"),
        probes=[race("versions")],
    ),
    Mutant(
        "a source version that is lower than the last is begun",
        never(decide, "number < version"),
        probes=[race("versions")],
    ),
    Mutant(
        "a removal with a lower source version than the last is carried out",
        never(removal_number, "number < version"),
        probes=[race("versions")],
    ),
    # -- versions in progress --------------------------------------------------------------------------
    Mutant(
        "a swap leaves the version among its source's versions in progress",
        without(transitions._serving, "in_progress"),
        probes=[cut("replace", 0.1)],
    ),
    Mutant(
        "a document that ends stays among its source's versions in progress",
        always(Transitions.release, "in_progress"),
        probes=[cut("fails", 0.3)],
    ),
    Mutant(
        "a document that ends keeps its content row",
        always(Transitions.release, "holder"),
        probes=[cut("without a key", 0.3)],
    ),
    # -- late-writer marks -----------------------------------------------------------------------------
    Mutant(
        "a failed document is cleaned again at once, not after the writer's life",
        becomes(Transitions.fail, "end_of_life()", "_1"),
        probes=[cut("first ingest"), LATE],
    ),
    Mutant(
        "a late-writer mark is due at once, not after the writer's life",
        becomes(Writes.late_writer_mark, "end_of_life()", "_1"),
        probes=[late("first ingest")],
    ),
    Mutant(
        "a claim leaves no late-writer mark",
        skip(Transitions.claim, "late_writer_mark()"),
        probes=[LATE],
    ),
    Mutant(
        "a removal leaves no late-writer mark",
        skip(Transitions.remove, "late_writer_mark()"),
        probes=[LATE],
    ),
    # -- gates and counters ----------------------------------------------------------------------------
    Mutant(
        "a document begins and turns ready behind a closed gate",
        clause(Writes.count, "opened"),
        probes=[race("delete collection")],
    ),
    Mutant(
        "a swap leaves its document in the count of documents in progress",
        without(Transitions.swap, "working", of="documents"),
        probes=[cut("first ingest", 0.02)],
    ),
    Mutant(
        "a swap leaves the replaced version's chunks in the count",
        value(Transitions.swap, "chunks", "_1", of="Counts - current"),
        probes=[cut("replace", 0.02)],
    ),
    Mutant(
        "a removal leaves its document in the count of documents in progress",
        without(Transitions.remove, "working"),
        probes=[cut("delete document", 0.02)],
    ),
)

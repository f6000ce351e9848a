"""Mutants of the protocol: its transitions, its decisions, and what is served."""

from core.ingest.decide import decide, removal_number
from core.ingest.owner import Owner
from core.metadata.transitions import Transitions
from core.retrieval.visibility import is_current, is_ready
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
        never(Owner._swap, "attempt"),
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
        always(is_current, "attempt"),
        probes=[LATE],
    ),
    Mutant(
        "a ready document is served whatever attempt wrote it",
        always(is_ready, "attempt"),
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
        without(Transitions._put_source, "condition"),
        probes=[race("served: ingest")],
    ),
    Mutant(
        "a source is written over without a look at its revision",
        clause(Transitions._put_source, "revision"),
        probes=[race("served: ingest")],
    ),
    Mutant(
        "a content row is written whoever holds it",
        without(Transitions.begin_unkeyed, "condition"),
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
    # -- work ------------------------------------------------------------------------------------------
    Mutant(
        "a swap leaves the version in its source's work",
        without(Transitions.swap, "work"),
        probes=[cut("replace", 0.1)],
    ),
    Mutant(
        "a document that ends stays in its source's work",
        always(Transitions.release, "work"),
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
        becomes(Transitions.fail, "writer_life +", "_1"),
        probes=[cut("first ingest"), LATE],
    ),
    Mutant(
        "a late-writer mark is due at once, not after the writer's life",
        becomes(Transitions._put_gone, "writer_life +", "_1"),
        probes=[late("first ingest")],
    ),
    Mutant(
        "a claim leaves no late-writer mark",
        skip(Transitions.claim, "put_gone()"),
        probes=[LATE],
    ),
    Mutant(
        "a removal leaves no late-writer mark",
        skip(Transitions.remove, "put_gone()"),
        probes=[LATE],
    ),
    # -- gates and counters ----------------------------------------------------------------------------
    Mutant(
        "a document begins and turns ready behind a closed gate",
        clause(Transitions._gate, "opened"),
        probes=[race("delete collection")],
    ),
    Mutant(
        "a swap leaves its document in the count of work",
        without(Transitions.swap, "working", of="documents"),
        probes=[cut("first ingest", 0.02)],
    ),
    Mutant(
        "a swap leaves the replaced version's chunks in the count",
        value(Transitions.swap, "chunks", "_1", of="Counts - current"),
        probes=[cut("replace", 0.02)],
    ),
    Mutant(
        "a removal leaves its document in the count of work",
        without(Transitions.remove, "working"),
        probes=[cut("delete document", 0.02)],
    ),
)

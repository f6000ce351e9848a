"""Mutants of recovery: the sweep, reconcile and reindex."""

from core.recovery import pieces, reconcile
from core.recovery.reconcile import ReconcileService
from core.recovery.revector import write_again
from core.recovery.sweep import RecoveryService
from tests.proofs.edits import always, becomes, never, skip, value
from tests.proofs.mutation import Mutant
from tests.proofs.probes import LATE, cut, race, repaired, script

MUTANTS = (
    # -- sweep -----------------------------------------------------------------------------------------
    Mutant(
        "a late-writer mark is removed without the data that it names",
        skip(RecoveryService._mark, "remove_data()"),
        probes=[LATE, cut("removed")],
    ),
    Mutant(
        "the sweep leaves the data of a failed document",
        skip(RecoveryService._clean, "remove_data()"),
        probes=[cut("sweep of a failed")],
    ),
    Mutant(
        "the sweep leaves superseded documents",
        becomes(RecoveryService._document, "purge()", "(True, 0)"),
        probes=[cut("sweep of a superseded", 0.2)],
    ),
    Mutant(
        "the sweep leaves sources and content rows that came into an emptied collection",
        skip(RecoveryService._collection, "remove_entries()"),
        probes=[script("a removal is written")],
    ),
    # -- reindex ---------------------------------------------------------------------------------------
    Mutant(
        "a reindex writes after its writer's life",
        never(write_again, "is_over"),
        probes=[script("a reindex wakes up")],
    ),
    # -- reconcile -------------------------------------------------------------------------------------
    Mutant(
        "reconcile removes vectors of documents in progress",
        never(reconcile._is_in_progress, "in_progress"),
        probes=[race("reconcile")],
    ),
    Mutant(
        "reconcile leaves vectors beyond a document's last chunk",
        always(reconcile._is_served, "chunk_index"),
        probes=[repaired],
    ),
    Mutant(
        "reconcile leaves vectors of another attempt",
        always(reconcile._is_served, "attempt"),
        probes=[repaired],
    ),
    Mutant(
        "reconcile leaves the vector of a lost chunk",
        value(ReconcileService._rows, "removed", "0"),
        probes=[repaired],
    ),
    Mutant(
        "a job that stopped inside a document goes on behind it",
        becomes(pieces.next_pieces, "chunk_index", "10**9"),
        probes=[repaired],
    ),
)

"""Mutants of recovery: the sweep, reconcile and reindex."""

from core.protocol.served import has_ready_chunk
from core.recovery.due_rows import DueRows
from core.recovery.ready_chunks import next_ready_chunks
from core.recovery.reconcile import ReconcileService
from core.recovery.reembedding import Reembedding
from core.recovery.sweep import RecoveryService
from tests.proofs.edits import always, becomes, never, skip
from tests.proofs.mutation import Mutant
from tests.proofs.probes import LATE, cut, race, repaired, script, stuck

MUTANTS = (
    # -- sweep -----------------------------------------------------------------------------------------
    Mutant(
        "a late-writer mark is removed without the data that it names",
        skip(DueRows._late_writer_mark, "remove_data()"),
        probes=[LATE, cut("removed")],
    ),
    Mutant(
        "the sweep leaves the data of a failed document",
        skip(DueRows._remove_data, "remove_data()"),
        probes=[cut("sweep of a failed")],
    ),
    Mutant(
        "the sweep leaves superseded documents",
        becomes(DueRows._document, "purge() rows_removed", "True"),
        probes=[cut("sweep of a superseded", 0.2)],
    ),
    Mutant(
        "the sweep leaves sources and content rows that came into an emptied collection",
        skip(DueRows._collection, "remove_entries()"),
        probes=[script("a removal is written")],
    ),
    Mutant(
        "a row whose handling has failed is due again at once",
        skip(RecoveryService._sweep, "postpone()"),
        probes=[stuck],
    ),
    # -- reindex ---------------------------------------------------------------------------------------
    Mutant(
        "a reindex writes after its writer's life",
        never(Reembedding.reembed, "is_over"),
        probes=[script("a reindex wakes up")],
    ),
    # -- reconcile -------------------------------------------------------------------------------------
    Mutant(
        "reconcile removes vectors of documents in progress",
        always(ReconcileService._without_document, "may_be_written"),
        probes=[race("reconcile")],
    ),
    Mutant(
        "reconcile leaves vectors without a document",
        becomes(ReconcileService._check_vectors, "without_document()", "[]"),
        probes=[repaired],
    ),
    Mutant(
        "reconcile leaves vectors beyond a document's last chunk",
        always(has_ready_chunk, "chunk_index"),
        probes=[repaired],
    ),
    Mutant(
        "reconcile leaves vectors of another attempt",
        becomes(has_ready_chunk, "attempt", "head.attempt"),
        probes=[repaired],
    ),
    Mutant(
        "reconcile leaves the vector of a lost chunk",
        becomes(ReconcileService._check_rows, "delete()", "0"),
        probes=[repaired],
    ),
    Mutant(
        "a job that stopped inside a document goes on behind it",
        becomes(next_ready_chunks, "chunk_index", "10**9"),
        probes=[repaired],
    ),
)

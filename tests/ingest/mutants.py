"""Mutants of ingest: an attempt's hold on its document, and what becomes of the document when the attempt ends."""

from core.ingest.attempt import Attempt, mark_failed
from core.ingest.ingest import IngestService
from core.ingest.owner import Owner
from tests.proofs.edits import always, instead, never, skip, without
from tests.proofs.mutation import Mutant
from tests.proofs.probes import LATE, cut, late, race, script

MUTANTS = (
    # -- the hold on a document ------------------------------------------------------------------------
    Mutant(
        "the attempt is not compared before the swap",
        never(Owner._swap, "attempt"),
        probes=[LATE],
    ),
    Mutant(
        "a version is swapped in over a newer one",
        never(Owner._swap, "current_number"),
        probes=[race("served: ingest | ingest of other content"), cut("overtaken")],
    ),
    Mutant(
        "an attempt does not recognise that it has made its document ready",
        always(Owner._swap, "settled"),
        probes=[cut("first ingest", 0.5)],
    ),
    Mutant(
        "a writer writes after its life",
        never(Owner._check_time, "is_over"),
        probes=[late("first ingest")],
    ),
    Mutant(
        "chunks are written that are not reserved",
        without(Attempt._chunk, "reserve"),
        probes=[cut("first ingest", 0.2)],
    ),
    # -- the end of an attempt -------------------------------------------------------------------------
    Mutant(
        "the attempt is not compared before the failure",
        never(mark_failed, "attempt"),
        probes=[script("an old attempt reads, and fails")],
    ),
    Mutant(
        "an attempt that ends badly does not look whether its document is ready after all",
        never(Attempt._end_badly, "attempt"),
        probes=[cut("replace")],
    ),
    Mutant(
        "an attempt removes its data although its document may be ready",
        instead(Attempt._end_badly, "warning()", "self._discard()"),
        probes=[cut("first ingest")],
    ),
    Mutant(
        "an attempt that has lost its document leaves its data",
        skip(Attempt._discard, "remove_data()"),
        probes=[LATE],
    ),
    # -- begin and claim -------------------------------------------------------------------------------
    Mutant(
        "an ingest does not recognise the document that it has begun itself",
        never(IngestService._join, "writer"),
        probes=[cut("first ingest", 0.5)],
    ),
    Mutant(
        "an ingest claims a document that has just had a heartbeat",
        never(IngestService._join, "heartbeat"),
        probes=[race("served: ingest |")],
    ),
    Mutant(
        "a document has more attempts than an attempt's number can say",
        never(IngestService._join, "MAX_ATTEMPT"),
        probes=[cut("claim beyond")],
    ),
    Mutant(
        "the source keeps its number when its document is renumbered",
        without(IngestService._renumber, "current_number"),
        probes=[race("versions")],
    ),
)

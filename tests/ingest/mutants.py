"""Mutants of ingest: an attempt's hold on its document, and what becomes of the document when the attempt ends."""

from core.ingest.attempt import AttemptRunner
from core.ingest.begin import Beginning
from core.ingest.hold import DocumentHold
from core.ingest.keyed import KeyedBeginning
from core.protocol.failing import Failing
from tests.proofs.edits import always, instead, never, skip, without
from tests.proofs.mutation import Mutant
from tests.proofs.probes import LATE, cut, late, race, script

MUTANTS = (
    # -- the hold on a document ------------------------------------------------------------------------
    Mutant(
        "the attempt is not compared before the swap",
        never(DocumentHold._swap, "attempt"),
        probes=[LATE],
    ),
    Mutant(
        "a version is swapped in over a newer one",
        never(DocumentHold._swap, "current_number"),
        probes=[race("served: ingest | ingest of other content"), cut("overtaken")],
    ),
    Mutant(
        "an attempt does not recognise that it has made its document ready",
        always(DocumentHold._swap, "result"),
        probes=[cut("first ingest", 0.5)],
    ),
    Mutant(
        "a writer writes after its life",
        never(DocumentHold.check_time, "is_over"),
        probes=[late("first ingest")],
    ),
    Mutant(
        "chunks are written that are not reserved",
        without(AttemptRunner._load_and_split, "reserve"),
        probes=[cut("first ingest", 0.2)],
    ),
    # -- the end of an attempt -------------------------------------------------------------------------
    Mutant(
        "the attempt is not compared before the failure",
        never(Failing.mark, "attempt"),
        probes=[script("an old attempt reads, and fails")],
    ),
    Mutant(
        "an attempt that ends badly does not look whether its document is ready after all",
        never(AttemptRunner._end_in_failure, "attempt =="),
        probes=[cut("replace")],
    ),
    Mutant(
        "an attempt removes its data although its document may be ready",
        instead(AttemptRunner._end_in_failure, "warning()", "self._discard(attempt)"),
        probes=[cut("first ingest")],
    ),
    Mutant(
        "an attempt that has lost its document leaves its data",
        skip(AttemptRunner._discard, "remove_data()"),
        probes=[LATE],
    ),
    # -- begin and claim -------------------------------------------------------------------------------
    Mutant(
        "an ingest does not recognise the document that it has begun itself",
        never(Beginning.join_or_claim, "writer"),
        probes=[cut("first ingest", 0.5)],
    ),
    Mutant(
        "an ingest claims a document that has just had a heartbeat",
        never(Beginning.join_or_claim, "heartbeat"),
        probes=[race("served: ingest |")],
    ),
    Mutant(
        "a document has more attempts than an attempt's number can say",
        never(Beginning.join_or_claim, "MAX_ATTEMPT"),
        probes=[cut("claim beyond")],
    ),
    Mutant(
        "the source keeps its number when its document is renumbered",
        without(KeyedBeginning._renumber, "current_number"),
        probes=[race("versions")],
    ),
)

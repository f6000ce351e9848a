"""Mutants of deletion: of a document's data, a document, a source and a collection."""

from core.ingest import delete, purge
from tests.proofs.edits import always, becomes, instead, never, skip, without
from tests.proofs.mutation import Mutant
from tests.proofs.probes import cut, race, script

MUTANTS = (
    # -- data ------------------------------------------------------------------------------------------
    Mutant("a delete leaves vectors", becomes(purge.remove_data, "delete()", "0"), probes=[cut("delete", 0.1)]),
    Mutant("a delete leaves chunk rows", skip(purge.remove_data, "delete_chunks()"), probes=[cut("delete", 0.1)]),
    # -- documents -------------------------------------------------------------------------------------
    Mutant(
        "a document that turns ready while it is deleted loses its data before it is no longer served",
        never(delete._remove, "READY"),
        probes=[race("stalled: ingest | delete document")],
    ),
    Mutant(
        "a document that turns ready while it is deleted stays",
        becomes(delete.delete_document, "remove()", "(_, True)[1]"),
        probes=[race("stalled: ingest | delete document")],
    ),
    Mutant(
        "a source goes on naming a document that was deleted",
        becomes(delete._stop_serving, "forget()", "[]"),
        probes=[cut("delete document", 0.2)],
    ),
    # -- sources ---------------------------------------------------------------------------------------
    Mutant(
        "the delete of a source removes versions that began after it",
        never(purge._take_rows, "number"),
        always(delete.delete_source, "number <"),
        probes=[race("served: ingest | delete source", 300), race("empty: ingest | delete source", 300)],
    ),
    Mutant(
        "a removal takes no number in its source",
        without(delete._remove_current, "current_number"),
        probes=[race("served: ingest | delete source")],
    ),
    Mutant(
        "a source does not remember the source version of a removal",
        without(delete._remove_current, "seen"),
        probes=[race("versions")],
    ),
    Mutant(
        "a removal leaves the versions in its source's work",
        without(delete._remove_current, "work"),
        probes=[script("overtaken by a removal")],
    ),
    # -- collections -----------------------------------------------------------------------------------
    Mutant(
        "the gates stay open when a collection is deleted",
        skip(delete.delete_collection, "close_gates"),
        probes=[race("delete collection")],
    ),
    Mutant(
        "a collection counts as empty as soon as its listing is",
        instead(delete._empty, "sleep()", "return True"),
        probes=[race("listing lags")],
    ),
    Mutant(
        "an emptied collection is not looked at again after the writer's life",
        becomes(delete._finish, "writer_life +", "_1"),
        probes=[script("a removal is written")],
    ),
)

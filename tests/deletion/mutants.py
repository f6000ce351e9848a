"""Mutants of deletion: of a document's data, a document, a source and a collection."""

from core.deletion.collections import CollectionDeletion
from core.deletion.documents import DocumentDeletion
from core.deletion.purge import Purger
from core.deletion.sources import SourceDeletion
from tests.proofs.edits import always, becomes, instead, never, skip, without
from tests.proofs.mutation import Mutant
from tests.proofs.probes import cut, race, script

MUTANTS = (
    # -- data ------------------------------------------------------------------------------------------
    Mutant("a delete leaves vectors", becomes(Purger.remove_data, "delete()", "0"), probes=[cut("delete", 0.1)]),
    Mutant("a delete leaves chunk rows", skip(Purger.remove_data, "delete_chunks()"), probes=[cut("delete", 0.1)]),
    # -- documents -------------------------------------------------------------------------------------
    Mutant(
        "a document that turns ready while it is deleted loses its data before it is no longer served",
        never(DocumentDeletion.remove, "READY"),
        probes=[race("stalled: ingest | delete document")],
    ),
    Mutant(
        "a document that turns ready while it is deleted stays",
        becomes(DocumentDeletion.delete, "remove()", "(_, True)[1]"),
        probes=[race("stalled: ingest | delete document")],
    ),
    Mutant(
        "a source goes on naming a document that was deleted",
        becomes(DocumentDeletion._stop_serving, "forget()", "[]"),
        probes=[cut("delete document", 0.2)],
    ),
    # -- sources ---------------------------------------------------------------------------------------
    Mutant(
        "the delete of a source removes versions that began after it",
        never(Purger._interrupt, "number"),
        always(SourceDeletion.delete, "number <"),
        probes=[race("served: ingest | delete source", 300), race("empty: ingest | delete source", 300)],
    ),
    Mutant(
        "a removal takes no number in its source",
        without(SourceDeletion._remove_current, "current_number"),
        probes=[race("served: ingest | delete source")],
    ),
    Mutant(
        "a source does not remember the source version of a removal",
        skip(SourceDeletion._remove_current, "seen()"),
        probes=[race("versions")],
    ),
    Mutant(
        "a removal leaves its source's versions in progress",
        without(SourceDeletion._remove_current, "in_progress"),
        probes=[script("overtaken by a removal")],
    ),
    # -- collections -----------------------------------------------------------------------------------
    Mutant(
        "the gates stay open when a collection is deleted",
        skip(CollectionDeletion.delete, "close_gates"),
        probes=[race("delete collection")],
    ),
    Mutant(
        "a collection counts as empty as soon as its listing is",
        instead(CollectionDeletion._remove_documents, "sleep()", "return True"),
        probes=[race("listing lags")],
    ),
    Mutant(
        "an emptied collection is not looked at again after the writer's life",
        becomes(CollectionDeletion._finish, "writer_life +", "_1"),
        probes=[script("a removal is written")],
    ),
)

"""Mutants of the metadata: rows of collections, of jobs and of the sweep's index, page tokens, and keys."""

from core.catalog.documents import DocumentService
from core.metadata import table
from core.metadata.collections import Collections
from core.metadata.jobs import Jobs
from core.metadata.paging import PageTokens
from core.metadata.sweep_index import SweepIndex
from tests.proofs.edits import clause, never, parameter, skip, value, without
from tests.proofs.mutation import Mutant
from tests.proofs.probes import cut, isolated, race, script

MUTANTS = (
    # -- the sweep's index -----------------------------------------------------------------------------
    Mutant(
        "a failed document is cleaned for good although it was listed before it was due",
        never(SweepIndex.remove, "due"),
        without(SweepIndex._remove, "condition"),
        probes=[script("a sweep cleans")],
    ),
    # -- collections -----------------------------------------------------------------------------------
    Mutant(
        "a collection is written over whatever was written since it was read",
        clause(Collections.update, "updated_at"),
        probes=[race("rename")],
    ),
    Mutant(
        "a collection that is being deleted is changed",
        clause(Collections.update, "state"),
        probes=[race("delete collection | rename"), race("delete collection | describe")],
    ),
    Mutant(
        "a deleted collection keeps its name",
        skip(Collections.start_deleting, "free_name()"),
        probes=[cut("delete collection", 0.05)],
    ),
    Mutant(
        "counters are corrected although a gate has moved since",
        value(Collections.correct, "condition", "'attribute_exists(pk)'"),
        probes=[script("corrects")],
    ),
    # -- jobs ------------------------------------------------------------------------------------------
    Mutant(
        "two workers work on one job",
        without(Jobs.put, "condition"),
        probes=[race("reindex")],
    ),
    # -- tenants ---------------------------------------------------------------------------------------
    Mutant(
        "a page token is valid for every tenant",
        parameter(PageTokens._mac, "tenant", "''"),
        probes=[isolated],
    ),
    Mutant(
        "the keys of collections are the same for every tenant",
        parameter(table.collections, "tenant", "'all'"),
        probes=[isolated],
    ),
    Mutant(
        "the keys of uploads are the same for every tenant",
        parameter(table.upload, "tenant", "'all'"),
        probes=[isolated],
    ),
    Mutant(
        "the keys of documents and chunks are the same for every tenant, and a document needs no collection",
        parameter(table.head, "tenant", "'all'"),
        parameter(table.info, "tenant", "'all'"),
        parameter(table.chunk, "tenant", "'all'"),
        never(DocumentService.rows, "is_active"),
        probes=[isolated],
    ),
)

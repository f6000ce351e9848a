"""Mutants of the catalog."""

from core.catalog.collections import CollectionService
from tests.proofs.edits import becomes
from tests.proofs.mutation import Mutant
from tests.proofs.probes import race

MUTANTS = (
    Mutant(
        "two writes of a collection have the same time",
        becomes(CollectionService._update, "timedelta() +", "_1"),
        probes=[race("rename | describe")],
    ),
)

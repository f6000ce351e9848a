"""Mutants of loading."""

from core.loading.pages import page_at
from tests.proofs.edits import becomes
from tests.proofs.mutation import Mutant
from tests.proofs.probes import cited

MUTANTS = (
    Mutant(
        "the first character of a page belongs to the page before",
        becomes(page_at, "offset", "_ - 1"),
        probes=[cited],
    ),
)

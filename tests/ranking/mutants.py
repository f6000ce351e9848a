"""Mutants of the formulas of ranking, which answers that explain themselves must show."""

from core.ranking import mmr
from core.ranking.fusion import fuse, share
from tests.proofs.edits import becomes, never, value
from tests.proofs.mutation import Mutant
from tests.proofs.probes import explained

MUTANTS = (
    Mutant("a fusion has another k than its answer says", becomes(fuse, "k", "_ + 1"), probes=[explained]),
    Mutant("a fusion counts ranks from 2", value(fuse, "start", "2"), probes=[explained]),
    Mutant("a share of a fusion is that of the next rank", becomes(share, "rank", "_ + 1"), probes=[explained]),
    Mutant("the penalty raises a marginal relevance", becomes(mmr.value, "penalty", "-_"), probes=[explained]),
    Mutant(
        "the score counts whole in a marginal relevance",
        becomes(mmr.value, "weight score", "_2"),
        probes=[explained],
    ),
    Mutant("the last likeness counts, not the greatest", never(mmr._after, "penalty"), probes=[explained]),
)

"""Mutants of the formulas of ranking, which answers that explain themselves must show."""

from core.ranking import mmr
from core.ranking.fusion import fuse, rank_share
from core.ranking.mmr import marginal_relevance
from tests.proofs.edits import becomes, never, value
from tests.proofs.mutation import Mutant
from tests.proofs.probes import explained

MUTANTS = (
    Mutant("a fusion has another k than its answer says", becomes(fuse, "k", "_ + 1"), probes=[explained]),
    Mutant("a fusion counts ranks from 2", value(fuse, "start", "2"), probes=[explained]),
    Mutant("a share of a fusion is that of the next rank", becomes(rank_share, "rank", "_ + 1"), probes=[explained]),
    Mutant("the penalty raises a marginal relevance", becomes(marginal_relevance, "penalty", "-_"), probes=[explained]),
    Mutant(
        "the score counts whole in a marginal relevance",
        becomes(marginal_relevance, "mmr_lambda score", "_2"),
        probes=[explained],
    ),
    Mutant("the penalty is the last cosine, not the greatest", never(mmr._penalised, "penalty"), probes=[explained]),
)

"""Mutants of retrieval: what a search shows, how hits are ranked, why there are few, and what a context cites."""

from core.protocol.served import ServedVersions
from core.retrieval import assemble, blocks, reasons
from core.retrieval.blocks import Block
from core.retrieval.budget import TokenBudget
from core.retrieval.ranking import _Ranker
from core.retrieval.reasons import Reasons
from core.retrieval.search import _Search
from tests.proofs.edits import always, becomes, condition, instead, never, value, without
from tests.proofs.mutation import Mutant
from tests.proofs.probes import cited, cut, explained, foreign, race, reasoned, script

MUTANTS = (
    # -- what is served --------------------------------------------------------------------------------
    Mutant(
        "a match is shown whatever its source serves",
        never(ServedVersions.hides, "source_serves"),
        probes=[cut("replace", 0.1)],
    ),
    Mutant(
        "a match without a source is shown whether its document is ready or not",
        never(ServedVersions.hides, "is_ready_under"),
        probes=[cut("unkeyed", 0.2)],
    ),
    Mutant(
        "a match of a removed document is shown as an orphan",
        never(ServedVersions.hides, "removed"),
        probes=[race("unkeyed, served: delete document | retrieve 1")],
    ),
    Mutant(
        "the tenant of a match is not checked",
        never(_Search._matches, "tenant"),
        probes=[foreign],
    ),
    # -- rounds of a search ----------------------------------------------------------------------------
    Mutant(
        "a search has one round",
        becomes(_Search.run, "MAX_ROUNDS", "1"),
        probes=[race("retrieve 1")],
    ),
    Mutant(
        "no further round follows when matches were hidden",
        never(_Search._is_incomplete, "hidden ~serving"),
        probes=[race("retrieve 1")],
    ),
    Mutant(
        "no further round follows when what was left out is served by now",
        never(_Search._is_incomplete, "serving"),
        probes=[race("retrieve 10", 200)],
    ),
    Mutant(
        "a further round searches among the hidden generations too",
        without(_Search._matches, "exclude_generations"),
        probes=[script("rank below hundreds")],
    ),
    Mutant(
        "matches whose rows were purged between two reads are not looked at again",
        never(_Search._read_rows, "hides"),
        probes=[race("unkeyed, served: delete document | retrieve 1")],
    ),
    Mutant(
        "orphans of a collection that is being deleted are shown",
        always(_Search._orphans, "active"),
        probes=[race("unkeyed, served: delete collection | retrieve 1", 1000)],
    ),
    # -- ranking ---------------------------------------------------------------------------------------
    Mutant(
        "matches by terms have the weight of those by vector",
        becomes(_Ranker._first_stage, "weights bm25", "weights.vector"),
        probes=[explained],
    ),
    Mutant(
        "a match below min_score takes part in marginal relevance",
        always(_Ranker._by_mmr, "score"),
        probes=[explained],
    ),
    Mutant(
        "more matches take part than the answer says",
        becomes(_Ranker.__init__, "by_vector depth", "_0"),
        probes=[explained],
    ),
    Mutant(
        "a reranker's order is never fused with the first",
        always(_Ranker._rerank, "fuse"),
        probes=[explained],
    ),
    Mutant(
        "after a fallback, min_score cuts scores that it was not meant for",
        becomes(_Ranker.rank, "finder None", "(_1, min_score)"),
        probes=[explained, reasoned("a reranker that fails")],
    ),
    Mutant(
        "after a fallback, min_score is named as the reason for few hits",
        becomes(_Ranker.rank, "finder None", "(_1, min_score)"),
        probes=[reasoned("a reranker that fails")],
    ),
    Mutant(
        "what is not served has a rank",
        never(ServedVersions.hides, "source_serves"),
        probes=[explained],
    ),
    # -- reasons ---------------------------------------------------------------------------------------
    Mutant(
        "a search that gave up is named before what min_score cut",
        becomes(Reasons.reason, "score_reason search_reason", "_2 or _1 or _3"),
        probes=[reasoned("always replaced")],
    ),
    Mutant(
        "the worst score that was cut is named, not the best",
        value(reasons._score_reason, "best_score", "min(_1)"),
        probes=[reasoned("below min_score")],
    ),
    Mutant(
        "a search that gave up is not named",
        always(reasons._search_reason, "bounded"),
        probes=[reasoned("always replaced")],
    ),
    Mutant(
        "it is not seen that hits are few for want of words",
        becomes(Reasons._stock_reason, "signals hits >", "False"),
        probes=[reasoned("without a word")],
    ),
    Mutant(
        "documents in progress are named before what the filter leaves out",
        becomes(Reasons._stock_reason, "filter_reason()", "None if any(each.working for each in counts) else _"),
        probes=[reasoned("filtered out")],
    ),
    Mutant(
        "it is not seen that the filter leaves out chunks that have the words",
        never(Reasons._stock_reason, "has_words_elsewhere"),
        probes=[reasoned("without a word")],
    ),
    Mutant(
        "the filter is always said to leave out chunks that have the words",
        always(Reasons._has_words_elsewhere, "sum()"),
        probes=[reasoned("without a word")],
    ),
    Mutant(
        "the filter is said to leave out what is not served",
        becomes(Reasons._filter_reason, "served hydrated -", "10**9"),
        probes=[reasoned("filter")],
    ),
    Mutant(
        "the filter is said to leave out what is lost",
        becomes(Reasons._filter_reason, "matching None - filter", "10**9"),
        probes=[reasoned("lost")],
    ),
    Mutant(
        "orphans are subtracted from the counters, which do not count them",
        becomes(Reasons._filter_reason, "sum() hydrated", "len(hits)"),
        probes=[reasoned("stray")],
    ),
    Mutant(
        "an attribute value that no chunk has is not named",
        never(Reasons._filter_reason, "matching"),
        probes=[reasoned("unknown")],
    ),
    # -- contexts --------------------------------------------------------------------------------------
    Mutant(
        "the text that two chunks share stands twice",
        becomes(blocks._added, "max()", "0"),
        probes=[cited],
    ),
    Mutant(
        "the text between two chunks is not that of the document",
        becomes(blocks._added, "gap", "' '"),
        probes=[cited],
    ),
    Mutant(
        "chunks stand in one block although it is not known what is between them",
        always(blocks.follows, "gap =="),
        probes=[cited],
    ),
    Mutant(
        "chunks of two versions stand in one block",
        never(Block.meets, "generation"),
        probes=[cited],
    ),
    Mutant(
        "a chunk stands twice in a context",
        never(blocks.with_block, "meets"),
        probes=[cited],
    ),
    Mutant(
        "hits have no neighbours",
        never(assemble._tries, "expand"),
        probes=[cited],
    ),
    Mutant(
        "a hit that does not fit with its neighbours is not tried alone",
        instead(assemble._tries, "around()", "_\nreturn"),
        probes=[cited],
    ),
    Mutant(
        "markers do not count in a context's tokens",
        becomes(assemble.build_context, "fits()", "_0.fits([piece for piece in _1 if not piece.endswith('] ')])"),
        condition(assemble.build_context, "count limit >", "_1 > 2 * _2"),
        probes=[cited],
    ),
    Mutant(
        "a context is estimated, and not counted where it could fit",
        always(TokenBudget.fits, "abs"),
        probes=[cited],
    ),
    Mutant(
        "a citation names the page of the hit, not that on which its block starts",
        value(assemble._citation, "page", "block.hit.chunk.page"),
        probes=[cited],
    ),
)

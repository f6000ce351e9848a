"""How well every strategy ranks public test collections, through the whole engine, beside bm25s on the same texts.

A row is a strategy; ``bm25`` is the store's own search by terms, and ``bm25s`` the other library. nDCG@10 is of answers
with top_k 10, recall@100 of answers with top_k 100, over ``queries`` and ``recall_queries`` questions, drawn by the
seed. A document stands at the place of its best chunk. ``p50_ms`` is of the whole retrieve with top_k 10, its models
included, over ``timed`` questions that are asked one by one.

A reranker judges 30 pairs for top_k 10, which takes seconds: ``rerank`` (fused with hybrid's ranks) and
``rerank_unfused`` are asked fewer questions; ``first_stage_ndcg_at_10`` is hybrid's on the same ones. Their recall@100
is null: 300 pairs take longer than a reranker may. Maximal marginal relevance compares the pairs of 300 chunks for
top_k 100, and is asked fewer questions then, too.

The last line has the rows of the last collection, and in ``collections`` those of all.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.clock import SystemClock
from core.embedding.models import find_embedding_model
from core.embedding.onnx import OnnxEmbedder
from core.model.query import RetrieveOptions, Strategy
from core.reranking.models import find_reranking_model
from core.reranking.onnx import OnnxReranker
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.types import VectorStore
from infra.opensearch.server import running_server
from tests.quality import corpora
from tests.quality.baseline import Baseline
from tests.quality.corpora import Corpus
from tests.quality.kept import Kept, KeptEmbedder, KeptReranker
from tests.quality.measures import ndcg, recall
from tests.quality.searched import Searched
from tests.support.command import finish, parser, progress
from tests.support.opensearch import store_on

NEAR, FAR = 10, 100
"""What nDCG and recall look at, and the top_k that is asked for."""
TIMED = 30
TIMED_SLOW = 5
TOLERANCE = 0.005
"""How far BM25 may be below the other library's, in nDCG@10."""
PATIENCE_S = 600.0
"""For a reranking: what is measured is its order, on a machine that may be busy."""

Ask = Callable[[str, int], list[str]]
"""Question and top_k to documents, best first."""
Measure = Callable[[list[str], Mapping[str, int], int], float]
"""Documents, grades and depth to 0 to 1."""


@dataclass(frozen=True)
class Contender:
    """What ranks.

    Attributes:
        slow: the least top_k with which a question takes it long.
    """

    name: str
    ask: Ask
    slow: int = FAR + 1


class Bench:
    """A corpus in a store, with the models whose answers are kept."""

    def __init__(self, corpus: Corpus, store: VectorStore, kept: Kept) -> None:
        self.corpus = corpus
        self._embedder = KeptEmbedder(OnnxEmbedder(find_embedding_model(None)), kept)
        reranker = OnnxReranker(find_reranking_model(None), SystemClock(), seconds=PATIENCE_S)
        self._reranker = KeptReranker(reranker, kept)
        self.searched = Searched(corpus, store, self._embedder, self._reranker)

    def contenders(self) -> list[Contender]:
        """In the order of their rows. Hybrid comes before what it is the first stage of."""
        return [
            Contender("similarity", self._asking(Strategy.SIMILARITY)),
            Contender("mmr", self._asking(Strategy.MMR), slow=FAR),
            Contender("hybrid", self._asking(Strategy.HYBRID)),
            Contender("bm25", self.searched.by_terms),
            Contender("bm25s", Baseline(self.corpus).ranking),
            Contender("rerank", self._asking(Strategy.RERANK), slow=NEAR),
            Contender("rerank_unfused", self._asking(Strategy.RERANK, fuse=False), slow=NEAR),
        ]

    @contextmanager
    def live(self) -> Iterator[None]:
        """Models are asked each time."""
        self._embedder.live = self._reranker.live = True
        yield
        self._embedder.live = self._reranker.live = False

    def _asking(self, strategy: Strategy, *, fuse: bool = True) -> Ask:
        options = RetrieveOptions(fuse=fuse)
        return lambda question, top_k: self.searched.ranking(question, strategy, top_k, options)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path, default=corpora.folder(), help="folder of the collections")
    options.add_argument("--collections", nargs="+", choices=corpora.PUBLIC, help="these; default: all that are there")
    options.add_argument("--cache", type=Path, help="folder, outside the project, where models' answers are kept")
    options.add_argument("--queries", type=int, default=1200, help="questions of each collection at most, a round")
    options.add_argument("--slow-queries", type=int, default=100, help="where one takes long, a round")
    given = options.parse_args()
    names = given.collections or corpora.found(given.data)
    if not names:
        options.error(f"No test collection is in {given.data}; name their folder by --data or {corpora.VARIABLE}")
    with ExitStack() as stack:
        kept = stack.enter_context(closing(Kept(given.cache / "models.sqlite" if given.cache else None)))
        store = stack.enter_context(closing(stack.enter_context(store_of(given.vectors))))
        measured = []
        for name in names:
            bench = Bench(corpora.read(given.data / name), store, kept)
            measured.append(
                {
                    "collection": name,
                    "store": given.vectors,
                    "documents": len(bench.corpus.documents),
                    "chunks": bench.searched.chunks,
                    "rows": measure(bench, given.queries * given.rounds, given.slow_queries * given.rounds, given.seed),
                }
            )
            if not given.json:
                show(measured[-1])
    finish({**measured[-1], "collections": measured}, held=all(map(held, measured)), quiet=True)


@contextmanager
def store_of(vectors: str) -> Iterator[VectorStore]:
    """An empty store: in memory, or in a server of its own."""
    if vectors == "embedded":
        yield EmbeddedVectorStore(None)
        return
    os.environ.update(AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing")
    with running_server() as server:
        yield store_on(server.url, "quality")


def measure(bench: Bench, queries: int, slow: int, seed: int) -> list[dict[str, Any]]:
    """A row a contender.

    Args:
        queries: how many questions are asked; ``slow``: where they take long.
    """
    rows: list[dict[str, Any]] = []
    hybrid: dict[str, float] = {}
    for one in bench.contenders():
        gains = judged(bench, one, NEAR, ndcg, slow if one.slow <= NEAR else queries, seed)
        row: dict[str, Any] = {"strategy": one.name, "ndcg_at_10": _mean(gains.values()), "recall_at_100": None}
        if one.name == Strategy.HYBRID:
            hybrid = gains
        if one.slow <= NEAR:
            row["first_stage_ndcg_at_10"] = _mean(hybrid[name] for name in gains)
        else:
            found = judged(bench, one, FAR, recall, slow if one.slow <= FAR else queries, seed)
            row |= {"recall_at_100": _mean(found.values()), "recall_queries": len(found)}
        rows.append({**row, "queries": len(gains), **times(bench, one, seed)})
    return rows


def judged(bench: Bench, one: Contender, top_k: int, by: Measure, queries: int, seed: int) -> dict[str, float]:
    """How good the answers are, by question. Fewer questions are among more."""
    asked = bench.corpus.asking(queries, seed).questions
    what = f"{one.name}, top_k {top_k}"
    return {
        name: by(one.ask(asked[name], top_k), bench.corpus.judgments[name], top_k)
        for name in progress(asked, what, total=len(asked))
    }


def times(bench: Bench, one: Contender, seed: int) -> dict[str, Any]:
    """Median milliseconds of a question with top_k 10."""
    asked = bench.corpus.asking(TIMED_SLOW if one.slow <= NEAR else TIMED, seed).questions.values()
    seconds = []
    with bench.live():
        for question in asked:
            start = time.perf_counter()
            one.ask(question, NEAR)
            seconds.append(time.perf_counter() - start)
    return {"p50_ms": round(statistics.median(seconds) * 1000, 1), "timed": len(seconds)}


def held(measured: dict[str, Any]) -> bool:
    """BM25 is not below the other library's; on SciFact, where both its parts are good, hybrid beats them."""
    gains: dict[str, float] = {row["strategy"]: row["ndcg_at_10"] for row in measured["rows"]}
    fused = gains["hybrid"] > max(gains["similarity"], gains["bm25"])
    return gains["bm25"] >= gains["bm25s"] - TOLERANCE and (fused or not measured["collection"].startswith("scifact"))


def show(measured: dict[str, Any]) -> None:
    print(f"{measured['collection']}, {measured['store']}, {measured['chunks']} chunks")
    print(f"  {'nDCG@10':>8} {'recall@100':>10} {'p50 ms':>8} {'queries':>8}")
    for row in measured["rows"]:
        far = "" if row["recall_at_100"] is None else f"{row['recall_at_100']:.3f}"
        print(f"  {row['ndcg_at_10']:8.3f} {far:>10} {row['p50_ms']:8.1f} {row['queries']:8} {row['strategy']}")


def _mean(numbers: Iterable[float]) -> float:
    return round(statistics.fmean(numbers), 4)


if __name__ == "__main__":
    main()

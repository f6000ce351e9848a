"""How good a ranking is, as trec_eval measures it."""

import math
from collections.abc import Mapping, Sequence


def ndcg(ranking: Sequence[str], grades: Mapping[str, int], depth: int = 10) -> float:
    """Normalised discounted cumulative gain of the first ``depth`` documents, 0 to 1.

    A document's gain is its grade, divided by the binary logarithm of its rank + 1; the sum is divided by that of the
    best ranking there can be. Source: trec_eval's ``ndcg_cut``, after Järvelin and Kekäläinen, Cumulated Gain-Based
    Evaluation of IR Techniques (TOIS 2002).

    Args:
        ranking: documents, best first, each once.
        grades: of the documents that answer; at least one.
    """
    gained = _discounted([grades.get(document, 0) for document in ranking[:depth]])
    return gained / _discounted(sorted(grades.values(), reverse=True)[:depth])


def recall(ranking: Sequence[str], grades: Mapping[str, int], depth: int = 100) -> float:
    """The share of the documents that answer which is among the first ``depth``."""
    return len(set(ranking[:depth]) & grades.keys()) / len(grades)


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))

"""What a comparison costs beside a retrieve of the same window, in the same run, by strategy.

A comparison with top_k 10 looks at a window of 50 hits by vector. Each question goes to the real handlers three times:
compared with top_k 10, retrieved with top_k 50, and retrieved with top_k 10. ``ratio_p50`` is the first by the second,
``ratio_p50_own`` without the time spent in the DynamoDB double, and ``ratio_p50_top_10`` the first by the third.
"""

import random
import statistics
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from core.model.query import Strategy
from core.retrieval.compare import MIN_WINDOW
from tests.benchmarks.retrieve import TOP_K, Client, questions
from tests.benchmarks.workbench import Workbench, embedder_of, workbench
from tests.support.command import finish, parser, progress
from tests.support.gateway import served

QUESTIONS = 100
WARM_UP = 10
GOAL = 1.3
CALLS = {
    "compare": ("/v1/compare", TOP_K),
    "retrieve": ("/v1/retrieve", MIN_WINDOW),
    "retrieve_top_10": ("/v1/retrieve", TOP_K),
}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--chunks", type=int, default=10_000)
    given = options.parse_args()
    draw = random.Random(given.seed)
    with workbench(embedder_of("hashed"), given.vectors) as bench:
        collection = bench.collection("benchmark")
        chunks = sum(result.chunk_count for result in bench.fill(collection, given.chunks))
        with served(bench.engine):
            rows = [
                {"strategy": one, **row(bench, Client(bench, collection, one), draw, QUESTIONS * given.rounds)}
                for one in Strategy
            ]
    answer = {"store": given.vectors, "chunks": chunks, "window": MIN_WINDOW, "rows": rows, "goal": GOAL}
    held = all(one["ratio_p50"] <= GOAL and one["ratio_p50_own"] <= GOAL for one in rows)
    finish(answer, held=held, quiet=given.json, show=partial(_show, rows))


def row(bench: Workbench, client: Client, draw: random.Random, count: int) -> dict[str, Any]:
    """Each question to each call, one after the other, so that all meet the same machine."""
    whole: dict[str, list[float]] = {name: [] for name in CALLS}
    own: dict[str, list[float]] = {name: [] for name in CALLS}
    asked = questions(draw, WARM_UP + count)
    for number, question in enumerate(progress(asked, "Comparing", total=len(asked))):
        for name, (path, top_k) in CALLS.items():
            with bench.probe.one_call() as spent:
                start = time.perf_counter()
                client.ask(question, path, top_k)
                seconds = time.perf_counter() - start
            if number >= WARM_UP:
                whole[name].append(seconds)
                own[name].append(seconds - spent["dynamodb"])
    median, median_own = ({name: statistics.median(of[name]) for name in CALLS} for of in (whole, own))
    return {
        **{f"{name}_p50_ms": round(seconds * 1000, 3) for name, seconds in median.items()},
        "ratio_p50": round(median["compare"] / median["retrieve"], 2),
        "ratio_p50_own": round(median_own["compare"] / median_own["retrieve"], 2),
        "ratio_p50_top_10": round(median["compare"] / median["retrieve_top_10"], 2),
    }


def _show(rows: Sequence[dict[str, Any]]) -> None:
    for one in rows:
        print(one["strategy"])
        for name in list(one)[1:]:
            print(f"  {one[name]:10.3f} {name}")


if __name__ == "__main__":
    main()

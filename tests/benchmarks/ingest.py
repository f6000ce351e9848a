"""How long ingest takes and where, and what one ingest of ten chunks and one retrieve ask of DynamoDB."""

import itertools
import time
from functools import partial
from typing import Any

from core.loading.types import LoadedText
from core.model.collection import Collection, NewCollection
from core.model.query import RetrieveQuery
from core.splitting.splitters import Splitters
from core.splitting.types import Span
from tests.benchmarks.texts import Text, readmes
from tests.benchmarks.workbench import TENANT, Workbench, embedder_of, workbench
from tests.support.command import finish, parser

CHUNKS = 10
OTHERS = 20
"""Documents beside the measured one, so that the hits come from several, as they do in use."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--chunks", type=int, default=10_000, help="ingest at least so many a round")
    options.add_argument("--embedder", choices=["hashed", "minilm"], default="hashed")
    given = options.parse_args()
    with workbench(embedder_of(given.embedder), given.vectors) as bench:
        answer = measure(bench, given.chunks * given.rounds)
        answer["units"] = units(bench)
    answer = {"embedder": given.embedder, "store": given.vectors, **answer}
    finish(answer, held=True, quiet=given.json, show=partial(_show, answer))


def measure(bench: Workbench, chunks: int) -> dict[str, Any]:
    """Ingests real text, one document after the other."""
    collection = bench.collection("benchmark")
    bench.probe.reset()
    start = time.perf_counter()
    results = bench.fill(collection, chunks)
    seconds = time.perf_counter() - start
    count = sum(result.chunk_count for result in results)
    spent = bench.probe.seconds
    return {
        "documents": len(results),
        "chunks": count,
        "seconds": round(seconds, 3),
        "embed_seconds": round(spent["embedder"], 3),
        "metadata_seconds": round(spent["dynamodb"], 3),
        "vector_seconds": round(spent["vectors"], 3),
        "chunks_per_s": round(count / seconds, 1),
        "requests": bench.probe.by_service(),
    }


def units(bench: Workbench) -> dict[str, Any]:
    """What DynamoDB would charge for one ingest of ten chunks of the default size, for one that replaces it, and for
    one retrieve."""
    collection = bench.engine.collections.create(TENANT, NewCollection(name="units"))
    costs = {}
    for name, text in zip(("ingest_10_chunks", "replace_10_chunks"), _of_ten_chunks(bench, collection), strict=True):
        result, costs[name] = bench.metered(partial(bench.ingest, collection, text))
        assert result.chunk_count == CHUNKS, "the ingest that is measured has ten chunks"
    for text in itertools.islice(readmes(), OTHERS):
        bench.ingest(collection, text)
    query = RetrieveQuery(query="How is an item written?", collections=[collection.id], top_k=10)
    found, retrieved = bench.metered(partial(bench.engine.retrieve, TENANT, query))
    assert len(found.hits) == CHUNKS, "the retrieve that is measured has ten hits"
    retrieved["documents"] = len({hit.chunk.document_id for hit in found.hits})
    return {**costs, "retrieve_top_10": retrieved}


def _of_ten_chunks(bench: Workbench, collection: Collection) -> list[Text]:
    """Two texts of ten chunks under one key."""
    counter = bench.embedder.counter
    splitter = Splitters().find(collection.chunk_strategy)

    def spans(text: str) -> list[Span]:
        return splitter.split(LoadedText(text=text), collection.chunk_size, collection.chunk_overlap, counter)

    whole = "\n\n".join(text.content for text in readmes())
    every = spans(whole)
    starts = range(0, len(every) - CHUNKS, CHUNKS)
    texts = (whole[every[at].start_index : every[at + CHUNKS - 1].end_index] for at in starts)
    # A piece of a text need not be split where the whole was.
    fitting = (Text("units.txt", text, "text/plain") for text in texts if len(spans(text)) == CHUNKS)
    return list(itertools.islice(fitting, 2))


def _show(answer: dict[str, Any]) -> None:
    rest = answer["seconds"] - sum(answer[f"{name}_seconds"] for name in ("embed", "metadata", "vector"))
    print(f"{answer['chunks']} chunks of {answer['documents']} documents in {answer['seconds']} s")
    print(f"  {answer['chunks_per_s']} chunks a second")
    for name in ("embed", "metadata", "vector"):
        print(f"  {answer[f'{name}_seconds']:8.3f} s {name}")
    print(f"  {rest:8.3f} s the engine itself: reading, splitting, deciding")
    for name, cost in answer["units"].items():
        print(f"{name}: {cost['write_units']} write units, {cost['read_units']} read units, {cost['requests']}")


if __name__ == "__main__":
    main()

"""The demo's steps: ingest, ask, compare, cite, and ingest again."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from infra.demo import show
from infra.demo.client import Client, Json
from infra.demo.documents import SourceText

BATCH = 4
TOP_K = 4
CONTEXT_TOKENS = 700
INLINE_BYTES = 256 * 1024
"""Larger content goes through the bucket; so does every third document here."""
ADDITION = b"\n\nThe demo added this line, so that the source has a new version.\n"


class Story:
    """The steps, in order, each shown as it is done."""

    def __init__(self, console: Console, client: Client) -> None:
        self._console = console
        self._client = client

    def tell(self, texts: list[SourceText], questions: Sequence[str]) -> Json:
        """Every step. The answer holds what each of them got."""
        collection = self._create()
        seconds = self._ingest(collection, texts)
        stats = self._client.call("GET", f"/v1/collections/{collection}/stats")
        self._console.print(
            f"{stats['document_count']} documents, {stats['chunk_count']} chunks, ready after {seconds:.1f} s."
        )
        answers = [self._ask(collection, question) for question in questions]
        comparison = self._compare(collection, questions[0])
        context = self._cite(answers[0])
        again = self._ingest_again(collection, texts)
        return {
            "collection_id": collection,
            "documents": stats["document_count"],
            "chunks": stats["chunk_count"],
            "ingest_seconds": round(seconds, 1),
            "answers": [{"query": question, **answer} for question, answer in zip(questions, answers, strict=True)],
            "comparison": comparison,
            "context": context,
            "again": again,
        }

    def _create(self) -> str:
        collection = self._client.call("POST", "/v1/collections", {"name": "demo", "chunk_strategy": "markdown"})
        self._console.print(
            f"Collection {collection['id']}: {collection['embedding_model']}, "
            f"{collection['embedding_dims']} dimensions, "
            f"{collection['chunk_strategy']} chunks of at most {collection['chunk_size']} tokens."
        )
        return str(collection["id"])

    def _ingest(self, collection: str, texts: list[SourceText]) -> float:
        """Ingests some documents through the bucket and the others over HTTP; the seconds until all were ready."""
        began = time.monotonic()
        through_bucket = [text for number, text in enumerate(texts, 1) if number % 3 == 0 or not _fits_inline(text)]
        over_http = [text for text in texts if text not in through_bucket]
        with self._progress() as progress:
            http = progress.add_task("over HTTP", total=len(over_http))
            bucket = progress.add_task("through the bucket", total=len(through_bucket))
            for _ in self._send(collection, over_http):
                progress.advance(http)
            for text in through_bucket:
                self._client.upload(collection, text)
            for text in through_bucket:
                self._client.wait_for(collection, text)
                progress.advance(bucket)
        self._console.print(f"{len(over_http)} documents over HTTP, {len(through_bucket)} through the bucket.")
        return time.monotonic() - began

    def _send(self, collection: str, texts: list[SourceText]) -> Iterator[Json]:
        """The first document alone, the others in batches."""
        waiting = iter(texts)
        for text in islice(waiting, 1):
            yield self._client.ingest(collection, text)
        while batch := list(islice(waiting, BATCH)):
            yield from self._client.ingest_batch(collection, batch)

    def _progress(self) -> Progress:
        return Progress(
            TextColumn("{task.description:20}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )

    def _ask(self, collection: str, question: str) -> Json:
        began = time.monotonic()
        answer = self._client.call("POST", "/v1/retrieve", _query(collection, question))
        milliseconds = (time.monotonic() - began) * 1000
        self._heading(question)
        self._console.print(show.hits_table(answer["hits"]))
        reason = answer["reason"]
        self._console.print(
            f"{answer['score']} score, {answer['strategy']}, {milliseconds:.0f} ms"
            + (f"; {reason['code']}: {reason['detail']}" if reason else "")
        )
        return answer

    def _compare(self, collection: str, question: str) -> Json:
        """By the best strategy that is there, beside similarity."""
        strategies = self._client.call("GET", "/v1/components")["strategies"]
        strategy = "rerank" if "rerank" in strategies else "hybrid"
        body = _query(collection, question) | {"strategy": strategy}
        comparison = self._client.call("POST", "/v1/compare", body)
        self._heading(f"{question} By {strategy}, beside similarity")
        self._console.print(show.comparison_table(comparison))
        self._console.print(show.comparison_summary(comparison))
        return comparison

    def _cite(self, answer: Json) -> Json:
        refs = [{"chunk_id": hit["chunk"]["id"]} for hit in answer["hits"]]
        if not refs:
            return {}
        body = {"refs": refs, "max_tokens": CONTEXT_TOKENS}
        context: Json = self._client.call("POST", "/v1/assemble", body)["context"]
        self._heading("Its hits as a cited context")
        self._console.print(show.context_panel(context))
        self._console.print(show.citations_table(context))
        return context

    def _ingest_again(self, collection: str, texts: list[SourceText]) -> dict[str, Json]:
        """One source as it was, and one with a line more. Nothing when none fits into a request."""
        inline = sorted(filter(_fits_inline, texts), key=lambda text: len(text.content))
        if not inline:
            return {}
        again = {"unchanged": inline[-1], "changed": replace(inline[0], content=inline[0].content + ADDITION)}
        results, rows = {}, []
        for name, text in again.items():
            began = time.monotonic()
            results[name] = self._client.ingest(collection, text)
            rows.append((f"{text.title}, {name}", results[name], time.monotonic() - began))
        self._heading("Two sources again")
        self._console.print(show.ingest_table(rows))
        return results

    def _heading(self, text: str) -> None:
        self._console.print()
        self._console.print(show.plain(text), style="bold")


def _query(collection: str, question: str) -> Json:
    return {"query": question, "collections": [collection], "top_k": TOP_K}


def _fits_inline(text: SourceText) -> bool:
    return len(text.content) <= INLINE_BYTES

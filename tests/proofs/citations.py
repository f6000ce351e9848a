"""Proof of citations: the text behind each marker of a context is, to the letter, the document's text at the span that
the marker's citation names; and the whole context stays within its budget, by the token counter of the request.

Documents in many scripts are ingested in chunks of several sizes. Questions are asked with random budgets, counters and
expansions, and their hits are assembled again by reference. Every context is written a second time, from the loaded
texts and the citations alone, counted as a whole, and compared. Where hits abound, the proof also checks that the
context uses most of its budget.

Keys of the last line:

- ``contexts``, ``markers``: the contexts that were checked, and their markers.
- ``exact_spans``: markers that stand before just the text that their citation names.
- ``over_budget``: contexts with more tokens than their budget.
- ``fills``, ``fill_min``, ``fill_median``: the contexts where hits abound, and the least and the median share of the
  budget that they use.
- ``problems``: what was wrong, by kind. ``broken`` shows the first problems.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from statistics import median

from core.embedding.models import find_embedding_model
from core.embedding.onnx import TokenizerCounter
from core.loading.loaders import Loaders
from core.model.chunk import Chunk
from core.model.collection import Collection
from core.model.context import AssembledContext, AssembleOptions, ChunkRef, Citation
from core.model.hit import Hit
from core.model.ids import ChunkId, DocumentId
from core.model.ingest import IngestInput
from core.model.query import RetrieveQuery
from core.splitting.counting import CharsPerFour, TokenCounter
from tests.proofs.command import Options, Report, main, spread
from tests.proofs.harness import seeded
from tests.proofs.scribbles import Pen, Scribble
from tests.proofs.tally import Tally, total
from tests.support.books import Problem
from tests.support.dynamodb import LargeDynamoDB
from tests.support.embedder import HashedEmbedder
from tests.support.engines import ACME, make_world

PARTS, QUESTIONS, DOCUMENTS = 10, 100, 40
SIZES = ((8, 0), (16, 4), (32, 0), (32, 12), (64, 16), (200, 50))
MAX_EXPAND = 3
MOST_TOKENS = 6000
GENEROUS = 10_000_000
LOOKED_AT = 5
"""The number of passed-over hits that are checked in each context."""
ABOUND, SHARE = 2, 20
"""Hits abound where they have over twice the tokens of the budget, and none has more than a twentieth of it."""
MARKER_TOKENS = 10
LONGEST_GAP = 1024
FILLED = 0.95

HEADER, SEPARATOR = "Relevant context:\n\n", "\n\n---\n\n"


@dataclass(frozen=True)
class Book:
    """A document: its description, its text as it was loaded, and its chunks."""

    title: str
    source: str
    source_type: str
    text: str
    chunks: Sequence[Chunk]

    def page(self, place: int) -> int | None:
        paged = "\f" in self.text and self.source_type != "text/html"
        return 1 + self.text.count("\f", 0, place) if paged else None


class Library:
    """An engine with documents, and the same documents as the proof knows them without the engine."""

    def __init__(self, options: Options, part: int, documents: int) -> None:
        self.chance = seeded("citations", options.seed, part)
        self.pen = Pen(self.chance)
        model = find_embedding_model(None)
        tokenizer = TokenizerCounter(model.name, model.tokenizer)
        self.counters: list[TokenCounter] = [CharsPerFour(), tokenizer]
        embedder = HashedEmbedder()
        embedder.counter = tokenizer
        self._world = make_world(dynamodb=LargeDynamoDB(), create=False, embedder=embedder, vectors=options.store())
        self.engine, self.close = self._world.engine, self._world.close
        self._collections = [
            self._world.collection(f"{size}/{overlap}", chunk_size=size, chunk_overlap=overlap, chunk_strategy=strategy)
            for (size, overlap), strategy in zip(SIZES, ("recursive", "markdown") * len(SIZES), strict=False)
        ]
        self.books: dict[DocumentId, Book] = {}
        for number in range(documents):
            self._add(number, self.pen.document(), self.chance.choice(self._collections))

    def _add(self, number: int, scribble: Scribble, collection: Collection) -> None:
        request = IngestInput(
            collection_id=collection.id,
            content=scribble.content,
            source_type=scribble.source_type,
            title=f"Title {number}",
            source=f"https://example.org/{number}",
        )
        result = self.engine.ingest.ingest(ACME, request, self._world.deadline())
        if result.document_id is None:
            raise ValueError("every document is ingested")
        loader, charset = Loaders().find(scribble.source_type)
        text = loader.load(scribble.content, charset).text
        ids = [ChunkId.of(result.document_id, 1, index) for index in range(result.chunk_count)]
        rows = self._world.stores.documents.chunks(ACME, ids)
        chunks = [rows[chunk_id] for chunk_id in ids]
        self.books[result.document_id] = Book(request.title, request.source, scribble.source_type, text, chunks)

    def question(self) -> RetrieveQuery:
        """A question of a few words, in one collection or in all."""
        collections = [self.chance.choice(self._collections).id] if self.chance.random() < 0.7 else None
        top_k = self.chance.choice((1, 5, 20, 100, 100))
        return RetrieveQuery(query=self.pen.words(4), collections=collections, top_k=top_k)

    def options(self, chunks: Sequence[Chunk] = ()) -> AssembleOptions:
        """Random options of a context. Half of them let hits of these chunks abound, where the chunks are enough for
        that."""
        counter = self.chance.choice(self.counters)
        budget = GENEROUS if self.chance.random() < 0.1 else int(20 * (MOST_TOKENS / 20) ** self.chance.random())
        least, most = abounding(counter, chunks)
        if least <= most and self.chance.random() < 0.5:
            budget = self.chance.randint(least, most)
        return AssembleOptions(max_tokens=budget, token_counter=counter.name, expand=self.chance.randint(0, MAX_EXPAND))

    def some(self) -> list[Chunk]:
        """Random chunks in a random order, some of them twice."""
        chunks = [chunk for book in self.books.values() for chunk in book.chunks]
        largest = self.chance.choice((40, 80, 160, 1000))
        fitting = [chunk for chunk in chunks if len(chunk.text) <= largest]
        some = self.chance.sample(fitting, min(len(fitting), self.chance.choice((1, 30, 300, 300, 300))))
        return [*some, *self.chance.choices(some, k=len(some) // 10)]


def abounding(counter: TokenCounter, chunks: Sequence[Chunk]) -> tuple[int, int]:
    """The least and the largest budget at which hits abound; the least is the larger one when there is no such
    budget."""
    counts = [counter.count(text) for text in {chunk.id: chunk.text for chunk in chunks}.values()]
    return SHARE * (max(counts, default=0) + MARKER_TOKENS), (sum(counts) - 1) // ABOUND


@dataclass
class Seen:
    """The counts of some contexts. ``fills`` has the used share of each budget where hits abound."""

    contexts: int = 0
    markers: int = 0
    exact: int = 0
    over_budget: int = 0
    fills: list[float] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)


@dataclass(frozen=True)
class Case:
    """A context, with the hits and the options that it was made of."""

    library: Library
    hits: Sequence[Hit]
    options: AssembleOptions
    made: AssembledContext

    @cached_property
    def counter(self) -> TokenCounter:
        [counter] = [each for each in self.library.counters if each.name == self.options.token_counter]
        return counter

    def text(self, citation: Citation) -> str:
        book = self.library.books[citation.document_id]
        return book.text[citation.start_index : citation.end_index]

    def look(self, seen: Seen, where: str) -> None:
        """Checks the context, and adds to the counts."""
        tokens = self.counter.count(self.made.context)
        over = tokens > self.options.max_tokens
        seen.contexts += 1
        seen.markers += len(self.made.citations)
        seen.exact += self._exact()
        seen.over_budget += over
        problems = [Problem("over_budget", f"{tokens} tokens")] if over else []
        if self._abound():
            seen.fills.append(tokens / self.options.max_tokens)
            if seen.fills[-1] < FILLED:
                problems.append(Problem("fill", f"{tokens} of {self.options.max_tokens}"))
        if tokens != self.made.total_tokens or self.made.token_counter != self.options.token_counter:
            problems.append(Problem("total", f"{self.made.total_tokens} are {tokens} tokens"))
        looks = (self._spans, self._descriptions, self._positions, self._passed_over, self._neighbours)
        seen.tally.add(where, (*problems, *(problem for one in looks for problem in one())))

    def _exact(self) -> int:
        """The number of markers that stand before the text that they cite, each at its place in the context."""
        place, exact = 0, 0
        for citation in self.made.citations:
            stands = (SEPARATOR if exact else HEADER) + f"[{citation.marker}] " + self.text(citation)
            if not self.made.context.startswith(stands, place):
                break
            place, exact = place + len(stands), exact + 1
        return exact

    def _spans(self) -> Iterator[Problem]:
        rebuilt = written([self.text(one) for one in self.made.citations])
        if rebuilt != self.made.context:
            yield Problem(
                "spans", f"{len(rebuilt)} characters by the citations, {len(self.made.context)} in the context"
            )

    def _descriptions(self) -> Iterator[Problem]:
        for number, citation in enumerate(self.made.citations, start=1):
            book = self.library.books[citation.document_id]
            right = (number, book.title, book.source, book.page(citation.start_index or 0))
            if right != (citation.marker, citation.title, citation.source, citation.page):
                yield Problem("citation", f"{citation.model_dump_json()} is {right}")

    def _positions(self) -> Iterator[Problem]:
        """Each marker must belong to a hit, no chunk may stand in two blocks, and each block must be a run of chunks of
        one version."""
        hits = [self.hits[place].chunk for place in self.made.included]
        if [one.id for one in hits] != [one.chunk_id for one in self.made.citations]:
            yield Problem("included", f"{self.made.included}")
        if [one.context for one in hits] != [one.context for one in self.made.citations]:
            yield Problem("heading", f"{self.made.included}")
        held = [one for citation in self.made.citations for one in citation.chunk_ids]
        if len(set(held)) != len(held) or self.made.included != sorted(self.made.included):
            yield Problem("twice", f"{held}")
        for citation in self.made.citations:
            places = [one.chunk_index for one in citation.chunk_ids]
            run = places == list(range(places[0], places[0] + len(places)))
            if not run or {one.generation for one in citation.chunk_ids} != {citation.chunk_id.generation}:
                yield Problem("mixed", f"{citation.chunk_ids}")
        if self.made.first_excluded != min(self._outside(), default=-1):
            yield Problem("first_excluded", f"{self.made.first_excluded}")

    def _outside(self) -> list[int]:
        held = {one for citation in self.made.citations for one in citation.chunk_ids}
        return [place for place, hit in enumerate(self.hits) if hit.chunk.id not in held]

    def _passed_over(self) -> Iterator[Problem]:
        """A hit that was passed over must not fit behind the whole context; nor, where hits have no neighbours, behind
        the blocks that stood there when its turn came."""
        texts = [self.text(one) for one in self.made.citations]
        for place in self._outside()[:LOOKED_AT]:
            before = len(texts) if self.options.expand else sum(one < place for one in self.made.included)
            tokens = self.counter.count(written([*texts[:before], self.hits[place].chunk.text]))
            if tokens <= self.options.max_tokens:
                yield Problem("passed_over", f"hit {place} makes {tokens} of {self.options.max_tokens}")

    def _neighbours(self) -> Iterator[Problem]:
        """Where there is room for everything, all neighbours that can be joined must stand in the context."""
        if self.options.max_tokens < GENEROUS:
            return
        held = {one for citation in self.made.citations for one in citation.chunk_ids}
        for hit in self.hits:
            missing = [one for one in self._around(hit) if one not in held]
            if missing:
                yield Problem("neighbours", f"{missing} of {hit.chunk.id}")

    def _around(self, hit: Hit) -> Iterator[ChunkId | None]:
        """The neighbours of a hit, up to a long white space between two chunks."""
        if hit.chunk.id is None:
            return
        chunks, place = self.library.books[hit.chunk.id.document_id].chunks, hit.chunk.id.chunk_index
        for step in (-1, 1):
            for number in range(1, self.options.expand + 1):
                at = place + step * number
                if not 0 <= at < len(chunks):
                    break
                first, second = chunks[min(at, at - step)], chunks[max(at, at - step)]
                if second.start_index - first.end_index > LONGEST_GAP:
                    break
                yield chunks[at].id

    def _abound(self) -> bool:
        least, most = abounding(self.counter, [hit.chunk for hit in self.hits])
        return least <= self.options.max_tokens <= most


def written(texts: Sequence[str]) -> str:
    """A context of these texts, in the form of `core.retrieval.assemble`."""
    blocks = [f"[{marker}] {text}" for marker, text in enumerate(texts, start=1)]
    return HEADER + SEPARATOR.join(blocks) if blocks else ""


# -- the proof ---------------------------------------------------------------------------------------


def ask(library: Library, seen: Seen, where: str) -> None:
    """Asks one question with a context, assembles the same context by reference, and another context of random
    chunks."""
    query, options = library.question(), library.options()
    found = library.engine.retrieve(ACME, query, options)
    if found.context is None:
        raise ValueError("a context was asked for")
    Case(library, found.hits, options, found.context).look(seen, where)
    refs = [ChunkRef(chunk_id=hit.chunk.id) for hit in found.hits if hit.chunk.id is not None]
    if refs:
        again = library.engine.assemble_refs(ACME, refs, options).context
        problems = [] if again == found.context else [Problem("refs", "another context by reference")]
        seen.tally.add(where, problems)
    chunks = library.some()
    options = library.options(chunks)
    refs = [ChunkRef(chunk_id=chunk.id) for chunk in chunks if chunk.id is not None]
    made = library.engine.assemble_refs(ACME, refs, options)
    Case(library, made.hits, options, made.context).look(seen, f"{where}, by reference")


def try_part(options: Options, documents: int, questions: int, part: int) -> Seen:
    """Asks questions of one library."""
    library, seen = Library(options, part, documents), Seen()
    for number in range(questions):
        ask(library, seen, f"part {part}, question {number}")
    library.close()
    return seen


def prove(
    options: Options,
    tell: Callable[[str], None],
    parts: int = PARTS,
    documents: int = DOCUMENTS,
    questions: int = QUESTIONS,
) -> Report:
    """Asks every library its questions."""
    work = partial(try_part, options, documents, questions)
    seen = list(spread(work, range(parts * options.rounds), options.processes, tell))
    whole = total([one.tally for one in seen])
    fills = [share for one in seen for share in one.fills]
    return {
        "contexts": sum(one.contexts for one in seen),
        "markers": sum(one.markers for one in seen),
        "exact_spans": sum(one.exact for one in seen),
        "over_budget": sum(one.over_budget for one in seen),
        "fills": len(fills),
        "fill_min": round(min(fills, default=0.0), 4),
        "fill_median": round(median(fills), 4) if fills else 0.0,
        "problems": dict(whole.problems),
        "broken": whole.broken,
    }


def held(report: Report) -> bool:
    exact = report["markers"] == report["exact_spans"] > 0
    return exact and not report["problems"] and report["fill_min"] >= FILLED


if __name__ == "__main__":
    main("citations", prove, held=held)

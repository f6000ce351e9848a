"""Assembles contexts within a token budget, with a citation for every marker."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from core.embedding.embedders import Embedders
from core.metadata.documents import Documents
from core.model.chunk import Chunk
from core.model.context import AssembledContext, AssembleOptions, ChunkRef, Citation
from core.model.errors import InvalidArgument, StaleRanking
from core.model.hit import AssembledRefs, Hit
from core.model.ids import ChunkId
from core.model.tenant import Tenant
from core.protocol.served import Served
from core.retrieval.blocks import Block, around, neighbours, with_block
from core.retrieval.budget import TokenBudget
from core.splitting.counting import CharsPerFour, TokenCounter

HEADER = "Relevant context:\n\n"
SEPARATOR = "\n\n---\n\n"
DEFAULT_MAX_TOKENS = 4096
MAX_REFS = 1000


def build_context(
    hits: Sequence[Hit],
    max_tokens: int,
    counter: TokenCounter,
    expand: int = 0,
    known: Mapping[ChunkId, Chunk] | None = None,
) -> AssembledContext:
    """Builds a context of hits, taken in order while the whole context stays within the budget.

    The header and the markers count as well. A hit that does not fit is passed over; later hits may still fit. A chunk
    stands in the context once: a second hit of the same chunk has no marker of its own.

    With neighbours, hits of one version that share a chunk or follow on one another stand under one marker, at the
    place of the better hit. A hit that does not fit with its neighbours is tried without them.

    Args:
        max_tokens: zero or less: 4096.
        expand: how many neighbours before and after a chunk stand with it.
        known: the chunks that are available as neighbours.
    """
    limit = max_tokens if max_tokens > 0 else DEFAULT_MAX_TOKENS
    budget = TokenBudget(counter, limit)
    blocks: list[Block] = []
    for position, hit in enumerate(hits):
        if hit.chunk.id is None:
            continue
        for chunks in _tries(hit, hit.chunk.id, expand, known or {}):
            more = with_block(blocks, Block(position, hit, hit.chunk.id, chunks), adjacent=expand > 0)
            if budget.fits(list(_pieces(more))):
                blocks = more
                break
    # A tokenizer may count more tokens in the whole text than in its pieces. No known tokenizer does.
    while (tokens := budget.count(list(_pieces(blocks)))) > limit:
        blocks.pop()
    included = {chunk_id for block in blocks for chunk_id in block.ids}
    return AssembledContext(
        context="".join(_pieces(blocks)),
        total_tokens=tokens,
        max_tokens=limit,
        included=[block.position for block in blocks],
        first_excluded=next((place for place, hit in enumerate(hits) if hit.chunk.id not in included), -1),
        token_counter=counter.name,
        citations=[_citation(marker, block) for marker, block in enumerate(blocks, start=1)],
    )


def _tries(hit: Hit, chunk_id: ChunkId, expand: int, known: Mapping[ChunkId, Chunk]) -> Iterator[tuple[Chunk, ...]]:
    """Yields the chunks that a hit may contribute, from the most to the fewest, until some fit."""
    if expand and not hit.orphaned:
        yield around(hit.chunk, chunk_id, expand, known)
    yield (known.get(chunk_id, hit.chunk),)


def _pieces(blocks: Iterable[Block]) -> Iterator[str]:
    for marker, block in enumerate(blocks, start=1):
        yield (SEPARATOR if marker > 1 else HEADER) + f"[{marker}] "
        yield from block.pieces


def _citation(marker: int, block: Block) -> Citation:
    document, placed = block.hit.document, not block.hit.orphaned
    return Citation(
        marker=marker,
        chunk_id=block.chunk_id,
        chunk_ids=block.ids,
        document_id=block.chunk_id.document_id,
        source=(document.source or document.source_key or "") if document else "",
        title=document.title if document else "",
        context=block.hit.chunk.context,
        page=block.chunks[0].page,
        start_index=block.chunks[0].start_index if placed else None,
        end_index=block.chunks[-1].end_index if placed else None,
    )


class AssembleService:
    """Assembles contexts from hits, or from references to chunks."""

    def __init__(self, documents: Documents, served: Served, embedders: Embedders) -> None:
        self._documents = documents
        self._served = served
        self._embedders = embedders

    def counter(self, name: str) -> TokenCounter:
        """Returns the token counter of a name.

        Raises:
            InvalidArgument: no counter has the name; ``known`` lists the names.
        """
        counters: list[TokenCounter] = [CharsPerFour(), *self._embedders.counters]
        by_name = {counter.name: counter for counter in counters}
        if name not in by_name:
            known = list(by_name)
            raise InvalidArgument(
                f"No such token counter; there are {', '.join(known)}", field="token_counter", known=known
            )
        return by_name[name]

    def assemble(self, tenant: Tenant, hits: Sequence[Hit], options: AssembleOptions) -> AssembledContext:
        """Assembles a context of hits. Neighbours are taken from what is served when they are read.

        A hit whose version is no longer served stands without neighbours.

        Raises:
            InvalidArgument: no token counter has the name.
        """
        counter = self.counter(options.token_counter)
        chunks: Mapping[ChunkId, Chunk] = {}
        if options.expand:
            hit_ids = [hit.chunk.id for hit in hits if hit.chunk.id is not None and not hit.orphaned]
            chunks = self._documents.chunks(tenant, self._served_neighbours(tenant, hit_ids, options.expand))
        return build_context(hits, options.max_tokens, counter, options.expand, chunks)

    def assemble_refs(self, tenant: Tenant, refs: Sequence[ChunkRef], options: AssembleOptions) -> AssembledRefs:
        """Reads chunks by their IDs and assembles them in the order of the references. Nothing is embedded.

        A chunk that is named again keeps its position among the hits, and stands in the context once.

        Raises:
            InvalidArgument: there are no references or over 1,000, or no token counter has the name.
            StaleRanking: a chunk is gone, or its version is no longer served; ``chunk_id`` names the first such chunk.
        """
        if not 1 <= len(refs) <= MAX_REFS:
            raise InvalidArgument(f"refs are 1 to {MAX_REFS}", field="refs", limit=MAX_REFS)
        counter = self.counter(options.token_counter)
        chunk_ids = [ref.chunk_id for ref in refs]
        readable = self._served_neighbours(tenant, chunk_ids, options.expand)
        chunks, infos = self._documents.chunks_and_infos(tenant, readable)
        hits = []
        for rank, chunk_id in enumerate(chunk_ids, start=1):
            if chunk_id not in chunks or chunk_id.document_id not in infos:
                raise StaleRanking("A chunk of this ranking is gone; retrieve again", chunk_id=chunk_id)
            document = infos[chunk_id.document_id].summary()
            hits.append(Hit(rank=rank, score=0.0, hydrated=True, chunk=chunks[chunk_id], document=document))
        context = build_context(hits, options.max_tokens, counter, options.expand, chunks)
        return AssembledRefs(context=context, hits=hits)

    def _served_neighbours(self, tenant: Tenant, chunk_ids: Sequence[ChunkId], expand: int) -> list[ChunkId]:
        """Lists those of the chunks and their neighbours that are served, in order of ID."""
        candidates = {neighbour for chunk_id in chunk_ids for neighbour in neighbours(chunk_id, expand)}
        return sorted(self._served.chunk_ids(tenant, sorted(candidates)))

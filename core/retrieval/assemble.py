"""A context within a token budget, with a citation for every marker."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from core.model.chunk import Chunk
from core.model.context import AssembledContext, AssembleOptions, ChunkRef, Citation
from core.model.errors import InvalidArgument, StaleRanking
from core.model.hit import AssembledRefs, Hit
from core.model.ids import ChunkId
from core.model.tenant import Tenant
from core.parts import Parts
from core.retrieval.blocks import Block, around, neighbours, with_block
from core.retrieval.budget import Budget
from core.retrieval.visibility import served_ids
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
    """Takes hits in order while the whole context, header and markers included, stays within the budget.

    A hit that does not fit is passed over; later ones may still fit. A chunk stands there once: a hit that names it
    again has no marker of its own.

    Expanded hits of one version that share a chunk, or follow on one another, stand under one marker, at the better
    one's place. Where a hit does not fit with its neighbours, it is tried alone.

    Args:
        max_tokens: zero or less: 4096.
        known: the chunks that neighbours are taken of.
    """
    limit = max_tokens if max_tokens > 0 else DEFAULT_MAX_TOKENS
    budget = Budget(counter, limit)
    blocks: list[Block] = []
    for position, hit in enumerate(hits):
        if hit.chunk.id is None:
            continue
        for chunks in _tries(hit, hit.chunk.id, expand, known or {}):
            more = with_block(blocks, Block(position, hit, hit.chunk.id, chunks), adjacent=expand > 0)
            if budget.fits(list(_pieces(more))):
                blocks = more
                break
    # Only a tokenizer that looks further than any known one makes more of the whole than of its pieces.
    while (tokens := budget.count(list(_pieces(blocks)))) > limit:
        blocks.pop()
    held = {one for block in blocks for one in block.ids}
    return AssembledContext(
        context="".join(_pieces(blocks)),
        total_tokens=tokens,
        max_tokens=limit,
        included=[block.position for block in blocks],
        first_excluded=next((place for place, hit in enumerate(hits) if hit.chunk.id not in held), -1),
        token_counter=counter.name,
        citations=[_citation(marker, block) for marker, block in enumerate(blocks, start=1)],
    )


def _tries(hit: Hit, chunk_id: ChunkId, expand: int, known: Mapping[ChunkId, Chunk]) -> Iterator[tuple[Chunk, ...]]:
    """What is tried for a hit, one after the other, until something fits."""
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


def find_counter(parts: Parts, name: str) -> TokenCounter:
    """The token counter of a name.

    Raises:
        InvalidArgument: there is none; ``known`` names those there are.
    """
    counters: list[TokenCounter] = [CharsPerFour(), *(one.counter for one in parts.embedders.values())]
    by_name = {one.name: one for one in counters}
    if name not in by_name:
        known = list(by_name)
        raise InvalidArgument(
            f"No such token counter; there are {', '.join(known)}", field="token_counter", known=known
        )
    return by_name[name]


def assemble(parts: Parts, tenant: Tenant, hits: Sequence[Hit], options: AssembleOptions) -> AssembledContext:
    """A context of hits. Neighbours come from what is served when they are read.

    A hit whose version is served no more stands alone.

    Raises:
        InvalidArgument: an unknown token counter.
    """
    counter = find_counter(parts, options.token_counter)
    known: Mapping[ChunkId, Chunk] = {}
    if options.expand:
        ids = [hit.chunk.id for hit in hits if hit.chunk.id is not None and not hit.orphaned]
        wanted = {one for chunk_id in ids for one in neighbours(chunk_id, options.expand)}
        known = parts.documents.chunks(tenant, sorted(served_ids(parts, tenant, sorted(wanted))))
    return build_context(hits, options.max_tokens, counter, options.expand, known)


def assemble_refs(parts: Parts, tenant: Tenant, refs: Sequence[ChunkRef], options: AssembleOptions) -> AssembledRefs:
    """Reads each chunk back by ID and assembles them in the given order. Nothing is embedded.

    A chunk that is named again keeps its position among the hits, and stands in the context once.

    Raises:
        InvalidArgument: no refs, over 1,000, or an unknown token counter.
        StaleRanking: a chunk is gone, or of a version that is served no more; ``chunk_id`` names the first.
    """
    if not 1 <= len(refs) <= MAX_REFS:
        raise InvalidArgument(f"refs are 1 to {MAX_REFS}", field="refs", limit=MAX_REFS)
    counter = find_counter(parts, options.token_counter)
    ids = [ref.chunk_id for ref in refs]
    wanted = {one for chunk_id in ids for one in neighbours(chunk_id, options.expand)}
    served = served_ids(parts, tenant, sorted(wanted))
    chunks, infos = parts.documents.chunks_and_infos(tenant, sorted(served))
    hits = []
    for rank, one in enumerate(ids, start=1):
        if one not in chunks or one.document_id not in infos:
            raise StaleRanking("A chunk of this ranking is gone; retrieve again", chunk_id=one)
        document = infos[one.document_id].summary()
        hits.append(Hit(rank=rank, score=0.0, hydrated=True, chunk=chunks[one], document=document))
    return AssembledRefs(context=build_context(hits, options.max_tokens, counter, options.expand, chunks), hits=hits)

"""A context within a token budget, with a citation for every marker."""

from collections.abc import Sequence

from core.model.context import AssembledContext, AssembledRefs, ChunkRef, Citation
from core.model.errors import InvalidArgument, StaleRanking
from core.model.hit import Hit
from core.model.ids import ChunkId
from core.model.tenant import Tenant
from core.parts import Parts
from core.retrieval.visibility import served_ids
from core.text.counting import CharsPerFour
from core.text.types import TokenCounter

HEADER = "Relevant context:\n\n"
SEPARATOR = "\n\n---\n\n"
DEFAULT_MAX_TOKENS = 4096
MAX_REFS = 1000


def assemble(
    hits: Sequence[Hit], max_tokens: int = DEFAULT_MAX_TOKENS, counter: TokenCounter | None = None
) -> AssembledContext:
    """Takes hits in order while the whole context, header and markers included, stays within the budget.

    A hit that does not fit is passed over; later ones may still fit.

    Args:
        max_tokens: zero or less: 4096.
    """
    counter = counter or CharsPerFour()
    budget = max_tokens if max_tokens > 0 else DEFAULT_MAX_TOKENS
    context, tokens = "", 0
    included: list[int] = []
    citations: list[Citation] = []
    first_excluded = -1
    for position, hit in enumerate(hits):
        marker = len(included) + 1
        longer = (context + SEPARATOR if context else HEADER) + f"[{marker}] {hit.chunk.text}"
        count = counter.count(longer)
        if hit.chunk.id is None or count > budget:
            first_excluded = position if first_excluded < 0 else first_excluded
            continue
        context, tokens = longer, count
        included.append(position)
        citations.append(_citation(marker, hit, hit.chunk.id))
    return AssembledContext(
        context=context,
        total_tokens=tokens,
        max_tokens=budget,
        included=included,
        first_excluded=first_excluded,
        token_counter=counter.name,
        citations=citations,
    )


def _citation(marker: int, hit: Hit, chunk_id: ChunkId) -> Citation:
    document = hit.document
    return Citation(
        marker=marker,
        chunk_id=chunk_id,
        document_id=chunk_id.document_id,
        source=(document.source or document.source_key or "") if document else "",
        title=document.title if document else "",
        context=hit.chunk.context,
        start_index=hit.chunk.start_index,
        end_index=hit.chunk.end_index,
    )


def assemble_refs(parts: Parts, tenant: Tenant, refs: Sequence[ChunkRef], max_tokens: int) -> AssembledRefs:
    """Reads each chunk back by ID and assembles them in the given order. Nothing is embedded.

    Raises:
        InvalidArgument: no refs, or over 1,000.
        StaleRanking: a chunk is gone, or of a version that is served no more; ``chunk_id`` names the first.
    """
    if not 1 <= len(refs) <= MAX_REFS:
        raise InvalidArgument(f"refs are 1 to {MAX_REFS}", field="refs", limit=MAX_REFS)
    ids = [ref.chunk_id for ref in refs]
    served = served_ids(parts, tenant, ids)
    chunks, infos = parts.documents.chunks_and_infos(tenant, [one for one in ids if one in served])
    hits = []
    for rank, one in enumerate(ids, start=1):
        if one not in chunks or one.document_id not in infos:
            raise StaleRanking("A chunk of this ranking is gone; retrieve again", chunk_id=one)
        document = infos[one.document_id].summary()
        hits.append(Hit(rank=rank, score=0.0, hydrated=True, chunk=chunks[one], document=document))
    return AssembledRefs(context=assemble(hits, max_tokens), hits=hits)

"""One attempt at one document: from the first heartbeat to the swap, or to its failure."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from core.clock import Lifetime
from core.embedding.types import Embedder, Vector
from core.ingest.description import described_again
from core.ingest.owner import LostError, Owner
from core.ingest.purge import remove_data
from core.ingest.records import vector_records
from core.loading.types import Loader
from core.metadata.documents import Standing
from core.metadata.dynamo import retry_on_conflict
from core.metadata.rows import CollectionRow, Head, Info
from core.model.chunk import Chunk
from core.model.document import DocumentState, Failure
from core.model.errors import IngestInterrupted, NotYetSearchable, Unavailable, WeftError
from core.model.ids import ChunkId
from core.model.ingest import IngestInput, IngestResult
from core.model.tenant import Tenant
from core.parts import Parts
from core.splitting.chunking import chunk_document
from core.splitting.types import Splitter

logger = logging.getLogger(__name__)

EMBED_AT_ONCE = 64
WRITE_AT_ONCE = 500
MAX_TITLE = 1024


@dataclass(frozen=True)
class Plan:
    """What an ingest knows before it begins.

    Attributes:
        writer: the random name of this ingest.
        deadline: monotonic seconds; nothing new is started after it.
    """

    tenant: Tenant
    given: IngestInput
    collection: CollectionRow
    loader: Loader
    charset: str | None
    splitter: Splitter
    embedder: Embedder
    content_hash: str
    fingerprint: str
    writer: str
    deadline: float


class Attempt(Owner):
    """Runs one attempt that has begun or claimed its document.

    Args:
        head: the document as this attempt owns it.
        life: begun before the write that made it own the document.
    """

    def __init__(self, parts: Parts, plan: Plan, head: Head, info: Info, life: Lifetime) -> None:
        super().__init__(parts, head, life, plan.deadline)
        self._plan = plan
        self._begun_with = info
        self._info = info
        self._stage = "start"
        self._reserved = 0

    def run(self) -> IngestResult:
        """The whole attempt. Its answer is in progress when the document is to be finished from the queue.

        Raises:
            IngestInterrupted: the document was taken from this attempt; nothing it wrote is left.
            WeftError: whatever made it fail; the document then says why.
        """
        self._fire("ingest_started", source_key=self._plan.given.source_key)
        try:
            result = self._stages()
        except LostError as error:
            self._discard()
            raise IngestInterrupted(document_id=self._head.document_id) from error
        except Exception as error:
            after = self._end_badly(error)
            if after is None:
                if isinstance(error, WeftError):
                    error.extras["document_id"] = self._head.document_id
                raise
            result = after
        if not result.state.in_progress:
            self._complete(result)
        return result

    # -- stages ------------------------------------------------------------------------------------

    def _stages(self) -> IngestResult:
        chunks = self._chunk()
        vectors = self._embed(chunks)
        searchable = self._write(chunks, vectors)
        self._stage = "swap"
        info = self._info if self._info != self._begun_with else None
        if not searchable:
            return self._leave(info)
        self._heartbeat()
        return retry_on_conflict(self._parts.clock, partial(self._swap, len(chunks), info))

    def _chunk(self) -> list[Chunk]:
        plan = self._plan
        self._stage = "load"
        self._heartbeat()
        loaded = plan.loader.load(plan.given.content, plan.charset)
        self._stage = "chunk"
        chunks = chunk_document(
            loaded,
            document_id=self._head.document_id,
            attempt=self._head.attempt,
            collection_id=self._head.collection_id,
            origin=plan.given.source or plan.given.source_key or "",
            attributes=plan.given.attributes,
            splitter=plan.splitter,
            size=plan.collection.chunk_size,
            overlap=plan.collection.chunk_overlap,
            counter=plan.embedder.counter,
        )
        again = described_again(self._info, plan.given)  # a claimed document may have been described otherwise
        title = again.title or loaded.title[:MAX_TITLE]
        self._info = again.model_copy(update={"title": title, "attributes": chunks[0].attributes})
        self._fire("ingest_chunked", chunks=len(chunks))
        self._heartbeat(reserve=len(chunks))
        self._reserved = len(chunks)
        names = {name for chunk in chunks for name in chunk.attributes}
        self._parts.fields.add(self._head.tenant, self._head.collection_id, names)
        return chunks

    def _embed(self, chunks: Sequence[Chunk]) -> list[Vector]:
        self._stage = "embed"
        vectors: list[Vector] = []
        for start in range(0, len(chunks), EMBED_AT_ONCE):
            self._check_time()
            texts = [chunk.text for chunk in chunks[start : start + EMBED_AT_ONCE]]
            vectors += self._parts.embed(self._plan.embedder, texts)
            self._heartbeat_if_due()
        self._fire("ingest_embedded", chunks=len(chunks))
        self._heartbeat()
        return vectors

    def _write(self, chunks: Sequence[Chunk], vectors: Sequence[Vector]) -> bool:
        """Whether searches see all of it; else it is written and someone can finish it later."""
        self._stage = "write"
        searchable = True
        head, key = self._head, self._plan.given.source_key
        records = vector_records(head, key, chunks, vectors)
        store = self._parts.vector_store()
        for start in range(0, len(chunks), WRITE_AT_ONCE):
            part = slice(start, start + WRITE_AT_ONCE)
            self._parts.documents.write_chunks(head.tenant, chunks[part], before=self._check_time)
            self._check_time()
            try:
                with self._parts.timed("vectors_write"):
                    store.write(head.tenant, head.space, records[part])
            except NotYetSearchable:
                if self._parts.finishing is None:
                    raise
                searchable = False
            self._heartbeat_if_due()
        return searchable

    def _leave(self, info: Info | None) -> IngestResult:
        """Leaves a document that is written whole to the queue, from where it is finished (`core.ingest.finish`)."""
        self._wait_in_queue(info)
        if self._parts.finishing is not None:
            self._parts.finishing.send(self._head.tenant, self._head.document_id, self._head.attempt)
        return IngestResult(document_id=self._head.document_id, chunk_count=0, state=DocumentState.PROCESSING)

    # -- what became of it -------------------------------------------------------------------------

    def _end_badly(self, error: Exception) -> IngestResult | None:
        """Marks the document failed, or finds the success that it had after all, its answer lost.

        While neither is known, a swap may be on its way still: then the data stays, and the sweep decides.

        Returns:
            The success; None: there is none.
        """
        if self._life.is_over():
            return None
        try:
            self._fail(error)
            head, source = self._parts.documents.head_and_source(self._head)
        except Unavailable:
            # The caller hears of the first failure, which came from the same trouble.
            logger.warning("Document %s is left to the sweep", self._head.document_id)
            return None
        result = self._settled(head, source) if head is not None and head.attempt == self._head.attempt else None
        if result is None:
            self._discard()
        return result

    # -- ends --------------------------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        """Marks the document failed, unless it has been settled otherwise.

        Raises:
            Unavailable: it is not known whether it is.
        """
        failure = failure_of(self._stage, error)
        if retry_on_conflict(self._parts.clock, partial(mark_failed, self._parts, self._head, failure)):
            self._fire("ingest_failed", failure=failure)

    def _discard(self) -> None:
        """Removes what this attempt wrote, and no other's. What cannot be removed now is due later anyway."""
        if self._life.is_over():
            return
        head = self._head
        written = [ChunkId.of(head.document_id, head.attempt, index) for index in range(self._reserved)]
        try:
            remove_data(self._parts, head.tenant, head.space, written)
        except Exception as error:  # noqa: BLE001 - whatever the store raises, the data is due for the sweep
            logger.warning("Data of document %s is left to the sweep: %s", head.document_id, type(error).__name__)


def failure_of(stage: str, error: Exception) -> Failure:
    """What a document says of why it failed: never a text that could hold its content."""
    if isinstance(error, WeftError):
        return Failure(stage=stage, code=error.code, detail=error.detail)
    return Failure(stage=stage, code="internal_error", detail=f"Internal error ({type(error).__name__})")


def mark_failed(
    parts: Parts, head: Head, failure: Failure, cutoff: datetime | None = None, known: Standing | None = None
) -> Head | None:
    """One step of marking a document failed.

    Args:
        cutoff: only if there was no heartbeat since.
        known: as it was read a short while ago; None: it is read now.

    Returns:
        The document as this call failed it; None when it was not this call.

    Raises:
        ConditionFailed, Conflict: it has changed since it was read; read it again.
    """
    now, source, holder = known or parts.documents.standings([head])[head.document_id]
    if now is None or not now.state.in_progress or now.attempt != head.attempt:
        return None
    if cutoff is not None and now.heartbeat > cutoff:
        return None
    released = parts.transitions.release(now, source, holder)
    parts.transitions.fail(now, failure, cutoff=cutoff, settled=released)
    return now

"""Every change of a document's or a source's state, each one transaction.

The order of states and what guards each step is explored as a model and tried by the proofs. The rules:

- ``attempt`` fences: heartbeat, swap and failure hold only for the attempt that owns the document.
- ``number`` orders: a version never replaces one with a higher number, nor a removal's.
- ``revision`` pins: a source is written only as it was read.
- A closed gate lets nothing begin and nothing swap.
- Whoever takes a row away while a writer may live leaves a mark that is cleaned after the writer's life.

All raise ``ConditionFailed`` or ``Conflict``: read again and decide again (`dynamo.retry_on_conflict`).
A failed condition proves nothing by itself: one's own write may have been it, its answer lost.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from core.clock import Clock
from core.metadata import table
from core.metadata.dynamo import Action, ConditionFailed, Table
from core.metadata.rows import Counts, Current, Gone, Head, Info, Source, Work
from core.metadata.table import GATES
from core.model.base import rfc3339
from core.model.document import DocumentState, Failure
from core.model.ids import CollectionId, DocumentId
from core.model.tenant import Tenant

_IN_PROGRESS = "#state IN (:pending, :processing)"
_MINE = f"{_IN_PROGRESS} AND attempt = :attempt"
_STATES = {"pending": DocumentState.PENDING.value, "processing": DocumentState.PROCESSING.value}
KEEP_EMPTY_SOURCE = timedelta(days=30)


class Transitions:
    """The transactions of the protocol.

    Args:
        writer_life: how long a writer may live after it began.
    """

    def __init__(self, rows: Table, clock: Clock, writer_life: timedelta) -> None:
        self._table = rows
        self._clock = clock
        self._writer_life = writer_life

    # -- from nothing to in progress ---------------------------------------------------------------

    def begin_keyed(self, head: Head, info: Info, read: Source, source: Source) -> None:
        """A new version of a source. ``read``: the source as read; ``source``: as it is to be."""
        self._table.transact(
            [
                self._put_source(head.tenant, read, source),
                *self._new_document(head, info),
                Action(
                    table.version(head.tenant, head.collection_id, source.source_id, head.document_id),
                    put={"number": head.number},
                ),
            ]
        )

    def begin_unkeyed(self, head: Head, info: Info, holder: DocumentId | None) -> None:
        """A document without a source. ``holder``: the document that the content row named when it was read."""
        entries = table.entries_of_collection(head.tenant, head.collection_id)
        self._table.transact(
            [
                Action(
                    table.content(head.tenant, head.collection_id, head.fingerprint),
                    put={
                        "document_id": head.document_id,
                        **table.listing(entries, f"CONTENT#{head.fingerprint}"),
                    },
                    condition="document_id = :holder" if holder else "attribute_not_exists(pk)",
                    values={"holder": holder} if holder else {},
                ),
                *self._new_document(head, info),
            ]
        )

    def _new_document(self, head: Head, info: Info) -> list[Action]:
        working = int(head.state.in_progress)
        moment = table.stalled_since(head.heartbeat) if working else table.due_at(head.heartbeat + self._writer_life)
        return [
            Action(
                table.head(head.tenant, head.document_id),
                put={
                    **head.item(),
                    **table.listing(table.documents_of_collection(head.tenant, head.collection_id), head.document_id),
                    "sweep_pk": table.sweep_shard(head.document_id),
                    "sweep_sk": moment,
                },
                condition="attribute_not_exists(pk)",
            ),
            Action(
                table.info(head.tenant, head.document_id),
                put={**info.item(), **table.listing(table.documents_of_tenant(head.tenant), head.document_id)},
            ),
            self._gate(head.tenant, head.collection_id, Counts(rows=1, working=working), opened=True),
        ]

    def renumber(self, head: Head, number: int, source_version: str, read: Source, source: Source) -> None:
        """The same content came with a higher source version: its document takes a new number."""
        self._table.transact(
            [
                self._put_source(head.tenant, read, source),
                Action(
                    table.head(head.tenant, head.document_id),
                    update="SET #number = :number",
                    condition="#state = :state AND attempt = :attempt",
                    values={"number": number, "state": head.state.value, "attempt": head.attempt},
                ),
                Action(
                    table.info(head.tenant, head.document_id),
                    update="SET source_version = :version",
                    condition="attribute_exists(pk)",
                    values={"version": source_version},
                ),
            ]
        )

    def claim(self, head: Head, writer: str, cutoff: datetime) -> Head:
        """Takes a stalled document over: its attempt rises, and the old attempt leaves a mark."""
        now = self._clock.now()
        self._table.transact(
            [
                Action(
                    table.head(head.tenant, head.document_id),
                    update="SET attempt = :next, writer = :writer, "
                    "heartbeat = :now, updated_at = :now, sweep_sk = :due",
                    # Reserved as read: the mark must name every chunk that may have been written.
                    condition=f"{_MINE} AND heartbeat <= :cutoff AND reserved = :reserved",
                    values={
                        **_STATES,
                        "reserved": head.reserved,
                        "attempt": head.attempt,
                        "next": head.attempt + 1,
                        "writer": writer,
                        "now": rfc3339(now),
                        "due": table.stalled_since(now),
                        "cutoff": rfc3339(cutoff),
                    },
                ),
                self._put_gone(head, attempt=head.attempt),
            ]
        )
        return head.model_copy(update={"attempt": head.attempt + 1, "writer": writer, "heartbeat": now})

    # -- in progress -------------------------------------------------------------------------------

    def heartbeat(
        self, head: Head, *, reserve: int | None = None, quiet: timedelta = timedelta(0), info: Info | None = None
    ) -> None:
        """A sign of life; the document is ``processing`` from the first one on.

        Args:
            reserve: how many chunks this attempt is about to write. Recorded before the first of them.
            quiet: for so long there may be no other sign of life.
            info: written when loading has taught something of the document, and another will make it ready.
        """
        now = self._clock.now()
        update = "SET #state = :processing, heartbeat = :beat, updated_at = :now, sweep_sk = :due"
        values = {
            **_STATES,
            "attempt": head.attempt,
            "now": rfc3339(now),
            "beat": rfc3339(now + quiet),
            "due": table.stalled_since(now + quiet),
        }
        if reserve is not None:
            update += f", reserved.#{head.attempt} = :reserve"
            values["reserve"] = reserve
        beat = Action(table.head(head.tenant, head.document_id), update=update, condition=_MINE, values=values)
        if info is None:
            self._table.write(beat)
        else:
            self._table.transact([beat, self._update_info(head.tenant, info)])

    def swap(self, head: Head, *, chunk_count: int, info: Info | None, read: Source | None) -> None:
        """In progress to ready; the source's current version to superseded.

        Args:
            head: as read just now.
            info: written when loading has taught something of the document.
            read: the source as read just now; None without a source.
        """
        now = rfc3339(self._clock.now())
        actions = [
            Action(
                table.head(head.tenant, head.document_id),
                update="SET #state = :ready, chunk_count = :chunks, updated_at = :now REMOVE sweep_pk, sweep_sk",
                condition=f"{_MINE} AND #number = :number",
                values={
                    **_STATES,
                    "ready": DocumentState.READY.value,
                    "attempt": head.attempt,
                    "number": head.number,
                    "chunks": chunk_count,
                    "now": now,
                },
            )
        ]
        counts = Counts(documents=1, chunks=chunk_count, working=-1)
        if info is not None:
            actions.append(self._update_info(head.tenant, info))
        if read is not None:
            current = Current(
                document_id=head.document_id,
                attempt=head.attempt,
                fingerprint=head.fingerprint,
                content_hash=head.content_hash,
                chunk_count=chunk_count,
            )
            work = read.without_work_up_to(head.number)
            source = read.model_copy(update={"current": current, "current_number": head.number, "work": work})
            actions.append(self._put_source(head.tenant, read, source))
            if read.current is not None:
                actions.append(self._supersede_current(head.tenant, read.current))
                counts = Counts(chunks=chunk_count - read.current.chunk_count, working=-1)
        self._table.transact([*actions, self._gate(head.tenant, head.collection_id, counts, opened=True)])

    def _supersede_current(self, tenant: Tenant, current: Current) -> Action:
        now = self._clock.now()
        return Action(
            table.head(tenant, current.document_id),
            update="SET #state = :superseded, updated_at = :now, sweep_pk = :shard, sweep_sk = :due",
            condition="#state = :ready AND attempt = :attempt",
            values={
                "superseded": DocumentState.SUPERSEDED.value,
                "ready": DocumentState.READY.value,
                "attempt": current.attempt,
                "now": rfc3339(now),
                "shard": table.sweep_shard(current.document_id),
                "due": table.stalled_since(now),
            },
        )

    def overtaken(self, head: Head) -> None:
        """In progress to superseded: a version or a removal with a higher number is there."""
        now = self._clock.now()
        self._table.transact(
            [
                Action(
                    table.head(head.tenant, head.document_id),
                    update="SET #state = :superseded, updated_at = :now, sweep_sk = :due",
                    condition=f"{_MINE} AND #number = :number",
                    values={
                        **_STATES,
                        "superseded": DocumentState.SUPERSEDED.value,
                        "attempt": head.attempt,
                        "number": head.number,
                        "now": rfc3339(now),
                        "due": table.stalled_since(now),
                    },
                ),
                self._gate(head.tenant, head.collection_id, Counts(working=-1)),
            ]
        )

    def fail(self, head: Head, failure: Failure, *, cutoff: datetime | None, settled: Sequence[Action]) -> None:
        """In progress to failed; due for one more cleaning after the writer's life.

        Args:
            cutoff: when given, only if there was no heartbeat since.
            settled: what takes the document out of its source's work, or its content row (`release`).
        """
        now = self._clock.now()
        values = {
            **_STATES,
            "failed": DocumentState.FAILED.value,
            "attempt": head.attempt,
            "error": failure.model_dump(),
            "now": rfc3339(now),
            "due": table.due_at(now + self._writer_life),
        }
        condition = _MINE
        if cutoff is not None:
            # Reserved as read: what is cleaned next is all that may have been written.
            condition += " AND heartbeat <= :cutoff AND reserved = :reserved"
            values |= {"cutoff": rfc3339(cutoff), "reserved": head.reserved}
        self._table.transact(
            [
                Action(
                    table.head(head.tenant, head.document_id),
                    update="SET #state = :failed, #error = :error, updated_at = :now, sweep_sk = :due",
                    condition=condition,
                    values=values,
                ),
                *settled,
                self._gate(head.tenant, head.collection_id, Counts(working=-1)),
            ]
        )

    def release(self, head: Head, source: Source | None, holder: DocumentId | None) -> list[Action]:
        """Takes a document out of its source's work, or removes its content row; nothing when it is not in it.

        Args:
            source: the source as read just now.
            holder: the document that the content row names, as read just now.
        """
        if source is not None:
            work = source.without_document(head.document_id)
            if work == source.work:
                return []
            return [self._put_source(head.tenant, source, source.model_copy(update={"work": work}))]
        if holder != head.document_id:
            return []
        return [
            Action(
                table.content(head.tenant, head.collection_id, head.fingerprint),
                delete=True,
                condition="document_id = :holder",
                values={"holder": holder},
            )
        ]

    # -- removal -----------------------------------------------------------------------------------

    def remove_source(self, tenant: Tenant, read: Source, source: Source) -> None:
        """A removal takes a number like any version; the current version is superseded, nothing takes its place."""
        actions = [self._put_source(tenant, read, source)]
        if read.current is not None:
            counts = Counts(documents=-1, chunks=-read.current.chunk_count)
            actions += [
                self._supersede_current(tenant, read.current),
                self._gate(tenant, read.collection_id, counts),
            ]
        self._table.transact(actions)

    def retire(self, head: Head, released: Sequence[Action]) -> None:
        """Ready to superseded, for the delete of one document. ``released``: as from `forget` or `release`."""
        current = Current(
            document_id=head.document_id,
            attempt=head.attempt,
            fingerprint=head.fingerprint,
            content_hash=head.content_hash,
            chunk_count=head.chunk_count,
        )
        counts = Counts(documents=-1, chunks=-head.chunk_count)
        self._table.transact(
            [
                self._supersede_current(head.tenant, current),
                *released,
                self._gate(head.tenant, head.collection_id, counts),
            ]
        )

    def forget(self, head: Head, source: Source) -> list[Action]:
        """Makes a source serve nothing, when it serves this document.

        Raises:
            ConditionFailed: it serves another one; the document's row is behind.
        """
        if source.current is None or source.current.document_id != head.document_id:
            raise ConditionFailed("the source serves another document")
        return [self._put_source(head.tenant, source, source.model_copy(update={"current": None}))]

    def remove(self, head: Head, released: Sequence[Action] = ()) -> None:
        """Takes a document's rows away and leaves a mark for a writer that may still live.

        The document is as ``head`` says: in progress, superseded, failed; ready only in a collection that is
        being deleted, where nothing is served.
        """
        counts = Counts(rows=-1, working=-int(head.state.in_progress))
        if head.state == DocumentState.READY:
            counts = Counts(rows=-1, documents=-1, chunks=-head.chunk_count)
        actions = [
            Action(
                table.head(head.tenant, head.document_id),
                delete=True,
                condition="#state = :state AND attempt = :attempt AND #number = :number AND reserved = :reserved",
                values={
                    "state": head.state.value,
                    "attempt": head.attempt,
                    "number": head.number,
                    "reserved": head.reserved,
                },
            ),
            Action(table.info(head.tenant, head.document_id), delete=True),
            self._put_gone(head, attempt=None),
            *released,
            self._gate(head.tenant, head.collection_id, counts),
        ]
        if head.source_id is not None:
            key = table.version(head.tenant, head.collection_id, head.source_id, head.document_id)
            actions.append(Action(key, delete=True))
        self._table.transact(actions)

    # -- parts -------------------------------------------------------------------------------------

    def _put_source(self, tenant: Tenant, read: Source, source: Source) -> Action:
        revised = source.model_copy(update={"revision": read.revision + 1})
        item = {
            **revised.item(),
            **table.listing(table.entries_of_collection(tenant, source.collection_id), f"SOURCE#{source.source_id}"),
        }
        if source.current is None and not source.work:
            item["expires_at"] = int((self._clock.now() + KEEP_EMPTY_SOURCE).timestamp())
        return Action(
            table.source(tenant, source.collection_id, source.source_id),
            put=item,
            condition="revision = :revision" if read.revision else "attribute_not_exists(pk)",
            values={"revision": read.revision} if read.revision else {},
        )

    def _update_info(self, tenant: Tenant, info: Info) -> Action:
        return Action(
            table.info(tenant, info.document_id),
            update="SET title = :title, #source = :source, metadata = :metadata, attributes = :attributes",
            condition="attribute_exists(pk)",
            values={
                "title": info.title,
                "source": info.source,
                "metadata": info.metadata,
                "attributes": info.item()["attributes"],
            },
        )

    def _put_gone(self, head: Head, *, attempt: int | None) -> Action:
        reserved = {
            number: count for number, count in head.reserved.items() if attempt is None or int(number) == attempt
        }
        due = self._clock.now() + self._writer_life
        gone = Gone(
            document_id=head.document_id,
            reserved=reserved,
            embedding_model=head.embedding_model,
            embedding_dims=head.embedding_dims,
            due=due,
        )
        return Action(
            table.gone(head.tenant, head.document_id, attempt),
            put={**gone.item(), "sweep_pk": table.sweep_shard(head.document_id), "sweep_sk": table.due_at(due)},
        )

    def _gate(self, tenant: Tenant, collection_id: CollectionId, counts: Counts, *, opened: bool = False) -> Action:
        """Counts on one gate, drawn anew at each call; ``opened``: only while the collection is open."""
        changed = {name: change for name, change in counts if change}
        return Action(
            table.gate(tenant, collection_id, self._clock.random.randrange(GATES)),
            update="ADD " + ", ".join(f"#{name} :{name}" for name in changed),
            condition="opened = :true" if opened else "attribute_exists(pk)",
            values={**changed, **({"true": True} if opened else {})},
        )


def next_version(source: Source, fingerprint: str, document_id: DocumentId) -> Source:
    """A source after a new version of it has begun."""
    work = source.without_work_up_to(source.current_number)
    work[fingerprint] = Work(document_id=document_id, number=source.next_number)
    return source.model_copy(update={"next_number": source.next_number + 1, "work": work})

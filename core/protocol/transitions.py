"""Every change of a document's or a source's state, each one DynamoDB transaction. No other module changes a state.

`README.md` beside this file explains the states, who may move each, the guards and the accident that each prevents.

Every transition raises ``ConditionFailed`` when a guard does not hold and ``Conflict`` when another transaction was at
a row. The caller then reads again and decides again (`core.metadata.dynamo.retry_on_conflict`). A failed guard proves
nothing by itself: the caller's own write may have changed the row, and only the answer to that write was lost.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from core.clock import Clock
from core.metadata import table
from core.metadata.dynamo import Action, ConditionFailed, Table
from core.metadata.rows import Counts, CurrentVersion, Head, Info, Source, VersionInProgress
from core.model.base import rfc3339
from core.model.document import DocumentState, Failure
from core.model.ids import DocumentId
from core.model.tenant import Tenant
from core.protocol.writes import OWNED, Writes, owned_by


class Transitions:
    """The transactions of the protocol.

    Args:
        writer_life: how long a writer may live after it began.
    """

    def __init__(self, rows: Table, clock: Clock, writer_life: timedelta) -> None:
        self._table = rows
        self._clock = clock
        self._writes = Writes(clock, writer_life)

    # -- begin and claim -----------------------------------------------------------------------------

    def begin_keyed(self, head: Head, info: Info, source_as_read: Source, source: Source) -> None:
        """Begins a new version of a source.

        Args:
            source: the source's row as it is after this version has begun (`with_new_version`).
        """
        version = table.version(head.tenant, head.collection_id, source.source_id, head.document_id)
        self._table.transact(
            [
                self._writes.source(head.tenant, source_as_read, source),
                *self._writes.new_document(head, info),
                Action(version, put={"number": head.number}),
            ]
        )

    def begin_unkeyed(self, head: Head, info: Info, holder_as_read: DocumentId | None) -> None:
        """Begins a document without a source.

        Args:
            holder_as_read: the document that the content's row named when it was read; None: there was no row.
        """
        self._table.transact(
            [self._writes.content_holder(head, holder_as_read), *self._writes.new_document(head, info)]
        )

    def renumber(self, head: Head, number: int, source_version: str, source_as_read: Source, source: Source) -> None:
        """Gives a document a new version number, because its content came again with a higher source version."""
        self._table.transact(
            [
                self._writes.source(head.tenant, source_as_read, source),
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
        """Takes over a stalled document: the attempt rises by one, and the old attempt leaves a late-writer mark.

        Args:
            writer: the random name of the ingest that claims the document.
            cutoff: the document must have sent no heartbeat since.

        Returns:
            The document as the new attempt owns it.
        """
        now = self._clock.now()
        claim = Action(
            table.head(head.tenant, head.document_id),
            update="SET attempt = :next, writer = :writer, heartbeat = :now, updated_at = :now, sweep_sk = :due",
            # The late-writer mark must name every chunk that the old attempt may have written.
            condition=f"{OWNED} AND heartbeat <= :cutoff AND reserved = :reserved",
            values={
                **owned_by(head.attempt),
                "reserved": head.reserved,
                "next": head.attempt + 1,
                "writer": writer,
                "now": rfc3339(now),
                "due": table.stalled_since(now),
                "cutoff": rfc3339(cutoff),
            },
        )
        self._table.transact([claim, self._writes.late_writer_mark(head, attempt=head.attempt)])
        return head.model_copy(update={"attempt": head.attempt + 1, "writer": writer, "heartbeat": now})

    # -- heartbeat -----------------------------------------------------------------------------------

    def heartbeat(
        self, head: Head, *, reserve: int | None = None, quiet: timedelta = timedelta(0), info: Info | None = None
    ) -> None:
        """Records that the attempt is alive. The first heartbeat makes a pending document ``processing``.

        Args:
            reserve: how many chunks this attempt is about to write. Recorded before the first chunk is written.
            quiet: for how long the attempt may send no further heartbeat.
            info: the document's description, when loading has changed it and another process will make it ready.
        """
        now = self._clock.now()
        update = "SET #state = :processing, heartbeat = :beat, updated_at = :now, sweep_sk = :due"
        values = {
            **owned_by(head.attempt),
            "now": rfc3339(now),
            "beat": rfc3339(now + quiet),
            "due": table.stalled_since(now + quiet),
        }
        if reserve is not None:
            update += f", reserved.#{head.attempt} = :reserve"
            values["reserve"] = reserve
        beat = Action(table.head(head.tenant, head.document_id), update=update, condition=OWNED, values=values)
        if info is None:
            self._table.write(beat)
        else:
            self._table.transact([beat, self._writes.info(head.tenant, info)])

    # -- swap, overtaken, fail -----------------------------------------------------------------------

    def swap(self, head: Head, *, chunk_count: int, info: Info | None, source_as_read: Source | None) -> None:
        """Makes a document ready and, in the same transaction, the source's current version superseded.

        Args:
            head: the document's row, read just before.
            info: the document's description, when loading has changed it.
            source_as_read: the source's row, read just before; None for a document without a source.
        """
        ready = Action(
            table.head(head.tenant, head.document_id),
            update="SET #state = :ready, chunk_count = :chunks, updated_at = :now REMOVE sweep_pk, sweep_sk",
            condition=f"{OWNED} AND #number = :number",
            values={
                **owned_by(head.attempt),
                "ready": DocumentState.READY.value,
                "number": head.number,
                "chunks": chunk_count,
                "now": rfc3339(self._clock.now()),
            },
        )
        actions = [ready]
        counts = Counts(documents=1, chunks=chunk_count, working=-1)
        if info is not None:
            actions.append(self._writes.info(head.tenant, info))
        if source_as_read is not None:
            actions.append(
                self._writes.source(head.tenant, source_as_read, _serving(source_as_read, head, chunk_count))
            )
            if source_as_read.current is not None:
                actions.append(self._writes.supersede(head.tenant, source_as_read.current))
                counts = Counts(chunks=chunk_count - source_as_read.current.chunk_count, working=-1)
        gate = self._writes.count(head.tenant, head.collection_id, counts, only_if_open=True)
        self._table.transact([*actions, gate])

    def overtaken(self, head: Head) -> None:
        """Makes a document in progress superseded, because a version or a removal with a higher number exists."""
        now = self._clock.now()
        superseded = Action(
            table.head(head.tenant, head.document_id),
            update="SET #state = :superseded, updated_at = :now, sweep_sk = :due",
            condition=f"{OWNED} AND #number = :number",
            values={
                **owned_by(head.attempt),
                "superseded": DocumentState.SUPERSEDED.value,
                "number": head.number,
                "now": rfc3339(now),
                "due": table.stalled_since(now),
            },
        )
        self._table.transact([superseded, self._writes.count(head.tenant, head.collection_id, Counts(working=-1))])

    def fail(self, head: Head, failure: Failure, *, cutoff: datetime | None, released: Sequence[Action]) -> None:
        """Makes a document in progress failed. The sweep cleans its data once more after the writer's life.

        Args:
            cutoff: the document must have sent no heartbeat since; None: whenever its last heartbeat was.
            released: the writes of `release` for this document.
        """
        now = self._clock.now()
        values = {
            **owned_by(head.attempt),
            "failed": DocumentState.FAILED.value,
            "error": failure.model_dump(),
            "now": rfc3339(now),
            "due": table.due_at(self._writes.end_of_life(now)),
        }
        condition = OWNED
        if cutoff is not None:
            # The caller removes the data of `head` next, so `head` must name every chunk that may have been written.
            condition += " AND heartbeat <= :cutoff AND reserved = :reserved"
            values |= {"cutoff": rfc3339(cutoff), "reserved": head.reserved}
        failed = Action(
            table.head(head.tenant, head.document_id),
            update="SET #state = :failed, #error = :error, updated_at = :now, sweep_sk = :due",
            condition=condition,
            values=values,
        )
        gate = self._writes.count(head.tenant, head.collection_id, Counts(working=-1))
        self._table.transact([failed, *released, gate])

    def release(self, head: Head, source: Source | None, holder: DocumentId | None) -> list[Action]:
        """Returns the writes that take a document off its source's versions in progress, or off its content's row.

        Args:
            source: the source's row, read just before; None for a document without a source.
            holder: the document that the content's row names, read just before.

        Returns:
            No write when neither row names the document.
        """
        if source is not None:
            in_progress = source.in_progress_without(head.document_id)
            if in_progress == source.in_progress:
                return []
            changed = source.model_copy(update={"in_progress": in_progress})
            return [self._writes.source(head.tenant, source, changed)]
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

    # -- removal -------------------------------------------------------------------------------------

    def remove_source(self, tenant: Tenant, source_as_read: Source, source: Source) -> None:
        """Makes a source serve nothing. The removal has a version number, and the current version is superseded."""
        actions = [self._writes.source(tenant, source_as_read, source)]
        if source_as_read.current is not None:
            counts = Counts(documents=-1, chunks=-source_as_read.current.chunk_count)
            actions += [
                self._writes.supersede(tenant, source_as_read.current),
                self._writes.count(tenant, source_as_read.collection_id, counts),
            ]
        self._table.transact(actions)

    def retire(self, head: Head, released: Sequence[Action]) -> None:
        """Makes a ready document superseded by nothing, for the delete of one document.

        Args:
            released: the writes of `forget` for a document with a source, else those of `release`.
        """
        counts = Counts(documents=-1, chunks=-head.chunk_count)
        self._table.transact(
            [
                self._writes.supersede(head.tenant, _as_current(head, head.chunk_count)),
                *released,
                self._writes.count(head.tenant, head.collection_id, counts),
            ]
        )

    def forget(self, head: Head, source: Source) -> list[Action]:
        """Returns the write that makes a source serve nothing, for a source that serves this document.

        Raises:
            ConditionFailed: the source serves another document, so the document's row was read too early.
        """
        if source.current is None or source.current.document_id != head.document_id:
            raise ConditionFailed("the source serves another document")
        return [self._writes.source(head.tenant, source, source.model_copy(update={"current": None}))]

    def remove(self, head: Head, released: Sequence[Action] = ()) -> None:
        """Removes a document's rows and leaves a late-writer mark.

        Args:
            head: in progress, superseded or failed; ready only in a collection that is being deleted, where nothing
                is served.
            released: the writes of `release`, for a document in progress.
        """
        counts = Counts(rows=-1, working=-int(head.state.in_progress))
        if head.state == DocumentState.READY:
            counts = Counts(rows=-1, documents=-1, chunks=-head.chunk_count)
        removed = Action(
            table.head(head.tenant, head.document_id),
            delete=True,
            condition="#state = :state AND attempt = :attempt AND #number = :number AND reserved = :reserved",
            values={
                "state": head.state.value,
                "attempt": head.attempt,
                "number": head.number,
                "reserved": head.reserved,
            },
        )
        actions = [
            removed,
            Action(table.info(head.tenant, head.document_id), delete=True),
            self._writes.late_writer_mark(head, attempt=None),
            *released,
            self._writes.count(head.tenant, head.collection_id, counts),
        ]
        if head.source_id is not None:
            version = table.version(head.tenant, head.collection_id, head.source_id, head.document_id)
            actions.append(Action(version, delete=True))
        self._table.transact(actions)


def with_new_version(source: Source, fingerprint: str, document_id: DocumentId) -> Source:
    """Returns a source's row as it is after a new version of it has begun."""
    in_progress = source.in_progress_above(source.current_number)
    in_progress[fingerprint] = VersionInProgress(document_id=document_id, number=source.next_number)
    return source.model_copy(update={"next_number": source.next_number + 1, "in_progress": in_progress})


def _serving(source: Source, head: Head, chunk_count: int) -> Source:
    """Returns a source's row as it is after a swap has made a document its current version."""
    return source.model_copy(
        update={
            "current": _as_current(head, chunk_count),
            "current_number": head.number,
            "in_progress": source.in_progress_above(head.number),
        }
    )


def _as_current(head: Head, chunk_count: int) -> CurrentVersion:
    return CurrentVersion(
        document_id=head.document_id,
        attempt=head.attempt,
        fingerprint=head.fingerprint,
        content_hash=head.content_hash,
        chunk_count=chunk_count,
    )

"""The single writes that the transitions of the protocol are made of. `core.protocol.transitions` joins them into
transactions; no other module uses them."""

from datetime import datetime, timedelta
from typing import Any

from core.clock import Clock
from core.metadata import table
from core.metadata.dynamo import Action
from core.metadata.rows import Counts, CurrentVersion, Head, Info, LateWriterMark, Source
from core.metadata.table import GATES
from core.model.base import rfc3339
from core.model.document import DocumentState
from core.model.ids import CollectionId, DocumentId
from core.model.tenant import Tenant

KEEP_EMPTY_SOURCE = timedelta(days=30)
"""How long the row of a source stays that serves nothing and has no version in progress."""

_IN_PROGRESS = "#state IN (:pending, :processing)"
OWNED = f"{_IN_PROGRESS} AND attempt = :attempt"
"""The condition that an attempt still owns its document. Its values are those of `owned_by`."""


def owned_by(attempt: int) -> dict[str, Any]:
    """Returns the values of the condition ``OWNED``."""
    return {
        "pending": DocumentState.PENDING.value,
        "processing": DocumentState.PROCESSING.value,
        "attempt": attempt,
    }


class Writes:
    """Builds the writes of transitions.

    Args:
        writer_life: how long a writer may live after it began.
    """

    def __init__(self, clock: Clock, writer_life: timedelta) -> None:
        self._clock = clock
        self._writer_life = writer_life

    def end_of_life(self, start: datetime) -> datetime:
        """Returns the moment at which every writer is dead that began before `start`."""
        return start + self._writer_life

    def new_document(self, head: Head, info: Info) -> list[Action]:
        """Adds a document's rows and counts the document on an open gate."""
        in_progress = int(head.state.in_progress)
        due = table.stalled_since(head.heartbeat) if in_progress else table.due_at(self.end_of_life(head.heartbeat))
        return [
            Action(
                table.head(head.tenant, head.document_id),
                put={
                    **head.item(),
                    **table.listing(table.documents_of_collection(head.tenant, head.collection_id), head.document_id),
                    "sweep_pk": table.sweep_shard(head.document_id),
                    "sweep_sk": due,
                },
                condition="attribute_not_exists(pk)",
            ),
            Action(
                table.info(head.tenant, head.document_id),
                put={**info.item(), **table.listing(table.documents_of_tenant(head.tenant), head.document_id)},
            ),
            self.count(head.tenant, head.collection_id, Counts(rows=1, working=in_progress), only_if_open=True),
        ]

    def source(self, tenant: Tenant, as_read: Source, changed: Source) -> Action:
        """Writes a source's row, on condition that the row still has the revision at which it was read."""
        revised = changed.model_copy(update={"revision": as_read.revision + 1})
        item = {
            **revised.item(),
            **table.listing(table.entries_of_collection(tenant, changed.collection_id), f"SOURCE#{changed.source_id}"),
        }
        if changed.current is None and not changed.in_progress:
            item["expires_at"] = int((self._clock.now() + KEEP_EMPTY_SOURCE).timestamp())
        return Action(
            table.source(tenant, changed.collection_id, changed.source_id),
            put=item,
            condition="revision = :revision" if as_read.revision else "attribute_not_exists(pk)",
            values={"revision": as_read.revision} if as_read.revision else {},
        )

    def info(self, tenant: Tenant, info: Info) -> Action:
        """Writes title, source, metadata and attributes over a document's description."""
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

    def supersede(self, tenant: Tenant, current: CurrentVersion) -> Action:
        """Makes a ready document superseded, on condition that it is ready under the attempt that is served."""
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

    def late_writer_mark(self, head: Head, *, attempt: int | None) -> Action:
        """Marks that a late writer may still write, and which chunks. The sweep cleans up after the writer's life.

        Args:
            attempt: the abandoned attempt; None: every attempt, since the document is removed.
        """
        reserved = {
            number: count for number, count in head.reserved.items() if attempt is None or int(number) == attempt
        }
        due = self.end_of_life(self._clock.now())
        mark = LateWriterMark(
            document_id=head.document_id,
            reserved=reserved,
            embedding_model=head.embedding_model,
            embedding_dims=head.embedding_dims,
            due=due,
        )
        return Action(
            table.late_writer_mark(head.tenant, head.document_id, attempt),
            put={**mark.item(), "sweep_pk": table.sweep_shard(head.document_id), "sweep_sk": table.due_at(due)},
        )

    def count(
        self, tenant: Tenant, collection_id: CollectionId, counts: Counts, *, only_if_open: bool = False
    ) -> Action:
        """Adds counts to one of a collection's gates, drawn at random so that parallel transactions seldom meet.

        Args:
            only_if_open: refuse when the collection is being deleted.
        """
        changed = {name: change for name, change in counts if change}
        return Action(
            table.gate(tenant, collection_id, self._clock.random.randrange(GATES)),
            update="ADD " + ", ".join(f"#{name} :{name}" for name in changed),
            condition="opened = :true" if only_if_open else "attribute_exists(pk)",
            values={**changed, **({"true": True} if only_if_open else {})},
        )

    def content_holder(self, head: Head, holder_as_read: DocumentId | None) -> Action:
        """Makes a document the holder of its content, on condition that the holder is still the one that was read."""
        entries = table.entries_of_collection(head.tenant, head.collection_id)
        return Action(
            table.content(head.tenant, head.collection_id, head.fingerprint),
            put={"document_id": head.document_id, **table.listing(entries, f"CONTENT#{head.fingerprint}")},
            condition="document_id = :holder" if holder_as_read else "attribute_not_exists(pk)",
            values={"holder": holder_as_read} if holder_as_read else {},
        )

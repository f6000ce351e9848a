"""The rows of collections, their names and their gates.

A gate is one of 16 rows that count a collection's documents and say whether the collection is open. The counts are
spread over 16 rows, so that parallel transactions seldom meet at one row.
"""

from collections.abc import Iterator, Sequence

from core.metadata import table
from core.metadata.dynamo import Action, ConditionFailed, Table
from core.metadata.jobs import JobKind
from core.metadata.rows import CollectionRow, Counts
from core.metadata.table import GATES
from core.metadata.wire import Item
from core.model.base import rfc3339
from core.model.collection import CollectionState
from core.model.errors import CollectionAlreadyExists, CollectionNotFound
from core.model.ids import CollectionId
from core.model.tenant import Tenant


class Collections:
    """The collections of the table."""

    def __init__(self, rows: Table) -> None:
        self._table = rows

    def create(self, row: CollectionRow, first_reconcile: Action) -> None:
        """Adds a collection's row, its name, its gates and its first reconcile job, in one transaction.

        Raises:
            CollectionAlreadyExists: the name is taken.
        """
        actions = [
            self._take_name(row),
            Action(
                table.collection(row.tenant, row.id),
                put=row.item(),
                condition="attribute_not_exists(pk)",
            ),
            first_reconcile,
        ]
        actions += [
            Action(gate, put={"opened": True}, condition="attribute_not_exists(pk)")
            for gate in self._gates(row.tenant, row.id)
        ]
        try:
            self._table.transact(actions)
        except ConditionFailed as error:
            if self.get(row.tenant, row.id) is None:
                raise CollectionAlreadyExists(f"The name {row.name!r} is taken") from error

    def _take_name(self, row: CollectionRow) -> Action:
        return Action(
            table.name(row.tenant, row.name),
            put={"collection_id": row.id},
            condition="attribute_not_exists(pk)",
        )

    def _gates(self, tenant: Tenant, collection_id: CollectionId) -> list[table.Key]:
        return [table.gate(tenant, collection_id, number) for number in range(GATES)]

    def active(self, tenant: Tenant, collection_id: CollectionId) -> CollectionRow:
        """Reads an active collection of the tenant.

        Raises:
            CollectionNotFound: the collection does not exist, belongs to another tenant, or is being deleted.
        """
        row = self.get(tenant, collection_id)
        if row is None or row.state != CollectionState.ACTIVE:
            raise CollectionNotFound
        return row

    def is_active(self, tenant: Tenant, collection_id: CollectionId) -> bool:
        """Tells whether the tenant has this collection, and the collection is not being deleted."""
        row = self.get(tenant, collection_id)
        return row is not None and row.state == CollectionState.ACTIVE

    def get(self, tenant: Tenant, collection_id: CollectionId) -> CollectionRow | None:
        """Reads a collection in any state; None when it does not exist."""
        item = self._table.get(table.collection(tenant, collection_id))
        return None if item is None else CollectionRow.read(item)

    def id_of(self, tenant: Tenant, name: str) -> CollectionId | None:
        """Returns the collection that has this name; None when the name is free."""
        item = self._table.get(table.name(tenant, name))
        return None if item is None else CollectionId(item["collection_id"])

    def all(
        self, tenant: Tenant, *, after: CollectionId | None = None, descending: bool = False
    ) -> Iterator[CollectionRow]:
        """Lists a tenant's collections in any state by time of creation.

        Args:
            after: the listing begins behind this collection.
        """
        start = None if after is None else table.collection(tenant, after).sk
        rows = self._table.query(
            table.collections(tenant), prefix=table.COLLECTION_PREFIX, after=start, descending=descending
        )
        return (CollectionRow.read(item) for item in rows)

    def update(self, read: CollectionRow, row: CollectionRow) -> None:
        """Writes a collection's changed settings. A new name is taken and the old name is freed.

        Raises:
            CollectionAlreadyExists: the new name is taken.
            ConditionFailed: the row has changed since it was read. Read it again.
        """
        write = Action(
            table.collection(row.tenant, row.id),
            put=row.item(),
            condition="updated_at = :read AND #state = :active",
            values={"read": rfc3339(read.updated_at), "active": CollectionState.ACTIVE.value},
        )
        if row.name == read.name:
            self._table.write(write)
            return
        holder = self.id_of(row.tenant, row.name)
        if holder is not None:
            raise CollectionAlreadyExists(f"The name {row.name!r} is taken")
        self._table.transact([write, self._take_name(row), self._free_name(read)])

    def _free_name(self, row: CollectionRow) -> Action:
        return Action(
            table.name(row.tenant, row.name),
            delete=True,
            condition="collection_id = :id",
            values={"id": row.id},
        )

    def counts(self, tenant: Tenant, collection_ids: Sequence[CollectionId]) -> dict[CollectionId, Counts]:
        """Sums the counts of each collection's gates: exact at any size, for 16 reads a collection."""
        keys = {gate: collection_id for collection_id in collection_ids for gate in self._gates(tenant, collection_id)}
        gates: dict[CollectionId, list[Counts]] = {collection_id: [] for collection_id in collection_ids}
        for key, item in self._table.batch_get(list(keys)).items():
            gates[keys[key]].append(_counts(item))
        return {collection_id: total(counts) for collection_id, counts in gates.items()}

    def gates(self, tenant: Tenant, collection_id: CollectionId) -> list[Counts]:
        """Reads the counts of each gate."""
        rows = self._table.batch_get(self._gates(tenant, collection_id))
        items = [rows.get(gate, {}) for gate in self._gates(tenant, collection_id)]
        return [_counts(item) for item in items]

    def correct(self, tenant: Tenant, collection_id: CollectionId, read: Sequence[Counts], counted: Counts) -> None:
        """Corrects the gates so that they sum up to a recount, on condition that no gate has changed since it was read.

        Raises:
            ConditionFailed, Conflict: a gate has changed.
        """
        first = {
            name: getattr(counted, name) - sum(getattr(gate, name) for gate in read[1:]) for name in Counts.model_fields
        }
        actions = []
        for number, (gate, as_read) in enumerate(zip(self._gates(tenant, collection_id), read, strict=True)):
            # A gate that has never counted something has no attribute for it, which reads as 0.
            held = [
                f"(#{name} = :{name}{' OR attribute_not_exists(#' + name + ')' if not value else ''})"
                for name, value in as_read
            ]
            update = (
                "SET " + ", ".join(f"#{name} = :new_{name}" for name in Counts.model_fields) if number == 0 else None
            )
            values = dict(as_read) | ({f"new_{name}": value for name, value in first.items()} if update else {})
            actions.append(Action(gate, update=update, condition=" AND ".join(held), values=values))
        self._table.transact(actions)

    # -- deleting a collection -------------------------------------------------------------------------

    def start_deleting(self, row: CollectionRow) -> None:
        """Makes a collection deleting and frees its name, in one transaction. Only its delete finds it from then on."""
        now = self._table.clock.now()
        deleting = row.model_copy(update={"state": CollectionState.DELETING, "updated_at": now})
        self._table.transact(
            [
                Action(
                    table.collection(row.tenant, row.id),
                    put={**deleting.item(), **_due(row, table.stalled_since(now))},
                    condition="#state = :active AND #name = :name",
                    values={"active": CollectionState.ACTIVE.value, "name": row.name},
                ),
                self._free_name(row),
            ]
        )

    def close_gates(self, tenant: Tenant, collection_id: CollectionId) -> None:
        """Closes every gate. Behind a closed gate no document begins and none becomes ready."""
        for gate in self._gates(tenant, collection_id):
            self._table.write(
                Action(
                    gate,
                    update="SET opened = :false",
                    condition="attribute_exists(pk)",
                    values={"false": False},
                )
            )

    def finish_emptying(self, row: CollectionRow, due: str) -> None:
        """Makes a collection emptied: all its documents are removed.

        Args:
            due: when the sweep removes the collection's own rows.
        """
        emptied = row.model_copy(update={"state": CollectionState.EMPTIED})
        self._table.write(
            Action(
                table.collection(row.tenant, row.id),
                put={**emptied.item(), **_due(row, due)},
                condition="#state = :deleting",
                values={"deleting": CollectionState.DELETING.value},
            )
        )

    def entries(self, tenant: Tenant, collection_id: CollectionId) -> Iterator[table.Key]:
        """Lists the keys of a collection's source and content rows. The listing is eventually consistent."""
        rows = self._table.query_index(table.LISTING, table.entries_of_collection(tenant, collection_id))
        return (table.Key(row["pk"], row["sk"]) for row in rows)

    def remove_rows(self, keys: Sequence[table.Key]) -> None:
        """Deletes rows by their keys, whether or not they exist."""
        self._table.batch_write(deletes=keys)

    def remove(self, row: CollectionRow) -> None:
        """Deletes a collection's gates, jobs and field names, then its row.

        The row goes last: after a crash in between, the row is still due and the sweep comes back to it.
        """
        jobs = [table.job(row.tenant, row.id, kind) for kind in JobKind]
        self._table.batch_write(deletes=[*self._gates(row.tenant, row.id), *jobs, table.fields(row.tenant, row.id)])
        self._table.batch_write(deletes=[table.collection(row.tenant, row.id)])


def _due(row: CollectionRow, moment: str) -> Item:
    return {"sweep_pk": table.sweep_shard(row.id), "sweep_sk": moment}


def _counts(gate: Item) -> Counts:
    return Counts(**{name: gate.get(name, 0) for name in Counts.model_fields})


def total(gates: Sequence[Counts]) -> Counts:
    """Sums the counts of gates."""
    return Counts(**{name: sum(getattr(gate, name) for gate in gates) for name in Counts.model_fields})

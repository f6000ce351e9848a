"""Rows of collections, their names and their gates."""

from collections.abc import Iterator, Sequence

from core.metadata import table
from core.metadata.dynamo import Action, ConditionFailed, Item, Table
from core.metadata.jobs import JobKind
from core.metadata.rows import CollectionRow, Counts
from core.metadata.table import GATES
from core.model.base import rfc3339
from core.model.collection import CollectionState
from core.model.errors import CollectionAlreadyExists
from core.model.ids import CollectionId
from core.model.tenant import Tenant


class Collections:
    """Collections of the table, whatever their state: the caller looks at it."""

    def __init__(self, rows: Table) -> None:
        self._table = rows

    def create(self, row: CollectionRow, first_reconcile: Action) -> None:
        """The row, its name, its gates and its first reconcile, in one transaction.

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

    def get(self, tenant: Tenant, collection_id: CollectionId) -> CollectionRow | None:
        item = self._table.get(table.collection(tenant, collection_id))
        return None if item is None else CollectionRow.read(item)

    def id_of(self, tenant: Tenant, name: str) -> CollectionId | None:
        """The collection that a name belongs to."""
        item = self._table.get(table.name(tenant, name))
        return None if item is None else CollectionId(item["collection_id"])

    def all(
        self, tenant: Tenant, *, after: CollectionId | None = None, descending: bool = False
    ) -> Iterator[CollectionRow]:
        """A tenant's collections by time of creation, beyond the one whose ID is ``after``."""
        start = None if after is None else table.collection(tenant, after).sk
        rows = self._table.query(
            table.collections(tenant), prefix=table.COLLECTION_PREFIX, after=start, descending=descending
        )
        return (CollectionRow.read(item) for item in rows)

    def update(self, read: CollectionRow, row: CollectionRow) -> None:
        """Writes what may change over the row as it was read; a new name is taken, the old one freed.

        Raises:
            CollectionAlreadyExists: the new name is taken.
            ConditionFailed: the row has changed since; read it again.
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
        """What each collection's gates count, summed: exact at any size, 16 reads each."""
        keys = {gate: one for one in collection_ids for gate in self._gates(tenant, one)}
        found: dict[CollectionId, list[Counts]] = {one: [] for one in collection_ids}
        for key, item in self._table.batch_get(list(keys)).items():
            found[keys[key]].append(_counts(item))
        return {one: total(gates) for one, gates in found.items()}

    def gates(self, tenant: Tenant, collection_id: CollectionId) -> list[Counts]:
        """What each gate counts."""
        found = self._table.batch_get(self._gates(tenant, collection_id))
        items = [found.get(gate, {}) for gate in self._gates(tenant, collection_id)]
        return [_counts(item) for item in items]

    def correct(self, tenant: Tenant, collection_id: CollectionId, read: Sequence[Counts], counted: Counts) -> None:
        """Makes the gates' sums what was counted, if no gate has moved since it was read.

        Raises:
            ConditionFailed, Conflict: one has.
        """
        first = {
            name: getattr(counted, name) - sum(getattr(gate, name) for gate in read[1:]) for name in Counts.model_fields
        }
        actions = []
        for number, (gate, as_read) in enumerate(zip(self._gates(tenant, collection_id), read, strict=True)):
            # A count that a gate has never had is not there, and reads as 0.
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

    # -- the end of a collection ---------------------------------------------------------------------

    def start_deleting(self, row: CollectionRow) -> None:
        """Closed to all but its delete: the state changes and the name is free, in one transaction."""
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
        """No document begins or turns ready behind a closed gate."""
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
        """All that was known is removed; ``due``: when to look once more."""
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
        """Source and content rows of a collection, as its listing knows them."""
        rows = self._table.query_index(table.LISTING, table.entries_of_collection(tenant, collection_id))
        return (table.Key(row["pk"], row["sk"]) for row in rows)

    def remove_rows(self, keys: Sequence[table.Key]) -> None:
        self._table.batch_write(deletes=keys)

    def remove(self, row: CollectionRow) -> None:
        """The gates, jobs and fields, then the row: a crash between leaves the row, which is due again."""
        jobs = [table.job(row.tenant, row.id, kind) for kind in JobKind]
        self._table.batch_write(deletes=[*self._gates(row.tenant, row.id), *jobs, table.fields(row.tenant, row.id)])
        self._table.batch_write(deletes=[table.collection(row.tenant, row.id)])


def _due(row: CollectionRow, moment: str) -> Item:
    return {"sweep_pk": table.sweep_shard(row.id), "sweep_sk": moment}


def _counts(gate: Item) -> Counts:
    return Counts(**{name: gate.get(name, 0) for name in Counts.model_fields})


def total(gates: Sequence[Counts]) -> Counts:
    """The sum of what gates count."""
    return Counts(**{name: sum(getattr(gate, name) for gate in gates) for name in Counts.model_fields})

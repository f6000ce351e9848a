"""The names of all attributes that the documents of a collection have ever carried. A filter may use only these."""

from collections.abc import Iterable, Sequence
from functools import partial

from core.metadata import table
from core.metadata.dynamo import Action, Table, retry_on_conflict
from core.model.errors import InvalidArgument
from core.model.ids import CollectionId
from core.model.tenant import Tenant

MAX_FIELDS = 1000
_REMEMBERED = 1024


class Fields:
    """One row for each collection. Names are only ever added, so names that were read once are kept in memory."""

    def __init__(self, rows: Table) -> None:
        self._table = rows
        self._known: dict[tuple[Tenant, CollectionId], frozenset[str]] = {}

    def add(self, tenant: Tenant, collection_id: CollectionId, names: Iterable[str]) -> None:
        """Adds names to a collection. Names that this process has seen already cost no request.

        Raises:
            InvalidArgument: the collection would have more than 1,000 names.
        """
        wanted = frozenset(names)
        if not wanted <= self._known.get((tenant, collection_id), frozenset()):
            retry_on_conflict(self._table.clock, partial(self._add, tenant, collection_id, wanted))

    def _add(self, tenant: Tenant, collection_id: CollectionId, wanted: frozenset[str]) -> None:
        key = table.fields(tenant, collection_id)
        row = self._table.get(key) or {"names": [], "revision": 0}
        known, revision = frozenset(row["names"]), row["revision"]
        together = known | wanted
        if len(together) > MAX_FIELDS:
            raise InvalidArgument(
                f"The documents of a collection have at most {MAX_FIELDS} names of attributes",
                field="attributes",
                limit=MAX_FIELDS,
            )
        if together != known:
            self._table.write(
                Action(
                    key,
                    put={"names": sorted(together), "revision": revision + 1},
                    condition="revision = :read" if revision else "attribute_not_exists(pk)",
                    values={"read": revision} if revision else {},
                )
            )
        self._remember(tenant, collection_id, together)

    def unknown(self, tenant: Tenant, collection_ids: Sequence[CollectionId], names: Iterable[str]) -> list[str]:
        """Returns, in order, those of the names that no document of these collections has ever carried."""
        missing = set(names)
        for collection_id in collection_ids:
            missing -= self._known.get((tenant, collection_id), frozenset())
        if missing:
            keys = {table.fields(tenant, collection_id): collection_id for collection_id in collection_ids}
            for key, row in self._table.batch_get(list(keys)).items():
                known = frozenset(row["names"])
                self._remember(tenant, keys[key], known)
                missing -= known
        return sorted(missing)

    def _remember(self, tenant: Tenant, collection_id: CollectionId, names: frozenset[str]) -> None:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[tenant, collection_id] = names

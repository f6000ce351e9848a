"""The sweep's index: a sparse, sharded index of the table that lists the rows which recovery may have to take up.

The index is eventually consistent, so it only proposes rows. The row itself decides whether something is to be done.
"""

import heapq
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import NamedTuple

from core.metadata import table
from core.metadata.dynamo import Action, ConditionFailed, Conflict, Table, retry_on_conflict
from core.metadata.table import Key


class SweepCandidate(NamedTuple):
    """A row that the sweep may have to take up.

    Attributes:
        moment: since when the row is stalled, or when it is due, as text that sorts by time.
        due: the row's sort key in the index.
    """

    moment: str
    key: Key
    due: str


class SweepIndex:
    """Lists, postpones and removes the entries of the sweep's index, over every tenant."""

    def __init__(self, rows: Table) -> None:
        self._table = rows

    def oldest(self, cutoff: datetime, now: datetime, limit: int, skip: frozenset[Key]) -> list[SweepCandidate]:
        """Lists rows that are stalled since before the cutoff, or due now, oldest first.

        Args:
            limit: at most so many rows.
            skip: rows that are left out.
        """
        found: list[SweepCandidate] = []
        for shard in table.sweep_shards():
            for between in (("S#", table.stalled_since(cutoff)), ("D#", table.due_at(now))):
                found += self._shard(shard, between, limit, skip)
        return heapq.nsmallest(limit, found)

    def _shard(self, shard: str, between: tuple[str, str], limit: int, skip: frozenset[Key]) -> list[SweepCandidate]:
        found: list[SweepCandidate] = []
        rows = self._table.query_index(table.SWEEP, shard, between=between, limit=limit + len(skip))
        for row in rows:
            due, key = row["sweep_sk"], Key(row["pk"], row["sk"])
            if key not in skip:
                found.append(SweepCandidate(table.moment_of(due), key, due))
            if len(found) == limit:
                break
        return found

    def postpone(self, candidate: SweepCandidate, due: datetime) -> None:
        """Makes a row due later, because its cleaning failed. A row that has changed meanwhile is left alone."""
        update = Action(
            candidate.key,
            update="SET sweep_sk = :due",
            condition="sweep_sk = :listed",
            values={"due": table.due_at(due), "listed": candidate.due},
        )
        with suppress(ConditionFailed, Conflict):
            self._table.write(update)

    def remove(self, candidate: SweepCandidate, now: datetime) -> bool:
        """Takes a row out of the index after its last cleaning, if it is still due at the time that was listed.

        Returns:
            True when this call has taken the row out; False when the row was listed before its last cleaning is due,
            or when the row has changed since.
        """
        if candidate.due > table.due_at(now):
            return False
        return retry_on_conflict(self._table.clock, partial(self._remove, candidate))

    def _remove(self, candidate: SweepCandidate) -> bool:
        leave = Action(
            candidate.key,
            update="REMOVE sweep_pk, sweep_sk",
            condition="sweep_sk = :due",
            values={"due": candidate.due},
        )
        try:
            self._table.write(leave)
        except ConditionFailed:
            return False
        return True

"""Candidates of the sweep: a sparse, sharded index lists them; the base row decides."""

import heapq
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import NamedTuple

from core.metadata import table
from core.metadata.dynamo import Action, ConditionFailed, Conflict, Table, retry_on_conflict
from core.metadata.table import Key


class Candidate(NamedTuple):
    """A row that the sweep may have to do something about.

    Attributes:
        moment: since when, or for when; sorts by time.
        due: its sort key in the index.
    """

    moment: str
    key: Key
    due: str


class Candidates:
    """The sweep's index, over every tenant."""

    def __init__(self, rows: Table) -> None:
        self._table = rows

    def oldest(self, cutoff: datetime, now: datetime, limit: int, without: frozenset[Key]) -> list[Candidate]:
        """At most ``limit`` rows stalled since before ``cutoff`` or due before ``now``, oldest first."""
        found: list[Candidate] = []
        for shard in table.sweep_shards():
            for between in (("S#", table.stalled_since(cutoff)), ("D#", table.due_at(now))):
                found += self._shard(shard, between, limit, without)
        return heapq.nsmallest(limit, found)

    def _shard(self, shard: str, between: tuple[str, str], limit: int, without: frozenset[Key]) -> list[Candidate]:
        found: list[Candidate] = []
        rows = self._table.query_index(table.SWEEP, shard, between=between, limit=limit + len(without))
        for row in rows:
            due, key = row["sweep_sk"], Key(row["pk"], row["sk"])
            if key not in without:
                found.append(Candidate(table.moment_of(due), key, due))
            if len(found) == limit:
                break
        return found

    def postpone(self, candidate: Candidate, due: datetime) -> None:
        """A row whose cleaning failed is due again then, unless it has changed since it was listed."""
        update = Action(
            candidate.key,
            update="SET sweep_sk = :due",
            condition="sweep_sk = :listed",
            values={"due": table.due_at(due), "listed": candidate.due},
        )
        with suppress(ConditionFailed, Conflict):
            self._table.write(update)

    def remove(self, candidate: Candidate, now: datetime) -> bool:
        """A row that has been cleaned for good leaves the index, if it is still due as it was listed.

        Returns:
            Whether it left; false when it was listed before it was due for good.
        """
        if candidate.due > table.due_at(now):
            return False
        return retry_on_conflict(self._table.clock, partial(self._leave, candidate))

    def _leave(self, candidate: Candidate) -> bool:
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

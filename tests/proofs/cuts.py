"""Cuts: every way in which one write of a process can go wrong."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from botocore.exceptions import ClientError

from tests.proofs.calls import CONDITIONAL, Call, Death


class Kind(StrEnum):
    """What becomes of one write.

    In the ``…_LATE`` kinds the answer is lost, and the write happens when nobody waits for it any more: before the
    actor's next write, when the actor has ended, or after the sweep that follows.
    """

    DIES_BEFORE = "dies before"
    DIES_AFTER = "dies after"
    DIES_FIRST_HALF = "dies with the first half written"
    DIES_SECOND_HALF = "dies with the second half written"
    DIES_LATE = "dies, written after the next sweep"
    THROTTLED = "throttled"
    OUTAGE = "throttled from here on"
    CONFLICT = "conflict"
    CONFLICTS = "conflicts from here on"
    NO_ANSWER = "written, no answer"
    HALF_NO_ANSWER = "half written, no answer"
    UNPROCESSED = "half written, the rest unprocessed"
    TWICE = "written twice, the second answer"
    NEXT_LATE = "no answer, written before the next write"
    END_LATE = "no answer, written at the end"
    SWEEP_LATE = "no answer, written after the next sweep"
    CUT_OFF = "no answer from here on, all written at the end"
    AWAY = "written, no answer, and none to the next two calls"

    @property
    def deadly(self) -> bool:
        return self.name.startswith("DIES")


def applies(kind: Kind, call: str, pieces: int) -> bool:
    """Whether a kind of cut is possible at a call. A call that is carried out whole or not at all has no middle."""
    dynamodb, name = call.startswith("dynamodb"), call.partition(".")[2]
    if kind in (Kind.DIES_FIRST_HALF, Kind.DIES_SECOND_HALF, Kind.HALF_NO_ANSWER):
        return pieces > 1
    if kind == Kind.UNPROCESSED:
        return name == "batch_write_item" and pieces > 1
    if kind in (Kind.CONFLICT, Kind.CONFLICTS):
        return dynamodb and name in CONDITIONAL
    if kind in (Kind.CUT_OFF, Kind.AWAY):
        return dynamodb
    return True


@dataclass
class Cut:
    """A plan that cuts one write of an actor.

    Attributes:
        at: the number of the write that is cut, from 1.
        late: delayed writes that have not reached the store yet.
        done: whether the cut has taken place.
    """

    at: int
    kind: Kind
    late: list[Callable[[], Any]] = field(default_factory=list)
    done: bool = False
    _delayed: bool = field(default=False, repr=False)
    _away: int = field(default=0, repr=False)

    def __call__(self, call: Call) -> Any:
        if self._away and call.store == "dynamodb":
            self._away -= 1
            raise call.no_answer()
        if not call.write or call.number < self.at:
            return call.perform()
        if call.number > self.at:
            if self._delayed:
                self.land()
            if self.kind == Kind.OUTAGE:
                raise call.throttle()
            if self.kind == Kind.CUT_OFF and call.store == "dynamodb":
                self.late.append(call.perform)
                raise call.no_answer()
            if self.kind == Kind.CONFLICTS and applies(self.kind, call.label, 0):
                raise call.conflict()
            return call.perform()
        self.done = True
        return self._cut(call)

    def _cut(self, call: Call) -> Any:
        half = len(call.pieces) // 2
        match self.kind:
            case Kind.DIES_BEFORE:
                raise Death
            case Kind.DIES_AFTER:
                with suppress(Exception):  # the store may refuse the write, which is an answer too
                    call.perform()
                raise Death
            case Kind.DIES_FIRST_HALF:
                _all(call.pieces[:half])
                raise Death
            case Kind.DIES_SECOND_HALF:
                _all(call.pieces[half:])
                raise Death
            case Kind.THROTTLED | Kind.OUTAGE:
                raise call.throttle()
            case Kind.CONFLICT | Kind.CONFLICTS:
                raise call.conflict()
            case Kind.NO_ANSWER:
                call.perform()
                raise call.no_answer()
            case Kind.AWAY:
                call.perform()
                self._away = 2
                raise call.no_answer()
            case Kind.HALF_NO_ANSWER:
                _all(call.pieces[:half])
                raise call.no_answer()
            case Kind.UNPROCESSED:
                ((table, requests),) = call.arguments["RequestItems"].items()
                _all(call.pieces[:half])
                return {"UnprocessedItems": {table: requests[half:]}}
            case Kind.TWICE:
                call.perform()
                return call.perform()
            case Kind.DIES_LATE | Kind.NEXT_LATE | Kind.END_LATE | Kind.SWEEP_LATE | Kind.CUT_OFF:
                self.late.append(call.perform)
                self._delayed = self.kind == Kind.NEXT_LATE
                raise Death if self.kind == Kind.DIES_LATE else call.no_answer()

    def land(self) -> None:
        """Lets the delayed writes reach the store. Nobody waits for their answers."""
        late, self.late, self._delayed = self.late, [], False
        for write in late:
            with suppress(ClientError):
                write()


def _all(pieces: Sequence[Callable[[], Any]]) -> None:
    for piece in pieces:
        piece()

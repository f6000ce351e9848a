"""The watch looks at every write while processes race: some broken promises show only in the order of the states."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from core.metadata.rows import Head
from core.model.base import rfc3339
from core.model.hit import RetrieveResult
from core.model.ids import ChunkId, DocumentId
from core.model.query import RetrieveQuery
from tests.proofs.harness import SETTINGS, World
from tests.support.books import Problem
from tests.support.dynamodb import Items
from tests.support.rows import read_rows

IN_PROGRESS = ("pending", "processing")


class Watch:
    """The states of a world, in order.

    Attributes:
        problems: version numbers that fell, living ingests that the sweep failed, and contents that two ingests
            embedded at once.
        served: every document that was ever served.

    Args:
        keep: whether the states are kept, which `check_answer` needs.
        by_source: whether documents in progress are removed only by a delete of their source; then only versions that
            began before the delete may go.
    """

    def __init__(self, world: World, *, keep: bool = True, by_source: bool = False) -> None:
        self._world = world
        self._keep = keep
        self._by_source = by_source
        self._states: list[Items] = [world.items]
        self.problems: list[Problem] = []
        self.served = {head.document_id for head in read_rows(world.items).served()}
        world.dynamodb.watch = self._see

    @property
    def moment(self) -> int:
        """The place of the present state."""
        return len(self._states) - 1

    def _see(self, before: Items, after: Items) -> None:
        if self._keep:
            self._states.append(after)
        for key, item in after.items():
            old = before.get(key)
            if old is item:
                continue
            if key[1] == "SOURCE":
                self._source(old, item)
            elif key[1] == "HEAD":
                self._head(old, item, after)
            elif key[1].startswith("JOB#") and old is not None and not _rises(old, item, "revision"):
                self.problems.append(Problem("other", "two workers at one job"))
        if self._by_source:
            for key in before.keys() - after.keys():
                self._removed(key[1], before[key], after)

    def _removed(self, sort: str, old: Any, after: Items) -> None:
        gone = sort == "HEAD" and old["state"]["S"] in IN_PROGRESS
        if gone and not self._beaten(old, after):
            self.problems.append(Problem("living_failed", "a delete removed a version that began after it"))

    def _source(self, old: Any, new: Any) -> None:
        if old is not None and int(new["current_number"]["N"]) < int(old["current_number"]["N"]):
            self.problems.append(Problem("mixed", "an older version took a newer one's place"))

    def _head(self, old: Any, new: Any, after: Items) -> None:
        state = new["state"]["S"]
        if state == "ready":
            self.served.add(DocumentId(new["document_id"]["S"]))
        if old is None:
            if state in IN_PROGRESS:
                self._begun(new, after)
            return
        was = old["state"]["S"]
        swept = was in IN_PROGRESS and state == "failed" and new["error"]["M"]["stage"]["S"] == "recovery"
        if swept and old["heartbeat"]["S"] > self._cutoff():
            self.problems.append(Problem("living_failed", "the sweep failed a document with a fresh heartbeat"))

    def _cutoff(self) -> str:
        return rfc3339(self._world.clock.now() - timedelta(seconds=SETTINGS.stalled_after_s))

    def _begun(self, new: Any, after: Items) -> None:
        """Two ingests embed one content at once only if the other has stalled or its version can never be served."""
        cutoff = self._cutoff()
        for key, other in after.items():
            if key[1] != "HEAD" or other is new or other["state"]["S"] not in IN_PROGRESS:
                continue
            same = all(other.get(name) == new.get(name) for name in ("collection_id", "source_id", "fingerprint"))
            if same and other["heartbeat"]["S"] > cutoff and not self._beaten(other, after):
                self.problems.append(Problem("other", "two ingests embed the same content at once"))

    @staticmethod
    def _beaten(head: Any, after: Items) -> bool:
        for key, item in after.items():
            if key[1] == "SOURCE" and key[0].endswith("#" + head.get("source_id", {"S": "-"})["S"]):
                return int(item["current_number"]["N"]) >= int(head["number"]["N"])
        return False

    # -- answers -----------------------------------------------------------------------------------

    def check_answer(self, answer: RetrieveResult, start: int, top_k: int) -> None:
        """Checks an answer against every state from ``start`` on, the moment when its retrieve began."""
        states = {id(items): items for items in self._states[start:]}
        served = [read_rows(items).served() for items in states.values()]
        self.problems += answer_problems(answer, served, top_k)


def _rises(old: Any, new: Any, name: str) -> bool:
    return int(new[name]["N"]) == int(old[name]["N"]) + 1


def answer_problems(answer: RetrieveResult, served: Sequence[Sequence[Head]], top_k: int) -> list[Problem]:
    """What is wrong with an answer.

    Args:
        served: the documents that were served at each moment of the time in which the answer was worked out.
    """
    problems = []
    generations = {(head.document_id, head.attempt) for heads in served for head in heads}
    found: dict[str, dict[tuple[DocumentId, int], set[ChunkId]]] = {}
    sources = {head.document_id: head.source_id or head.document_id for heads in served for head in heads}
    for hit in answer.hits:
        chunk = hit.chunk.id
        generation = (chunk.document_id, chunk.attempt) if chunk else None
        if chunk is None or generation is None or generation not in generations:
            problems.append(Problem("mixed", f"a hit of {chunk}, which was not served"))
            continue
        if hit.orphaned:
            problems.append(Problem("lost", f"{chunk} came without its row"))
        found.setdefault(str(sources[chunk.document_id]), {}).setdefault(generation, set()).add(chunk)
    problems += [Problem("mixed", f"{len(one)} versions in one answer") for one in found.values() if len(one) > 1]
    fewest = min((sum(head.chunk_count for head in heads) for heads in served), default=0)
    if len(answer.hits) < min(top_k, fewest):
        kind = "empty_answers"
        problems.append(Problem(kind, f"{len(answer.hits)} hits at top_k {top_k} while at least {fewest} were served"))
    return problems


def question(collection: Any, top_k: int) -> RetrieveQuery:
    """A question that every chunk of the racing proofs answers."""
    return RetrieveQuery(query="text", collections=[collection], top_k=top_k)

"""The rows of a table, read with the models of `core.metadata.rows` and sorted by what they are."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from boto3.dynamodb.types import TypeDeserializer

from core.metadata.jobs import Job
from core.metadata.rows import ChunkRow, CollectionRow, Head, Info, LateWriterMark, Row, Source
from core.model.collection import CollectionState
from core.model.document import DocumentState
from core.model.ids import ChunkId, CollectionId, DocumentId
from tests.support.dynamodb import Items


@dataclass
class Rows:
    """The rows of a table, sorted by what they are.

    Attributes:
        names: collections by the partition of their tenant and by their name.
        versions: the partition of a source, and a document that its listing names.
        chunks: the text of each chunk row, by the chunk that the row's key names.
        misplaced: chunk rows whose key names another chunk than the row does.
        due: when the sweep takes up each row that is in its index, by the row's key.
        expiring: sources whose rows DynamoDB deletes by itself in time.
    """

    collections: dict[CollectionId, CollectionRow] = field(default_factory=dict)
    names: dict[tuple[str, str], CollectionId] = field(default_factory=dict)
    gates: dict[CollectionId, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    fields: set[CollectionId] = field(default_factory=set)
    heads: dict[DocumentId, Head] = field(default_factory=dict)
    infos: dict[DocumentId, Info] = field(default_factory=dict)
    versions: set[tuple[str, DocumentId]] = field(default_factory=set)
    chunks: dict[ChunkId, str] = field(default_factory=dict)
    misplaced: list[str] = field(default_factory=list)
    sources: dict[tuple[CollectionId, str], Source] = field(default_factory=dict)
    contents: dict[tuple[CollectionId, str], DocumentId] = field(default_factory=dict)
    marks: dict[str, LateWriterMark] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    due: dict[str, str] = field(default_factory=dict)
    expiring: set[tuple[CollectionId, str]] = field(default_factory=set)

    def ready(self) -> list[Head]:
        """The ready documents of active collections."""
        return [
            head
            for head in self.heads.values()
            if head.state == DocumentState.READY and self.active(head.collection_id)
        ]

    def active(self, collection_id: CollectionId) -> bool:
        """Whether a collection is there and is not being deleted."""
        row = self.collections.get(collection_id)
        return row is not None and row.state == CollectionState.ACTIVE

    def served(self) -> list[Head]:
        """The documents that a retrieve may answer with, told from the rows of sources and contents alone."""
        heads = []
        for (collection_id, _), source in self.sources.items():
            if source.current is not None and self.active(collection_id):
                head = self.heads.get(source.current.document_id)
                heads += [head] if head is not None and head.attempt == source.current.attempt else []
        heads += [head for head in self.ready() if head.source_id is None]
        return heads

    def accounted(self) -> set[ChunkId]:
        """Every chunk that a document or a late-writer mark says may have been written."""
        rows: list[Head | LateWriterMark] = [*self.heads.values(), *self.marks.values()]
        return {chunk_id for row in rows for chunk_id in row.chunk_ids()}


def plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item of the wire as plain values. Every number of the table is an integer."""
    values: dict[str, Any] = _with_integers(TypeDeserializer().deserialize({"M": dict(item)}))
    return values


def _with_integers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_integers(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_integers(inner) for inner in value]
    return int(value) if type(value).__name__ == "Decimal" else value


class _Cache:
    """Rows that were read before: the proofs meet the same items in thousands of states of one table."""

    def __init__(self) -> None:
        self._read: dict[int, tuple[Any, dict[str, Any], Any]] = {}

    def read(self, item: Any) -> tuple[dict[str, Any], Any]:
        """An item's plain values, and its row's model."""
        entry = self._read.get(id(item))
        if entry is None or entry[0] is not item:
            values = plain(item)
            if len(self._read) > 20_000:
                self._read.clear()
            entry = self._read[id(item)] = (item, values, _model(values))
        return entry[1:]


_MODELS: Mapping[str, type[Row]] = {
    "HEAD": Head,
    "INFO": Info,
    "SOURCE": Source,
    "COL": CollectionRow,
    "JOB": Job,
    "GONE": LateWriterMark,
}


def _model(values: Mapping[str, Any]) -> Any:
    kind = values["sk"].partition("#")[0]
    if kind == "CHUNK":
        return ChunkRow.read(dict(values)).chunk()
    return _MODELS[kind].read(dict(values)) if kind in _MODELS else None


_cache = _Cache()


def read_rows(items: Items) -> Rows:
    """Sorts the table's items by what they are.

    Raises:
        ValueError: a row is of no known kind.
    """
    rows = Rows()
    for (partition, sort), item in items.items():
        values, model = _cache.read(item)
        if "sweep_sk" in values:
            rows.due[f"{partition} {sort}"] = values["sweep_sk"]
        kind, _, rest = sort.partition("#")
        place = _PLACES.get(kind)
        if place is None:
            raise ValueError(f"a row of no known kind: {partition} {sort}")
        place(rows, partition, rest, values, model)
    return rows


def _collection(partition: str) -> CollectionId:
    return CollectionId(partition.split("#C#")[1].partition("#")[0])


def _place_by(name: str, key: str, rows: Rows, partition: str, rest: str, values: Any, model: Any) -> None:
    getattr(rows, name)[getattr(model, key)] = model


def _place_chunk(rows: Rows, partition: str, rest: str, values: Any, model: Any) -> None:
    attempt, _, index = rest.partition("#")
    document_id = DocumentId(partition.split("#D#")[1].partition("#")[0])
    chunk_id = ChunkId.of(document_id, int(attempt), int(index))
    rows.chunks[chunk_id] = model.text
    if model.id != chunk_id:
        rows.misplaced.append(f"the row of {model.id} lies under the key of {chunk_id}")


def _place_source(rows: Rows, partition: str, rest: str, values: Any, model: Any) -> None:
    place = (_collection(partition), partition.rpartition("#")[2])
    rows.sources[place] = model
    if "expires_at" in values:
        rows.expiring.add(place)


def _place_content(rows: Rows, partition: str, rest: str, values: Any, model: Any) -> None:
    rows.contents[_collection(partition), partition.rpartition("#")[2]] = DocumentId(values["document_id"])


_PLACES: Mapping[str, Any] = {
    "HEAD": partial(_place_by, "heads", "document_id"),
    "INFO": partial(_place_by, "infos", "document_id"),
    "COL": partial(_place_by, "collections", "id"),
    "CHUNK": _place_chunk,
    "SOURCE": _place_source,
    "CONTENT": _place_content,
    "V": lambda rows, partition, rest, values, model: rows.versions.add((partition, DocumentId(rest))),
    "GONE": lambda rows, partition, rest, values, model: rows.marks.update({f"{partition} GONE#{rest}": model}),
    "JOB": lambda rows, partition, rest, values, model: rows.jobs.append(model),
    "NAME": lambda rows, partition, rest, values, model: rows.names.update(
        {(partition, rest): CollectionId(values["collection_id"])}
    ),
    "GATE": lambda rows, partition, rest, values, model: rows.gates[_collection(partition)].append(values),
    "FIELDS": lambda rows, partition, rest, values, model: rows.fields.add(_collection(partition)),
    "UPLOAD": lambda *_: None,
    "PAGE_TOKEN_KEY": lambda *_: None,
}

"""Bulk operations on one tenant's records, and the guard that lets no other pass."""

import json
import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from core.model.ids import ChunkId
from core.model.tenant import Tenant
from core.model.vector import Vector, VectorSpace
from core.vectors.attributes import attribute_terms
from core.vectors.opensearch.query import TENANT, Json, Refused, record_id
from core.vectors.types import UNIT_TOLERANCE, VectorRecord

MAX_BULK_BYTES = 4 * 1024 * 1024
"""Well below the 10 MiB that the smallest instances take in one request."""
MAX_BULK_ITEMS = 1_000


@dataclass(frozen=True)
class Operation:
    """One record to write, or to delete when it has no fields. Neither is changed once it is made."""

    id: str
    fields: Json | None

    @cached_property
    def encoded(self) -> bytes:
        """Its lines in a bulk request."""
        lines = [{"delete" if self.fields is None else "index": {"_id": self.id}}]
        if self.fields is not None:
            lines.append(self.fields)
        return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()


def indexing(tenant: Tenant, space: VectorSpace, record: VectorRecord, write_id: str | None) -> Operation:
    """Writes a record whole, replacing the chunk's earlier one.

    Args:
        write_id: by which the record is found to be searchable; None where the answer of the write promises it.

    Raises:
        ValueError: a vector of other dimensions, or not of unit length.
    """
    chunk_id, terms = record.chunk_id, attribute_terms(tenant, record.attributes)
    fields: Json = {
        TENANT: str(tenant),
        "collection_id": str(record.collection_id),
        "document_id": str(chunk_id.document_id),
        "generation": chunk_id.generation,
        "chunk_id": str(chunk_id),
        "chunk_index": chunk_id.chunk_index,
        "text": record.text,
        "terms": " ".join(record.terms),
        "term_count": len(record.terms),
        "attribute_names": terms.names,
        "attribute_terms": terms.values,
        "vector": as_stored(record.vector, space),
    }
    if record.source_id is not None:
        fields |= {"source_id": record.source_id, "source_key": record.source_key}
    if write_id is not None:
        fields["write_id"] = write_id
    return Operation(record_id(tenant, chunk_id), fields)


def deleting(tenant: Tenant, chunk_id: ChunkId) -> Operation:
    """Deletes a chunk's record, if there is one."""
    return Operation(record_id(tenant, chunk_id), None)


def as_stored(vector: Vector, space: VectorSpace) -> list[float]:
    """A vector in the fewest digits that give the same float32.

    Raises:
        ValueError: it has other dimensions, or is not of unit length.
    """
    if len(vector) != space.dimensions:
        raise ValueError(f"A vector of {len(vector)} dimensions; {space.model} has {space.dimensions}")
    # Not a number is near nothing, so it is refused here too.
    if not abs(math.hypot(*vector) - 1.0) <= UNIT_TOLERANCE:
        raise ValueError("A vector is not of unit length")
    # Nine digits tell any two float32 apart (IEEE 754-2008, section 5.12.2).
    return [float(f"{number:.9g}") for number in array("f", vector)]


def batches(operations: Sequence[Operation]) -> Iterator[list[Operation]]:
    """The operations in order, in requests of bounded size."""
    batch: list[Operation] = []
    size = 0
    for operation in operations:
        length = len(operation.encoded)
        if batch and (size + length > MAX_BULK_BYTES or len(batch) == MAX_BULK_ITEMS):
            yield batch
            batch, size = [], 0
        batch.append(operation)
        size += length
    if batch:
        yield batch


def check_bulk(tenant: Tenant, operations: Sequence[Operation]) -> None:
    """Lets operations pass that touch nothing of another tenant.

    Raises:
        Refused: an ID, or the tenant of a record, is not the tenant's.
    """
    start = f"{tenant}~"
    for operation in operations:
        chunk_id = operation.id.removeprefix(start)
        fields = operation.fields
        if f"{start}{chunk_id}" != operation.id or "~" in chunk_id:
            raise Refused("A write under another tenant's ID was not sent")
        if fields is not None and (fields.get(TENANT) != tenant or fields.get("chunk_id") != chunk_id):
            raise Refused("A write of another tenant's record was not sent")

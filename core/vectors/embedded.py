"""The vector store in this process: rows in SQLite, exact search in numpy.

Every write and delete raises the version of its tenant and space inside the same transaction. A search reads that
version first, brings the matrix in memory up to it, and reads the rows of its matches from the same state of the
file; so it is right whichever process wrote.
"""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from core.model.component import Component, TenantFilter
from core.model.filter import Filter
from core.model.ids import ChunkId, CollectionId
from core.model.tenant import Tenant
from core.model.vector import Vector, VectorSpace
from core.vectors.attributes import AttributeTerms, attribute_terms, compile_filter
from core.vectors.database import Database
from core.vectors.matrix import ChangedRow, Matrix, MatrixCache
from core.vectors.types import UNIT_TOLERANCE, TextQuery, VectorMatch, VectorQuery, VectorRecord

MIB = 1024 * 1024

Key = tuple[str, str, int]
"""Tenant, model and dimensions: the first part of every primary key, and of every statement."""

_VERSION = "SELECT version FROM versions WHERE tenant = ? AND model = ? AND dimensions = ?"
_RAISE_VERSION = """
    INSERT INTO versions (tenant, model, dimensions, version) VALUES (?, ?, ?, 1)
    ON CONFLICT (tenant, model, dimensions) DO UPDATE SET version = version + 1
"""
_WRITE = """
    INSERT OR REPLACE INTO vectors (
        tenant, model, dimensions, chunk_id, collection_id, generation, source_id, source_key, text,
        attribute_names, attribute_terms, terms, version, vector
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_DELETE = "DELETE FROM vectors WHERE tenant = ? AND model = ? AND dimensions = ? AND chunk_id = ?"
_COUNT = "SELECT count(*) FROM vectors WHERE tenant = ? AND model = ? AND dimensions = ?"
_PRESENT = "SELECT chunk_id FROM vectors WHERE tenant = ? AND model = ? AND dimensions = ?"
_CHANGED = """
    SELECT chunk_id, collection_id, generation, vector, attribute_names, attribute_terms, terms FROM vectors
    WHERE tenant = ? AND model = ? AND dimensions = ? AND version > ?
"""
_TERMS = "SELECT chunk_id, terms FROM vectors WHERE tenant = ? AND model = ? AND dimensions = ?"
_IS_PRESENT = _PRESENT + " AND chunk_id = ?"
_SCAN = _PRESENT + " AND chunk_id > ? AND collection_id = ? ORDER BY chunk_id LIMIT ?"
_MATCH = """
    SELECT tenant, collection_id, source_id, source_key, text FROM vectors
    WHERE tenant = ? AND model = ? AND dimensions = ? AND chunk_id = ?
"""


class EmbeddedVectorStore:
    """A ``VectorStore`` in a file, or in memory when there is no path.

    Safe for threads, and for several processes on one file. The first use of any function prepares the file.

    Args:
        path: the file; its folder exists.
        cache_bytes: how much memory the matrices take; one is kept at any size.
        busy_seconds: how long a locked file is waited for.
    """

    def __init__(self, path: Path | None, *, cache_bytes: int = 512 * MIB, busy_seconds: float = 5.0) -> None:
        self._database = Database(path, busy_seconds=busy_seconds)
        self._cache = MatrixCache(cache_bytes)
        self._refreshing = Lock()
        self._preparing = Lock()
        self._proven = False

    def prepare(self, space: VectorSpace) -> None:
        """Creates the tables if they are missing, and proves the tenant filter. All spaces share them.

        Raises:
            ConfigurationError: the file cannot be opened, is something else, or fails the proof.
        """
        self._prove()

    def write(self, tenant: Tenant, space: VectorSpace, records: Sequence[VectorRecord]) -> None:
        """Writes all records in one transaction."""
        self._prove()
        if not records:
            return
        vectors = _unit_vectors([record.vector for record in records], space)
        key = _key(tenant, space)
        with self._database.writing() as connection:
            connection.execute(_RAISE_VERSION, key)
            version = _version(connection, key)
            connection.executemany(
                _WRITE,
                (
                    (*key, *_values(tenant, record), version, vector.tobytes())
                    for record, vector in zip(records, vectors, strict=True)
                ),
            )

    def delete(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> int:
        """Deletes all in one transaction."""
        self._prove()
        if not chunk_ids:
            return 0
        key = _key(tenant, space)
        with self._database.writing() as connection:
            deleted = connection.executemany(_DELETE, ((*key, str(chunk_id)) for chunk_id in chunk_ids)).rowcount
            if deleted:
                connection.execute(_RAISE_VERSION, key)
        return deleted

    def search(self, tenant: Tenant, space: VectorSpace, query: VectorQuery) -> list[VectorMatch]:
        """The exact nearest records."""
        self._prove()
        vector = _unit_vectors([query.vector], space)[0]
        key = _key(tenant, space)
        with self._database.reading() as connection:
            matrix = self._matrix(connection, key)
            selected = _selected(matrix, tenant, query.collection_ids, query.filter, query.exclude_generations)
            nearest = matrix.nearest(vector, selected, query.limit)
            return [_match(connection, key, matrix, *found, with_vector=query.with_vectors) for found in nearest]

    def search_text(self, tenant: Tenant, space: VectorSpace, query: TextQuery) -> list[VectorMatch]:
        self._prove()
        key = _key(tenant, space)
        with self._database.reading() as connection:
            matrix = self._matrix(connection, key, words=True)
            within = matrix.collections.one_of(query.collection_ids)
            selected = _selected(matrix, tenant, query.collection_ids, query.filter, query.exclude_generations)
            best = matrix.best(query.terms, within, selected, query.limit)
            return [_match(connection, key, matrix, *found) for found in best]

    def present(self, tenant: Tenant, space: VectorSpace, chunk_ids: Sequence[ChunkId]) -> set[ChunkId]:
        self._prove()
        key = _key(tenant, space)
        with self._database.reading() as connection:
            return {one for one in chunk_ids if connection.execute(_IS_PRESENT, (*key, str(one))).fetchone()}

    def scan(
        self, tenant: Tenant, space: VectorSpace, collection_id: CollectionId, after: ChunkId | None, limit: int
    ) -> list[ChunkId]:
        self._prove()
        values = (*_key(tenant, space), after or "", str(collection_id), limit)
        with self._database.reading() as connection:
            return [ChunkId(chunk_id) for (chunk_id,) in connection.execute(_SCAN, values)]

    def count(self, tenant: Tenant, space: VectorSpace) -> int:
        self._prove()
        with self._database.reading() as connection:
            count: int = connection.execute(_COUNT, _key(tenant, space)).fetchone()[0]
            return count

    def matching(
        self, tenant: Tenant, space: VectorSpace, collection_ids: Sequence[CollectionId], filter: Filter | None
    ) -> int:
        self._prove()
        with self._database.reading() as connection:
            matrix = self._matrix(connection, _key(tenant, space))
            return int(np.count_nonzero(_selected(matrix, tenant, collection_ids, filter)))

    def tenant_filter(self) -> TenantFilter:
        return TenantFilter.VERIFIED if self._proven else TenantFilter.UNVERIFIED

    def ping(self) -> None:
        self._prove()
        with self._database.reading() as connection:
            connection.execute("SELECT 1 FROM versions LIMIT 1").fetchone()

    def describe(self) -> Component:
        return Component(name="embedded", type="sqlite+numpy", configured=True)

    def close(self) -> None:
        """Closes the file. A store in memory is gone. Any use after this is a RuntimeError."""
        self._database.close()
        self._cache.clear()

    def _prove(self) -> None:
        if self._proven:
            return
        with self._preparing:
            if not self._proven:
                self._database.prepare()
                self._proven = True

    def _matrix(self, connection: sqlite3.Connection, key: Key, *, words: bool = False) -> Matrix:
        """The matrix as of the transaction, with its words where they are asked for.

        The transaction's state of the file is fixed by its first read, which is under the lock: so the matrix in
        memory is never newer than it.
        """
        with self._refreshing:
            version = _version(connection, key)
            matrix = self._cache.get(key) or Matrix.empty(key[2])
            if matrix.version != version:
                changed = [_changed(*row) for row in connection.execute(_CHANGED, (*key, matrix.version))]
                present = {chunk_id for (chunk_id,) in connection.execute(_PRESENT, key)}
                matrix = matrix.merged(version, present, changed)
                self._cache.put(key, matrix)
            if words and matrix.words is None:
                matrix = matrix.with_words(dict(connection.execute(_TERMS, key)))
                self._cache.put(key, matrix)
            return matrix


def _key(tenant: Tenant, space: VectorSpace) -> Key:
    return str(tenant), space.model, space.dimensions


def _version(connection: sqlite3.Connection, key: Key) -> int:
    row = connection.execute(_VERSION, key).fetchone()
    return 0 if row is None else row[0]


def _values(tenant: Tenant, record: VectorRecord) -> tuple[str | None, ...]:
    terms = attribute_terms(tenant, record.attributes)
    return (
        str(record.chunk_id),
        str(record.collection_id),
        record.chunk_id.generation,
        record.source_id,
        record.source_key,
        record.text,
        json.dumps(terms.names),
        json.dumps(terms.values),
        " ".join(record.terms),
    )


def _changed(
    chunk_id: str, collection_id: str, generation: str, vector: bytes, names: str, values: str, terms: str
) -> ChangedRow:
    attributes = AttributeTerms(tuple(json.loads(names)), tuple(json.loads(values)))
    return ChangedRow(chunk_id, collection_id, generation, vector, attributes, terms)


def _selected(
    matrix: Matrix,
    tenant: Tenant,
    collection_ids: Sequence[CollectionId],
    filter: Filter | None,
    exclude_generations: Sequence[str] = (),
) -> NDArray[np.bool_]:
    """Which rows are of the collections, fulfil the filter and are not of these generations."""
    selected = matrix.collections.one_of(collection_ids)
    if filter is not None:
        selected &= matrix.fulfilling(compile_filter(tenant, filter))
    if exclude_generations:
        selected &= ~matrix.generations.one_of(exclude_generations)
    return selected


def _match(
    connection: sqlite3.Connection, key: Key, matrix: Matrix, row: int, score: float, *, with_vector: bool = False
) -> VectorMatch:
    chunk_id = matrix.chunk_ids[row]
    tenant, collection_id, source_id, source_key, text = connection.execute(_MATCH, (*key, chunk_id)).fetchone()
    return VectorMatch(
        chunk_id=ChunkId(chunk_id),
        tenant=Tenant(tenant),
        collection_id=CollectionId(collection_id),
        source_id=source_id,
        source_key=source_key,
        text=text,
        score=score,
        vector=matrix.vectors[row].tolist() if with_vector else None,
    )


def _unit_vectors(vectors: Sequence[Vector], space: VectorSpace) -> NDArray[np.float32]:
    """The vectors as they are stored: rows × dimensions, little-endian float32.

    Raises:
        ValueError: a vector of other dimensions, or not of unit length.
    """
    for vector in vectors:
        if len(vector) != space.dimensions:
            raise ValueError(f"A vector of {len(vector)} dimensions; {space.model} has {space.dimensions}")
    exact = np.array(vectors, dtype=np.float64)
    # A number so large that its square overflows is not of unit length, and is refused below.
    with np.errstate(over="ignore", invalid="ignore"):
        unit = np.abs(np.linalg.norm(exact, axis=1) - 1.0) <= UNIT_TOLERANCE
    if not unit.all():
        raise ValueError("A vector is not of unit length")
    return exact.astype("<f4")

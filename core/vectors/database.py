"""The SQLite file of the embedded store: connections, transactions, the schema and the proof of its tenant filter."""

import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, LifoQueue
from threading import Event

from core.model.errors import ConfigurationError, Unavailable

CONNECTIONS = 8

_TABLES = {
    "vectors": """
    CREATE TABLE IF NOT EXISTS vectors (
        tenant TEXT NOT NULL,
        model TEXT NOT NULL,
        dimensions INTEGER NOT NULL,
        chunk_id TEXT NOT NULL,
        collection_id TEXT NOT NULL,
        generation TEXT NOT NULL,
        source_id TEXT,
        source_key TEXT,
        text TEXT NOT NULL,
        attribute_names TEXT NOT NULL,
        attribute_terms TEXT NOT NULL,
        terms TEXT NOT NULL,
        version INTEGER NOT NULL,
        vector BLOB NOT NULL,
        PRIMARY KEY (tenant, model, dimensions, chunk_id)
    )
    """,
    "versions": """
    CREATE TABLE IF NOT EXISTS versions (
        tenant TEXT NOT NULL,
        model TEXT NOT NULL,
        dimensions INTEGER NOT NULL,
        version INTEGER NOT NULL,
        PRIMARY KEY (tenant, model, dimensions)
    )
    """,
}
_INDEX = "CREATE INDEX IF NOT EXISTS vectors_by_version ON vectors (tenant, model, dimensions, version)"
_TRANSIENT = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL}


class Database:
    """A pool of connections to one file, or the single connection of a database in memory.

    A commit is on the disk when it returns (write-ahead log, synchronous FULL), so it survives the process and the
    machine. Several processes may open one file. Every function raises ``Unavailable`` when the file stays locked for
    ``busy_seconds``, the disk fails or is full.
    """

    def __init__(self, path: Path | None, *, busy_seconds: float) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._closed = Event()
        # A database in memory belongs to its connection, so there is only one.
        self._size = 1 if path is None else CONNECTIONS
        self._slots: LifoQueue[sqlite3.Connection | None] = LifoQueue()
        for _ in range(self._size):
            self._slots.put(None)
        weakref.finalize(self, _close_idle, self._slots)

    def prepare(self) -> None:
        """Creates what is missing, then proves the tenant filter.

        Raises:
            ConfigurationError: the file cannot be opened, is something else, or fails the proof.
        """
        try:
            with self._connection() as connection:
                if self._path is not None:
                    _write_ahead(connection)
            with self.writing() as connection:
                for table, statement in _TABLES.items():
                    connection.execute(statement)
                    _prove_tenant_filter(connection, table)
                connection.execute(_INDEX)
                # A file of an earlier version has other columns, and cannot be opened.
                connection.execute("SELECT attribute_names, attribute_terms, terms FROM vectors LIMIT 0")
        except sqlite3.DatabaseError as error:
            raise ConfigurationError(f"{self._path} cannot be opened as a file of the vector store: {error}") from error

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one state of the file, from its first SELECT on."""
        with self._connection() as connection, connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is committed whole when the block ends, and not at all when it raises."""
        with self._connection() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    def close(self) -> None:
        """Waits for what is running, then closes every connection."""
        self._closed.set()
        for connection in [self._slots.get() for _ in range(self._size)]:
            if connection is not None:
                connection.close()
            self._slots.put(None)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection = self._slots.get()
        try:
            if self._closed.is_set():
                raise RuntimeError("The vector store is closed")
            with _typed_errors():
                connection = connection or self._open()
                yield connection
        finally:
            self._slots.put(connection)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            ":memory:" if self._path is None else self._path.absolute(),
            timeout=self._busy_seconds,
            isolation_level=None,
            # The pool lends a connection to one thread at a time.
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection


def _close_idle(slots: "LifoQueue[sqlite3.Connection | None]") -> None:
    """What nobody has closed, of a database that nobody can use any more."""
    try:
        while True:
            connection = slots.get_nowait()
            if connection is not None:
                connection.close()
    except Empty:
        return


@contextmanager
def _typed_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        # The low byte is the error's kind. Errors of the module itself have no code.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _TRANSIENT:
            raise Unavailable("The vector store is busy, or its disk does not answer") from error
        raise


def _write_ahead(connection: sqlite3.Connection) -> None:
    """The mode stays with the file: readers and the one writer do not wait for each other."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise ConfigurationError("The vector store's file system does not support SQLite's write-ahead log")


def _prove_tenant_filter(connection: sqlite3.Connection, table: str) -> None:
    """Reads the schema back: ``tenant = ?`` finds exactly one tenant, and no write can replace another's row.

    Raises:
        ConfigurationError: the tenant is not text, may be null, is compared other than byte by byte, or is not part
            of the primary key and of every other unique index.
    """
    tenant = connection.execute(
        'SELECT "type", "notnull", pk FROM pragma_table_info(?) WHERE name = \'tenant\'', (table,)
    ).fetchone()
    (definition,) = connection.execute(
        "SELECT coalesce(max(sql), '') FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
    ).fetchone()
    (shared_indexes,) = connection.execute(
        """
        SELECT count(*) FROM pragma_index_list(?) AS indexes WHERE indexes."unique" AND NOT EXISTS (
            SELECT 1 FROM pragma_index_xinfo(indexes.name) WHERE name = 'tenant' AND "key" AND coll = 'BINARY'
        )
        """,
        (table,),
    ).fetchone()
    # A column is BINARY unless the definition names a collation.
    if (
        tenant is None
        or tenant[:2] != ("TEXT", 1)
        or not tenant[2]
        or not definition
        or "collate" in definition.lower()
        or shared_indexes
    ):
        raise ConfigurationError(
            f"The vector store's table {table!r} does not keep tenants apart: its tenant must be TEXT NOT NULL without "
            "a collation, and part of the primary key and of every unique index. Start with a new file."
        )

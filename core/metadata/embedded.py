"""The metadata table in this process: the requests of DynamoDB that Weft sends, answered from an SQLite file.

It takes the place of DynamoDB's client where Weft runs as a library (`core.open_engine`). Every request is one SQLite
transaction, so it is atomic, and strongly consistent also where DynamoDB is not. The contract suite of the table
(`tests/metadata/test_rows.py`) runs on it as on the other stand-ins for DynamoDB.
"""

import json
import sqlite3
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from botocore.exceptions import ClientError

from core.metadata.expressions import holds, updated
from core.model.errors import ConfigurationError

Wire = dict[str, Any]
"""An item as DynamoDB's client has it: ``{"name": {"S": "text"}}``."""

PAGE_ROWS = 1000
"""How many rows one answer to a query holds."""
BUSY_SECONDS = 5.0
"""How long another process may keep the file locked."""

_KEYS = {"": ("pk", "sk"), "listing": ("listing_pk", "listing_sk"), "sweep": ("sweep_pk", "sweep_sk")}
_SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
    pk TEXT NOT NULL, sk TEXT NOT NULL, item TEXT NOT NULL, expires_at INTEGER,
    listing_pk TEXT, listing_sk TEXT, sweep_pk TEXT, sweep_sk TEXT,
    PRIMARY KEY (pk, sk)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS items_by_listing ON items (listing_pk, listing_sk, pk, sk);
CREATE INDEX IF NOT EXISTS items_by_sweep ON items (sweep_pk, sweep_sk, pk, sk);
"""


class EmbeddedDynamoDB:
    """The part of DynamoDB's client that `core.metadata.dynamo.Table` uses. Safe for threads and for processes.

    Args:
        path: the file, whose folder exists; None: the table lives in memory.

    Raises:
        ConfigurationError: the file cannot be opened, or is no file of this table.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = RLock()
        try:
            self._connection = sqlite3.connect(
                ":memory:" if path is None else path.absolute(),
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,  # the lock lends the connection to one thread at a time
            )
            weakref.finalize(self, self._connection.close)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(_SCHEMA)
            # DynamoDB deletes expired rows some time after their expiry. Here, opening the file does.
            self._connection.execute("DELETE FROM items WHERE expires_at < unixepoch()")
        except sqlite3.DatabaseError as error:
            raise ConfigurationError(f"{path} cannot be opened as a file of the metadata table: {error}") from error

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """Runs the block in one transaction.

        Args:
            begin: ``BEGIN`` for reads, which wait for no other process; ``BEGIN IMMEDIATE`` for writes.
        """
        with self._lock:
            try:
                self._connection.execute(begin)
                try:
                    yield self._connection
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("COMMIT")
            except sqlite3.OperationalError as error:
                raise _error("ServiceUnavailable", str(error)) from error

    # -- reads ---------------------------------------------------------------------------------------

    def get_item(self, *, TableName: str, Key: Wire, ConsistentRead: bool = False) -> Wire:
        """Answers DynamoDB's GetItem."""
        with self._transaction("BEGIN") as connection:
            item = _read(connection, Key)
        return {} if item is None else {"Item": item}

    def batch_get_item(self, *, RequestItems: Mapping[str, Any]) -> Wire:
        """Answers DynamoDB's BatchGetItem."""
        [(name, request)] = RequestItems.items()
        with self._transaction("BEGIN") as connection:
            rows = [item for key in request["Keys"] if (item := _read(connection, key)) is not None]
        if "ProjectionExpression" in request:
            attributes = request["ProjectionExpression"].split(", ")
            rows = [{attribute: row[attribute] for attribute in attributes if attribute in row} for row in rows]
        return {"Responses": {name: rows}, "UnprocessedKeys": {}}

    def query(
        self,
        *,
        TableName: str,
        KeyConditionExpression: str,
        ExpressionAttributeValues: Mapping[str, Any],
        IndexName: str = "",
        ScanIndexForward: bool = True,
        ConsistentRead: bool = False,
        Limit: int = PAGE_ROWS,
        ExclusiveStartKey: Wire | None = None,
    ) -> Wire:
        """Answers DynamoDB's Query, for the key conditions that `core.metadata.dynamo.Table` writes."""
        partition, sort = _KEYS[IndexName]
        values = {name[1:]: value["S"] for name, value in ExpressionAttributeValues.items()}
        conditions, bound = [f"{partition} = :partition"], {"partition": values["partition"]}
        if "low" in values:
            conditions.append(f"{sort} BETWEEN :low AND :high")
            bound |= {"low": values["low"], "high": values["high"]}
        elif "sort" in values:
            conditions.append(f"substr({sort}, 1, length(:sort)) = :sort")
            bound["sort"] = values["sort"]
        if ExclusiveStartKey is not None:
            conditions.append(f"({sort}, pk, sk) {'>' if ScanIndexForward else '<'} (:after, :after_pk, :after_sk)")
            bound |= {
                "after": ExclusiveStartKey[sort]["S"],
                "after_pk": ExclusiveStartKey["pk"]["S"],
                "after_sk": ExclusiveStartKey["sk"]["S"],
            }
        direction = "ASC" if ScanIndexForward else "DESC"
        limit = min(Limit, PAGE_ROWS)
        # Only names of columns are put into the statement; values are bound.
        statement = (
            f"SELECT item FROM items WHERE {' AND '.join(conditions)} "  # noqa: S608
            f"ORDER BY {sort} {direction}, pk {direction}, sk {direction} LIMIT {limit}"
        )
        with self._transaction("BEGIN") as connection:
            rows = [json.loads(text) for (text,) in connection.execute(statement, bound)]
        keys = list(dict.fromkeys(("pk", "sk", partition, sort)))
        answer: Wire = {"Items": [{name: row[name] for name in keys} for row in rows] if IndexName else rows}
        if len(rows) == limit:
            answer["LastEvaluatedKey"] = {name: rows[-1][name] for name in keys}
        return answer

    # -- writes --------------------------------------------------------------------------------------

    def put_item(self, *, TableName: str, **action: Any) -> Wire:
        """Answers DynamoDB's PutItem."""
        return self._write_one("Put", action)

    def update_item(self, *, TableName: str, **action: Any) -> Wire:
        """Answers DynamoDB's UpdateItem."""
        return self._write_one("Update", action)

    def delete_item(self, *, TableName: str, **action: Any) -> Wire:
        """Answers DynamoDB's DeleteItem."""
        return self._write_one("Delete", action)

    def _write_one(self, kind: str, action: Wire) -> Wire:
        with self._transaction("BEGIN IMMEDIATE") as connection:
            if not _is_allowed(connection, kind, action):
                raise _error("ConditionalCheckFailedException", "The conditional request failed")
            _write(connection, kind, action)
        return {}

    def batch_write_item(self, *, RequestItems: Mapping[str, Any]) -> Wire:
        """Answers DynamoDB's BatchWriteItem."""
        [requests] = RequestItems.values()
        with self._transaction("BEGIN IMMEDIATE") as connection:
            for request in requests:
                for kind, action in request.items():
                    _write(connection, kind.removesuffix("Request"), action)
        return {"UnprocessedItems": {}}

    def transact_write_items(self, *, TransactItems: Sequence[Mapping[str, Any]]) -> Wire:
        """Answers DynamoDB's TransactWriteItems: all writes, or none."""
        actions = [(kind, action) for item in TransactItems for kind, action in item.items()]
        with self._transaction("BEGIN IMMEDIATE") as connection:
            allowed = [_is_allowed(connection, kind, action) for kind, action in actions]
            if not all(allowed):
                reasons = [{"Code": "None" if passed else "ConditionalCheckFailed"} for passed in allowed]
                raise _error("TransactionCanceledException", "A condition failed", CancellationReasons=reasons)
            for kind, action in actions:
                _write(connection, kind, action)
        return {}


def _error(code: str, message: str, **more: Any) -> ClientError:
    """Makes an error as DynamoDB's client raises it."""
    response: Any = {"Error": {"Code": code, "Message": message}, **more}
    return ClientError(response, "EmbeddedDynamoDB")


def _key_of(kind: str, action: Wire) -> Wire:
    key: Wire = action["Item"] if kind == "Put" else action["Key"]
    return key


def _read(connection: sqlite3.Connection, key: Wire) -> Wire | None:
    place = (key["pk"]["S"], key["sk"]["S"])
    row = connection.execute("SELECT item FROM items WHERE pk = ? AND sk = ?", place).fetchone()
    return None if row is None else json.loads(row[0])


def _is_allowed(connection: sqlite3.Connection, kind: str, action: Wire) -> bool:
    condition = action.get("ConditionExpression")
    if condition is None:
        return True
    names, values = action.get("ExpressionAttributeNames", {}), action.get("ExpressionAttributeValues", {})
    return holds(condition, _read(connection, _key_of(kind, action)) or {}, names, values)


def _write(connection: sqlite3.Connection, kind: str, action: Wire) -> None:
    key = _key_of(kind, action)
    if kind == "ConditionCheck":
        return
    if kind == "Delete":
        connection.execute("DELETE FROM items WHERE pk = ? AND sk = ?", (key["pk"]["S"], key["sk"]["S"]))
        return
    item = action["Item"] if kind == "Put" else _after_update(connection, action)
    columns = [item.get(name, {}).get("S") for name in ("listing_pk", "listing_sk", "sweep_pk", "sweep_sk")]
    expires_at = item.get("expires_at", {}).get("N")
    connection.execute(
        "INSERT OR REPLACE INTO items (pk, sk, item, expires_at, listing_pk, listing_sk, sweep_pk, sweep_sk) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (key["pk"]["S"], key["sk"]["S"], json.dumps(item, ensure_ascii=False), expires_at, *columns),
    )


def _after_update(connection: sqlite3.Connection, action: Wire) -> Wire:
    item = _read(connection, action["Key"]) or dict(action["Key"])
    names, values = action.get("ExpressionAttributeNames", {}), action.get("ExpressionAttributeValues", {})
    return updated(action["UpdateExpression"], item, names, values)

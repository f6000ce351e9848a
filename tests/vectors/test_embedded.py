"""What only the embedded store promises: its file, its proof, and several processes."""

import gc
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from core.model.component import TenantFilter
from core.model.errors import ConfigurationError, Unavailable
from core.model.ids import ChunkId
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.types import VectorQuery
from tests.vectors.records import chunk_id, collection_id, direction, record

SPACE = VectorSpace(model="model", dimensions=3)
TENANT = Tenant("tenant")
QUERY = VectorQuery(direction(0, 3), [collection_id(1)], 10_000)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors.sqlite"


@pytest.fixture
def open_store(path: Path) -> Iterator[Callable[[], EmbeddedVectorStore]]:
    """Opens stores on one file, as several processes would; closes them at the end."""
    opened: list[EmbeddedVectorStore] = []

    def open_one() -> EmbeddedVectorStore:
        opened.append(EmbeddedVectorStore(path))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


Open = Callable[[], EmbeddedVectorStore]


def found(store: EmbeddedVectorStore) -> set[ChunkId]:
    return {match.chunk_id for match in store.search(TENANT, SPACE, QUERY)}


def write(store: EmbeddedVectorStore, *indexes: int) -> None:
    store.write(TENANT, SPACE, [record(chunk_id(index), direction(index, 3)) for index in indexes])


class TestFile:
    def test_what_was_written_is_there_with_the_same_scores_after_reopening(self, open_store: Open) -> None:
        first = open_store()
        write(first, *range(20))
        before = first.search(TENANT, SPACE, QUERY)
        first.close()
        assert open_store().search(TENANT, SPACE, QUERY) == before

    def test_writes_and_deletes_through_another_store_on_the_file_are_seen_at_once(self, open_store: Open) -> None:
        here, there = open_store(), open_store()
        write(here, 0, 1)
        assert found(here) == found(there) == {chunk_id(0), chunk_id(1)}
        write(there, 2)
        assert found(here) == {chunk_id(0), chunk_id(1), chunk_id(2)}
        there.delete(TENANT, SPACE, [chunk_id(0)])
        assert found(here) == {chunk_id(1), chunk_id(2)}
        assert here.count(TENANT, SPACE) == 2

    def test_a_file_can_be_opened_for_the_first_time_by_many_at_once(self, open_store: Open) -> None:
        stores, barrier = [open_store() for _ in range(8)], Barrier(8)

        def prepare_and_write(index: int) -> None:
            barrier.wait()
            stores[index].prepare(SPACE)
            write(stores[index], index)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(prepare_and_write, range(8)))
        assert found(stores[0]) == {chunk_id(index) for index in range(8)}

    def test_a_matrix_that_left_the_cache_is_loaded_again(self, path: Path) -> None:
        with closing(EmbeddedVectorStore(path, cache_bytes=0)) as store:
            other = Tenant("other")
            write(store, 0)
            store.write(other, SPACE, [record(chunk_id(1), direction(1, 3))])
            for _ in range(2):
                assert found(store) == {chunk_id(0)}
                assert len(store.search(other, SPACE, QUERY)) == 1

    def test_a_write_that_fails_in_the_middle_leaves_nothing(self, open_store: Open) -> None:
        store = open_store()
        write(store, 0)
        bad = record(chunk_id(2), direction(2, 3), text="\ud800")
        with pytest.raises(UnicodeEncodeError):
            store.write(TENANT, SPACE, [record(chunk_id(1), direction(1, 3)), bad])
        assert found(store) == {chunk_id(0)}
        assert store.count(TENANT, SPACE) == 1


WRITER = """
import sys
from pathlib import Path
from tests.vectors.test_embedded import EmbeddedVectorStore, write

store = EmbeddedVectorStore(Path(sys.argv[1]))
for batch in range(1_000):
    write(store, *range(batch * 20, batch * 20 + 20))
    print(batch, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_acknowledged_writes_survive_the_death_of_the_writer_and_no_write_is_there_in_part(
    path: Path, open_store: Open
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(5)]
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout if line.endswith("\n")]
    assert writer.returncode == -signal.SIGKILL
    survivors = found(open_store())
    assert survivors >= {chunk_id(index) for index in range(20 * len(acknowledged))}
    assert len(survivors) % 20 == 0


KEY = "PRIMARY KEY (tenant, model, dimensions, chunk_id)"


def vectors_table(*parts: str) -> str:
    """The table as the store has it but for its tenant and its keys."""
    others = """model TEXT NOT NULL, dimensions INTEGER NOT NULL, chunk_id TEXT NOT NULL, collection_id TEXT NOT NULL,
        generation TEXT NOT NULL, source_id TEXT, source_key TEXT, text TEXT NOT NULL, version INTEGER NOT NULL,
        vector BLOB NOT NULL, attribute_names TEXT NOT NULL, attribute_terms TEXT NOT NULL,
        terms TEXT NOT NULL"""
    columns = [part for part in parts if part.startswith(("tenant", "number"))]
    keys = [part for part in parts if part not in columns]
    return f"CREATE TABLE vectors ({', '.join([*columns, others, *keys])});"


def test_a_file_of_an_earlier_version_is_refused(path: Path, open_store: Open) -> None:
    with closing(sqlite3.connect(path)) as connection:
        earlier = vectors_table("tenant TEXT NOT NULL", KEY).replace("attribute_terms TEXT NOT NULL,", "")
        connection.executescript(earlier)
    with pytest.raises(ConfigurationError, match="attribute_terms"):
        open_store().prepare(SPACE)


FORGED = {
    "no tenant": vectors_table("PRIMARY KEY (model, dimensions, chunk_id)"),
    "tenant not in the key": vectors_table("tenant TEXT NOT NULL", "PRIMARY KEY (model, dimensions, chunk_id)"),
    "no key at all": vectors_table("tenant TEXT NOT NULL"),
    "tenant not in the key of a table without another index": vectors_table(
        "tenant TEXT NOT NULL", "number INTEGER PRIMARY KEY"
    ),
    "tenant may be null": vectors_table("tenant TEXT", KEY),
    "tenant is no text": vectors_table("tenant BLOB NOT NULL", KEY),
    "tenant compared without case": vectors_table("tenant TEXT NOT NULL COLLATE NOCASE", KEY),
    "tenant compared without case beside an exact key": vectors_table(
        "tenant TEXT NOT NULL COLLATE NOCASE", KEY.replace("tenant", "tenant COLLATE BINARY")
    ),
    "key compared without case": vectors_table("tenant TEXT NOT NULL", KEY.replace("tenant", "tenant COLLATE NOCASE")),
    "another unique column": vectors_table("tenant TEXT NOT NULL", KEY, "UNIQUE (chunk_id)"),
    "another unique index without case": vectors_table("tenant TEXT NOT NULL", KEY)
    + "CREATE UNIQUE INDEX folded ON vectors (tenant COLLATE NOCASE, chunk_id)",
    "versions shared by tenants": "CREATE TABLE versions (tenant TEXT NOT NULL, model TEXT NOT NULL,"
    " dimensions INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (model, dimensions))",
    "a view": "CREATE VIEW vectors AS SELECT 'tenant' AS tenant",
}


def test_the_forged_files_differ_from_a_right_one_in_nothing_else(path: Path, open_store: Open) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(vectors_table("tenant TEXT NOT NULL", KEY))
    open_store().prepare(SPACE)


class TestProof:
    def test_the_filter_is_unverified_until_the_file_has_been_read(self, open_store: Open) -> None:
        store = open_store()
        assert store.tenant_filter() is TenantFilter.UNVERIFIED
        store.prepare(SPACE)
        assert store.tenant_filter() is TenantFilter.VERIFIED

    @pytest.mark.parametrize("schema", FORGED.values(), ids=FORGED)
    def test_a_file_that_does_not_keep_tenants_apart_is_refused_and_not_searched(
        self, path: Path, open_store: Open, schema: str
    ) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(schema)
        store = open_store()
        with pytest.raises(ConfigurationError, match="does not keep tenants apart"):
            store.prepare(SPACE)
        with pytest.raises(ConfigurationError):
            store.search(TENANT, SPACE, QUERY)
        assert store.tenant_filter() is TenantFilter.UNVERIFIED

    def test_a_file_that_is_no_database_is_refused(self, path: Path, open_store: Open) -> None:
        path.write_bytes(b"something else " * 100)
        with pytest.raises(ConfigurationError, match="cannot be opened"):
            open_store().prepare(SPACE)

    def test_a_folder_that_is_not_there_is_refused(self, tmp_path: Path) -> None:
        with (
            closing(EmbeddedVectorStore(tmp_path / "missing" / "vectors.sqlite")) as store,
            pytest.raises(ConfigurationError, match="cannot be opened"),
        ):
            store.prepare(SPACE)


class TestErrors:
    def test_a_file_that_stays_locked_is_unavailable_and_readable(self, path: Path) -> None:
        with closing(EmbeddedVectorStore(path, busy_seconds=0.0)) as store:
            write(store, 0)
            with closing(sqlite3.connect(path, isolation_level=None)) as holder:
                holder.execute("BEGIN IMMEDIATE")
                with pytest.raises(Unavailable):
                    write(store, 1)
                with pytest.raises(Unavailable):
                    store.delete(TENANT, SPACE, [chunk_id(0)])
                assert found(store) == {chunk_id(0)}
            write(store, 1)
            assert found(store) == {chunk_id(0), chunk_id(1)}

    def test_a_vector_cut_short_in_the_file_is_an_error(self, path: Path, open_store: Open) -> None:
        store = open_store()
        write(store, 0)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE vectors SET vector = substr(vector, 1, 8)")
        with pytest.raises(ValueError, match="12 bytes"):
            store.search(TENANT, SPACE, QUERY)

    def test_a_store_that_nobody_has_closed_is_closed_with_its_last_user(self, path: Path) -> None:
        write(EmbeddedVectorStore(path), 0)
        gc.collect()
        opened = [Path(link).resolve() for link in Path("/proc/self/fd").iterdir()]
        assert path not in opened

    @pytest.mark.parametrize("in_memory", [True, False], ids=["in memory", "on disk"])
    def test_a_closed_store_says_so_and_can_be_closed_again(self, in_memory: bool, path: Path) -> None:
        store = EmbeddedVectorStore(None if in_memory else path)
        write(store, 0)
        store.close()
        store.close()
        with pytest.raises(RuntimeError, match="closed"):
            store.count(TENANT, SPACE)

"""What is different in a NextGen collection of OpenSearch Serverless. The store passes its contract there as well."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from core.model.component import TenantFilter
from core.model.errors import ConfigurationError, Unavailable
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.vectors.opensearch import store as stores
from core.vectors.opensearch.index import Dialect, IndexOptions, alias_of, definition
from core.vectors.opensearch.store import OpenSearchVectorStore
from core.vectors.types import VectorQuery
from tests.support.clock import ManualClock
from tests.support.opensearch import ON_OPENSEARCH, store_on
from tests.support.serverless import NextGen, nextgen
from tests.vectors.opensearch.conftest import Ask
from tests.vectors.records import chunk_id, collection_id, record, unit

pytestmark = ON_OPENSEARCH

SPACE = VectorSpace(model="model", dimensions=2)
TENANT = Tenant("tenant")
VECTOR = unit(1, 0)
QUERY = VectorQuery(VECTOR, [collection_id(1)], 10)


@pytest.fixture
def collection(opensearch: str) -> Iterator[NextGen]:
    with nextgen(opensearch) as proxy:
        yield proxy


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(collection: NextGen, prefix: str, clock: ManualClock) -> Iterator[OpenSearchVectorStore]:
    with closing(store_on(collection.url, prefix, dialect=Dialect.SERVERLESS, clock=clock)) as store:
        yield store


def test_the_proxy_shows_a_write_to_a_read_by_id_at_once_and_to_a_search_later(
    store: OpenSearchVectorStore, collection: NextGen, prefix: str, ask: Ask
) -> None:
    store.prepare(SPACE)
    collection.refreshes = False
    with pytest.raises(Unavailable):
        store.write(TENANT, SPACE, [record(chunk_id(0), VECTOR)])
    index = alias_of(IndexOptions(prefix=prefix), SPACE)
    assert ask("GET", f"/{index}/_doc/{TENANT}~{chunk_id(0)}")["found"]
    assert store.search(TENANT, SPACE, QUERY) == []


def test_a_write_and_a_delete_return_when_searches_see_them(store: OpenSearchVectorStore) -> None:
    store.write(TENANT, SPACE, [record(chunk_id(0), VECTOR, text="old"), record(chunk_id(1), VECTOR)])
    assert len(store.search(TENANT, SPACE, QUERY)) == 2
    # That the chunk has a record proves nothing here: the old one would do.
    store.write(TENANT, SPACE, [record(chunk_id(0), VECTOR, text="new")])
    assert [match.text for match in store.search(TENANT, SPACE, QUERY)] == ["new", "text"]
    assert store.delete(TENANT, SPACE, [chunk_id(0)]) == 1
    assert len(store.search(TENANT, SPACE, QUERY)) == 1


def test_records_of_one_chunk_in_one_write_are_one(store: OpenSearchVectorStore) -> None:
    store.write(TENANT, SPACE, [record(chunk_id(0), VECTOR, text=text) for text in ("old", "new")])
    assert [match.text for match in store.search(TENANT, SPACE, QUERY)] == ["new"]


@pytest.mark.parametrize("use", ["write", "delete"])
def test_a_write_that_no_search_sees_is_given_up_in_time(
    use: str, store: OpenSearchVectorStore, collection: NextGen, clock: ManualClock
) -> None:
    store.write(TENANT, SPACE, [record(chunk_id(0), VECTOR)])
    collection.refreshes = False
    started, looks = clock.monotonic(), len(collection.requests)
    uses: dict[str, Callable[[], object]] = {
        "write": lambda: store.write(TENANT, SPACE, [record(chunk_id(0), VECTOR, text="new")]),
        "delete": lambda: store.delete(TENANT, SPACE, [chunk_id(0)]),
    }
    with pytest.raises(Unavailable, match="searchable"):
        uses[use]()
    assert stores.SEARCHABLE_S - stores.LONGEST_LOOK_S <= clock.monotonic() - started <= stores.SEARCHABLE_S
    assert len(collection.requests) - looks < 30


def test_a_collection_that_refuses_ids_is_a_configuration_error(
    store: OpenSearchVectorStore, collection: NextGen
) -> None:
    collection.takes_ids = False
    with pytest.raises(ConfigurationError, match="NextGen"):
        store.prepare(SPACE)
    assert store.tenant_filter() is TenantFilter.UNVERIFIED


def test_a_start_leaves_nothing_behind(store: OpenSearchVectorStore, prefix: str, ask: Ask) -> None:
    store.prepare(SPACE)
    assert store.tenant_filter() is TenantFilter.VERIFIED
    ask("POST", f"/{prefix}-*/_refresh")
    assert ask("GET", f"/{prefix}-*/_count")["count"] == 0


def test_only_what_a_collection_supports_is_asked_for(store: OpenSearchVectorStore, collection: NextGen) -> None:
    store.write(TENANT, SPACE, [record(chunk_id(0), VECTOR)])
    store.search(TENANT, SPACE, QUERY)
    store.present(TENANT, SPACE, [chunk_id(0)])
    store.scan(TENANT, SPACE, collection_id(1), None, 10)
    store.count(TENANT, SPACE)
    store.delete(TENANT, SPACE, [chunk_id(0)])
    store.ping()
    assert {path.rpartition("/")[2] for _, path in collection.requests if path.count("/") > 1} == {"_bulk", "_search"}
    assert {method for method, path in collection.requests if path.count("/") == 1} == {"GET", "PUT"}


def test_a_collection_is_asked_for_whole_vectors_and_chooses_its_own_graph() -> None:
    made = definition(IndexOptions(dialect=Dialect.SERVERLESS), SPACE)
    assert made["settings"] == {"index": {"knn": True}}
    assert made["mappings"]["properties"]["vector"] == {
        "type": "knn_vector",
        "dimension": 2,
        "space_type": "innerproduct",
        "compression_level": "1x",
    }
    assert "write_id" not in json.dumps(definition(IndexOptions(), SPACE))

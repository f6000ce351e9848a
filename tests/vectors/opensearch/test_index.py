"""The tenant filter is called verified only for an index that has been read and holds to it."""

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import pytest

from core.model.component import TenantFilter
from core.model.errors import ConfigurationError, NotConfigured, Unavailable
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.vectors.opensearch.index import IndexOptions, KnnEngine, alias_of, definition
from core.vectors.opensearch.query import Json
from core.vectors.types import VectorQuery
from tests.support.opensearch import ON_OPENSEARCH, store_on
from tests.vectors.opensearch.conftest import Ask
from tests.vectors.records import chunk_id, collection_id, record, unit

pytestmark = ON_OPENSEARCH

SPACE = VectorSpace(model="Model:v2/β", dimensions=2)
TENANT = Tenant("tenant")
VECTOR = unit(1, 0)
QUERY = VectorQuery(VECTOR, [collection_id(1)], 10)

Change = Callable[[Json], object]


def tenant_field(mapping: Json | None) -> Change:
    """The tenant's field made in another way; None: not at all."""

    def change(body: Json) -> None:
        properties = body["mappings"]["properties"]
        del properties["tenant_id"]
        if mapping is not None:
            properties["tenant_id"] = mapping

    return change


def field(name: str, mapping: Json) -> Change:
    return lambda body: body["mappings"]["properties"].__setitem__(name, mapping)


def setting(name: str, value: object) -> Change:
    return lambda body: body["settings"]["index"].__setitem__(name, value)


def vector(**members: object) -> Change:
    return lambda body: body["mappings"]["properties"]["vector"].update(members)


def alias_option(option: Json) -> Change:
    return lambda body: [alias.update(option) for alias in body["aliases"].values()]


def lower_case(mapping: Json) -> Change:
    """A mapping that uses a normalizer of that name."""

    def change(body: Json) -> None:
        body["settings"]["index"]["analysis"] = {"normalizer": {"lower": {"type": "custom", "filter": ["lowercase"]}}}
        tenant_field(mapping)(body)

    return change


METHOD = {"name": "hnsw", "engine": "faiss", "space_type": "l2", "parameters": {"m": 16, "ef_construction": 128}}

WRONG: dict[str, Change] = {
    "the tenant as text": tenant_field({"type": "text"}),
    "the tenant as text with a keyword below": tenant_field(
        {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
    ),
    "a keyword with text below": tenant_field({"type": "keyword", "fields": {"text": {"type": "text"}}}),
    "a normalizer": lower_case({"type": "keyword", "normalizer": "lower"}),
    "a tenant that is cut": tenant_field({"type": "keyword", "ignore_above": 64}),
    "a tenant that is not indexed": tenant_field({"type": "keyword", "index": False}),
    "a tenant without values on the side": tenant_field({"type": "keyword", "doc_values": False}),
    "a tenant for records without one": tenant_field({"type": "keyword", "null_value": "tenant"}),
    "a tenant that is copied": tenant_field({"type": "keyword", "copy_to": "collection_id"}),
    "a tenant as a wildcard": tenant_field({"type": "wildcard"}),
    "a tenant that is another field": tenant_field({"type": "alias", "path": "collection_id"}),
    "a tenant as an object": tenant_field({"properties": {"id": {"type": "keyword"}}}),
    "a tenant as a number": tenant_field({"type": "long"}),
    "no tenant": tenant_field(None),
    "a dynamic mapping": lambda body: body["mappings"].update(dynamic=True),
    "a mapping that is dynamic by default": lambda body: body["mappings"].pop("dynamic"),
    "a mapping that ignores what it does not know": lambda body: body["mappings"].update(dynamic=False),
    "templates for fields": lambda body: body["mappings"].update(
        dynamic_templates=[{"texts": {"match_mapping_type": "string", "mapping": {"type": "text"}}}]
    ),
    "no sources": lambda body: body["mappings"].update(_source={"enabled": False}),
    "sources without the tenant": lambda body: body["mappings"].update(_source={"excludes": ["tenant_id"]}),
    "a routing that is required": lambda body: body["mappings"].update(_routing={"required": True}),
    "a collection as text": field("collection_id", {"type": "text"}),
    "a chunk without order": field("chunk_id", {"type": "keyword", "doc_values": False}),
    "no generation": lambda body: body["mappings"]["properties"].pop("generation"),
    "no text": lambda body: body["mappings"]["properties"].pop("text"),
    "other dimensions": vector(dimension=3),
    "another space": vector(method=METHOD),
    "another engine": vector(method={**METHOD, "engine": "lucene", "space_type": "innerproduct"}),
    "an alias with a filter": alias_option({"filter": {"term": {"tenant_id": "tenant"}}}),
    "an alias with a routing": alias_option({"routing": "1"}),
    "a pipeline for records": setting("default_pipeline", "other"),
    "a last pipeline for records": setting("final_pipeline", "other"),
    "a pipeline for searches": setting("search.default_pipeline", "other"),
}


def options(prefix: str) -> IndexOptions:
    return IndexOptions(prefix=prefix)


def make(ask: Ask, prefix: str, change: Change, name: str = "x") -> str:
    """An index of someone else's under the alias that a store will look for; its name."""
    body = copy.deepcopy(definition(options(prefix), SPACE))
    change(body)
    index = f"{alias_of(options(prefix), SPACE)}-{name}"
    ask("PUT", f"/{index}", body)
    return index


class TestRefusal:
    @pytest.mark.parametrize("wrong", WRONG)
    def test_an_index_that_could_mix_tenants_or_scores_is_refused(
        self, wrong: str, opensearch: str, prefix: str, ask: Ask
    ) -> None:
        make(ask, prefix, WRONG[wrong])
        with closing(store_on(opensearch, prefix)) as store:
            with pytest.raises(ConfigurationError, match="cannot keep tenants apart"):
                store.prepare(SPACE)
            assert store.tenant_filter() is TenantFilter.UNVERIFIED
            with pytest.raises(NotConfigured, match="cannot keep"):
                store.search(TENANT, SPACE, QUERY)
            with pytest.raises(NotConfigured, match="cannot keep"):
                store.write(TENANT, SPACE, [record(chunk_id(0), VECTOR)])

    def test_two_indexes_behind_the_alias_are_refused(self, opensearch: str, prefix: str, ask: Ask) -> None:
        for name in ("x", "y"):
            make(ask, prefix, lambda body: None, name)
        with closing(store_on(opensearch, prefix)) as store, pytest.raises(ConfigurationError, match="one index"):
            store.prepare(SPACE)

    def test_an_index_in_the_place_of_the_alias_is_refused(self, opensearch: str, prefix: str, ask: Ask) -> None:
        ask("PUT", f"/{alias_of(options(prefix), SPACE)}", {})
        with closing(store_on(opensearch, prefix)) as store, pytest.raises(ConfigurationError, match="one index"):
            store.prepare(SPACE)

    def test_an_index_that_has_lost_its_alias_is_refused(self, opensearch: str, prefix: str, ask: Ask) -> None:
        make(ask, prefix, lambda body: body.pop("aliases"), "1")
        with closing(store_on(opensearch, prefix)) as store, pytest.raises(ConfigurationError, match="alias"):
            store.prepare(SPACE)

    def test_what_goes_wrong_later_is_seen_by_the_next_process(self, opensearch: str, prefix: str, ask: Ask) -> None:
        index = make(ask, prefix, lambda body: None)
        with closing(store_on(opensearch, prefix)) as store:
            store.prepare(SPACE)
            ask("PUT", f"/{index}/_mapping", {"dynamic": True})
        with closing(store_on(opensearch, prefix)) as store, pytest.raises(ConfigurationError, match="not strict"):
            store.prepare(SPACE)


class TestVerified:
    def test_the_filter_is_unverified_until_the_index_has_been_read(self, opensearch: str, prefix: str) -> None:
        with closing(store_on(opensearch, prefix)) as store:
            assert store.tenant_filter() is TenantFilter.UNVERIFIED
            assert store.count(TENANT, SPACE) == 0
            assert store.tenant_filter() is TenantFilter.VERIFIED

    def test_an_index_that_another_process_made_is_taken(self, opensearch: str, prefix: str, ask: Ask) -> None:
        make(ask, prefix, lambda body: None)
        with closing(store_on(opensearch, prefix)) as store:
            store.prepare(SPACE)
            assert store.tenant_filter() is TenantFilter.VERIFIED

    def test_fields_that_a_later_version_adds_are_no_harm(self, opensearch: str, prefix: str, ask: Ask) -> None:
        make(ask, prefix, field("later", {"type": "keyword"}))
        with closing(store_on(opensearch, prefix)) as store:
            store.prepare(SPACE)
            assert store.tenant_filter() is TenantFilter.VERIFIED

    def test_ten_functions_that_start_at_once_make_one_index(self, opensearch: str, prefix: str, ask: Ask) -> None:
        stores, barrier = [store_on(opensearch, prefix) for _ in range(10)], Barrier(10)

        def start(number: int) -> TenantFilter:
            barrier.wait()
            stores[number].prepare(SPACE)
            stores[number].write(TENANT, SPACE, [record(chunk_id(number), VECTOR)])
            return stores[number].tenant_filter()

        with ThreadPoolExecutor(10) as pool:
            assert set(pool.map(start, range(10))) == {TenantFilter.VERIFIED}
        assert stores[0].count(TENANT, SPACE) == 10
        assert len(ask("GET", f"/{prefix}-*")) == 1
        for store in stores:
            store.close()

    def test_the_alias_may_move_to_another_index(self, opensearch: str, prefix: str, ask: Ask) -> None:
        alias = alias_of(options(prefix), SPACE)
        with closing(store_on(opensearch, prefix)) as store:
            store.write(TENANT, SPACE, [record(chunk_id(0), VECTOR)])
            second = make(ask, prefix, lambda body: body.pop("aliases"), "2")
            moves = [{"remove": {"index": f"{alias}-1", "alias": alias}}, {"add": {"index": second, "alias": alias}}]
            ask("POST", "/_aliases", {"actions": moves})
            assert store.count(TENANT, SPACE) == 0
            store.write(TENANT, SPACE, [record(chunk_id(1), VECTOR)])
            assert [match.chunk_id for match in store.search(TENANT, SPACE, QUERY)] == [chunk_id(1)]

    @pytest.mark.parametrize("use", ["search", "write"])
    def test_an_index_that_is_deleted_is_made_again_by_the_call_after_the_next(
        self, use: str, opensearch: str, prefix: str, ask: Ask
    ) -> None:
        with closing(store_on(opensearch, prefix)) as store:
            uses: dict[str, Callable[[], object]] = {
                "search": lambda: store.search(TENANT, SPACE, QUERY),
                "write": lambda: store.write(TENANT, SPACE, [record(chunk_id(0), VECTOR)]),
            }
            store.prepare(SPACE)
            ask("DELETE", f"/{alias_of(options(prefix), SPACE)}-1")
            with pytest.raises(Unavailable, match="made again"):
                uses[use]()
            uses[use]()
            assert store.count(TENANT, SPACE) == (use == "write")


class TestDefinition:
    @pytest.mark.parametrize("engine", KnnEngine)
    def test_engine_space_and_graph_are_named(self, engine: KnnEngine) -> None:
        given = IndexOptions(engine=engine, m=8, ef_construction=64)
        method = definition(given, SPACE)["mappings"]["properties"]["vector"]["method"]
        assert method == {
            "name": "hnsw",
            "engine": engine,
            "space_type": "innerproduct",
            "parameters": {"m": 8, "ef_construction": 64},
        }

    def test_models_whose_names_differ_in_signs_alone_have_indexes_of_their_own(self) -> None:
        names = {
            alias_of(IndexOptions(), VectorSpace(model=model, dimensions=2)) for model in ("a-b", "a.b", "A:b", "a b")
        }
        assert len(names) == 4

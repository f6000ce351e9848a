"""No search and no write leaves that is not confined to its tenant, whatever else has gone wrong."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.model.filter import And, Comparison, Filter, Not, Operator, Or
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.ranking.bm25 import Statistics
from core.vectors.opensearch import query as queries
from core.vectors.opensearch.client import Client, Refusal, connect
from core.vectors.opensearch.index import IndexOptions, alias_of
from core.vectors.opensearch.query import Json, Refused, check_search, record_id
from core.vectors.opensearch.store import OpenSearchVectorStore
from core.vectors.opensearch.writes import Operation, check_bulk, deleting, indexing
from core.vectors.types import TextQuery, VectorQuery
from tests.support.clock import ManualClock
from tests.support.loopback import Answer, Request, serving
from tests.support.opensearch import ON_OPENSEARCH, store_on
from tests.vectors.records import chunk_id, collection_id, record, unit

SPACE = VectorSpace(model="model", dimensions=2)
OURS, THEIRS = Tenant("ours"), Tenant("theirs")
VECTOR = unit(1, 0)
QUERY = VectorQuery(VECTOR, [collection_id(1)], 10, ["doc.1"], Comparison("year", Operator.GTE, 2020))
TEXT = TextQuery(["a", "b"], [collection_id(1)], 10, ["doc.1"], Comparison("year", Operator.GTE, 2020))
STATISTICS = Statistics(records=9, total_length=30, containing={"a": 3})
OUR_TERM = {"term": {"tenant_id": {"value": "ours"}}}
THEIR_TERM = {"term": {"tenant_id": {"value": "theirs"}}}
ANYONE: Json = {"match_all": {}}

BODIES: dict[str, Callable[[Tenant], Json]] = {
    "the nearest": lambda tenant: queries.nearest(tenant, VECTOR, QUERY, 11, ef_search=100),
    "the nearest with their vectors": lambda tenant: queries.nearest(
        tenant, VECTOR, replace(QUERY, with_vectors=True), 11, ef_search=None
    ),
    "the statistics of terms": lambda tenant: queries.statistics(tenant, TEXT),
    "the best by terms": lambda tenant: queries.best(tenant, TEXT, STATISTICS, 11),
    "among chunks": lambda tenant: queries.among(tenant, [chunk_id(1)]),
    "in order": lambda tenant: queries.in_order(tenant, collection_id(1), chunk_id(1), 5),
    "how many": queries.how_many,
    "how many match": lambda tenant: queries.how_many_match(tenant, QUERY.collection_ids, QUERY.filter),
    "how many among": lambda tenant: queries.how_many_among(tenant, [chunk_id(1)]),
    "how many of a write": lambda tenant: queries.how_many_of_write(tenant, "w"),
}


def holder_of(body: Json) -> tuple[Json, str]:
    """What holds the filter that confines a body, and under which name."""
    query = body["query"]
    if "knn" in query:
        return query["knn"]["vector"], "filter"
    if "script_score" in query:
        return query["script_score"], "query"
    return body, "query"


def filter_of(body: Json) -> Json:
    """The ``bool`` that confines a body."""
    holder, name = holder_of(body)
    confined: Json = holder[name]["bool"]
    return confined


def replaced(term: Any) -> Callable[[Json], object]:
    return lambda body: filter_of(body)["filter"].__setitem__(0, term)


def wrapped(wrap: Callable[[Json], Json]) -> Callable[[Json], object]:
    """The filter inside something else."""

    def change(body: Json) -> None:
        holder, name = holder_of(body)
        holder[name] = wrap(holder[name])

    return change


def beside(**member: Any) -> Callable[[Json], object]:
    return lambda body: filter_of(body).update(member)


def also(clause: Any) -> Callable[[Json], object]:
    return lambda body: filter_of(body)["filter"].append(clause)


MUTANTS: dict[str, Callable[[Json], object]] = {
    "the term is dropped": lambda body: filter_of(body)["filter"].pop(0),
    "all clauses are dropped": lambda body: filter_of(body)["filter"].clear(),
    "the filter is dropped": lambda body: filter_of(body).pop("filter"),
    "the term comes second": lambda body: filter_of(body)["filter"].insert(0, {"terms": {"chunk_id": []}}),
    "the term comes last": lambda body: filter_of(body)["filter"].append(filter_of(body)["filter"].pop(0)),
    "the term comes twice": lambda body: filter_of(body)["filter"].append(OUR_TERM),
    "another's term": replaced(THEIR_TERM),
    "another's term as well": also(THEIR_TERM),
    "both tenants": replaced({"terms": {"tenant_id": ["ours", "theirs"]}}),
    "a list of one": replaced({"terms": {"tenant_id": ["ours"]}}),
    "a prefix": replaced({"prefix": {"tenant_id": {"value": "ours"}}}),
    "a wildcard": replaced({"wildcard": {"tenant_id": {"value": "*"}}}),
    "a range": replaced({"range": {"tenant_id": {"gte": "ours"}}}),
    "a match": replaced({"match": {"tenant_id": "ours"}}),
    "any case": replaced({"term": {"tenant_id": {"value": "ours", "case_insensitive": True}}}),
    "a boost": replaced({"term": {"tenant_id": {"value": "ours", "boost": 2}}}),
    "the short form": replaced({"term": {"tenant_id": "ours"}}),
    "another field": replaced({"term": {"tenant": {"value": "ours"}}}),
    "a subfield": replaced({"term": {"tenant_id.keyword": {"value": "ours"}}}),
    "no value": replaced({"term": {"tenant_id": {"value": None}}}),
    "that it exists": replaced({"exists": {"field": "tenant_id"}}),
    "everything": replaced(ANYONE),
    "the term inside an or": replaced({"bool": {"should": [OUR_TERM, ANYONE]}}),
    "the term inside a not": replaced({"bool": {"must_not": [OUR_TERM]}}),
    "the term as an object": lambda body: filter_of(body).__setitem__("filter", OUR_TERM),
    "should instead of filter": lambda body: filter_of(body).__setitem__("should", filter_of(body).pop("filter")),
    "must instead of filter": lambda body: filter_of(body).__setitem__("must", filter_of(body).pop("filter")),
    "the term left out": lambda body: filter_of(body).__setitem__("must_not", [filter_of(body)["filter"].pop(0)]),
    "a should beside it": beside(should=[ANYONE]),
    "a must beside it": beside(must=[ANYONE]),
    "a minimum beside it": beside(minimum_should_match=0),
    "the filter in an or": wrapped(lambda query: {"bool": {"should": [query, ANYONE]}}),
    "the filter in a filter": wrapped(lambda query: {"bool": {"filter": [query]}}),
    "the filter negated": wrapped(lambda query: {"bool": {"must_not": [query]}}),
    "the filter in a constant score": wrapped(lambda query: {"constant_score": {"filter": query}}),
    "the filter beside another": wrapped(lambda query: {**query, "match_all": {}}),
    "the filter in a list": wrapped(lambda query: {"bool": {"filter": [[query]]}}),
    "no filter": wrapped(lambda query: ANYONE),
    "null": wrapped(lambda query: {}),
    "a script": also({"script": {"script": "true"}}),
    "a query string": also({"query_string": {"query": "tenant_id:theirs"}}),
    "a clause on tenants": also({"terms": {"tenant_id": ["theirs"]}}),
    "a clause on tenants, deeper": also({"bool": {"should": [{"terms": {"tenant_id": ["theirs"]}}]}}),
    "a must, deeper": also({"bool": {"must": [{"terms": {"chunk_id": []}}]}}),
    "terms of another's document": also({"terms": {"chunk_id": {"index": "i", "id": "theirs~c", "path": "chunk_id"}}}),
    "what joins": also({"has_child": {"type": "t", "query": ANYONE}}),
    "a global count": lambda body: body.update(aggs={"all": {"global": {}}}),
    "suggestions": lambda body: body.update(suggest={"s": {"text": "x", "term": {"field": "text"}}}),
    "a later filter": lambda body: body.update(post_filter=OUR_TERM),
    "a rescoring": lambda body: body.update(rescore={"query": {"rescore_query": ANYONE}}),
    "a point in time": lambda body: body.update(pit={"id": "x"}),
    "derived fields": lambda body: body.update(derived={}),
    "script fields": lambda body: body.update(script_fields={}),
    "a collapse": lambda body: body.update(collapse={"field": "tenant_id", "inner_hits": {"name": "x"}}),
    "all fields": lambda body: body.update(_source=True),
    "another order": lambda body: body.update(sort=[{"_script": {}}]),
    "a second query": lambda body: body["query"].update(match_all={}),
    "a search pipeline": lambda body: body.update(search_pipeline="p"),
}

KNN_MUTANTS: dict[str, Callable[[Json], object]] = {
    "k-NN without a filter": lambda body: body["query"]["knn"]["vector"].pop("filter"),
    "the filter beside k-NN": lambda body: body.update(
        query={"bool": {"filter": [OUR_TERM], "must": [{"knn": {"vector": {"vector": VECTOR, "k": 1}}}]}}
    ),
    "a second vector field": lambda body: body["query"]["knn"].update(other={"vector": VECTOR, "k": 1}),
    "another vector field": lambda body: body["query"]["knn"].__setitem__("v", body["query"]["knn"].pop("vector")),
    "a radius": lambda body: body["query"]["knn"]["vector"].update(min_score=0.0),
    "a filter's sibling": lambda body: body["query"]["knn"]["vector"].update(expand_nested_docs=True),
}

TEXT_MUTANTS: dict[str, tuple[str, Callable[[Json], object]]] = {
    "another script": ("the best by terms", lambda body: scored(body)["script"].update(source="return 1;")),
    "a stored script": ("the best by terms", lambda body: scored(body).update(script={"id": "stored"})),
    "another parameter": ("the best by terms", lambda body: scored(body)["script"]["params"].update(tenant="theirs")),
    "a scored query without a filter": ("the best by terms", lambda body: scored(body).pop("query")),
    "a lowest score": ("the best by terms", lambda body: scored(body).update(min_score=0)),
    "statistics of everyone": (
        "the statistics of terms",
        lambda body: body["aggs"].update(length={"global": {}, "aggs": {"x": {"sum": {"field": "term_count"}}}}),
    ),
    "statistics of one more": ("the statistics of terms", lambda body: body["aggs"].update(all={"global": {}})),
    "statistics of another field": (
        "the statistics of terms",
        lambda body: body["aggs"]["length"]["sum"].update(field="tenant_id"),
    ),
    "names of tenants": (
        "the statistics of terms",
        lambda body: body["aggs"].update(containing={"terms": {"field": "tenant_id"}}),
    ),
    "a count within a count": (
        "the statistics of terms",
        lambda body: body["aggs"]["containing"].update(aggs={"x": {"terms": {"field": "tenant_id"}}}),
    ),
    "a count by anything else": (
        "the statistics of terms",
        lambda body: body["aggs"]["containing"]["filters"]["filters"].append(ANYONE),
    ),
    "no statistics": ("the statistics of terms", lambda body: body.update(aggs={})),
}


def scored(body: Json) -> Json:
    found: Json = body["query"]["script_score"]
    return found


class TestSearches:
    @pytest.mark.parametrize("mutant", TEXT_MUTANTS)
    def test_a_changed_search_by_terms_is_refused(self, mutant: str) -> None:
        name, change = TEXT_MUTANTS[mutant]
        body = copy.deepcopy(BODIES[name](OURS))
        change(body)
        with pytest.raises(Refused):
            check_search(OURS, body)

    @pytest.mark.parametrize("name", BODIES)
    def test_what_is_built_for_a_tenant_passes_for_that_tenant_alone(self, name: str) -> None:
        body = BODIES[name](OURS)
        check_search(OURS, body)
        with pytest.raises(Refused):
            check_search(THEIRS, body)

    @pytest.mark.parametrize("mutant", MUTANTS)
    @pytest.mark.parametrize("name", BODIES)
    def test_a_changed_body_is_refused(self, name: str, mutant: str) -> None:
        body = copy.deepcopy(BODIES[name](OURS))
        MUTANTS[mutant](body)
        if mutant == "the term comes last" and body == BODIES[name](OURS):
            return  # where it is the only clause, last is first
        with pytest.raises(Refused):
            check_search(OURS, body)

    @pytest.mark.parametrize("mutant", KNN_MUTANTS)
    def test_a_changed_k_nn_query_is_refused(self, mutant: str) -> None:
        body = copy.deepcopy(BODIES["the nearest"](OURS))
        KNN_MUTANTS[mutant](body)
        with pytest.raises(Refused):
            check_search(OURS, body)

    @pytest.mark.parametrize("body", [{}, {"query": None}, {"query": []}, {"query": {}}, {"size": 10}])
    def test_a_body_without_a_query_is_refused(self, body: Json) -> None:
        with pytest.raises(Refused):
            check_search(OURS, body)


class TestWrites:
    def test_a_write_and_a_delete_pass_for_their_own_tenant_alone(self) -> None:
        written = indexing(OURS, SPACE, record(chunk_id(1), VECTOR), None)
        for operation in (written, deleting(OURS, chunk_id(1))):
            check_bulk(OURS, [operation])
            with pytest.raises(Refused):
                check_bulk(THEIRS, [operation])

    @pytest.mark.parametrize(
        "operation",
        [
            Operation(record_id(THEIRS, chunk_id(1)), None),
            Operation(str(chunk_id(1)), None),
            Operation("", None),
            Operation("ours~theirs~x", None),
            Operation("oursx~x", None),
            Operation(record_id(THEIRS, chunk_id(1)), {"tenant_id": "ours", "chunk_id": str(chunk_id(1))}),
            Operation(record_id(OURS, chunk_id(1)), {"tenant_id": "theirs", "chunk_id": str(chunk_id(1))}),
            Operation(record_id(OURS, chunk_id(1)), {"tenant_id": ["ours", "theirs"], "chunk_id": str(chunk_id(1))}),
            Operation(record_id(OURS, chunk_id(1)), {"tenant_id": "ours", "chunk_id": str(chunk_id(2))}),
            Operation(record_id(OURS, chunk_id(1)), {"chunk_id": str(chunk_id(1))}),
            Operation(record_id(OURS, chunk_id(1)), {}),
        ],
    )
    def test_an_operation_beyond_the_tenant_is_refused_and_takes_the_others_with_it(self, operation: Operation) -> None:
        with pytest.raises(Refused):
            check_bulk(OURS, [deleting(OURS, chunk_id(2)), operation])

    @given(st.from_regex(r"[A-Za-z0-9._:@=+-]{1,128}", fullmatch=True), st.text("abc._:@=+-~", max_size=6))
    def test_ids_of_two_tenants_never_meet(self, name: str, added: str) -> None:
        one = Tenant(name)
        operation = Operation(f"{name}{added}~{chunk_id(1)}", None)
        if added:
            with pytest.raises(Refused):
                check_bulk(one, [operation])
        else:
            check_bulk(one, [operation])


class Recorder:
    """A server that finds nothing, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def answer(self, request: Request) -> Answer:
        self.asked.append(request)
        found: Json = {"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": [], "total": {"value": 0}}}
        return Answer(200, json.dumps(found).encode())


@pytest.fixture
def recorder() -> Iterator[tuple[Recorder, Client]]:
    recorder = Recorder()
    with serving(recorder.answer) as url:
        client = Client(connect(url, "none"), ManualClock())
        yield recorder, client
        client.close()


class TestTheOneWayOut:
    def test_a_confined_search_is_sent(self, recorder: tuple[Recorder, Client]) -> None:
        server, client = recorder
        client.search(OURS, "index", queries.how_many(OURS))
        assert [request.target for request in server.asked] == ["/index/_search"]

    @pytest.mark.parametrize("mutant", MUTANTS)
    def test_no_mutant_reaches_the_server(self, mutant: str, recorder: tuple[Recorder, Client]) -> None:
        server, client = recorder
        body = copy.deepcopy(BODIES["the nearest"](OURS))
        MUTANTS[mutant](body)
        with pytest.raises(Refused):
            client.search(OURS, "index", body)
        assert server.asked == []

    def test_no_foreign_write_reaches_the_server(self, recorder: tuple[Recorder, Client]) -> None:
        server, client = recorder
        with pytest.raises(Refused):
            client.bulk(OURS, "index", [deleting(THEIRS, chunk_id(1))], wait=False)
        assert server.asked == []

    @pytest.mark.parametrize(
        ("hit_id", "tenant"),
        [("theirs~{}", "theirs"), ("ours~{}", "theirs"), ("theirs~{}", "ours"), ("ours~other", "ours")],
    )
    def test_a_hit_of_another_tenant_is_never_answered(self, hit_id: str, tenant: str) -> None:
        source = {"tenant_id": tenant, "chunk_id": str(chunk_id(1))}
        with pytest.raises(RuntimeError, match="another tenant's"):
            queries.check_hit(OURS, {"_id": hit_id.format(chunk_id(1)), "_source": source})


scalars = st.one_of(st.none(), st.booleans(), st.integers(-2, 9), st.sampled_from(["ours", "theirs", "tenant_id", "*"]))
keys = st.sampled_from(
    ["bool", "filter", "must_not", "should", "must", "term", "terms", "tenant_id", "value", "match_all", "chunk_id"]
)
pieces = st.one_of(
    st.sampled_from([OUR_TERM, THEIR_TERM, ANYONE, {"bool": {}}, []]),
    st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2)),
).map(copy.deepcopy)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a value, with each of its keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


@st.composite
def damaged(draw: st.DrawFn) -> Json:
    """A body with a few places changed at random."""
    body = copy.deepcopy(draw(st.sampled_from(list(BODIES.values())))(OURS))
    for _ in range(draw(st.integers(1, 3))):
        container, key = draw(st.sampled_from(list(places(body))))
        match draw(st.sampled_from(["replace", "delete", "add", "repeat"])):
            case "replace":
                container[key] = draw(pieces)
            case "delete":
                del container[key]
            case "add" if isinstance(container, dict):
                container[draw(keys)] = draw(pieces)
            case "add":
                container.insert(key, draw(pieces))
            case _ if isinstance(container, list):
                container.append(copy.deepcopy(container[key]))
    return body


filters: st.SearchStrategy[Filter] = st.recursive(
    st.builds(Comparison, st.sampled_from(["year", "tenant_id"]), st.just(Operator.EQ), st.sampled_from(["theirs", 1])),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(lambda parts: And(tuple(parts)), st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda parts: Or(tuple(parts)), st.lists(inner, min_size=1, max_size=2)),
    ),
    max_leaves=5,
)


@ON_OPENSEARCH
class TestOnTheServer:
    @pytest.fixture
    def store(self, opensearch: str) -> Iterator[OpenSearchVectorStore]:
        store = store_on(opensearch, "guard")
        for tenant in (OURS, THEIRS):
            store.write(tenant, SPACE, [record(chunk_id(index), VECTOR) for index in range(3)])
        yield store
        store.close()

    @settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(body=damaged())
    def test_whatever_passes_the_guard_finds_nothing_of_another_tenant(
        self, store: OpenSearchVectorStore, body: Json
    ) -> None:
        try:
            check_search(OURS, body)
        except Refused:
            return
        # Only what the guard lets through is sent; what the server cannot read finds nothing either.
        found = self._hits(store, body)
        assert {hit["_id"].split("~")[0] for hit in found} <= {"ours"}

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(asked=filters)
    def test_no_filter_of_a_caller_reaches_beyond_the_tenant(self, store: OpenSearchVectorStore, asked: Filter) -> None:
        matches = store.search(OURS, SPACE, VectorQuery(VECTOR, [collection_id(1)], 100, filter=asked))
        assert {match.tenant for match in matches} <= {OURS}
        assert store.matching(OURS, SPACE, [collection_id(1)], asked) == len(matches)

    def _hits(self, store: OpenSearchVectorStore, body: Json) -> list[Json]:
        try:
            answer = store._client.search(OURS, alias_of(IndexOptions(prefix="guard"), SPACE), body)
        except Refusal:
            return []
        hits: list[Json] = answer["hits"]["hits"]
        return hits

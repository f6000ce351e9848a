"""What every vector store does. One more store is one more line in ``STORES``.

A tenant is new in every test and every example, so that a store may outlive a test.
"""

import itertools
import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.model.chunk import MAX_NAME_BYTES, MAX_TEXT_BYTES
from core.model.component import TenantFilter
from core.model.filter import MAX_RANGE_TEXT_BYTES, Filter, parse_filter
from core.model.ids import ChunkId, CollectionId
from core.model.tenant import Tenant
from core.model.vector import Vector, VectorSpace
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.opensearch.index import Dialect, KnnEngine
from core.vectors.types import TextQuery, VectorMatch, VectorQuery, VectorRecord, VectorStore
from tests.support.filters import holds, questions
from tests.support.opensearch import ON_OPENSEARCH, store_on
from tests.vectors.records import chunk_id, collection_id, direction, record, unit

DIMENSIONS = 4
SPACE = VectorSpace(model="model-a", dimensions=DIMENSIONS)
OTHER_MODEL = VectorSpace(model="model-b", dimensions=DIMENSIONS)
OTHER_DIMENSIONS = VectorSpace(model="model-a", dimensions=DIMENSIONS + 1)
SPACES = (SPACE, OTHER_MODEL, OTHER_DIMENSIONS)

NORTH, EAST, SOUTH = unit(0, 1, 0, 0), unit(1, 0, 0, 0), unit(0, -1, 0, 0)
SCORE_TOLERANCE = 1e-6

Ask = Callable[[str], Any]
"""The value of a fixture."""

STORES: dict[str, Callable[[Ask], VectorStore]] = {
    "embedded in memory": lambda ask: EmbeddedVectorStore(None),
    "embedded on disk": lambda ask: EmbeddedVectorStore(ask("tmp_path") / "vectors.sqlite"),
    "opensearch faiss": lambda ask: store_on(ask("opensearch"), "faiss"),
    "opensearch lucene": lambda ask: store_on(ask("opensearch"), "lucene", engine=KnnEngine.LUCENE),
    "opensearch serverless": lambda ask: store_on(
        ask("collection_of_nextgen").url, "serverless", dialect=Dialect.SERVERLESS
    ),
}
KINDS = [pytest.param(kind, marks=ON_OPENSEARCH if kind.startswith("opensearch") else ()) for kind in STORES]

_numbers = itertools.count()


def new_tenant() -> Tenant:
    return Tenant(f"tenant-{next(_numbers)}")


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest) -> Iterator[VectorStore]:
    made = STORES[request.param](request.getfixturevalue)
    for space in SPACES:
        made.prepare(space)
    yield made
    made.close()


@pytest.fixture
def tenant() -> Tenant:
    return new_tenant()


def search(
    store: VectorStore,
    tenant: Tenant,
    vector: Vector = NORTH,
    *,
    space: VectorSpace = SPACE,
    collections: Sequence[int] = (1,),
    limit: int = 10,
    exclude: Sequence[str] = (),
    asked: Mapping[str, Any] | None = None,
) -> list[VectorMatch]:
    return store.search(tenant, space, VectorQuery(vector, numbered(collections), limit, exclude, parsed(asked)))


def numbered(collections: Sequence[int]) -> list[CollectionId]:
    return [collection_id(number) for number in collections]


def parsed(asked: Mapping[str, Any] | None) -> Filter | None:
    return None if asked is None else parse_filter(asked)


def match_of(record: VectorRecord, tenant: Tenant, score: float) -> VectorMatch:
    """What a search answers of a record."""
    return VectorMatch(
        chunk_id=record.chunk_id,
        tenant=tenant,
        collection_id=record.collection_id,
        source_id=record.source_id,
        source_key=record.source_key,
        text=record.text,
        score=score,
    )


def ids(matches: Sequence[VectorMatch]) -> list[ChunkId]:
    return [match.chunk_id for match in matches]


def spread(count: int, *, document: int = 1, collection: int = 1) -> list[VectorRecord]:
    """Records in many directions."""
    return [
        record(
            chunk_id(index, document=document), direction(document * 100_000 + index, DIMENSIONS), collection=collection
        )
        for index in range(count)
    ]


class TestWriting:
    def test_a_written_record_is_found_with_all_that_is_stored_beside_it(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        keyed = replace(
            record(chunk_id(0), NORTH, text="naïve 文字 \x00 '; DROP"), source_id="ab" * 32, source_key="folder/ü.md"
        )
        store.write(tenant, SPACE, [keyed])
        [match] = search(store, tenant)
        assert match == match_of(keyed, tenant, match.score)
        assert match.score == pytest.approx(1.0, abs=SCORE_TOLERANCE)

    def test_a_record_without_a_source_comes_back_without_one(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, [record(chunk_id(0), NORTH)])
        [match] = search(store, tenant)
        assert (match.source_id, match.source_key) == (None, None)

    def test_every_write_is_searchable_when_it_returns_also_after_searches(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        for index in range(5):
            store.write(tenant, SPACE, [record(chunk_id(index), NORTH)])
            assert ids(search(store, tenant)) == [chunk_id(earlier) for earlier in range(index + 1)]

    def test_a_write_of_the_same_chunk_replaces_it(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, [record(chunk_id(0), NORTH, text="old"), record(chunk_id(1), EAST)])
        search(store, tenant)
        store.write(tenant, SPACE, [record(chunk_id(0), SOUTH, text="new", collection=2)])
        assert ids(search(store, tenant)) == [chunk_id(1)]
        [match] = search(store, tenant, SOUTH, collections=[2])
        assert (match.text, match.collection_id) == ("new", collection_id(2))
        assert match.score == pytest.approx(1.0, abs=SCORE_TOLERANCE)
        assert store.count(tenant, SPACE) == 2

    def test_a_thousand_records_are_written_in_one_call(self, store: VectorStore, tenant: Tenant) -> None:
        records = spread(1_000)
        store.write(tenant, SPACE, records)
        assert store.count(tenant, SPACE) == 1_000
        assert set(ids(search(store, tenant, limit=1_000))) == {one.chunk_id for one in records}

    def test_nothing_to_write_changes_nothing(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, [])
        assert store.count(tenant, SPACE) == 0
        assert search(store, tenant) == []

    @pytest.mark.parametrize(
        "wrong",
        [
            [1.0],
            [0.0, 1.0, 0.0, 0.0, 0.0],
            [0.0] * 4,
            [0.0, 2.0, 0.0, 0.0],
            [0.0, 1e300, 0.0, 0.0],
            [float("nan"), 1.0, 0, 0],
        ],
        ids=["too few dimensions", "too many dimensions", "zero", "too long", "huge", "not a number"],
    )
    def test_a_vector_that_is_not_of_the_space_or_not_of_unit_length_is_refused_and_nothing_is_written(
        self, store: VectorStore, tenant: Tenant, wrong: Vector
    ) -> None:
        with pytest.raises(ValueError, match=r"dimensions|unit length"):
            store.write(tenant, SPACE, [record(chunk_id(0), NORTH), record(chunk_id(1), wrong)])
        assert store.count(tenant, SPACE) == 0
        with pytest.raises(ValueError, match=r"dimensions|unit length"):
            search(store, tenant, wrong)


class TestDeleting:
    def test_a_delete_answers_how_many_there_were_and_can_be_repeated(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, spread(3))
        doomed = [chunk_id(0), chunk_id(2), chunk_id(7)]
        assert store.delete(tenant, SPACE, doomed) == 2
        assert store.delete(tenant, SPACE, doomed) == 0
        assert store.count(tenant, SPACE) == 1

    def test_what_is_deleted_is_not_found_when_the_call_returns(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, [record(chunk_id(index), NORTH) for index in range(3)])
        assert len(search(store, tenant)) == 3
        store.delete(tenant, SPACE, [chunk_id(1)])
        assert ids(search(store, tenant)) == [chunk_id(0), chunk_id(2)]

    def test_what_was_deleted_can_be_written_again(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, [record(chunk_id(0), NORTH, text="old")])
        search(store, tenant)
        store.delete(tenant, SPACE, [chunk_id(0)])
        store.write(tenant, SPACE, [record(chunk_id(0), NORTH, text="new")])
        assert [match.text for match in search(store, tenant)] == ["new"]

    def test_nothing_to_delete_changes_nothing(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, spread(2))
        assert store.delete(tenant, SPACE, []) == 0
        assert store.count(tenant, SPACE) == 2


class TestTenants:
    def test_the_tenant_filter_is_verified_once_prepared(self, store: VectorStore) -> None:
        assert store.tenant_filter() is TenantFilter.VERIFIED

    def test_another_tenants_records_are_neither_found_nor_counted(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(new_tenant(), SPACE, spread(5))
        assert search(store, tenant) == []
        assert store.count(tenant, SPACE) == 0

    def test_a_delete_of_another_tenants_chunks_touches_nothing(self, store: VectorStore, tenant: Tenant) -> None:
        other = new_tenant()
        store.write(other, SPACE, spread(5))
        assert store.delete(tenant, SPACE, [chunk_id(index) for index in range(5)]) == 0
        assert store.count(other, SPACE) == 5

    def test_the_same_chunk_ids_under_two_tenants_are_two_records(self, store: VectorStore, tenant: Tenant) -> None:
        other = new_tenant()
        store.write(tenant, SPACE, [record(chunk_id(0), NORTH, text="mine")])
        store.write(other, SPACE, [record(chunk_id(0), EAST, text="theirs")])
        assert [(match.text, match.tenant) for match in search(store, tenant)] == [("mine", tenant)]
        assert [(match.text, match.tenant) for match in search(store, other)] == [("theirs", other)]
        assert store.delete(tenant, SPACE, [chunk_id(0)]) == 1
        assert [match.text for match in search(store, other)] == ["theirs"]

    def test_names_that_are_nearly_the_same_are_different_tenants(self, store: VectorStore, tenant: Tenant) -> None:
        names = [
            tenant,
            tenant.upper(),
            f"{tenant}-",
            f"{tenant}.a",
            f"{tenant}:a",
            f"{tenant}=",
            f"x{tenant}",
            tenant[:-1] + "-",
        ]
        tenants = [Tenant(name) for name in names]
        for number, one in enumerate(tenants):
            store.write(one, SPACE, [record(chunk_id(0), NORTH, text=str(number))])
        found = [[(match.tenant, match.text) for match in search(store, one)] for one in tenants]
        assert found == [[(one, str(number))] for number, one in enumerate(tenants)]
        assert [store.count(one, SPACE) for one in tenants] == [1] * len(tenants)

    def test_a_search_gives_the_same_matches_to_the_last_digit_whatever_another_tenant_does(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        store.write(tenant, SPACE, spread(50))
        query = direction(99, DIMENSIONS)
        before = search(store, tenant, query)
        other, others = new_tenant(), spread(200, document=2)
        store.write(other, SPACE, others)
        assert search(store, tenant, query) == before
        store.delete(other, SPACE, [one.chunk_id for one in others])
        assert search(store, tenant, query) == before

    def test_a_score_is_the_same_to_the_last_digit_whatever_else_the_tenant_has(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        query = direction(99, DIMENSIONS)
        kept, passing = spread(37), spread(101, document=2, collection=2)
        store.write(tenant, SPACE, kept)
        before = search(store, tenant, query)
        store.write(tenant, SPACE, passing)
        assert search(store, tenant, query) == before
        store.delete(tenant, SPACE, [one.chunk_id for one in kept[::2]])
        beside = {match.chunk_id: match.score for match in search(store, tenant, query, collections=[1, 2], limit=500)}
        store.delete(tenant, SPACE, [one.chunk_id for one in passing])
        store.write(tenant, SPACE, kept)
        assert search(store, tenant, query) == before
        alone = {match.chunk_id: match.score for match in search(store, tenant, query, limit=500)}
        assert {one: alone[one] for one in alone.keys() & beside.keys()} == {
            one: beside[one] for one in alone.keys() & beside.keys()
        }


class TestSearching:
    def test_matches_bring_their_vectors_when_asked(self, store: VectorStore, tenant: Tenant) -> None:
        records = [record(chunk_id(index), direction(index, DIMENSIONS)) for index in range(3)]
        store.write(tenant, SPACE, records)
        query = VectorQuery(NORTH, [collection_id(1)], 10, with_vectors=True)
        found = {match.chunk_id: match.vector for match in store.search(tenant, SPACE, query)}
        assert found == {one.chunk_id: array("f", one.vector).tolist() for one in records}, "the same on every store"
        assert {match.vector for match in search(store, tenant)} == {None}

    def test_only_the_named_collections_are_searched(self, store: VectorStore, tenant: Tenant) -> None:
        for number in (1, 2, 3):
            store.write(tenant, SPACE, [record(chunk_id(number), NORTH, collection=number)])
        assert ids(search(store, tenant, collections=[2])) == [chunk_id(2)]
        assert ids(search(store, tenant, collections=[3, 1])) == [chunk_id(1), chunk_id(3)]
        assert search(store, tenant, collections=[4]) == []
        assert search(store, tenant, collections=[]) == []

    def test_the_filter_acts_inside_the_search_so_that_no_answer_is_short(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        store.write(tenant, SPACE, [record(chunk_id(index), NORTH, collection=1) for index in range(200)])
        store.write(tenant, SPACE, [record(chunk_id(index, document=2), SOUTH, collection=2) for index in range(10)])
        assert len(search(store, tenant, collections=[2], limit=10)) == 10

    def test_matches_of_an_excluded_generation_are_replaced_by_the_next_best(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        stale = [record(chunk_id(index, attempt=1), NORTH) for index in range(20)]
        current = [record(chunk_id(index, attempt=2), EAST) for index in range(5)]
        other = [record(chunk_id(index, document=2), SOUTH) for index in range(5)]
        store.write(tenant, SPACE, [*stale, *current, *other])
        excluded = [stale[0].chunk_id.generation, "doc_unknown.1"]
        assert ids(search(store, tenant, limit=7, exclude=excluded)) == ids_of(current + other[:2])
        excluded.append(other[0].chunk_id.generation)
        assert ids(search(store, tenant, limit=7, exclude=excluded)) == ids_of(current)

    def test_at_most_limit_matches_are_answered_and_they_are_the_best(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, spread(30))
        everything = search(store, tenant, limit=30)
        for limit in (1, 7, 29, 30, 31, 10_000):
            assert search(store, tenant, limit=limit) == everything[:limit]

    @pytest.mark.parametrize("limit", [-1, 0, 10_001])
    def test_a_limit_out_of_range_is_no_query(self, limit: int) -> None:
        with pytest.raises(ValueError, match="limit"):
            VectorQuery(NORTH, [collection_id(1)], limit)

    def test_equal_scores_come_in_order_of_chunk_id_whatever_the_order_of_writing(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        for index in (7, 3, 9, 1, 5):
            store.write(tenant, SPACE, [record(chunk_id(index), NORTH)])
        assert ids(search(store, tenant, EAST, limit=3)) == [chunk_id(1), chunk_id(3), chunk_id(5)]

    def test_scores_are_cosines_from_one_to_minus_one(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, [record(chunk_id(index), one) for index, one in enumerate((SOUTH, EAST, NORTH))])
        matches = search(store, tenant)
        assert ids(matches) == [chunk_id(2), chunk_id(1), chunk_id(0)]
        assert [match.score for match in matches] == pytest.approx([1.0, 0.0, -1.0], abs=SCORE_TOLERANCE)

    def test_rounding_never_takes_a_score_beyond_one(self, store: VectorStore, tenant: Tenant) -> None:
        vectors = [direction(seed, DIMENSIONS) for seed in range(50)]
        store.write(tenant, SPACE, [record(chunk_id(index), one) for index, one in enumerate(vectors)])
        scores = [match.score for one in vectors for match in search(store, tenant, one, limit=50)]
        assert max(scores) <= 1.0
        assert min(scores) >= -1.0

    def test_spaces_are_apart(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, [record(chunk_id(0), NORTH, text="a")])
        store.write(tenant, OTHER_MODEL, [record(chunk_id(0), NORTH, text="b")])
        store.write(tenant, OTHER_DIMENSIONS, [record(chunk_id(0), [*NORTH, 0.0], text="c")])
        assert [match.text for match in search(store, tenant)] == ["a"]
        assert [match.text for match in search(store, tenant, space=OTHER_MODEL)] == ["b"]
        assert [match.text for match in search(store, tenant, [*NORTH, 0.0], space=OTHER_DIMENSIONS)] == ["c"]
        assert store.delete(tenant, OTHER_MODEL, [chunk_id(0)]) == 1
        assert [store.count(tenant, space) for space in SPACES] == [1, 0, 1]


def matching(
    store: VectorStore, tenant: Tenant, asked: Mapping[str, Any] | None, collections: Sequence[int] = (1,)
) -> int:
    return store.matching(tenant, SPACE, numbered(collections), parsed(asked))


class TestFiltering:
    def test_the_best_of_what_fulfils_the_filter_are_found_however_little_does(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        near = [replace(record(chunk_id(index), NORTH), attributes={"year": 2019}) for index in range(200)]
        far = [
            replace(record(chunk_id(index, document=2), SOUTH), attributes={"year": 2020 + index}) for index in range(5)
        ]
        store.write(tenant, SPACE, [*near, *far])
        assert ids(search(store, tenant, limit=4, asked={"year": {"gte": 2020}})) == ids_of(far[:4])
        assert ids(search(store, tenant, asked={"year": {"gt": 2020, "lte": 2022}})) == ids_of(far[1:3])

    def test_a_filter_changes_no_score(self, store: VectorStore, tenant: Tenant) -> None:
        records = [replace(one, attributes={"odd": index % 2 == 1}) for index, one in enumerate(spread(60))]
        store.write(tenant, SPACE, records)
        query = direction(99, DIMENSIONS)
        odd = {one.chunk_id for one in records[1::2]}
        everything = search(store, tenant, query, limit=60)
        found = search(store, tenant, query, limit=60, asked={"odd": True})
        assert found == [match for match in everything if match.chunk_id in odd]

    def test_the_nearest_of_the_few_that_fulfil_a_filter_are_found_with_their_scores(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        records = [replace(one, attributes={"part": index % 20}) for index, one in enumerate(spread(400))]
        store.write(tenant, SPACE, records)
        query = direction(99, DIMENSIONS)
        part = {one.chunk_id for one in records[3::20]}
        everything = search(store, tenant, query, limit=400)
        expected = [match for match in everything if match.chunk_id in part][:5]
        assert search(store, tenant, query, limit=5, asked={"part": 3}) == expected

    def test_filter_collections_and_excluded_generations_act_together(self, store: VectorStore, tenant: Tenant) -> None:
        records = [
            replace(record(chunk_id(index, attempt=attempt), NORTH, collection=collection), attributes={"n": index})
            for index, (attempt, collection) in enumerate(itertools.product((1, 2), (1, 2, 3)))
        ]
        store.write(tenant, SPACE, records)
        excluded = [records[0].chunk_id.generation]
        found = search(store, tenant, collections=[1, 2], exclude=excluded, asked={"n": {"gte": 1, "lt": 4}})
        assert ids(found) == ids_of([records[3]])

    def test_a_chunk_written_again_has_its_new_attributes_alone(self, store: VectorStore, tenant: Tenant) -> None:
        one = record(chunk_id(0), NORTH)
        store.write(tenant, SPACE, [replace(one, attributes={"lang": "en", "old": True})])
        assert ids(search(store, tenant, asked={"lang": "en"})) == [chunk_id(0)]
        store.write(tenant, SPACE, [replace(one, attributes={"lang": "de"})])
        assert search(store, tenant, asked={"lang": "en"}) == []
        assert search(store, tenant, asked={"old": {"exists": True}}) == []
        assert ids(search(store, tenant, asked={"lang": "de"})) == [chunk_id(0)]
        store.delete(tenant, SPACE, [chunk_id(0)])
        assert search(store, tenant, asked={"lang": "de"}) == []
        assert matching(store, tenant, {"lang": "de"}) == 0

    def test_another_tenants_attributes_are_neither_found_nor_counted(self, store: VectorStore, tenant: Tenant) -> None:
        theirs = [replace(one, attributes={"year": 2020, "lang": "en"}) for one in spread(5)]
        store.write(new_tenant(), SPACE, theirs)
        store.write(tenant, SPACE, [record(chunk_id(9), NORTH)])
        for asked in ({"year": 2020}, {"year": {"gt": 0}}, {"lang": {"exists": True}}, {"lang": {"lt": "zz"}}):
            assert search(store, tenant, asked=asked) == []
            assert matching(store, tenant, asked) == 0
        assert ids(search(store, tenant, asked={"lang": {"ne": "en"}})) == [chunk_id(9)]

    def test_filters_as_wide_and_as_deep_as_they_may_be_are_answered(self, store: VectorStore, tenant: Tenant) -> None:
        records = [replace(record(chunk_id(index), NORTH), attributes={"n": index}) for index in range(20)]
        store.write(tenant, SPACE, records)
        wide = {"or": [{"n": {"gte": 2 * index, "lt": 2 * index + 1}} for index in range(128)]}
        assert ids(search(store, tenant, asked=wide)) == ids_of(records[::2])
        many = {"n": {"in": [index + 0.5 for index in range(999)] + [7]}}
        assert ids(search(store, tenant, asked=many)) == [chunk_id(7)]
        deep: dict[str, Any] = {"n": 3}
        for _ in range(7):
            deep = {"not": deep}
        assert ids(search(store, tenant, asked=deep, limit=50)) == ids_of(records[:3] + records[4:])
        assert search(store, tenant, asked={"or": []}) == []
        assert len(search(store, tenant, asked={}, limit=50)) == 20

    def test_a_range_may_end_at_the_longest_text_under_the_longest_name(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        name, bound = "n" * MAX_NAME_BYTES, "a" * MAX_RANGE_TEXT_BYTES
        texts = [bound[1:], bound, bound + "a", "a" * MAX_TEXT_BYTES, "b"]
        records = [replace(record(chunk_id(index), NORTH), attributes={name: text}) for index, text in enumerate(texts)]
        store.write(tenant, SPACE, records)
        for operator, found in (("lt", [0]), ("lte", [0, 1]), ("gte", [1, 2, 3, 4]), ("gt", [2, 3, 4])):
            assert ids(search(store, tenant, asked={name: {operator: bound}})) == [chunk_id(one) for one in found]

    def test_what_fulfils_a_filter_is_counted_in_the_named_collections(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        records = [
            replace(record(chunk_id(index), NORTH, collection=1 + index % 2), attributes={"n": index})
            for index in range(10)
        ]
        store.write(tenant, SPACE, records)
        assert matching(store, tenant, {"n": {"lt": 5}}) == 3
        assert matching(store, tenant, {"n": {"lt": 5}}, collections=[1, 2]) == 5
        assert matching(store, tenant, None, collections=[2]) == 5
        assert matching(store, tenant, {"n": {"lt": 5}}, collections=[3]) == 0
        assert matching(store, tenant, None, collections=[]) == 0


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(question=questions())
def test_a_filtered_search_finds_what_brute_force_finds(
    store: VectorStore, question: tuple[list[dict[str, Any]], dict[str, Any]]
) -> None:
    rows, asked = question
    tenant, other = new_tenant(), new_tenant()
    records = [replace(record(chunk_id(index), NORTH), attributes=row) for index, row in enumerate(rows)]
    store.write(other, SPACE, [replace(one, chunk_id=chunk_id(99, document=2)) for one in records])
    store.write(tenant, SPACE, records)
    expected = [one.chunk_id for one in records if holds(asked, one.attributes)]
    assert ids(search(store, tenant, limit=50, asked=asked)) == expected
    assert matching(store, tenant, asked) == len(expected)


def ids_of(records: Sequence[VectorRecord]) -> list[ChunkId]:
    return [one.chunk_id for one in records]


small = st.integers(-3, 3)
vectors = st.tuples(small, small, small, small).filter(any).map(lambda numbers: unit(*numbers))


@settings(
    max_examples=60,
    deadline=None,
    # One store serves all examples: each has a tenant of its own.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data(), written=st.lists(st.tuples(vectors, st.integers(1, 3), st.integers(1, 3)), max_size=25))
def test_matches_order_and_scores_are_those_of_brute_force(
    store: VectorStore, data: st.DataObject, written: list[tuple[Vector, int, int]]
) -> None:
    tenant, query = new_tenant(), data.draw(vectors, "query")
    records = [
        record(chunk_id(index, attempt=attempt), vector, collection=collection)
        for index, (vector, collection, attempt) in enumerate(written)
    ]
    store.write(tenant, SPACE, records)
    deleted = set(
        data.draw(st.lists(st.sampled_from(ids_of(records)), unique=True) if records else st.just([]), "deleted")
    )
    assert store.delete(tenant, SPACE, sorted(deleted)) == len(deleted)
    collections = data.draw(st.sets(st.integers(1, 3), min_size=1), "collections")
    excluded = {chunk_id(0, attempt=number).generation for number in data.draw(st.sets(st.integers(1, 3)), "excluded")}
    limit = data.draw(st.integers(1, 30), "limit")

    matches = search(store, tenant, query, collections=sorted(collections), limit=limit, exclude=sorted(excluded))

    allowed = {collection_id(number) for number in collections}
    expected = {
        one.chunk_id: sum(x * y for x, y in zip(one.vector, query, strict=True))
        for one in records
        if one.chunk_id not in deleted and one.collection_id in allowed and one.chunk_id.generation not in excluded
    }
    found = ids(matches)
    assert len(found) == len(set(found)) == min(limit, len(expected))
    assert [match.score for match in matches] == pytest.approx([expected[one] for one in found], abs=SCORE_TOLERANCE)
    assert found == [match.chunk_id for match in sorted(matches, key=lambda match: (-match.score, match.chunk_id))]
    left_out = [score for one, score in expected.items() if one not in found]
    assert not left_out or max(left_out) <= matches[-1].score + SCORE_TOLERANCE
    assert store.count(tenant, SPACE) == len(records) - len(deleted)


def worded(index: int, text: str, *, collection: int = 1, attempt: int = 1, **attributes: Any) -> VectorRecord:
    """A record whose terms are the words of its text."""
    made = record(
        chunk_id(index, attempt=attempt), direction(index, DIMENSIONS), collection=collection, terms=text.split()
    )
    return replace(made, text=text, attributes=attributes)


def search_text(
    store: VectorStore,
    tenant: Tenant,
    terms: str,
    *,
    space: VectorSpace = SPACE,
    collections: Sequence[int] = (1,),
    limit: int = 10,
    exclude: Sequence[str] = (),
    asked: Mapping[str, Any] | None = None,
) -> list[VectorMatch]:
    query = TextQuery(terms.split(), numbered(collections), limit, exclude, parsed(asked))
    return store.search_text(tenant, space, query)


def bm25(records: Sequence[VectorRecord], terms: Sequence[str]) -> dict[ChunkId, float]:
    """Scores by the formula as it is printed; records without any of the terms are left out."""
    average = sum(len(one.terms) for one in records) / max(len(records), 1) or 1.0
    scores = {}
    for one in records:
        total = 0.0
        for term in terms:
            containing = sum(term in other.terms for other in records)
            frequency = list(one.terms).count(term)
            idf = math.log(1.0 + (len(records) - containing + 0.5) / (containing + 0.5))
            if frequency:
                total += idf * frequency / (frequency + 1.2 * (1.0 - 0.75 + 0.75 * len(one.terms) / average))
        if total:
            scores[one.chunk_id] = total
    return scores


class TestTexts:
    def test_a_record_comes_back_with_all_that_is_stored_beside_it(self, store: VectorStore, tenant: Tenant) -> None:
        keyed = replace(worded(0, "a b"), text="naïve 文字 \x00", source_id="ab" * 32, source_key="folder/ü.md")
        store.write(tenant, SPACE, [keyed])
        [match] = search_text(store, tenant, "b")
        assert match == match_of(keyed, tenant, match.score)

    def test_rarer_terms_more_of_them_and_shorter_records_score_higher(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        texts = ["common rare", "common common", "common", "common x x x x x", "x"]
        store.write(tenant, SPACE, [worded(index, text) for index, text in enumerate(texts)])
        matches = search_text(store, tenant, "common rare")
        assert ids(matches) == [chunk_id(index) for index in (0, 1, 2, 3)]
        assert [match.score for match in matches] == sorted({match.score for match in matches}, reverse=True)

    @pytest.mark.parametrize("terms", ["", "unknown", "com", "commons", "COMMON"])
    def test_terms_are_found_whole_and_as_they_are_or_not_at_all(
        self, store: VectorStore, tenant: Tenant, terms: str
    ) -> None:
        store.write(tenant, SPACE, [worded(0, "common")])
        assert search_text(store, tenant, terms) == []

    def test_terms_in_any_script_and_of_the_greatest_length_are_found(self, store: VectorStore, tenant: Tenant) -> None:
        terms = ["文字", "größe", "😀", "й", "x" * 64, "\u0e01\u0e33"]
        store.write(tenant, SPACE, [worded(index, term) for index, term in enumerate(terms)])
        for index, term in enumerate(terms):
            assert ids(search_text(store, tenant, term)) == [chunk_id(index)], term

    def test_a_chunk_written_again_has_its_new_terms_alone(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, [worded(0, "old both"), worded(1, "other")])
        assert ids(search_text(store, tenant, "old")) == [chunk_id(0)]
        store.write(tenant, SPACE, [worded(0, "new both")])
        assert search_text(store, tenant, "old") == []
        assert ids(search_text(store, tenant, "new both")) == [chunk_id(0)]
        store.delete(tenant, SPACE, [chunk_id(0)])
        assert search_text(store, tenant, "new both") == []

    def test_scores_do_not_depend_on_the_filter_nor_on_what_is_excluded(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        records = [worded(index, f"a b{index % 3} c{index}", odd=index % 2 == 1) for index in range(12)]
        store.write(tenant, SPACE, records)
        everything = search_text(store, tenant, "a b1 c5", limit=20)
        odd = {one.chunk_id for one in records[1::2]}
        found = search_text(store, tenant, "a b1 c5", limit=20, asked={"odd": True})
        assert found == [match for match in everything if match.chunk_id in odd]
        assert search_text(store, tenant, "a b1 c5", exclude=[chunk_id(0).generation]) == []

    def test_scores_are_the_same_to_the_last_digit_whatever_another_tenant_does(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        store.write(tenant, SPACE, [worded(index, f"a b{index % 3} c{index}") for index in range(12)])
        before, other = search_text(store, tenant, "a b1 c5"), new_tenant()
        store.write(other, SPACE, [worded(index, "a b1 c5 " * (index % 7)) for index in range(50)])
        assert search_text(store, tenant, "a b1 c5") == before
        store.delete(other, SPACE, [chunk_id(index) for index in range(40)])
        assert search_text(store, tenant, "a b1 c5") == before

    def test_spaces_are_apart(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, [worded(0, "a b")])
        store.write(tenant, OTHER_MODEL, [worded(0, "a a a"), worded(1, "b")])
        assert [match.text for match in search_text(store, tenant, "a")] == ["a b"]
        assert [match.text for match in search_text(store, tenant, "a", space=OTHER_MODEL)] == ["a a a"]

    def test_a_thousand_terms_are_searched_for(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, [worded(0, "t999")])
        assert ids(search_text(store, tenant, " ".join(f"t{number}" for number in range(1024)))) == [chunk_id(0)]

    def test_a_term_twice_is_no_query(self) -> None:
        with pytest.raises(ValueError, match="twice"):
            TextQuery(["a", "a"], [], 1)


a_text = st.lists(st.sampled_from(["a", "b", "c", "字字", "x"]), max_size=6).map(" ".join)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), written=st.lists(st.tuples(a_text, st.integers(1, 3), st.integers(1, 3)), max_size=25))
def test_texts_order_and_scores_are_those_of_brute_force_to_the_last_digit(
    store: VectorStore, data: st.DataObject, written: list[tuple[str, int, int]]
) -> None:
    tenant, other = new_tenant(), new_tenant()
    records = [
        worded(index, text, collection=collection, attempt=attempt)
        for index, (text, collection, attempt) in enumerate(written)
    ]
    store.write(other, SPACE, records[::2])
    store.write(tenant, SPACE, records)
    deleted = data.draw(st.sets(st.sampled_from(ids_of(records))) if records else st.just(set()), "deleted")
    store.delete(tenant, SPACE, sorted(deleted))
    terms = data.draw(st.permutations(["a", "b", "字字", "unknown"]), "terms")[: data.draw(st.integers(1, 4))]
    collections = data.draw(st.sets(st.integers(1, 3), min_size=1), "collections")
    excluded = {chunk_id(0, attempt=number).generation for number in data.draw(st.sets(st.integers(1, 3)), "excluded")}
    limit = data.draw(st.integers(1, 30), "limit")

    matches = search_text(
        store, tenant, " ".join(terms), collections=sorted(collections), limit=limit, exclude=sorted(excluded)
    )

    allowed = {collection_id(number) for number in collections}
    held = [one for one in records if one.chunk_id not in deleted and one.collection_id in allowed]
    scores = {one: score for one, score in bm25(held, terms).items() if one.generation not in excluded}
    best = sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:limit]
    assert [(match.chunk_id, match.score) for match in matches] == best


class TestLife:
    def test_prepare_can_be_repeated_and_keeps_what_is_there(self, store: VectorStore, tenant: Tenant) -> None:
        store.write(tenant, SPACE, spread(3))
        store.prepare(SPACE)
        assert store.count(tenant, SPACE) == 3

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_store_can_be_prepared_by_many_threads_at_once(
        self, kind: str, request: pytest.FixtureRequest, tenant: Tenant
    ) -> None:
        store, barrier = STORES[kind](request.getfixturevalue), Barrier(8)

        def prepare_and_write(index: int) -> None:
            barrier.wait()
            store.prepare(SPACE)
            store.write(tenant, SPACE, [record(chunk_id(index), NORTH)])

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(prepare_and_write, range(8)))
        assert ids(search(store, tenant)) == [chunk_id(index) for index in range(8)]
        store.close()

    def test_threads_that_write_delete_and_search_see_their_own_work_whole(self, store: VectorStore) -> None:
        def work(number: int) -> None:
            mine = new_tenant()
            for index in range(10):
                pair = [record(chunk_id(2 * index + place), NORTH, text=str(number)) for place in range(2)]
                store.write(mine, SPACE, pair)
                assert {match.text for match in search(store, mine)} == {str(number)}
                assert store.count(mine, SPACE) == 2
                assert store.delete(mine, SPACE, ids_of(pair)) == 2
                assert search(store, mine) == []

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))

    def test_a_search_beside_a_writer_sees_whole_writes_in_their_order(
        self, store: VectorStore, tenant: Tenant
    ) -> None:
        def write() -> None:
            for index in range(20):
                store.write(tenant, SPACE, [record(chunk_id(index), NORTH)])

        with ThreadPoolExecutor(4) as pool:
            writing = pool.submit(write)
            while not writing.done():
                for found in pool.map(lambda _: ids(search(store, tenant, limit=100)), range(3)):
                    assert found == [chunk_id(index) for index in range(len(found))]
            writing.result()
        assert len(search(store, tenant, limit=100)) == 20

    def test_it_answers_and_says_what_it_is(self, store: VectorStore) -> None:
        store.ping()
        described = store.describe()
        assert described.configured
        assert described.name
        assert described.type

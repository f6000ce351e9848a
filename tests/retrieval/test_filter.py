"""A filtered query returns only chunks that fulfil the filter, refuses unknown fields, and explains short answers."""

from typing import Any

import pytest

from core.metadata.fields import MAX_FIELDS, Fields
from core.metadata.table import Key
from core.metadata.wire import Item
from core.model.collection import Collection
from core.model.comparison import CompareResult
from core.model.errors import InvalidArgument
from core.model.hit import Reason, ReasonCode, RetrieveResult
from core.model.query import RetrieveQuery
from tests.support.engines import ACME, GLOBEX, World
from tests.support.meddling import MeddlingVectors

DOCUMENTS: dict[str, dict[str, Any]] = {
    "red one": {"year": 2019, "lang": "en", "tags": ["a", "b"]},
    "red two": {"year": 2020, "lang": "de"},
    "red three": {"year": 2021, "lang": "en", "draft": True},
    "red four": {},
}


@pytest.fixture
def collection(world: World) -> Collection:
    made = world.collection()
    for content, attributes in DOCUMENTS.items():
        world.ingest(made, content, source_key=content, attributes=attributes)
    return made


def question(asked: dict[str, Any] | None, **fields: Any) -> RetrieveQuery:
    return RetrieveQuery(query="red", filter=asked, **fields)


def found(result: RetrieveResult | CompareResult) -> set[str]:
    return {hit.chunk.text for hit in result.hits}


def reason(result: RetrieveResult | CompareResult) -> Reason:
    assert result.reason is not None
    return result.reason


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, set(DOCUMENTS)),
        ({}, set(DOCUMENTS)),
        ({"year": {"gte": 2020}}, {"red two", "red three"}),
        ({"year": {"gt": 2019, "lt": 2020.5}}, {"red two"}),
        ({"lang": {"in": ["de", "fr"]}}, {"red two"}),
        ({"lang": {"in": []}}, set()),
        ({"lang": {"ne": "en"}}, {"red two", "red four"}),
        ({"tags": "b"}, {"red one"}),
        ({"draft": {"exists": False}, "year": {"exists": True}}, {"red one", "red two"}),
        ({"or": [{"draft": True}, {"not": {"year": {"exists": True}}}]}, {"red three", "red four"}),
    ],
)
def test_retrieve_and_compare_return_only_chunks_that_fulfil_the_filter(
    world: World, collection: Collection, asked: dict[str, Any] | None, expected: set[str]
) -> None:
    assert found(world.engine.retrieve(ACME, question(asked))) == expected
    assert found(world.engine.compare(ACME, question(asked))) == expected
    assert found(world.engine.compare(ACME, question(asked, collections=[collection.id]))) == expected


def test_a_filter_can_name_attributes_from_the_front_matter(world: World) -> None:
    collection = world.collection()
    world.ingest(collection, "---\nyear: 2024\n---\nred", source_type="text/markdown", source_key="a")
    world.ingest(collection, "red too", source_key="b")
    assert found(world.engine.retrieve(ACME, question({"year": 2024}))) == {"red"}


def test_a_filter_sees_the_attributes_of_the_current_version(world: World, collection: Collection) -> None:
    world.ingest(collection, "red one", source_key="red one", attributes={"year": 2030})
    assert found(world.engine.retrieve(ACME, question({"year": 2030}))) == {"red one"}
    assert found(world.engine.retrieve(ACME, question({"year": 2019}))) == set()
    assert found(world.engine.retrieve(ACME, question({"tags": "a"}))) == set()


def test_vectors_that_a_reindex_writes_keep_their_attributes(world: World, collection: Collection) -> None:
    assert world.engine.reindex.start(ACME, collection.id, world.deadline()).finished
    assert found(world.engine.retrieve(ACME, question({"lang": "en"}))) == {"red one", "red three"}


# -- refusals ----------------------------------------------------------------------------------

UNKNOWN: list[dict[str, Any]] = [
    {"yaer": 2020},
    {"yaer": {"ne": 2020}},
    {"yaer": {"exists": False}},
    {"year": 2020, "yaer": 2020},
    {"or": [{"year": 2020}, {"yaer": 2020}]},
    {"not": {"yaer": 2020}},
    {"or": [{"year": {"exists": True}}, {"and": [{"not": {"not": {"yaer": {"in": []}}}}]}]},
]


@pytest.mark.parametrize("asked", UNKNOWN)
def test_a_filter_on_a_field_of_no_document_is_refused_at_any_depth(
    world: World, collection: Collection, asked: dict[str, Any]
) -> None:
    calls = world.embedder.calls
    for ask in (world.engine.retrieve, world.engine.compare):
        with pytest.raises(InvalidArgument, match="'yaer'") as refused:
            ask(ACME, question(asked))
        assert refused.value.extras["field"] == "filter"
    assert world.embedder.calls == calls, "a refused query is not embedded"


def test_an_unknown_operator_is_refused_before_anything_is_embedded(world: World, collection: Collection) -> None:
    calls = world.embedder.calls
    with pytest.raises(InvalidArgument, match="'near'"):
        world.engine.retrieve(ACME, question({"year": {"near": 2020}}))
    assert world.embedder.calls == calls


def test_a_field_is_known_only_in_collections_whose_documents_have_had_it(world: World, collection: Collection) -> None:
    other = world.collection("other")
    world.ingest(other, "red five", attributes={"colour": "red"})
    assert found(world.engine.retrieve(ACME, question({"colour": "red"}))) == {"red five"}
    assert found(world.engine.retrieve(ACME, question({"year": 2020}))) == {"red two"}
    assert found(world.engine.retrieve(ACME, question({"colour": "red"}, collections=[other.id]))) == {"red five"}
    with pytest.raises(InvalidArgument, match="'colour'"):
        world.engine.retrieve(ACME, question({"colour": "red"}, collections=[collection.id]))


def test_another_tenants_fields_are_unknown(world: World, collection: Collection) -> None:
    theirs = world.collection("notes", tenant=GLOBEX)
    world.ingest(theirs, "red", tenant=GLOBEX, attributes={"secret": 1})
    with pytest.raises(InvalidArgument):
        world.engine.retrieve(ACME, question({"secret": 1}))
    with pytest.raises(InvalidArgument):
        world.engine.retrieve(GLOBEX, question({"year": 2020}))


def test_a_field_stays_known_after_its_documents_are_gone(world: World, collection: Collection) -> None:
    world.engine.documents.delete_source(ACME, collection.id, "red one", world.deadline())
    assert found(world.engine.retrieve(ACME, question({"tags": "a"}))) == set()


def test_a_field_that_another_process_added_is_known(world: World, collection: Collection) -> None:
    world.engine.retrieve(ACME, question({"year": 2020}))
    Fields(world.stores.table).add(ACME, collection.id, ["colour"])
    assert found(world.engine.retrieve(ACME, question({"colour": "red"}))) == set()


# -- field names ------------------------------------------------------------------------


def test_two_processes_that_add_field_names_at_the_same_time_lose_none(world: World, collection: Collection) -> None:
    one, other = Fields(world.stores.table), Fields(world.stores.table)
    one.add(ACME, collection.id, ["a"])
    other.add(ACME, collection.id, ["b"])
    one.add(ACME, collection.id, ["c"])
    assert Fields(world.stores.table).unknown(ACME, [collection.id], ["a", "b", "c", "year", "d"]) == ["d"]


def test_field_names_that_another_writer_adds_in_between_are_kept(
    world: World, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, other = world.stores.table, Fields(world.stores.table)
    read = rows.get

    def read_and_be_overtaken(key: Key) -> Item | None:
        item = read(key)
        monkeypatch.setattr(rows, "get", read)
        other.add(ACME, collection.id, ["b"])
        return item

    monkeypatch.setattr(rows, "get", read_and_be_overtaken)
    Fields(rows).add(ACME, collection.id, ["a"])
    assert Fields(rows).unknown(ACME, [collection.id], ["a", "b", "year"]) == []


def test_field_names_that_are_known_cause_no_write(world: World, collection: Collection) -> None:
    fields = Fields(world.stores.table)
    fields.add(ACME, collection.id, ["a", "b"])
    before = world.rows()
    fields._table = None  # type: ignore[assignment]  # no request can be made
    fields.add(ACME, collection.id, ["b"])
    fields.add(ACME, collection.id, [])
    assert fields.unknown(ACME, [collection.id], ["a"]) == []
    assert world.rows() == before


def test_a_document_with_too_many_new_field_names_fails_with_that_reason(world: World, collection: Collection) -> None:
    held = 4
    Fields(world.stores.table).add(ACME, collection.id, [f"n{number}" for number in range(MAX_FIELDS - held)])
    calls = world.embedder.calls
    with pytest.raises(InvalidArgument, match="1000") as refused:
        world.ingest(collection, "red five", attributes={"one too many": 1})
    assert refused.value.extras["field"] == "attributes"
    assert world.embedder.calls == calls, "the document is refused before its chunks are embedded"
    world.ingest(collection, "red six", attributes={"year": 2020, "n1": 1})


# -- reasons ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "code", "filtered", "attribute"),
    [
        ({"year": {"gte": 2020}}, ReasonCode.FILTERED_OUT, 2, None),
        ({"year": {"gte": 3000}}, ReasonCode.FILTERED_OUT, 4, None),
        ({"year": {"in": []}}, ReasonCode.UNKNOWN_ATTRIBUTE_VALUE, None, "year"),
        ({"lang": "fr"}, ReasonCode.UNKNOWN_ATTRIBUTE_VALUE, None, "lang"),
        ({"year": 2020, "lang": {"in": ["fr", "it"]}}, ReasonCode.UNKNOWN_ATTRIBUTE_VALUE, None, "lang"),
        ({"year": 2019, "lang": "de"}, ReasonCode.FILTERED_OUT, 4, None),
        ({"lang": {"in": ["fr", "de"]}}, ReasonCode.FILTERED_OUT, 3, None),
        ({"not": {"lang": {"ne": "fr"}}}, ReasonCode.FILTERED_OUT, 4, None),
        ({"year": {"exists": True}}, ReasonCode.FILTERED_OUT, 1, None),
        ({"lang": {"ne": "fr"}}, ReasonCode.FEWER_THAN_TOP_K, None, None),
        ({}, ReasonCode.FEWER_THAN_TOP_K, None, None),
    ],
)
def test_an_answer_below_top_k_says_how_many_chunks_the_filter_left(
    world: World,
    collection: Collection,
    asked: dict[str, Any],
    code: ReasonCode,
    filtered: int | None,
    attribute: str | None,
) -> None:
    for ask in (world.engine.retrieve, world.engine.compare):
        why = reason(ask(ACME, question(asked)))
        assert (why.code, why.filtered, why.attribute) == (code, filtered, attribute)


def test_an_answer_with_top_k_hits_has_no_reason_and_counts_no_chunks(
    world: World, collection: Collection, vectors: MeddlingVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "matching", None)
    assert world.engine.retrieve(ACME, question({"lang": "en"}, top_k=2)).reason is None


def test_min_score_comes_before_the_filter_as_the_reason(world: World, collection: Collection) -> None:
    why = reason(world.engine.retrieve(ACME, question({"lang": "en"}, min_score=0.99)))
    assert why.code == ReasonCode.BELOW_MIN_SCORE


def test_a_filter_that_left_out_no_chunk_is_not_the_reason(world: World) -> None:
    empty = world.collection("empty")
    Fields(world.stores.table).add(ACME, empty.id, ["year"])
    why = reason(world.engine.retrieve(ACME, question({"year": 1}, collections=[empty.id])))
    assert why.code == ReasonCode.NO_DOCUMENTS

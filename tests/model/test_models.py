"""What callers may say: names, source keys, versions, settings of a collection."""

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.model.base import rfc3339
from core.model.collection import CollectionUpdate, NewCollection
from core.model.document import normalize_source_version, source_id, validate_source_key
from core.model.errors import InvalidArgument
from core.model.ids import CollectionId
from core.model.ingest import IngestInput
from core.model.page import PageRequest
from core.model.query import RetrieveQuery

COLLECTION = CollectionId.new(1, 1)


def test_times_are_rfc_3339_in_utc_with_milliseconds() -> None:
    zone = timezone(timedelta(hours=2))
    assert rfc3339(datetime(2026, 11, 30, 11, 15, 0, 123999, tzinfo=zone)) == "2026-11-30T09:15:00.123Z"


@pytest.mark.parametrize("name", ["notes", "  notes  ", "\tnotes\n", "\u3000notes\u00a0"])
def test_a_collections_name_is_trimmed(name: str) -> None:
    assert NewCollection(name=name).name == "notes"
    assert CollectionUpdate(name=name).name == "notes"


@pytest.mark.parametrize("name", ["", "   ", "\n\t", "\u3000", "x" * 251, "\ud800"])
def test_a_blank_or_too_long_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="name"):
        NewCollection(name=name)
    with pytest.raises(ValidationError, match="name"):
        CollectionUpdate(name=name)


@pytest.mark.parametrize(
    "fields",
    [
        {"chunk_size": 0},
        {"chunk_size": -1},
        {"chunk_overlap": -1},
        {"chunk_size": "512"},
        {"chunk_size": 5.0},
        {"chunk_size": True},
        {"metadata": {"": "x"}},
        {"metadata": {"k": 1}},
        {"metadata": {"k": "x" * 4097}},
        {"metadata": {f"k{i}": "" for i in range(65)}},
        {"description": "x" * 4097},
        {"embedding_dims": 3},
        {"tenant": "acme"},
    ],
)
def test_wrong_settings_of_a_collection_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(fields))):
        NewCollection.model_validate({"name": "notes", **fields})


@pytest.mark.parametrize(
    "field", ["chunk_size", "chunk_overlap", "embedding_model", "chunk_strategy", "embedding_dims"]
)
def test_an_update_cannot_change_what_chunks_were_made_by(field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        CollectionUpdate.model_validate({field: 1})


@pytest.mark.parametrize("key", ["a", "s3://bucket/a b.txt", "ключ", " a ", "x" * 1024, "é" * 512, "a#b/../c\n"])
def test_a_source_key_is_1_to_1024_bytes(key: str) -> None:
    assert validate_source_key(key) == key


@pytest.mark.parametrize("key", ["", " ", "\t\n", "\u3000", "x" * 1025, "é" * 513, "\ud800"])
def test_a_blank_too_long_or_broken_source_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        validate_source_key(key)
    assert refused.value.extras["field"] == "source_key"
    with pytest.raises((InvalidArgument, ValidationError)):
        IngestInput(collection_id=COLLECTION, content=b"x", source_key=key)


def test_a_sources_id_is_the_hash_of_its_key() -> None:
    assert source_id("a") == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"


@given(st.integers(0, 16**64 - 1), st.integers(0, 16**64 - 1))
def test_source_versions_compare_as_numbers_whatever_their_length_and_case(one: int, other: int) -> None:
    first, second = normalize_source_version(f"{one:X}"), normalize_source_version(f"{other:x}")
    assert (first < second) == (one < other)
    assert (first == second) == (one == other)


@pytest.mark.parametrize("version", ["", "g", "0x1", "1" * 65, "-1", "1 ", "1\n"])
def test_a_source_version_is_1_to_64_hex_digits(version: str) -> None:
    with pytest.raises(ValidationError, match="source_version"):
        IngestInput(collection_id=COLLECTION, content=b"x", source_key="a", source_version=version)


def test_content_is_not_shown_when_an_input_is_printed() -> None:
    assert "secret" not in repr(IngestInput(collection_id=COLLECTION, content=b"secret"))


@pytest.mark.parametrize("limit", [0, -1, 101])
def test_a_page_has_1_to_100_items(limit: int) -> None:
    with pytest.raises(ValidationError, match="limit"):
        PageRequest(limit=limit)


@pytest.mark.parametrize(
    "fields",
    [
        {"strategy": "semantic"},
        {"min_score": float("nan")},
        {"collections": []},
        {"collections": [CollectionId.new(number, number) for number in range(101)]},
        {"collections": ["doc_01kdvdna00fggt57vfqvc2r1yd"]},
        {"fitler": {}},
    ],
)
def test_a_question_with_an_unknown_strategy_or_option_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(fields))):
        RetrieveQuery.model_validate({"query": "q", **fields})

"""Chunk and lineage, as the seeds have them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from core.model.chunk import Attributes, Chunk, Lineage
from core.model.ids import ChunkId, DocumentId

DOCUMENT = DocumentId.new(1, 1)


@dataclass
class Foreign:
    """Another library's chunk."""

    text: str = "some text"
    start_index: int = 3
    end_index: int = 12


@dataclass
class Rich(Foreign):
    char_count: int = 9
    context: str | None = "Guide > Setup"
    origin: str | None = "guide.md"
    attributes: Mapping[str, Any] | None = field(default_factory=lambda: {"year": 2020})


class Convertible:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.text, self.start_index, self.end_index = "own text", 0, 8

    def to_chunk(self) -> Any:
        return self.answer


def test_a_foreign_chunk_needs_text_and_offsets() -> None:
    made = Chunk.from_any(Foreign())
    assert (made.text, made.start_index, made.end_index, made.char_count) == ("some text", 3, 12, 9)
    assert (made.context, made.origin, made.attributes, made.lineage) == (None, None, {}, None)


def test_what_else_a_foreign_chunk_has_is_read() -> None:
    foreign = Rich()
    made = Chunk.from_any(foreign)
    assert (made.char_count, made.context, made.origin) == (9, "Guide > Setup", "guide.md")
    assert made.attributes == {"year": 2020}
    assert made.attributes is not foreign.attributes, "attributes are a copy"


def test_absent_attributes_and_counts_have_their_defaults() -> None:
    made = Chunk.from_any(Rich(context=None, origin=None, attributes=None))
    assert (made.attributes, made.context, made.origin) == ({}, None, None)


def test_to_chunk_wins_over_fields() -> None:
    own = Chunk(text="made", start_index=0, end_index=4, char_count=4)
    assert Chunk.from_any(Convertible(own)) is own


def test_to_chunk_must_return_a_chunk() -> None:
    with pytest.raises(TypeError, match=r"Convertible.to_chunk\(\) returned dict"):
        Chunk.from_any(Convertible({"text": "x"}))


@pytest.mark.parametrize("other", [{"text": "x", "start_index": 0, "end_index": 1}, "text", 7, None, object()])
def test_anything_else_is_a_type_error_that_names_the_type(other: Any) -> None:
    with pytest.raises(TypeError, match=type(other).__name__):
        Chunk.from_any(other)


def test_a_field_that_to_chunk_is_not_a_function_does_not_convert() -> None:
    foreign = Foreign()
    foreign.to_chunk = "no function"  # type: ignore[attr-defined]  # another library's field of that name
    assert Chunk.from_any(foreign).text == "some text"


def test_a_chunk_is_frozen_and_closed() -> None:
    made = Chunk.from_any(Foreign())
    with pytest.raises(ValidationError):
        made.text = "other"  # type: ignore[misc]  # it is frozen: that is what is tested
    with pytest.raises(ValidationError):
        Chunk.model_validate({**made.model_dump(), "pages": 3})


def test_splitting_stamps_a_lineage_with_an_empty_chain() -> None:
    lineage = Lineage.from_split(DOCUMENT, 2, 12, "recursive")
    assert (lineage.parent_id, lineage.chunk_index, lineage.total_chunks) == (DOCUMENT, 2, 12)
    assert (lineage.splitter, lineage.chunker_chain) == ("recursive", ())


def test_each_chunker_appends_its_name_and_changes_nothing_else() -> None:
    lineage = Lineage.from_split(DOCUMENT, 0, 1, "recursive")
    longer = lineage.push_chunker("contextual").push_chunker("hyde")
    assert longer.chunker_chain == ("contextual", "hyde")
    assert longer.model_copy(update={"chunker_chain": ()}) == lineage
    assert lineage.chunker_chain == ()


@pytest.mark.parametrize("parent", [DOCUMENT, ChunkId.of(DOCUMENT, 1, 0)])
def test_a_lineage_survives_json_whatever_its_parent(parent: DocumentId | ChunkId) -> None:
    lineage = Lineage.from_split(parent, 0, 1, "markdown").push_chunker("contextual")
    assert Lineage.model_validate_json(lineage.model_dump_json()) == lineage


attributes: TypeAdapter[dict[str, Any]] = TypeAdapter(Attributes)


@pytest.mark.parametrize("value", [True, 0, -7, 2.5, "", "text", [], ["a", "b"]])
def test_attributes_are_booleans_numbers_texts_and_lists_of_texts(value: Any) -> None:
    kept = attributes.validate_python({"name": value})["name"]
    assert kept == value
    assert type(kept) is type(value)


def test_a_date_becomes_text_with_its_zone() -> None:
    moment = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    assert attributes.validate_python({"at": moment}) == {"at": "2026-01-02T03:04:00+00:00"}


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"a": 1},
        [1],
        [["a"]],
        float("nan"),
        float("inf"),
        b"bytes",
        "x" * 1025,
        ["a"] * 65,
        datetime(2026, 1, 2),
        date,
    ],
)
def test_other_values_are_no_attributes(value: Any) -> None:
    with pytest.raises(ValidationError):
        attributes.validate_python({"name": value})


@pytest.mark.parametrize("names", [[""], ["x" * 129], [f"n{i}" for i in range(65)]])
def test_names_have_1_to_128_characters_and_there_are_at_most_64(names: list[str]) -> None:
    with pytest.raises(ValidationError):
        attributes.validate_python(dict.fromkeys(names, 1))

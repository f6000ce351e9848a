"""Identifiers: TypeIDs whose low bits are spoken for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.clock import new_id
from core.model.base import Model
from core.model.errors import InvalidArgument
from core.model.ids import MAX_ATTEMPT, MAX_CHUNKS, ChunkId, CollectionId, DocumentId, TypeId, UploadId, generation
from tests.support.clock import ManualClock

KINDS = (CollectionId, DocumentId, ChunkId, UploadId)
times = st.integers(0, 2**48 - 1)
bits = st.integers(0, 2**74 - 1)
documents = st.builds(DocumentId.new, times, bits)
attempts = st.integers(1, MAX_ATTEMPT)
indexes = st.integers(0, MAX_CHUNKS - 1)


@given(st.sampled_from(KINDS), times, bits)
def test_an_identifier_survives_the_round_trip_through_text_and_number(
    kind: type[TypeId], time: int, random: int
) -> None:
    made = kind.new(time, random)
    assert kind(str(made)) == made
    assert kind.from_int(made.to_int()) == made
    assert len(made) == len(kind.prefix) + 1 + 26


@given(times, bits)
def test_an_identifier_is_a_uuid_of_version_7_with_the_time_in_front(time: int, random: int) -> None:
    number = CollectionId.new(time, random).to_int()
    assert number >> 80 == time
    assert number >> 76 & 0xF == 7
    assert number >> 62 & 0b11 == 0b10


@given(st.lists(st.tuples(times, bits), min_size=2, max_size=10))
def test_identifiers_sort_as_text_like_their_times(parts: list[tuple[int, int]]) -> None:
    made = [DocumentId.new(*one) for one in parts]
    assert [one.to_int() >> 80 for one in sorted(made)] == sorted(time for time, _ in parts)


@given(st.sampled_from(KINDS), st.sampled_from(KINDS), times)
def test_another_prefix_is_refused(kind: type[TypeId], other: type[TypeId], time: int) -> None:
    if kind is other:
        return
    with pytest.raises(InvalidArgument, match=f"{kind.prefix}_"):
        kind(other.new(time, 0))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "col",
        "col_",
        "col_01kdvdna00fggt57vfqvc2r1y",
        "col_01kdvdna00fggt57vfqvc2r1ydd",
        "col_01KDVDNA00FGGT57VFQVC2R1YD",
        "col_81kdvdna00fggt57vfqvc2r1yd",
        "col_01kdvdna00fggt57vfqvc2r1yu",
        "col_01kdvdna00fggt57vfqvc2r1y#",
        "col_01kdvdna00fggt57vfqvc2r1yd\n",
        " col_01kdvdna00fggt57vfqvc2r1yd",
        "Col_01kdvdna00fggt57vfqvc2r1yd",
        "col_٠1kdvdna00fggt57vfqvc2r1yd",
    ],
)
def test_text_of_another_form_is_no_identifier(text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        CollectionId(text)
    assert refused.value.extras == {"field": "col_id"}


def test_a_number_over_128_bits_is_no_identifier() -> None:
    with pytest.raises(InvalidArgument):
        CollectionId.from_int(2**128)


@given(documents)
def test_a_documents_low_24_bits_are_zero(document: DocumentId) -> None:
    assert document.to_int() % 2**24 == 0


@given(documents, st.integers(1, 2**24 - 1))
def test_an_identifier_with_low_bits_is_no_documents(document: DocumentId, low: int) -> None:
    text = "doc_" + ChunkId.from_int(document.to_int() | low).removeprefix("chk_")
    with pytest.raises(InvalidArgument):
        DocumentId(text)


@given(documents, attempts, indexes)
def test_a_chunks_identifier_gives_its_document_attempt_and_index(
    document: DocumentId, attempt: int, index: int
) -> None:
    chunk = ChunkId.of(document, attempt, index)
    assert (chunk.document_id, chunk.attempt, chunk.chunk_index) == (document, attempt, index)
    assert ChunkId(str(chunk)) == chunk
    assert chunk.generation == generation(document, attempt)


@given(documents, attempts, st.lists(indexes, min_size=2, max_size=10))
def test_chunks_sort_in_document_order(document: DocumentId, attempt: int, order: list[int]) -> None:
    made = [ChunkId.of(document, attempt, index) for index in order]
    assert [one.chunk_index for one in sorted(made)] == sorted(order)


@given(documents, documents, attempts, attempts, indexes, indexes)
def test_two_chunks_share_no_identifier(
    one: DocumentId, other: DocumentId, first: int, second: int, index: int, place: int
) -> None:
    same = (one, first, index) == (other, second, place)
    assert (ChunkId.of(one, first, index) == ChunkId.of(other, second, place)) == same
    assert (generation(one, first) == generation(other, second)) == ((one, first) == (other, second))


@pytest.mark.parametrize(("attempt", "index"), [(0, 0), (MAX_ATTEMPT + 1, 0), (1, -1), (1, MAX_CHUNKS)])
def test_a_chunks_identifier_holds_15_attempts_and_a_million_chunks(attempt: int, index: int) -> None:
    with pytest.raises(ValueError, match="attempt"):
        ChunkId.of(DocumentId.new(1, 1), attempt, index)


def test_a_model_names_the_place_of_a_wrong_identifier() -> None:
    class Body(Model):
        collection_id: CollectionId

    with pytest.raises(ValueError, match="collection_id") as refused:
        Body.model_validate({"collection_id": "doc_01kdvdna00fggt57vfqvc2r1yd"})
    assert "Not an identifier of the form col_" in str(refused.value)


def test_a_new_identifier_is_of_now_and_of_its_own() -> None:
    clock = ManualClock()
    first, second = new_id(CollectionId, clock), new_id(CollectionId, clock)
    clock.advance(0.001)
    later = new_id(CollectionId, clock)
    assert first != second
    assert later > max(first, second)
    assert first.to_int() >> 80 == int(clock.now().timestamp() * 1000) - 1

"""Errors are part of the interface."""

from collections import Counter

import pytest

from core.model import errors
from core.model.errors import NotFound, WeftError

ALL = [
    error
    for error in vars(errors).values()
    if isinstance(error, type) and issubclass(error, WeftError) and error not in (WeftError, NotFound)
]

# Section 2 of the specification.
STATUS = {
    "invalid_argument": 400,
    "empty_content": 400,
    "tenant_required": 403,
    "collection_not_found": 404,
    "document_not_found": 404,
    "chunk_not_found": 404,
    "collection_already_exists": 409,
    "duplicate_document": 409,
    "version_conflict": 409,
    "ingest_interrupted": 409,
    "stale_ranking": 409,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "not_configured": 503,
    "unavailable": 503,
}


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_has_a_code_a_status_and_a_title(error: type[WeftError]) -> None:
    assert error.code == error.code.lower()
    assert " " not in error.code
    assert 400 <= error.status <= 599
    assert error.title


def test_no_two_errors_share_a_code_but_for_a_kind_that_callers_need_not_tell_apart() -> None:
    counted = Counter(error.code for error in ALL if error is not errors.NotYetSearchable)
    assert [code for code, count in counted.items() if count > 1] == []


def test_the_specified_errors_have_their_status() -> None:
    statuses = {error.code: error.status for error in ALL}
    assert {code: statuses.get(code) for code in STATUS} == STATUS


def test_a_stale_ranking_is_a_chunk_not_found() -> None:
    assert issubclass(errors.StaleRanking, errors.ChunkNotFound)


def test_what_a_caller_needs_to_act_on_goes_with_the_error() -> None:
    assert errors.Unavailable("busy", retry_after_s=7).extras == {"retry_after_s": 7}
    assert errors.Unavailable("busy").extras["retry_after_s"] > 0
    duplicate = errors.DuplicateDocument("known", document_id="doc_1")
    assert duplicate.extras == {"document_id": "doc_1"}
    assert str(duplicate) == duplicate.detail == "known"

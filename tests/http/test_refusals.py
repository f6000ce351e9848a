"""Wrong input: refused by name, with nothing written and nothing embedded."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from core.model.ids import ChunkId, CollectionId, DocumentId
from core.wiring import s3_client
from tests.support.embedder import HashedEmbedder
from tests.support.engines import World, make_world
from tests.support.gateway import Api, refused, served
from tests.support.handlers import SETTINGS, Scan

MISSING_COLLECTION = CollectionId.new(1_780_000_000_000, 1 << 30)
MISSING_CHUNK = ChunkId.of(DocumentId.new(1_780_000_000_000, 1 << 40), 1, 0)
NEW_UPLOAD = {"source_key": "books/looms.md", "title": "Looms", "attributes": {"year": 2024}, "size": 1000}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One engine for all of them: what is refused leaves nothing behind."""
    with mock_aws():
        world = make_world(settings=SETTINGS, s3=s3_client())
        yield world
        world.vectors.close()


@pytest.fixture(scope="module")
def api(world: World) -> Iterator[Api]:
    with served(world.engine):
        yield Api()


@pytest.fixture(scope="module")
def collection(api: Api) -> str:
    identifier: str = api.post("/v1/collections", {"name": "handbook"}).json["id"]
    return identifier


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "   "}, "name"),
        ({"name": None}, "name"),
        ({"name": 5}, "name"),
        ({"name": "x" * 257}, "name"),
        ({"name": "a", "chunk_size": 0}, "chunk_size"),
        ({"name": "a", "chunk_size": -1}, "chunk_size"),
        ({"name": "a", "chunk_size": "100"}, "chunk_size"),
        ({"name": "a", "chunk_size": True}, "chunk_size"),
        ({"name": "a", "chunk_size": 100.0}, "chunk_size"),
        ({"name": "a", "chunk_overlap": -1}, "chunk_overlap"),
        ({"name": "a", "chunk_size": 50, "chunk_overlap": 50}, "chunk_overlap"),
        ({"name": "a", "chunk_strategy": "magic"}, "chunk_strategy"),
        ({"name": "a", "embedding_model": "magic"}, "embedding_model"),
        ({"name": "a", "metadata": {"n": 1}}, "metadata.n"),
        ({"name": "a", "metadata": {str(n): "" for n in range(65)}}, "metadata"),
        ({"name": "a", "description": "x" * 4097}, "description"),
        ({"name": "a", "embedding_dims": 3}, "embedding_dims"),
        ({"name": "a", "id": MISSING_COLLECTION}, "id"),
    ],
)
def test_a_wrong_collection_is_refused_and_nothing_is_written(
    api: Api, scan: Scan, body: dict[str, object], field: str
) -> None:
    before = scan()
    refused(api.post("/v1/collections", body), 400, "invalid_argument", field)
    assert scan() == before


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({}, 400, "invalid_argument", "content"),
        ({"content": "a", "content_base64": "YQ=="}, 400, "invalid_argument", "content"),
        ({"content": 5}, 400, "invalid_argument", "content"),
        ({"content": ["a"]}, 400, "invalid_argument", "content"),
        ({"content_base64": "not base64!"}, 400, "invalid_argument", "content_base64"),
        ({"content_base64": "YQ"}, 400, "invalid_argument", "content_base64"),
        ({"content": ""}, 400, "empty_content", None),
        ({"content": " \n\t "}, 400, "empty_content", None),
        ({"content_base64": ""}, 400, "empty_content", None),
        ({"content": "x" * (256 * 1024 + 1)}, 413, "payload_too_large", None),
        ({"content": "ü" * (128 * 1024 + 1)}, 413, "payload_too_large", None),
        ({"content_base64": base64.b64encode(bytes(256 * 1024 + 1)).decode()}, 413, "payload_too_large", None),
        ({"content": "a", "source_type": "application/zip"}, 415, "unsupported_media_type", None),
        ({"content": "a", "source_type": ""}, 415, "unsupported_media_type", None),
        ({"content": "a", "source_type": "text/plain; charset=latin-1"}, 400, "invalid_argument", "source_type"),
        ({"content_base64": "/////w=="}, 415, "unsupported_media_type", None),
        ({"content": "a", "source_key": ""}, 400, "invalid_argument", "source_key"),
        ({"content": "a", "source_key": "  "}, 400, "invalid_argument", "source_key"),
        ({"content": "a", "source_key": "ü" * 513}, 400, "invalid_argument", "source_key"),
        ({"content": "a", "source_version": "1"}, 400, "invalid_argument", "source_version"),
        ({"content": "a", "source_key": "k", "source_version": "xyz"}, 400, "invalid_argument", "source_version"),
        ({"content": "a", "source_key": "k", "source_version": "1" * 65}, 400, "invalid_argument", "source_version"),
        ({"content": "a", "title": "x" * 1025}, 400, "invalid_argument", "title"),
        ({"content": "a", "source": "x" * 2049}, 400, "invalid_argument", "source"),
        ({"content": "a", "metadata": {"n": 5}}, 400, "invalid_argument", "metadata.n"),
        ({"content": "a", "attributes": {"n": None}}, 400, "invalid_argument", None),
        ({"content": "a", "attributes": {"n": {"m": 1}}}, 400, "invalid_argument", None),
        ({"content": "a", "attributes": {"n": 2**63}}, 400, "invalid_argument", None),
        ({"content": "a", "attributes": {"n": ["a", 1]}}, 400, "invalid_argument", None),
        ({"content": "a", "attributes": {"": "x"}}, 400, "invalid_argument", None),
        ({"content": "a", "attributes": {"a\u001fb": "x"}}, 400, "invalid_argument", None),
        ({"content": "a", "attributes": {"ü" * 65: "x"}}, 400, "invalid_argument", None),
        ({"content": "a", "attributes": {"n": "ü" * 513}}, 400, "invalid_argument", None),
        ({"content": "a", "attributes": {"n": -(2**63) - 1}}, 400, "invalid_argument", None),
        ({"content": "a", "attributes": {str(n): n for n in range(65)}}, 400, "invalid_argument", "attributes"),
        ({"content": "a", "attributes": {str(n): ["x" * 1024] * 2 for n in range(64)}}, 400, "invalid_argument", None),
        ({"content": "a", "collection_id": "x"}, 400, "invalid_argument", "collection_id"),
        ({"content": "a", "version_sequence": "x"}, 400, "invalid_argument", "version_sequence"),
        ({"content": "a", "tenant": "other"}, 400, "invalid_argument", "tenant"),
    ],
)
def test_a_wrong_document_is_refused_and_nothing_is_written(
    api: Api,
    scan: Scan,
    collection: str,
    hashed: HashedEmbedder,
    body: dict[str, Any],
    status: int,
    code: str,
    field: str | None,
) -> None:
    before = scan()
    refused(api.post(f"/v1/collections/{collection}/documents", body), status, code, field)
    assert scan() == before
    assert hashed.embedded == []


@pytest.mark.parametrize(
    "documents", [[], [{"content": "a"}] * 101, None, {"content": "a"}], ids=["none", "101", "null", "object"]
)
def test_a_batch_holds_1_to_100_documents(api: Api, scan: Scan, collection: str, documents: Any) -> None:
    before = scan()
    answer = api.post(f"/v1/collections/{collection}/documents/batch", {"documents": documents})
    refused(answer, 400, "invalid_argument", "documents")
    assert scan() == before


@pytest.mark.parametrize("query", [{}, {"key": ""}, {"key": "  "}, {"key": "x" * 1025}], ids=str)
def test_a_source_is_not_deleted_by_a_key_that_is_none(
    api: Api, scan: Scan, collection: str, query: dict[str, str]
) -> None:
    before = scan()
    refused(api.delete(f"/v1/collections/{collection}/sources", **query), 400, "invalid_argument", "key")
    assert scan() == before


@pytest.mark.parametrize(
    ("query", "field"),
    [({"source_key": "looms.md"}, None), ({"state": "lost"}, "state"), ({"collection_id": "x"}, "collection_id")],
)
def test_a_wrong_listing_of_documents_is_refused(api: Api, query: dict[str, str], field: str | None) -> None:
    refused(api.get("/v1/documents", **query), 400, "invalid_argument", field)


def test_a_listing_of_chunks_needs_a_collection_or_a_document(api: Api) -> None:
    refused(api.get("/v1/chunks"), 400, "invalid_argument")


@pytest.mark.parametrize(
    ("change", "status", "code", "field"),
    [
        ({"source_key": None}, 400, "invalid_argument", "source_key"),
        ({"source_key": ""}, 400, "invalid_argument", "source_key"),
        ({"source_key": "x" * 1000}, 400, "invalid_argument", "source_key"),
        ({"source_key": "../other"}, 400, "invalid_argument", "source_key"),
        ({"source_key": "a/./b"}, 400, "invalid_argument", "source_key"),
        ({"source_key": "a/.."}, 400, "invalid_argument", "source_key"),
        ({"source_key": "a\nb.md"}, 400, "invalid_argument", "source_key"),
        ({"source_key": "a\u0000.md"}, 400, "invalid_argument", "source_key"),
        ({"source_key": "a\u0085.md"}, 400, "invalid_argument", "source_key"),
        ({"source_type": "text/plain\r\nx-evil: 1"}, 400, "invalid_argument", "source_type"),
        ({"source_type": "nonsense"}, 400, "invalid_argument", "source_type"),
        ({"source_type": "text/plain; charset=ü"}, 400, "invalid_argument", "source_type"),
        ({"source_type": "application/zip"}, 415, "unsupported_media_type", None),
        ({"source_key": "looms.zip"}, 415, "unsupported_media_type", None),
        ({"size": 0}, 400, "invalid_argument", "size"),
        ({"size": -1}, 400, "invalid_argument", "size"),
        ({"size": "1000"}, 400, "invalid_argument", "size"),
        ({"size": None}, 400, "invalid_argument", "size"),
        ({"size": 10 * 1024 * 1024 + 1}, 413, "payload_too_large", None),
        ({"metadata": {}}, 400, "invalid_argument", "metadata"),
        ({"tenant": "other"}, 400, "invalid_argument", "tenant"),
    ],
)
def test_a_wrong_upload_is_refused_and_nothing_is_written(
    api: Api, scan: Scan, collection: str, change: dict[str, Any], status: int, code: str, field: str | None
) -> None:
    before = scan()
    answer = api.post(f"/v1/collections/{collection}/uploads", {**NEW_UPLOAD, **change})
    refused(answer, status, code, field)
    assert scan() == before


BAD_OPTIONS: list[tuple[Any, str]] = [
    ([], "options"),
    ("explain", "options"),
    ({"explained": True}, "options.explained"),
    ({"explain": "yes"}, "options.explain"),
    ({"explain": 1}, "options.explain"),
    ({"mmr_lambda": -0.01}, "options.mmr_lambda"),
    ({"mmr_lambda": 1.01}, "options.mmr_lambda"),
    ({"mmr_lambda": "0.5"}, "options.mmr_lambda"),
    ({"lambda": 0.5}, "options.lambda"),
    ({"rrf_k": 0}, "options.rrf_k"),
    ({"rrf_k": -60}, "options.rrf_k"),
    ({"rrf_k": 10_001}, "options.rrf_k"),
    ({"rrf_k": 60.5}, "options.rrf_k"),
    ({"rrf_k": "60"}, "options.rrf_k"),
    ({"weights": {"vector": -1}}, "options.weights.vector"),
    ({"weights": {"bm25": -0.001, "vector": 1}}, "options.weights.bm25"),
    ({"weights": {"vector": 1001}}, "options.weights.vector"),
    ({"weights": {"vector": 0, "bm25": 0}}, "options.weights"),
    ({"weights": {"vector": True}}, "options.weights.vector"),
    ({"weights": {"rerank": 1}}, "options.weights.rerank"),
    ({"weights": [1, 1]}, "options.weights"),
    ({"first_stage": "rerank"}, "options.first_stage"),
    ({"first_stage": "magic"}, "options.first_stage"),
    ({"fuse": "no"}, "options.fuse"),
    ({"fallback": 1}, "options.fallback"),
]


BAD_QUERIES = [
    ({}, "query"),
    ({"query": ""}, "query"),
    ({"query": "   "}, "query"),
    ({"query": 5}, "query"),
    ({"query": "x" * 8193}, "query"),
    ({"query": "a", "top_k": 0}, "top_k"),
    ({"query": "a", "top_k": 101}, "top_k"),
    ({"query": "a", "top_k": -1}, "top_k"),
    ({"query": "a", "top_k": "10"}, "top_k"),
    ({"query": "a", "top_k": "ten"}, "top_k"),
    ({"query": "a", "top_k": True}, "top_k"),
    ({"query": "a", "top_k": 1.0}, "top_k"),
    ({"query": "a", "top_k": None}, "top_k"),
    ({"query": "a", "top_k": 10**30}, "top_k"),
    ({"query": "a", "min_score": "0.5"}, "min_score"),
    ({"query": "a", "min_score": True}, "min_score"),
    ({"query": "a" * 2**20}, "query"),
    ({"query": "\x00\n\t "}, "query"),
    ({"query": "a", "min_score": "high"}, "min_score"),
    ({"query": "a", "min_score": -1.01}, "min_score"),
    ({"query": "a", "min_score": 1.01}, "min_score"),
    ({"query": "a", "strategy": "mmr", "min_score": 1.01}, "min_score"),
    ({"query": "a", "strategy": "hybrid", "min_score": 0.5}, "min_score"),
    ({"query": "a", "strategy": "hybrid", "min_score": -0.1}, "min_score"),
    ({"query": "a", "strategy": ""}, "strategy"),
    ({"query": "a", "strategy": "magic"}, "strategy"),
    ({"query": "a", "strategy": "Hybrid"}, "strategy"),
    ({"query": "a", "strategy": ["hybrid"]}, "strategy"),
    ({"query": "a", "collections": []}, "collections"),
    ({"query": "a", "collections": "x"}, "collections"),
    ({"query": "a", "collections": ["x"]}, "collections.0"),
    ({"query": "a", "collections": [MISSING_COLLECTION] * 101}, "collections"),
    ({"query": "a", "filter": {"year": 2024}}, "filter"),
    ({"query": "a", "filter": {"or": [{"not": {"year": {"exists": False}}}]}}, "filter"),
    ({"query": "a", "filter": {"year": {"near": 2024}}}, "filter"),
    ({"query": "a", "filter": {"year": {"gte": None}}}, "filter"),
    ({"query": "a", "filter": {"year": {}}}, "filter"),
    ({"query": "a", "filter": {"year": 2**63}}, "filter"),
    ({"query": "a", "filter": {"": 1}}, "filter"),
    ({"query": "a", "filter": {"and": {}}}, "filter"),
    ({"query": "a", "filter": []}, "filter"),
    ({"query": "a", "filter": "year > 2024"}, "filter"),
    ({"query": "a", "filters": {"year": 2024}}, "filters"),
    *[
        ({"query": "a", "strategy": strategy, "options": options}, field)
        for strategy in ("hybrid", "similarity")
        for options, field in BAD_OPTIONS
    ],
    ({"query": "a", "tenant": "other"}, "tenant"),
]


BAD_ASSEMBLIES: list[tuple[str, Any]] = [
    ("expand", -1),
    ("expand", 11),
    ("expand", "1"),
    ("expand", True),
    ("expand", 1.5),
    ("max_tokens", 10_000_001),
    ("max_tokens", None),
    ("token_counter", "x"),
    ("token_counter", ""),
    ("token_counter", "x" * 257),
    ("token_counter", ["chars/4"]),
    ("tokens", 10),
]


@pytest.mark.parametrize(("name", "value"), [*BAD_ASSEMBLIES, ("refs", [])])
def test_a_wrong_assembly_of_hits_is_refused_before_anything_is_embedded(
    api: Api, hashed: HashedEmbedder, name: str, value: Any
) -> None:
    answer = api.post("/v1/retrieve", {"query": "a", "assemble": {name: value}})
    assert answer.json["field"] in (name, f"assemble.{name}")
    refused(answer, 400, "invalid_argument", answer.json["field"])
    assert hashed.calls == 0


def test_a_comparison_makes_no_context(api: Api) -> None:
    refused(api.post("/v1/compare", {"query": "a", "assemble": {}}), 400, "invalid_argument", "assemble")


@pytest.mark.parametrize("path", ["/v1/retrieve", "/v1/compare"])
@pytest.mark.parametrize(("body", "field"), BAD_QUERIES)
def test_a_wrong_question_is_refused_before_it_is_embedded(
    api: Api, scan: Scan, hashed: HashedEmbedder, path: str, body: dict[str, Any], field: str
) -> None:
    before = scan()
    refused(api.post(path, body), 400, "invalid_argument", field)
    assert hashed.calls == 0
    assert scan() == before


def test_a_first_stage_that_is_none_is_told_in_the_words_of_the_interface(api: Api) -> None:
    answer = api.post("/v1/retrieve", {"query": "a", "strategy": "rerank", "options": {"first_stage": "magic"}})
    assert answer.json["detail"] == "options.first_stage: Input should be 'similarity', 'mmr' or 'hybrid'"


@pytest.mark.parametrize("path", ["/v1/retrieve", "/v1/compare"])
@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"NaN", b"Infinity"])
def test_an_endless_number_is_refused(api: Api, path: str, number: bytes) -> None:
    for raw, field in (
        (b'{"query": "a", "min_score": %s}', "min_score"),
        (b'{"query": "a", "options": {"mmr_lambda": %s}}', "options.mmr_lambda"),
        (b'{"query": "a", "options": {"weights": {"vector": %s}}}', "options.weights.vector"),
    ):
        answer = api.call("POST", path, raw=raw % number)
        assert answer.json["field"] in (field, "body"), answer.text
        refused(answer, 400, "invalid_argument")


@pytest.mark.parametrize("path", ["/v1/retrieve", "/v1/compare"])
def test_a_question_that_is_no_text_is_refused(api: Api, path: str) -> None:
    refused(api.call("POST", path, raw=b'{"query": "\\ud800"}'), 400, "invalid_argument")


@pytest.mark.parametrize("path", ["/v1/retrieve", "/v1/compare"])
def test_what_a_refused_min_score_could_be_is_said(api: Api, path: str) -> None:
    answer = api.post(path, {"query": "a", "strategy": "hybrid", "min_score": 0.7})
    refused(answer, 400, "invalid_argument", "min_score")
    assert (answer.json["lowest"], answer.json["highest"]) == (0, 2 / 61)
    assert "rrf" in answer.json["detail"]


@pytest.mark.parametrize("path", ["/v1/retrieve", "/v1/compare"])
def test_without_a_reranker_reranking_is_not_configured(api: Api, hashed: HashedEmbedder, path: str) -> None:
    refused(api.post(path, {"query": "a", "strategy": "rerank"}), 503, "not_configured")
    assert hashed.calls == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "refs"),
        ({"refs": []}, "refs"),
        ({"refs": [{"chunk_id": MISSING_CHUNK}] * 101}, "refs"),
        ({"refs": [MISSING_CHUNK]}, "refs.0"),
        ({"refs": [{"chunk_id": "x"}]}, "refs.0.chunk_id"),
        ({"refs": [{"chunk_id": MISSING_CHUNK, "text": "x"}]}, "refs.0.text"),
        ({"refs": [{"chunk_id": MISSING_CHUNK}], "max_tokens": "10"}, "max_tokens"),
        ({"refs": [{"chunk_id": MISSING_CHUNK}] * 10_000}, "refs"),
        *[({"refs": [{"chunk_id": MISSING_CHUNK}], name: value}, name) for name, value in BAD_ASSEMBLIES],
    ],
)
def test_a_wrong_assembly_is_refused(api: Api, body: dict[str, Any], field: str) -> None:
    refused(api.post("/v1/assemble", body), 400, "invalid_argument", field)

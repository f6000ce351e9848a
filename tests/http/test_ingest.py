"""Documents over HTTP."""

import base64
from typing import Any

import pytest

from core.model.errors import Unavailable
from core.model.ids import ChunkId, CollectionId, DocumentId
from tests.support.embedder import HashedEmbedder
from tests.support.engines import World
from tests.support.gateway import Api, refused
from tests.support.handlers import Meanwhile, Scan

LOOMS = "# Looms\n\nA loom holds the warp threads under tension."
MISSING_DOCUMENT = DocumentId.new(1_780_000_000_000, 1 << 40)
MISSING_CHUNK = ChunkId.of(MISSING_DOCUMENT, 1, 0)
MISSING_COLLECTION = CollectionId.new(1_780_000_000_000, 1 << 30)


def ingest(api: Api, collection: str, **body: Any) -> Any:
    return api.post(f"/v1/collections/{collection}/documents", {"content": LOOMS, **body})


def test_a_document_is_ready_when_the_answer_says_201(api: Api, collection: str) -> None:
    answer = ingest(api, collection, title="Looms", source_type="text/markdown", attributes={"year": 2024})
    assert answer.status == 201, answer.text
    assert (answer.json["state"], answer.json["unchanged"], answer.json["replaced"]) == ("ready", False, [])
    document = api.get(f"/v1/documents/{answer.json['document_id']}").json
    assert (document["title"], document["state"], document["attributes"]) == ("Looms", "ready", {"year": 2024})
    assert document["chunk_count"] == answer.json["chunk_count"] == 1


def test_a_source_with_the_same_content_is_unchanged_and_answers_200(api: Api, collection: str) -> None:
    first = ingest(api, collection, source_key="looms.md", title="Looms")
    again = ingest(api, collection, source_key="looms.md")
    assert (again.status, again.json["unchanged"]) == (200, True)
    assert again.json["document_id"] == first.json["document_id"]
    assert api.get(f"/v1/documents/{first.json['document_id']}").json["title"] == "Looms"


def test_new_content_of_a_source_replaces_the_old(api: Api, collection: str) -> None:
    first = ingest(api, collection, source_key="looms.md")
    second = ingest(api, collection, source_key="looms.md", content="A loom with eight shafts.")
    assert (second.status, second.json["replaced"]) == (201, [first.json["document_id"]])
    refused(api.get(f"/v1/documents/{first.json['document_id']}"), 404, "document_not_found")


def test_a_late_version_is_superseded_and_answers_200(api: Api, collection: str) -> None:
    ingest(api, collection, source_key="looms.md", source_version="0a")
    late = ingest(api, collection, source_key="looms.md", source_version="09", content="Older.")
    assert (late.status, late.json["state"]) == (200, "superseded")


def test_content_that_another_ingest_is_at_answers_202_with_that_ones_document(
    api: Api, collection: str, hashed: HashedEmbedder, meanwhile: Meanwhile
) -> None:
    seen: list[Any] = []
    meanwhile.do = lambda _: seen.append(ingest(api, collection, source_key="looms.md"))
    first = ingest(api, collection, source_key="looms.md")
    [second] = seen
    assert (first.status, second.status, second.json["state"]) == (201, 202, "processing")
    assert second.json["document_id"] == first.json["document_id"]
    assert hashed.calls == 1


def test_an_ingest_whose_document_is_deleted_meanwhile_is_interrupted_and_leaves_nothing(
    api: Api, collection: str, world: World, meanwhile: Meanwhile
) -> None:
    meanwhile.do = lambda document: api.delete(f"/v1/documents/{document}")
    refused(ingest(api, collection), 409, "ingest_interrupted")
    assert api.get("/v1/documents").json["items"] == []
    assert world.vector_count() == 0


def test_bytes_come_as_base64(api: Api, collection: str) -> None:
    content = base64.b64encode("Schuß und Kette".encode("latin-1")).decode()
    body = {"content_base64": content, "source_type": "text/plain; charset=iso-8859-1"}
    answer = api.post(f"/v1/collections/{collection}/documents", body)
    assert answer.status == 201, answer.text
    [chunk] = api.get(f"/v1/documents/{answer.json['document_id']}/chunks").json["items"]
    assert chunk["text"] == "Schuß und Kette"


def test_content_over_the_limit_names_the_limit_and_the_way_to_upload(api: Api, collection: str) -> None:
    problem = ingest(api, collection, content="x" * (256 * 1024 + 1)).json
    assert problem["limit"] == 256 * 1024
    assert problem["uploads"] == f"/v1/collections/{collection}/uploads"


def test_huge_numbers_in_attributes_come_back_as_they_are(api: Api, collection: str) -> None:
    attributes = {
        "big": 2**63 - 1,
        "huge": 1e300,
        "small": -1e-300,
        "exact": 0.1,
        "flag": True,
        "text": "a\u0000b",
        "list": ["ü", "😀"],
    }
    answer = ingest(api, collection, attributes=attributes)
    assert answer.status == 201, answer.text
    assert api.get(f"/v1/documents/{answer.json['document_id']}").json["attributes"] == attributes


def test_unkeyed_content_twice_names_the_document_that_holds_it(api: Api, scan: Scan, collection: str) -> None:
    first = ingest(api, collection)
    before = scan()
    second = ingest(api, collection)
    refused(second, 409, "duplicate_document")
    assert second.json["document_id"] == first.json["document_id"]
    assert scan() == before


def test_one_version_with_two_contents_is_a_conflict(api: Api, scan: Scan, collection: str) -> None:
    ingest(api, collection, source_key="looms.md", source_version="7")
    before = scan()
    refused(
        ingest(api, collection, source_key="looms.md", source_version="7", content="Other."), 409, "version_conflict"
    )
    assert scan() == before


def test_an_embedder_that_throttles_is_503_with_a_time_to_wait(
    api: Api, collection: str, hashed: HashedEmbedder
) -> None:
    hashed.failure = Unavailable("The model is throttled; try again", retry_after_s=7)
    answer = ingest(api, collection)
    refused(answer, 503, "unavailable")
    assert (answer.headers["retry-after"], answer.json["retry_after_s"]) == ("7", 7)
    [document] = api.get("/v1/documents", state="failed").json["items"]
    assert (document["error"]["stage"], document["error"]["code"]) == ("embed", "unavailable")


def test_an_ingest_into_a_missing_or_foreign_collection_looks_the_same(
    api: Api, scan: Scan, collection: str, hashed: HashedEmbedder
) -> None:
    before = scan()
    missing = ingest(api, MISSING_COLLECTION)
    refused(missing, 404, "collection_not_found")
    assert ingest(api.as_tenant("other"), collection).text == missing.text
    batch = {"documents": [{"content": "a"}]}
    foreign = api.as_tenant("other").post(f"/v1/collections/{collection}/documents/batch", batch)
    assert foreign.text == missing.text
    removal = api.as_tenant("other").delete(f"/v1/collections/{collection}/sources", key="looms.md")
    assert removal.text == missing.text
    assert scan() == before
    assert hashed.embedded == []


def test_a_batch_answers_each_document_in_order(api: Api, collection: str) -> None:
    documents = [
        {"content": "First."},
        {"content": "Second.", "titel": "misspelt"},
        {"content_base64": "!"},
        {"content": "x" * (256 * 1024 + 1)},
        {"content": ""},
        "no object",
        {"content": "First."},
        {"content": "Last.", "source_key": ""},
        {"content": "Last."},
    ]
    answer = api.post(f"/v1/collections/{collection}/documents/batch", {"documents": documents})
    assert answer.status == 200, answer.text
    results = answer.json["results"]
    assert [result.get("error", {}).get("code", "ready") for result in results] == [
        "ready",
        "invalid_argument",
        "invalid_argument",
        "payload_too_large",
        "empty_content",
        "invalid_argument",
        "duplicate_document",
        "invalid_argument",
        "ready",
    ]
    assert results[1]["error"]["field"] == "titel"
    assert results[6]["error"]["document_id"] == results[0]["result"]["document_id"]
    assert all(set(result) in ({"result"}, {"error"}) for result in results)


def test_what_a_batch_has_no_time_for_is_to_be_sent_again(api: Api, collection: str) -> None:
    answer = api.with_time(0).post(
        f"/v1/collections/{collection}/documents/batch", {"documents": [{"content": "a"}, {"content": "b"}]}
    )
    assert answer.status == 200
    for result in answer.json["results"]:
        assert (result["error"]["code"], result["error"]["status"]) == ("unavailable", 503)
        assert result["error"]["retry_after_s"] > 0


def test_documents_are_listed_by_collection_state_and_source(api: Api, collection: str) -> None:
    keyed = ingest(api, collection, source_key="looms.md").json["document_id"]
    plain = ingest(api, collection, content="Yarn.").json["document_id"]
    listed = api.get("/v1/documents", collection_id=collection, include_total="true").json
    assert {item["id"] for item in listed["items"]} == {keyed, plain}
    assert listed["total"] == 2
    by_key = api.get("/v1/documents", collection_id=collection, source_key="looms.md").json["items"]
    assert [item["id"] for item in by_key] == [keyed]
    by_id = api.get("/v1/documents", collection_id=collection, source_key=by_key[0]["source_id"]).json["items"]
    assert by_id == by_key
    assert api.get("/v1/documents", state="failed").json["items"] == []
    assert len(api.get("/v1/documents").json["items"]) == 2


def test_chunks_are_listed_in_document_order_and_lead_back_to_their_source(api: Api) -> None:
    small = {"name": "small", "chunk_size": 8, "chunk_overlap": 0}
    collection = api.post("/v1/collections", small).json["id"]
    content = " ".join(f"Sentence number {number} speaks of looms." for number in range(6))
    document = ingest(api, collection, content=content, source="https://example.org/looms").json["document_id"]
    chunks = api.get(f"/v1/documents/{document}/chunks").json["items"]
    assert len(chunks) > 2
    assert [chunk["index"] for chunk in chunks] == list(range(len(chunks)))
    assert all(content[chunk["start_index"] : chunk["end_index"]] == chunk["text"] for chunk in chunks)
    assert {chunk["lineage"]["total_chunks"] for chunk in chunks} == {len(chunks)}
    assert api.get("/v1/chunks", document_id=document).json["items"] == chunks
    in_collection = api.get("/v1/chunks", collection_id=collection, include_total="true").json
    assert {chunk["id"] for chunk in in_collection["items"]} == {chunk["id"] for chunk in chunks}
    assert in_collection["total"] == len(chunks)
    assert api.get(f"/v1/chunks/{chunks[1]['id']}").json == chunks[1]
    chain = api.get(f"/v1/chunks/{chunks[1]['id']}/lineage").json
    assert chain["chunks"] == [chunks[1]["id"]]
    assert (chain["document"]["id"], chain["document"]["source"]) == (document, "https://example.org/looms")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/v1/documents/{document}", "document_not_found"),
        ("DELETE", "/v1/documents/{document}", "document_not_found"),
        ("GET", "/v1/documents/{document}/chunks", "document_not_found"),
        ("GET", "/v1/chunks?document_id={document}", "document_not_found"),
        ("GET", "/v1/chunks/{chunk}", "chunk_not_found"),
        ("GET", "/v1/chunks/{chunk}/lineage", "chunk_not_found"),
    ],
)
def test_missing_and_foreign_documents_and_chunks_look_the_same(
    api: Api, scan: Scan, collection: str, method: str, path: str, code: str
) -> None:
    document = ingest(api, collection).json["document_id"]
    chunk = ChunkId.of(DocumentId(document), 1, 0)
    before = scan()

    def call(caller: Api, document_id: str, chunk_id: str) -> Any:
        filled, _, query = path.format(document=document_id, chunk=chunk_id).partition("?")
        return caller.call(method, filled, query=query)

    missing = call(api, MISSING_DOCUMENT, MISSING_CHUNK)
    foreign = call(api.as_tenant("other"), document, chunk)
    refused(missing, 404, code)
    assert foreign.text == missing.text
    assert scan() == before


def test_a_document_is_deleted_with_its_chunks(api: Api, collection: str) -> None:
    document = ingest(api, collection).json["document_id"]
    answer = api.delete(f"/v1/documents/{document}")
    assert (answer.status, answer.json["documents"], answer.json["chunks"]) == (200, [document], 1)
    refused(api.get(f"/v1/documents/{document}"), 404, "document_not_found")


@pytest.mark.parametrize("key", ["looms.md", "a/b c+ü&=?#%.md", "x" * 1024])
def test_a_source_is_deleted_by_its_key_whatever_stands_in_it(api: Api, collection: str, key: str) -> None:
    document = ingest(api, collection, source_key=key).json["document_id"]
    answer = api.delete(f"/v1/collections/{collection}/sources", key=key)
    assert (answer.status, answer.json["documents"]) == (200, [document])


def test_a_source_is_deleted_by_its_id(api: Api, collection: str) -> None:
    document = ingest(api, collection, source_key="looms.md").json["document_id"]
    source_id = api.get(f"/v1/documents/{document}").json["source_id"]
    answer = api.delete(f"/v1/collections/{collection}/sources", key=source_id)
    assert (answer.status, answer.json["documents"]) == (200, [document])


def test_a_source_that_is_not_there_is_deleted_with_success(api: Api, collection: str) -> None:
    answer = api.delete(f"/v1/collections/{collection}/sources", key="looms.md")
    assert (answer.status, answer.json["documents"], answer.json["complete"]) == (200, [], True)

"""Retrieve, compare and assemble over HTTP."""

import pytest

from core.model.comparison import CompareResult
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.ranking.explain import explain
from tests.support.embedder import HashedEmbedder
from tests.support.gateway import Api, refused

MISSING_COLLECTION = CollectionId.new(1_780_000_000_000, 1 << 30)
MISSING_CHUNK = ChunkId.of(DocumentId.new(1_780_000_000_000, 1 << 40), 1, 0)
TEXTS = ["A loom holds the warp.", "Yarn is spun from wool.", "Dye colours the yarn."]


@pytest.fixture
def filled(api: Api, collection: str) -> str:
    for text in TEXTS:
        answer = api.post(
            f"/v1/collections/{collection}/documents", {"content": text, "title": text[:4], "source": "book"}
        )
        assert answer.status == 201, answer.text
    return collection


def test_the_nearest_chunks_come_first_and_say_where_they_are_from(api: Api, filled: str) -> None:
    answer = api.post("/v1/retrieve", {"query": "loom warp", "collections": [filled], "top_k": 2})
    assert answer.status == 200, answer.text
    hits = answer.json["hits"]
    assert [hit["rank"] for hit in hits] == [1, 2]
    assert hits[0]["chunk"]["text"] == TEXTS[0]
    assert hits[0]["score"] >= hits[1]["score"]
    assert (hits[0]["hydrated"], hits[0]["orphaned"]) == (True, False)
    assert (hits[0]["document"]["title"], hits[0]["document"]["source"]) == ("A lo", "book")
    assert hits[0]["chunk"]["lineage"]["total_chunks"] == 1
    assert (answer.json["score"], answer.json["strategy"], answer.json["reason"]) == ("cosine", "similarity", None)


def test_a_short_answer_says_why(api: Api, filled: str) -> None:
    assert api.post("/v1/retrieve", {"query": "loom"}).json["reason"]["code"] == "fewer_than_top_k"
    high = api.post("/v1/retrieve", {"query": "nothing alike", "min_score": 0.99}).json
    assert (high["hits"], high["reason"]["code"]) == ([], "below_min_score")
    empty = api.as_tenant("other").post("/v1/retrieve", {"query": "loom"}).json
    assert (empty["hits"], empty["reason"]["code"]) == ([], "no_documents")


@pytest.mark.parametrize("path", ["/v1/retrieve", "/v1/compare"])
def test_a_question_with_more_tokens_than_the_model_takes_is_refused_by_name(
    api: Api, filled: str, hashed: HashedEmbedder, path: str
) -> None:
    answer = api.post(path, {"query": "a " * (hashed.max_tokens + 1), "collections": [filled]})
    refused(answer, 400, "invalid_argument", "query")
    assert answer.json["limit"] == hashed.max_tokens


def test_a_filter_chooses_by_attributes_in_retrieve_and_compare(api: Api, collection: str) -> None:
    for year, text in enumerate(TEXTS, start=2020):
        attributes = {"year": year, "seen": f"{year}-01-01T00:00:00+01:00", "tags": ["a", f"t{year}"]}
        path = f"/v1/collections/{collection}/documents"
        assert api.post(path, {"content": text, "attributes": attributes}).status == 201
    for asked in (
        {"year": {"gte": 2021}},
        {"seen": {"gt": "2019-12-31T23:00:00Z"}},
        {"tags": {"in": ["t2021", "t2022"]}},
        {"not": {"year": 2020}, "or": [{"tags": "a"}]},
    ):
        for path in ("/v1/retrieve", "/v1/compare"):
            answer = api.post(path, {"query": "loom", "filter": asked})
            assert answer.status == 200, answer.text
            assert {hit["chunk"]["text"] for hit in answer.json["hits"]} == set(TEXTS[1:])
            assert (answer.json["reason"]["code"], answer.json["reason"]["filtered"]) == ("filtered_out", 1)
    unheard = api.post("/v1/retrieve", {"query": "loom", "filter": {"year": 1999}}).json
    assert (unheard["hits"], unheard["reason"]["code"]) == ([], "unknown_attribute_value")
    assert unheard["reason"]["attribute"] == "year"
    other = api.as_tenant("other").post("/v1/retrieve", {"query": "loom", "filter": {"year": 2021}})
    refused(other, 400, "invalid_argument", "filter")


@pytest.mark.parametrize("path", ["/v1/retrieve", "/v1/compare"])
def test_a_missing_or_foreign_collection_is_not_found_before_anything_is_embedded(
    api: Api, filled: str, hashed: HashedEmbedder, path: str
) -> None:
    calls = hashed.calls
    missing = api.post(path, {"query": "loom", "collections": [MISSING_COLLECTION]})
    foreign = api.as_tenant("other").post(path, {"query": "loom", "collections": [filled]})
    refused(missing, 404, "collection_not_found")
    assert foreign.text == missing.text
    assert hashed.calls == calls


def test_a_min_score_of_zero_or_a_whole_number_is_a_number(api: Api, filled: str) -> None:
    assert api.post("/v1/retrieve", {"query": "loom", "min_score": 0}).status == 200
    assert api.post("/v1/retrieve", {"query": "loom", "min_score": -1}).status == 200


def test_a_comparison_without_a_retriever_is_one_search(api: Api, filled: str) -> None:
    answer = api.post("/v1/compare", {"query": "loom warp", "collections": [filled], "top_k": 2})
    assert answer.status == 200, answer.text
    result = answer.json
    assert (result["same_search"], result["reordered"], result["left_out"]) == (True, False, [])
    assert [(hit["rank"], hit["vector_rank"]) for hit in result["hits"]] == [(1, 1), (2, 2)]
    assert result["vector_matches"] == 3
    assert result["window"] == 50


def test_a_context_is_assembled_in_the_order_of_its_refs_with_citations(
    api: Api, filled: str, hashed: HashedEmbedder
) -> None:
    hits = api.post("/v1/retrieve", {"query": "loom", "top_k": 3}).json["hits"]
    calls = hashed.calls
    refs = [{"chunk_id": hit["chunk"]["id"]} for hit in reversed(hits)]
    answer = api.post("/v1/assemble", {"refs": refs})
    assert answer.status == 200, answer.text
    context = answer.json["context"]
    assert context["context"].startswith("Relevant context:\n\n[1] ")
    assert [citation["chunk_id"] for citation in context["citations"]] == [ref["chunk_id"] for ref in refs]
    assert (context["max_tokens"], context["included"], context["first_excluded"]) == (4096, [0, 1, 2], -1)
    assert [hit["chunk"]["id"] for hit in answer.json["hits"]] == [ref["chunk_id"] for ref in refs]
    assert hashed.calls == calls


def test_a_budget_that_nothing_fits_gives_an_empty_context(api: Api, filled: str) -> None:
    [hit] = api.post("/v1/retrieve", {"query": "loom", "top_k": 1}).json["hits"]
    answer = api.post("/v1/assemble", {"refs": [{"chunk_id": hit["chunk"]["id"]}], "max_tokens": 1}).json
    assert (answer["context"]["context"], answer["context"]["total_tokens"]) == ("", 0)


def test_one_call_answers_with_hits_and_a_context_of_them(api: Api, filled: str) -> None:
    asked = {"query": "loom warp", "top_k": 2, "assemble": {"max_tokens": 30, "token_counter": "words", "expand": 1}}
    answer = api.post("/v1/retrieve", asked)
    assert answer.status == 200, answer.text
    hits, context = answer.json["hits"], answer.json["context"]
    assert context["context"].startswith(f"Relevant context:\n\n[1] {TEXTS[0]}\n\n---\n\n[2] ")
    assert (context["token_counter"], context["max_tokens"], context["included"]) == ("words", 30, [0, 1])
    assert context["total_tokens"] == len(context["context"].split())
    assert [one["chunk_id"] for one in context["citations"]] == [hit["chunk"]["id"] for hit in hits]
    assert all("gap" not in hit["chunk"] for hit in hits)
    assert "context" not in api.post("/v1/retrieve", {"query": "loom warp"}).json


def test_a_citation_names_the_page_the_heading_and_the_place(api: Api, collection: str) -> None:
    text = "# Looms\n\nThe first page.\n\f\n# Yarn\n\nThe second page."
    body = {"content": text, "source_type": "text/markdown", "title": "Weaving"}
    made = api.post(
        "/v1/collections", {"name": "pages", "chunk_strategy": "markdown", "chunk_size": 5, "chunk_overlap": 0}
    )
    assert api.post(f"/v1/collections/{made.json['id']}/documents", body).status == 201
    answer = api.post("/v1/retrieve", {"query": "second page Yarn", "top_k": 1, "assemble": {}}).json
    [citation] = answer["context"]["citations"]
    assert (citation["page"], citation["context"], citation["title"]) == (2, "Yarn", "Weaving")
    assert answer["hits"][0]["chunk"]["page"] == 2
    assert answer["context"]["context"].endswith(text[citation["start_index"] : citation["end_index"]])


def test_a_gone_or_foreign_chunk_makes_the_ranking_stale(api: Api, filled: str) -> None:
    [hit] = api.post("/v1/retrieve", {"query": "loom", "top_k": 1}).json["hits"]
    missing = api.post("/v1/assemble", {"refs": [{"chunk_id": hit["chunk"]["id"]}, {"chunk_id": MISSING_CHUNK}]})
    refused(missing, 409, "stale_ranking")
    assert missing.json["chunk_id"] == MISSING_CHUNK
    foreign = api.as_tenant("other").post("/v1/assemble", {"refs": [{"chunk_id": hit["chunk"]["id"]}]})
    refused(foreign, 409, "stale_ranking")


def test_hybrid_is_told_by_its_options_and_shows_its_figures(api: Api, filled: str) -> None:
    asked = {
        "query": "loom yarn",
        "strategy": "hybrid",
        "options": {"rrf_k": 10, "weights": {"vector": 2, "bm25": 0.5}, "explain": True},
    }
    answer = api.post("/v1/retrieve", asked)
    assert answer.status == 200, answer.text
    result = answer.json
    assert (result["score"], result["strategy"], result["fallback"]) == ("rrf", "hybrid", None)
    assert result["options"]["weights"] == {"vector": 2, "bm25": 0.5}
    for hit in result["hits"]:
        vector, bm25 = hit["signals"]["vector"], hit["signals"]["bm25"]
        by_terms = 0.5 / (10 + bm25["rank"]) if bm25 else 0
        assert hit["score"] == 2 / (10 + vector["rank"]) + by_terms
    quiet = api.post("/v1/retrieve", {**asked, "options": {}}).json
    assert all("signals" not in hit for hit in quiet["hits"])


@pytest.mark.parametrize("query", ["the of and", "loom\x00\x1b[31m yarn", "…", "織機 🧶"])
@pytest.mark.parametrize("path", ["/v1/retrieve", "/v1/compare"])
def test_an_odd_question_is_answered(api: Api, filled: str, path: str, query: str) -> None:
    answer = api.post(path, {"query": query, "strategy": "hybrid"})
    assert answer.status == 200, answer.text
    assert len(answer.json["hits"]) == 3


@pytest.mark.parametrize("strategy", ["similarity", "mmr", "hybrid"])
def test_a_comparison_can_be_explained_from_its_json_alone(api: Api, filled: str, strategy: str) -> None:
    answer = api.post("/v1/compare", {"query": "the yarn of a loom", "strategy": strategy, "top_k": 2})
    assert answer.status == 200, answer.text
    result = answer.json
    assert all(hit["move"]["code"] and hit["move"]["detail"] for hit in result["hits"] + result["left_out"])
    explained = explain(CompareResult.model_validate(result))
    assert explained[:2] == [hit["chunk"]["id"] for hit in result["hits"]]


def test_a_collections_own_strategy_is_used(api: Api) -> None:
    body = {"name": "searched", "retrieval_strategy": "hybrid"}
    made = api.post("/v1/collections", body).json
    assert made["retrieval_strategy"] == "hybrid"
    path = f"/v1/collections/{made['id']}"
    asked = {"query": "loom", "collections": [made["id"]]}
    assert api.post("/v1/retrieve", asked).json["strategy"] == "hybrid"
    assert api.patch(path, {"retrieval_strategy": "mmr"}).json["retrieval_strategy"] == "mmr"
    assert api.post("/v1/compare", asked).json["strategy"] == "mmr"
    refused(api.patch(path, {"retrieval_strategy": "magic"}), 400, "invalid_argument", "retrieval_strategy")
    refused(api.patch(path, {"retrieval_strategy": "rerank"}), 503, "not_configured")

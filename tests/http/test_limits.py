"""No answer grows beyond what the gateway hands on."""

import json
from typing import Any

import pytest

from core.http.limits import answer_size, fit_comparison, fit_page, fit_retrieval
from core.model.base import Model
from core.model.chunk import Chunk
from core.model.comparison import CompareHit, CompareResult, Move, MoveCode
from core.model.hit import Hit, RetrieveResult
from core.model.page import Page, PageRequest
from core.model.query import RetrieveOptions, ScoreKind, Strategy
from core.settings import Settings
from tests.support.engines import World
from tests.support.gateway import Api

# Each is escaped twice, and one of them three bytes as six.
TEXTS = ["a" * 1000, '"\n\\' * 300, "織" * 300, "😀" * 200]
LIMITS = [0, 700, 2_000, 5_000, 10_000, 1_000_000]


class Item(Model):
    text: str


def _chunk(text: str) -> Chunk:
    return Chunk(text=text, start_index=0, end_index=len(text), char_count=len(text))


def _hits(count: int) -> list[Hit]:
    texts = (TEXTS * count)[:count]
    return [
        Hit(rank=rank, score=0.5, hydrated=True, chunk=_chunk(text), document=None)
        for rank, text in enumerate(texts, start=1)
    ]


def _sent(model: Model) -> int:
    """Bytes of a function's answer that holds this one."""
    return len(json.dumps({"body": model.model_dump_json()})) - len('{"body": }')


@pytest.mark.parametrize("limit", LIMITS)
def test_a_ranking_keeps_the_best_hits_that_fit_and_says_how_many_there_were(limit: int) -> None:
    whole = RetrieveResult(
        hits=_hits(8), score=ScoreKind.COSINE, strategy=Strategy.SIMILARITY, options=RetrieveOptions(), models=["model"]
    )
    cut = fit_retrieval(limit, whole)
    assert cut.hits == whole.hits[: len(cut.hits)]
    if len(cut.hits) == 8:
        assert cut == whole
        return
    assert cut.reason is not None
    assert (cut.reason.code, cut.reason.found) == ("answer_too_large", 8)
    if cut.hits:
        assert _sent(cut) <= limit
    more = cut.model_copy(update={"hits": whole.hits[: len(cut.hits) + 1]})
    assert _sent(more) > limit


@pytest.mark.parametrize("limit", LIMITS)
def test_a_comparison_keeps_its_hits_before_what_was_left_out(limit: int) -> None:
    move = Move(code=MoveCode.SAME_RANK, detail="")
    compared = [CompareHit(**dict(hit), vector_rank=hit.rank, vector_score=0.5, move=move) for hit in _hits(6)]
    whole = CompareResult(
        hits=compared[:3],
        left_out=compared[3:],
        window=50,
        vector_matches=6,
        best_vector_score=0.5,
        reordered=True,
        same_search=False,
        score=ScoreKind.COSINE,
        strategy=Strategy.SIMILARITY,
        options=RetrieveOptions(),
        models=["model"],
        candidates=10,
        top_k=10,
        min_score=None,
        retriever_ms=1.0,
        vector_ms=1.0,
    )
    cut = fit_comparison(limit, whole)
    assert cut.hits == whole.hits[: len(cut.hits)]
    assert cut.left_out == whole.left_out[: len(cut.left_out)]
    assert not cut.left_out or cut.hits == whole.hits
    if cut != whole:
        assert cut.reason is not None
        assert cut.reason.code == "answer_too_large"
    if cut.hits:
        assert _sent(cut) <= limit


@pytest.mark.parametrize("limit", LIMITS)
def test_a_page_is_asked_for_again_until_it_fits(limit: int) -> None:
    items = [Item(text=text) for text in TEXTS * 5]
    asked: list[int] = []

    def fetch(request: PageRequest) -> Page[Item]:
        asked.append(request.limit)
        return Page(items=items[: request.limit], next_page_token="more" if request.limit < len(items) else None)

    page = fit_page(limit, PageRequest(limit=20), fetch)
    assert page.items == items[: len(page.items)]
    assert len(page.items) == 1 or answer_size(page) <= limit
    assert asked == sorted(asked, reverse=True)
    assert (page.next_page_token is None) == (len(page.items) == len(items))


def _large(api: Api, world: World, count: int) -> tuple[str, list[Any]]:
    """A collection of large chunks, on an engine whose answers are small."""
    world.rebuild(settings=Settings(**{**dict(world.engine.settings), "answer_bytes": 64 * 1024}))
    collection = api.post("/v1/collections", {"name": "large", "chunk_size": 512, "chunk_overlap": 0}).json["id"]
    text = "\n".join(["織" * 500] * 12)
    documents = [
        api.post(f"/v1/collections/{collection}/documents", {"content": f"{number} {text}"}).json
        for number in range(count)
    ]
    return collection, documents


def test_a_listing_stops_and_its_token_leads_on(api: Api, world: World) -> None:
    collection, documents = _large(api, world, 4)
    seen: list[str] = []
    token: str | None = None
    pages = 0
    while pages == 0 or token:
        query = {"collection_id": collection, "limit": 100, **({"page_token": token} if token else {})}
        answer = api.get("/v1/chunks", **query)
        assert len(json.dumps(answer.text)) <= 64 * 1024
        seen += [chunk["id"] for chunk in answer.json["items"]]
        token, pages = answer.json["next_page_token"], pages + 1
    assert len(seen) == len(set(seen)) == sum(document["chunk_count"] for document in documents)
    assert pages > 1


def test_a_question_gets_the_hits_that_fit(api: Api, world: World) -> None:
    _, documents = _large(api, world, 4)
    answer = api.post("/v1/retrieve", {"query": "織", "top_k": 4})
    assert len(json.dumps(answer.text)) <= 64 * 1024
    assert 0 < len(answer.json["hits"]) < 4
    assert (answer.json["reason"]["code"], answer.json["reason"]["found"]) == ("answer_too_large", len(documents))


def test_a_context_stays_whole_while_hits_are_cut(api: Api, world: World) -> None:
    _large(api, world, 4)
    answer = api.post("/v1/retrieve", {"query": "織", "top_k": 4, "assemble": {"max_tokens": 1000}})
    assert len(json.dumps(answer.text)) <= 64 * 1024
    assert 0 < len(answer.json["hits"]) < 4
    assert answer.json["reason"]["code"] == "answer_too_large"
    context = answer.json["context"]
    assert [one["marker"] for one in context["citations"]] == list(range(1, len(context["included"]) + 1))
    whole = {"query": "織", "top_k": 4, "assemble": {"max_tokens": 1_000_000}}
    refused = api.post("/v1/retrieve", whole)
    assert (refused.status, refused.json["code"]) == (413, "payload_too_large")


def test_a_context_that_does_not_fit_is_refused(api: Api, world: World) -> None:
    _, documents = _large(api, world, 4)
    refs = [
        {"chunk_id": chunk["id"]}
        for document in documents
        for chunk in api.get(f"/v1/documents/{document['document_id']}/chunks").json["items"]
    ]
    answer = api.post("/v1/assemble", {"refs": refs})
    assert (answer.status, answer.json["code"], answer.json["limit"]) == (413, "payload_too_large", 64 * 1024)

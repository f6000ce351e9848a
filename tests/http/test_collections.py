"""Collections over HTTP."""

import re

import pytest

from core.model.ids import CollectionId
from tests.support.engines import World
from tests.support.gateway import Api, refused
from tests.support.handlers import Scan

MISSING = CollectionId.new(1_780_000_000_000, 1 << 30)
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def test_a_collection_is_created_with_the_engines_defaults(api: Api) -> None:
    answer = api.post("/v1/collections", {"name": "  handbook "})
    assert answer.status == 201, answer.text
    collection = answer.json
    assert collection["name"] == "handbook"
    assert collection["tenant"] == "acme"
    assert collection["chunk_strategy"] == "recursive"
    assert collection["chunk_overlap"] == 50
    assert (collection["document_count"], collection["chunk_count"]) == (0, 0)
    assert "state" not in collection
    assert RFC3339.fullmatch(collection["created_at"])
    assert api.get(f"/v1/collections/{collection['id']}").json == collection


def test_a_body_may_name_the_tokens_own_tenant(api: Api) -> None:
    assert api.post("/v1/collections", {"name": "handbook", "tenant": "acme"}).status == 201
    assert api.post("/v1/collections", {"name": "manual", "tenant": None}).status == 201


def test_a_taken_name_is_refused_and_nothing_is_written(api: Api, scan: Scan) -> None:
    api.post("/v1/collections", {"name": "handbook"})
    other = api.post("/v1/collections", {"name": "manual"}).json["id"]
    before = scan()
    refused(api.post("/v1/collections", {"name": "handbook"}), 409, "collection_already_exists")
    refused(api.patch(f"/v1/collections/{other}", {"name": "handbook"}), 409, "collection_already_exists")
    assert scan() == before


def test_the_same_name_is_free_in_another_tenant(api: Api) -> None:
    api.post("/v1/collections", {"name": "handbook"})
    assert api.as_tenant("other").post("/v1/collections", {"name": "handbook"}).status == 201


def test_collections_are_listed_newest_first_page_by_page(api: Api) -> None:
    names = [f"c{number}" for number in range(5)]
    for name in names:
        api.post("/v1/collections", {"name": name})
    first = api.get("/v1/collections", limit=2, include_total="true").json
    assert first["total"] == 5
    seen, token = [item["name"] for item in first["items"]], first["next_page_token"]
    while token:
        page = api.get("/v1/collections", limit=2, page_token=token).json
        assert "total" not in page
        seen += [item["name"] for item in page["items"]]
        token = page["next_page_token"]
    assert sorted(seen) == names
    assert seen == [item["name"] for item in api.get("/v1/collections").json["items"]]
    oldest = [item["name"] for item in api.get("/v1/collections", order="oldest").json["items"]]
    assert oldest == seen[::-1]


def test_a_page_token_is_bound_to_its_tenant_and_its_listing(api: Api) -> None:
    for name in ("a1", "a2", "b1"):
        api.post("/v1/collections", {"name": name})
        api.as_tenant("other").post("/v1/collections", {"name": name})
    token = api.get("/v1/collections", limit=1).json["next_page_token"]
    stolen = api.as_tenant("other").get("/v1/collections", limit=1, page_token=token)
    refused(stolen, 400, "invalid_argument", "page_token")
    elsewhere = api.get("/v1/collections", limit=1, name_contains="a", page_token=token)
    refused(elsewhere, 400, "invalid_argument", "page_token")
    refused(api.get("/v1/documents", limit=1, page_token=token), 400, "invalid_argument", "page_token")


def test_collections_are_found_by_name_and_by_part_of_it(api: Api) -> None:
    for name in ("Looms", "looms and yarn", "50%_off"):
        api.post("/v1/collections", {"name": name})
    assert [item["name"] for item in api.get("/v1/collections", name="Looms").json["items"]] == ["Looms"]
    found = api.get("/v1/collections", name_contains="LOOM", include_total="true").json
    assert ({item["name"] for item in found["items"]}, found["total"]) == ({"Looms", "looms and yarn"}, 2)
    assert [item["name"] for item in api.get("/v1/collections", name_contains="%_").json["items"]] == ["50%_off"]


def test_an_update_changes_what_it_names(api: Api) -> None:
    created = api.post("/v1/collections", {"name": "a", "description": "old", "metadata": {"x": "1", "y": "2"}}).json
    updated = api.patch(f"/v1/collections/{created['id']}", {"metadata": {"z": "3"}})
    assert updated.status == 200
    assert (updated.json["description"], updated.json["metadata"]) == ("old", {"z": "3"})


@pytest.mark.parametrize("body", [{"chunk_size": 5}, {"embedding_model": "x"}, {"name": " "}, {"metadata": []}])
def test_an_update_of_what_is_fixed_is_refused_and_nothing_is_written(
    api: Api, scan: Scan, body: dict[str, object]
) -> None:
    created = api.post("/v1/collections", {"name": "a"}).json
    before = scan()
    refused(api.patch(f"/v1/collections/{created['id']}", body), 400, "invalid_argument", next(iter(body)))
    assert scan() == before


def test_metadata_that_no_row_could_hold_is_refused_and_nothing_is_written(
    api: Api, scan: Scan, collection: str
) -> None:
    before = scan()
    metadata = {str(number): "é" * 4096 for number in range(64)}
    created = api.post("/v1/collections", {"name": "large", "metadata": metadata})
    refused(created, 400, "invalid_argument", "metadata")
    refused(api.patch(f"/v1/collections/{collection}", {"metadata": metadata}), 400, "invalid_argument", "metadata")
    assert scan() == before


def test_a_collection_is_deleted_with_what_it_held(api: Api, collection: str) -> None:
    api.post(f"/v1/collections/{collection}/documents", {"content": "A loom holds the warp."})
    answer = api.delete(f"/v1/collections/{collection}")
    assert answer.status == 200, answer.text
    assert (len(answer.json["documents"]), answer.json["chunks"], answer.json["vectors"]) == (1, 1, 1)
    refused(api.get(f"/v1/collections/{collection}"), 404, "collection_not_found")
    assert api.post("/v1/retrieve", {"query": "loom"}).json["hits"] == []


def test_a_delete_that_runs_out_of_time_answers_202_and_can_be_repeated(api: Api, collection: str) -> None:
    for number in range(3):
        api.post(f"/v1/collections/{collection}/documents", {"content": f"Loom number {number}."})
    hurried = api.with_time(0).delete(f"/v1/collections/{collection}")
    assert (hurried.status, hurried.json["complete"]) == (202, False)
    refused(api.get(f"/v1/collections/{collection}"), 404, "collection_not_found")
    assert api.delete(f"/v1/collections/{collection}").status == 200


def test_stats_are_exact(api: Api, collection: str) -> None:
    api.post(f"/v1/collections/{collection}/documents", {"content": "A loom holds the warp."})
    stats = api.get(f"/v1/collections/{collection}/stats").json
    assert (stats["document_count"], stats["chunk_count"]) == (1, 1)
    assert stats["collection_id"] == collection


def test_a_reindex_embeds_every_chunk_again_and_says_how_far_it_is(api: Api, world: World, collection: str) -> None:
    refused(api.get(f"/v1/collections/{collection}/reindex"), 404, "reindex_not_found")
    for number in range(3):
        api.post(f"/v1/collections/{collection}/documents", {"content": f"Loom number {number}."})
    embedded = len(world.embedder.embedded)
    started = api.post(f"/v1/collections/{collection}/reindex")
    assert started.status == 202
    assert (started.json["documents"], started.json["chunks"], started.json["finished"]) == (3, 3, True)
    assert len(world.embedder.embedded) == embedded + 3
    assert api.get(f"/v1/collections/{collection}/reindex").json == started.json


def test_a_reindex_that_runs_out_of_time_is_finished_by_the_sweep(api: Api, world: World, collection: str) -> None:
    api.post(f"/v1/collections/{collection}/documents", {"content": "A loom holds the warp."})
    assert api.with_time(0).post(f"/v1/collections/{collection}/reindex").json["finished"] is False
    world.engine.recovery.drain(world.deadline())
    assert api.get(f"/v1/collections/{collection}/reindex").json["finished"] is True


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/stats"), ("POST", "/reindex"), ("GET", "/reindex")],
)
def test_missing_and_foreign_collections_look_the_same(
    api: Api, scan: Scan, collection: str, method: str, path: str
) -> None:
    before = scan()
    body = {"name": "mine"} if method == "PATCH" else None
    missing = api.call(method, f"/v1/collections/{MISSING}{path}", body)
    foreign = api.as_tenant("other").call(method, f"/v1/collections/{collection}{path}", body)
    refused(missing, 404, "collection_not_found")
    assert foreign.text == missing.text
    assert scan() == before

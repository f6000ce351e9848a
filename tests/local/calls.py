"""What a client of a running stack does."""

from typing import TYPE_CHECKING

import boto3
import httpx

from tests.local.running import Json, Running
from tests.support.waiting import until

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

TEXT = "# Looms\n\nA loom holds the warp threads under tension while the weft is woven in."


def new_collection(running: Running, name: str) -> str:
    return str(running.call("POST", "/v1/collections", {"name": name})["id"])


def ingest(running: Running, collection: str, key: str, text: str = TEXT) -> Json:
    return running.call(
        "POST", f"/v1/collections/{collection}/documents", {"content": text, "source_key": key, "title": key}
    )


def upload(running: Running, collection: str, key: str, content: bytes) -> None:
    told = running.call(
        "POST",
        f"/v1/collections/{collection}/uploads",
        {"source_key": key, "source_type": "text/markdown", "title": "uploaded", "size": len(content)},
    )
    answer = httpx.request(told["method"], told["url"], headers=told["headers"], content=content, trust_env=False)
    assert answer.is_success, answer.text


def documents(running: Running, collection: str, key: str) -> list[Json]:
    return list(running.call("GET", "/v1/documents", collection_id=collection, source_key=key)["items"])


def ready(running: Running, collection: str, key: str) -> Json:
    """Waits until a source is ready."""

    def found() -> Json | None:
        return next((item for item in documents(running, collection, key) if item["state"] == "ready"), None)

    document = until(found)
    assert document is not None
    return document


def retrieve(running: Running, collection: str, query: str = "What holds the warp?") -> list[Json]:
    return list(running.call("POST", "/v1/retrieve", {"query": query, "collections": [collection]})["hits"])


def s3(running: Running) -> "S3Client":
    return boto3.Session("any", "any", region_name="us-east-1").client("s3", endpoint_url=running.aws_url)

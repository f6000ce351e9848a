"""Uploads: a signed URL for exactly one object."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

from core.model.ids import CollectionId, UploadId
from tests.support.engines import ACME, REGION, World
from tests.support.gateway import Api, refused, served
from tests.support.handlers import BUCKET, SETTINGS, Scan

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

MISSING = CollectionId.new(1_780_000_000_000, 1 << 30)
NEW = {"source_key": "books/looms.md", "title": "Looms", "attributes": {"year": 2024}, "size": 1000}


def test_an_upload_is_signed_for_its_key_type_length_and_id(api: Api, collection: str, world: World) -> None:
    answer = api.post(f"/v1/collections/{collection}/uploads", NEW)
    assert answer.status == 201, answer.text
    upload = answer.json
    url = urlsplit(upload["url"])
    assert (url.scheme, url.netloc) == ("https", f"{BUCKET}.s3.{REGION}.amazonaws.com")
    assert unquote(url.path) == f"/acme/{collection}/books/looms.md"
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert query["X-Amz-Algorithm"] == "AWS4-HMAC-SHA256"
    assert query["X-Amz-SignedHeaders"] == "content-length;content-type;host;x-amz-meta-weft-upload"
    assert query["X-Amz-Expires"] == str(SETTINGS.upload_seconds)
    assert upload["method"] == "PUT"
    assert upload["headers"]["content-type"] == "text/markdown"
    assert upload["headers"]["content-length"] == "1000"
    assert upload["max_bytes"] == SETTINGS.object_bytes
    expires = datetime.fromisoformat(upload["expires_at"])
    assert expires - world.clock.now().astimezone(UTC) == timedelta(seconds=SETTINGS.upload_seconds)
    info = world.engine.uploads.get(ACME, UploadId(upload["headers"]["x-amz-meta-weft-upload"]))
    assert info is not None
    assert (info.title, info.source_type, info.attributes) == ("Looms", "text/markdown", {"year": 2024})


def test_a_key_may_hold_what_a_url_has_to_escape(api: Api, collection: str) -> None:
    key = "ünï cödé/a+b&c=d?e#f%.md"
    answer = api.post(f"/v1/collections/{collection}/uploads", {**NEW, "source_key": key})
    assert answer.status == 201, answer.text
    assert unquote(urlsplit(answer.json["url"]).path).endswith(key)


def test_an_upload_to_a_missing_or_foreign_collection_looks_the_same(api: Api, scan: Scan, collection: str) -> None:
    before = scan()
    missing = api.post(f"/v1/collections/{MISSING}/uploads", NEW)
    refused(missing, 404, "collection_not_found")
    assert api.as_tenant("other").post(f"/v1/collections/{collection}/uploads", NEW).text == missing.text
    assert scan() == before


def test_attributes_that_no_document_could_hold_are_refused(api: Api, scan: Scan, collection: str) -> None:
    before = scan()
    attributes = {f"a{number}": ["x" * 1024] * 64 for number in range(64)}
    answer = api.post(f"/v1/collections/{collection}/uploads", {**NEW, "attributes": attributes})
    refused(answer, 400, "invalid_argument", "attributes")
    assert answer.json["limit"] == 64 * 1024
    assert scan() == before


def test_without_a_bucket_uploads_are_not_configured(world: World, collection: str) -> None:
    with served(world.rebuild(s3=None)):
        refused(Api().post(f"/v1/collections/{collection}/uploads", NEW), 503, "not_configured")


def test_nothing_is_in_the_bucket_before_the_upload(api: Api, collection: str, s3: "S3Client") -> None:
    api.post(f"/v1/collections/{collection}/uploads", NEW)
    assert s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0

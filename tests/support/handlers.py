"""The real handlers on an engine in this process, with a bucket."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws

from core.model.ids import DocumentId
from core.settings import Settings
from core.wiring import s3_client
from tests.support.embedder import HashedEmbedder
from tests.support.engines import TABLE, World, make_world
from tests.support.gateway import Api, served

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

BUCKET = "weft-test-objects"
SETTINGS = Settings(table=TABLE, bucket=BUCKET, embedder="none", vectors="none")

Scan = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def s3() -> Iterator["S3Client"]:
    """A client of a versioned bucket."""
    with mock_aws():
        client = s3_client()
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        yield client


class Meanwhile:
    """What another does while an ingest has chunked its document and not yet embedded it: ``do``, once."""

    name = "meanwhile"

    def __init__(self) -> None:
        self.do: Callable[[DocumentId], object] | None = None

    def ingest_chunked(self, *, document_id: DocumentId, **_: object) -> None:
        do, self.do = self.do, None
        if do is not None:
            do(document_id)


@pytest.fixture
def meanwhile() -> Meanwhile:
    return Meanwhile()


@pytest.fixture
def world(s3: "S3Client", meanwhile: Meanwhile) -> Iterator[World]:
    world = make_world(settings=SETTINGS, extensions=[meanwhile], s3=s3)
    world.vectors.prepare(world.embedder.space)
    yield world
    world.close()


@pytest.fixture
def hashed(world: World) -> HashedEmbedder:
    return world.embedder


@pytest.fixture
def api(world: World) -> Iterator[Api]:
    with served(lambda: world.engine):
        yield Api()


@pytest.fixture
def scan(world: World) -> Scan:
    """Everything in the table."""
    return world.rows


@pytest.fixture
def collection(api: Api) -> str:
    answer = api.post("/v1/collections", {"name": "handbook"})
    assert answer.status == 201, answer.text
    identifier: str = answer.json["id"]
    return identifier

"""The functions' handlers on an engine in this process, as `tests.support.handlers` makes them, and a bucket."""

from typing import TYPE_CHECKING

import pytest

from tests.events.objects import Objects
from tests.support.engines import World
from tests.support.handlers import api, collection, hashed, meanwhile, s3, scan, world

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

__all__ = ["api", "collection", "hashed", "meanwhile", "s3", "scan", "world"]


@pytest.fixture
def objects(world: World, s3: "S3Client") -> Objects:
    return Objects(world, s3, world.collection().id)

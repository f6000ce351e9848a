"""The functions' handlers on an engine in this process, as `tests.support.handlers` makes them."""

from tests.support.handlers import api, collection, hashed, meanwhile, s3, scan, world

__all__ = ["api", "collection", "hashed", "meanwhile", "s3", "scan", "world"]

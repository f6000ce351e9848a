"""What every test has: credentials that are none, and an engine on stores of its own."""

import logging
import os
from collections.abc import Iterator

import pytest

from tests.support.engines import REGION

os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",  # moto takes any
    AWS_DEFAULT_REGION=REGION,
)

pytest_plugins = ["tests.support.doubles", "tests.support.memory", "tests.support.opensearch", "tests.quality.public"]


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """A proof hushes the log of its process; the next test hears it again."""
    yield
    logging.disable(logging.NOTSET)

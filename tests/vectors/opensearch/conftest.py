"""What these tests share: names of indexes that no other test has, and the server without the store."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
import urllib3

from core.vectors.opensearch.query import Json

_numbers = itertools.count()


@pytest.fixture
def prefix() -> str:
    """How the names of this test's indexes begin."""
    return f"own{next(_numbers)}"


Ask = Callable[..., Json]


@pytest.fixture
def ask(opensearch: str) -> Ask:
    """Asks the server itself: method, path and body. Any refusal is a failure."""

    def ask(method: str, path: str, body: Any = None) -> Json:
        with urllib3.PoolManager(retries=False, timeout=30.0) as http:
            answer = http.request(
                method,
                opensearch + path,
                body=None if body is None else json.dumps(body),
                headers={"content-type": "application/json"},
            )
        assert answer.status < 300, answer.data
        answered: Json = json.loads(answer.data)
        return answered

    return ask

"""What the engine says of itself over HTTP, and what happens when something breaks."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import ValidationError

from core.engine import Engine
from core.model.base import Model
from core.model.errors import Unavailable
from core.powertools import PowertoolsMetrics, logger
from functions.recovery.handler import drain
from tests.support.embedder import HashedEmbedder
from tests.support.engines import World
from tests.support.gateway import REQUEST_ID, Api, Context, refused, served

SECRET = "the secret text of a document"


class _Numbers(Model):
    number: int


def test_health_needs_no_token(api: Api) -> None:
    answer = Api(claims=None).get("/v1/health")
    assert (answer.status, answer.json) == (200, {"status": "ok", "stores": {"metadata": "ok", "vectors": "ok"}})


def test_a_store_that_does_not_answer_makes_health_503_without_a_detail(api: Api, world: World) -> None:
    world.dynamodb.delete_table(TableName="weft-test")
    world.vectors.close()
    answer = Api(claims=None).get("/v1/health")
    assert answer.status == 503
    assert answer.json["status"] == "failing"
    assert set(answer.json) == {"status", "stores"}


def test_components_say_what_is_configured(api: Api) -> None:
    components = api.get("/v1/components").json
    assert components["embedder"]["name"] == "hashed-words"
    assert components["vector_store"]["configured"]
    assert components["strategies"] == {"similarity": "cosine", "mmr": "mmr_relevance", "hybrid": "rrf"}
    assert (components["score"], components["tenant_filter"]) == ("cosine", "verified")


def test_extensions_are_listed(api: Api) -> None:
    extension = {"name": "meanwhile", "hooks": ["ingest_chunked"]}
    assert api.get("/v1/extensions").json == {"items": [extension], "next_page_token": None}


def test_any_thread_can_call_a_handler_at_any_time(api: Api) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: api.get("/v1/collections", limit=number), range(1, 41)))
    assert {answer.status for answer in answers} == {200}


def test_without_a_vector_store_an_ingest_and_a_question_are_not_configured(world: World, collection: str) -> None:
    with served(world.rebuild(vectors=None)):
        document = Api().post(f"/v1/collections/{collection}/documents", {"content": "A loom."})
        refused(document, 503, "not_configured")
        refused(Api().post("/v1/retrieve", {"query": "loom"}), 503, "not_configured")
        refused(Api().post("/v1/compare", {"query": "loom"}), 503, "not_configured")


def _broken(error: Exception) -> Engine:
    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise error

    return Broken()  # type: ignore[return-value]  # anything that raises


def _validation_error() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        _Numbers.model_validate({"number": SECRET})
    return caught.value


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Any:
    """What the functions write to their log."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.dumps(vars(record), default=str))

    handler = Kept()
    kept = logging.getLogger(logger.name)
    kept.addHandler(handler)
    yield lines
    kept.removeHandler(handler)


def test_an_unexpected_error_is_logged_whole_and_answered_with_its_request_alone(logged: list[str]) -> None:
    cause = KeyError("cause")
    error = RuntimeError("host db-1.internal refused")
    error.__cause__ = cause
    with served(_broken(error)):
        answer = Api().get("/v1/components")
    refused(answer, 500, "internal_error")
    assert answer.json["request_id"] == REQUEST_ID
    assert "db-1" not in answer.text
    [line] = logged
    assert REQUEST_ID in line
    for part in ("RuntimeError", "host db-1.internal refused", "KeyError", "cause", "core/http/route.py"):
        assert part in line


def test_a_validation_error_is_logged_without_what_was_validated(logged: list[str]) -> None:
    with served(_broken(_validation_error())):
        refused(Api().get("/v1/components"), 500, "internal_error")
    [line] = logged
    assert "number: int_parsing" in line
    assert SECRET not in line


def test_a_refusal_logs_nothing_of_a_document(
    api: Api, collection: str, hashed: HashedEmbedder, logged: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    hashed.failure = Unavailable("throttled")
    path = f"/v1/collections/{collection}/documents"
    api.post(path, {"content": SECRET})
    api.post(path, {"content": SECRET, "title": 5})
    api.post(path, {"content": SECRET, "source_type": "text/html; charset=utf-16"})
    assert SECRET not in "".join(logged) + caplog.text


def test_the_sweep_says_what_it_did(world: World) -> None:
    counts = drain(Context(remaining_ms=300_000), world.engine)  # type: ignore[arg-type]  # all that is used of it
    assert counts.keys() >= {"failed", "purged", "cleaned", "skipped_no_tenant", "left"}
    assert set(counts.values()) == {0}


def test_a_metric_is_a_line_in_the_embedded_format_and_never_says_the_tenant(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POWERTOOLS_METRICS_DISABLED", raising=False)
    monkeypatch.delenv("POWERTOOLS_DEV", raising=False)
    PowertoolsMetrics().record("ingest", 12.5, "Milliseconds", model="m", tenant="acme")
    line = json.loads(capsys.readouterr().out)
    [metrics] = line["_aws"]["CloudWatchMetrics"]
    assert metrics["Namespace"] == "Weft"
    assert metrics["Metrics"] == [{"Name": "ingest", "Unit": "Milliseconds"}]
    assert (line["ingest"], line["model"]) == ([12.5], "m")
    assert "acme" not in json.dumps(line)

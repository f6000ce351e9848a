"""Requests end in time, are tried again while the server is the one to blame, and say what is wrong."""

import json
import ssl
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.clock import Clock, SystemClock
from core.model.component import TenantFilter
from core.model.errors import ConfigurationError, NotConfigured, Unavailable
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.vectors.opensearch import client as clients
from core.vectors.opensearch import query as queries
from core.vectors.opensearch.client import Client, Refusal, TimeBudget, connect
from core.vectors.opensearch.index import IndexOptions
from core.vectors.opensearch.query import Json
from core.vectors.opensearch.store import OpenSearchVectorStore, cosine
from core.vectors.opensearch.writes import MAX_BULK_BYTES, MAX_BULK_ITEMS, Operation, as_stored, batches, deleting
from tests.support.certificate import self_signed
from tests.support.clock import ManualClock
from tests.support.loopback import Answer, Request, serving
from tests.vectors.records import chunk_id, direction

TENANT = Tenant("tenant")
SPACE = VectorSpace(model="model", dimensions=2)
FOUND: Json = {"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": [], "total": {"value": 7}}}
OPERATIONS = [deleting(TENANT, chunk_id(index)) for index in range(3)]


def answer(body: Json, status: int = 200) -> Answer:
    return Answer(status, json.dumps(body).encode())


def error(status: int, kind: str = "some_exception") -> Answer:
    return answer({"error": {"type": kind, "reason": "secret text", "root_cause": []}, "status": status}, status)


def items(*statuses: int) -> Answer:
    """A bulk's answer, an item a status."""
    failed = {"error": {"type": "some_exception", "reason": "secret text"}}
    results: list[Json] = [
        {"status": status, **({"result": "deleted"} if status < 300 else failed)} for status in statuses
    ]
    return answer({"errors": True, "items": [{"delete": result} for result in results]})


@contextmanager
def client_of(*answers: Answer, clock: Clock | None = None) -> Iterator[tuple[Client, list[Request]]]:
    """A client of a server with these answers, one after the other and the last for ever; what it is asked."""
    asked: list[Request] = []

    def respond(request: Request) -> Answer:
        asked.append(request)
        return answers[min(len(asked), len(answers)) - 1]

    with serving(respond) as url:
        client = Client(connect(url, "none"), clock or ManualClock())
        yield client, asked
        client.close()


def count(client: Client) -> int:
    found: int = client.search(TENANT, "index", queries.how_many(TENANT))["hits"]["total"]["value"]
    return found


class TestSearching:
    @pytest.mark.parametrize("status", [429, 502, 503, 504])
    def test_a_busy_server_is_asked_again(self, status: int) -> None:
        with client_of(error(status), error(status), answer(FOUND)) as (client, asked):
            assert count(client) == 7
            assert len(asked) == 3

    @pytest.mark.parametrize("missing", [{"timed_out": True}, {"_shards": {"failed": 1}}])
    def test_an_answer_without_some_shards_is_none(self, missing: Json) -> None:
        with client_of(answer(FOUND | missing), answer(FOUND)) as (client, asked):
            assert count(client) == 7
            assert len(asked) == 2

    def test_a_server_that_stays_busy_is_unavailable_and_the_caller_learns_when_to_come_back(self) -> None:
        clock = ManualClock()
        with client_of(error(429), clock=clock) as (client, asked):
            with pytest.raises(Unavailable) as raised:
                count(client)
            assert raised.value.extras["retry_after_s"] > 0
            assert 2 <= len(asked) <= clients.BACKOFF.tries
            assert clock.monotonic() <= clients.SEARCH.total

    @pytest.mark.parametrize("status", [400, 409, 413, 500])
    def test_other_refusals_are_not_tried_again_and_their_text_stays_out(self, status: int) -> None:
        with client_of(error(status)) as (client, asked):
            with pytest.raises(Refusal) as raised:
                count(client)
            assert len(asked) == 1
            assert str(raised.value) == f"OpenSearch answered {status} some_exception"

    @pytest.mark.parametrize("status", [401, 403])
    def test_wrong_credentials_are_not_tried_again(self, status: int) -> None:
        with client_of(error(status)) as (client, asked):
            with pytest.raises(NotConfigured, match="credentials"):
                count(client)
            assert len(asked) == 1

    @pytest.mark.parametrize(
        "page", [Answer(200, b"<html>", "text/html"), Answer(200, b"[]"), Answer(200, b"hello", "text/plain")]
    )
    def test_what_is_no_opensearch_is_said_to_be_none(self, page: Answer) -> None:
        with client_of(page) as (client, _), pytest.raises(NotConfigured, match="is not OpenSearch"):
            count(client)


class TestWriting:
    def test_only_items_that_the_server_was_too_busy_for_are_sent_again(self) -> None:
        with client_of(items(200, 429, 503), items(503, 200), items(200)) as (client, asked):
            results = client.bulk(TENANT, "index", OPERATIONS, wait=True)
        assert [result["status"] for result in results] == [200, 200, 200]
        sent = [[json.loads(line)["delete"]["_id"] for line in request.body.splitlines()] for request in asked]
        ids = [operation.id for operation in OPERATIONS]
        assert sent == [ids, ids[1:], ids[1:2]]

    def test_a_whole_request_is_sent_again_when_the_server_was_too_busy_for_it(self) -> None:
        with client_of(error(429), items(200, 200, 200)) as (client, asked):
            client.bulk(TENANT, "index", OPERATIONS, wait=True)
            assert asked[0] == asked[1]

    def test_an_item_that_is_refused_is_an_error_and_its_text_stays_out(self) -> None:
        with client_of(items(200, 400, 429), items(200)) as (client, _), pytest.raises(Refusal) as raised:
            client.bulk(TENANT, "index", OPERATIONS, wait=True)
        assert str(raised.value) == "OpenSearch answered 400 some_exception"

    def test_items_that_stay_refused_for_load_are_unavailable_in_time(self) -> None:
        clock = ManualClock()
        with client_of(items(200, 200, 429), items(429), clock=clock) as (client, _), pytest.raises(Unavailable):
            client.bulk(TENANT, "index", OPERATIONS, wait=True)
        assert clock.monotonic() <= clients.WRITE.total

    @pytest.mark.parametrize("wait", [True, False])
    def test_a_bulk_needs_its_alias_and_waits_only_where_it_can(self, wait: bool) -> None:
        with client_of(items(200, 200, 200)) as (client, asked):
            client.bulk(TENANT, "index", OPERATIONS, wait=wait)
        assert "require_alias=true" in asked[0].target
        assert ("refresh=wait_for" in asked[0].target) is wait

    @given(st.lists(st.integers(0, MAX_BULK_BYTES // 2), max_size=12))
    def test_batches_keep_order_and_size(self, sizes: list[int]) -> None:
        operations = [Operation(str(place), {"text": "x" * size}) for place, size in enumerate(sizes)]
        made = list(batches(operations))
        assert [operation for batch in made for operation in batch] == operations
        assert all(sum(len(operation.encoded) for operation in batch) <= MAX_BULK_BYTES for batch in made)

    def test_a_batch_has_a_bounded_number_of_operations(self) -> None:
        made = list(batches([deleting(TENANT, chunk_id(index)) for index in range(2 * MAX_BULK_ITEMS + 1)]))
        assert [len(batch) for batch in made] == [MAX_BULK_ITEMS, MAX_BULK_ITEMS, 1]

    @given(st.integers(0, 2**32), st.integers(2, 64))
    def test_a_vector_is_sent_so_that_its_float32_stays_the_same(self, seed: int, dimensions: int) -> None:
        vector = direction(seed, dimensions)
        sent = json.loads(json.dumps(as_stored(vector, VectorSpace(model="m", dimensions=dimensions))))
        assert float32(sent) == float32(vector)

    @given(st.floats(-1, 1))
    def test_a_score_comes_back_as_the_cosine(self, product: float) -> None:
        score = 1 + product if product >= 0 else 1 / (1 - product)
        assert cosine(score) == pytest.approx(product, abs=1e-9)


def float32(numbers: Any) -> bytes:
    return array("f", numbers).tobytes()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets that a test can wait for."""
    for name in ("START", "SEARCH", "WRITE"):
        monkeypatch.setattr(clients, name, TimeBudget(total=1.2, one_try=0.6))


CALLS: dict[str, Callable[[Client], object]] = {
    "look at an index": lambda client: client.index("index"),
    "make an index": lambda client: client.create_index("index", {}),
    "search": count,
    "bulk": lambda client: client.bulk(TENANT, "index", OPERATIONS, wait=True),
}


class TestOutage:
    @pytest.mark.parametrize("call", CALLS)
    def test_a_server_that_does_not_answer_is_unavailable_within_the_budget(self, call: str, short: None) -> None:
        released, clock = Event(), SystemClock()

        def hang(_: Request) -> Answer:
            released.wait(30)
            return answer(FOUND)

        with serving(hang) as url:
            client = Client(connect(url, "none"), clock)
            started = clock.monotonic()
            try:
                with pytest.raises(Unavailable):
                    CALLS[call](client)
                # Connecting is quick on this machine; the rest is the budget.
                assert clock.monotonic() - started < 1.2 + 2.0
            finally:
                released.set()
                client.close()

    @pytest.mark.parametrize("call", CALLS)
    def test_a_refused_connection_is_unavailable(self, call: str) -> None:
        with serving(lambda _: answer(FOUND)) as url:
            pass
        client = Client(connect(url, "none"), ManualClock())
        with pytest.raises(Unavailable) as raised:
            CALLS[call](client)
        assert raised.value.extras["retry_after_s"] > 0

    def test_a_server_without_a_trusted_certificate_is_no_server(self, tmp_path: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self_signed(tmp_path))
        with serving(lambda _: answer(FOUND), tls=context) as url:
            client = Client(connect(url, "none"), ManualClock())
            with pytest.raises(NotConfigured, match="TLS"):
                count(client)

    def test_a_server_that_does_not_speak_tls_is_no_server(self) -> None:
        with serving(lambda _: answer(FOUND)) as url:
            client = Client(connect(url.replace("http:", "https:"), "none"), ManualClock())
            with pytest.raises(NotConfigured, match="TLS"):
                count(client)

    def test_the_library_logs_no_document(self, caplog: pytest.LogCaptureFixture) -> None:
        fields = {"tenant_id": "tenant", "chunk_id": str(chunk_id(0)), "text": "words"}
        operation = Operation(f"tenant~{chunk_id(0)}", fields)
        with caplog.at_level("DEBUG"), client_of(error(400)) as (client, _), pytest.raises(Refusal):
            client.bulk(TENANT, "index", [operation], wait=True)
        assert "words" not in caplog.text
        assert "secret" not in caplog.text


class TestStart:
    def test_wrong_credentials_are_a_configuration_error_at_start_and_say_so_in_a_call(self) -> None:
        with client_of(error(403)) as (client, _):
            store = OpenSearchVectorStore(client, IndexOptions(), ManualClock())
            with pytest.raises(ConfigurationError, match="credentials"):
                store.prepare(SPACE)
            with pytest.raises(NotConfigured, match="credentials"):
                store.count(TENANT, SPACE)
            assert store.tenant_filter() is TenantFilter.UNVERIFIED

    def test_a_server_that_sleeps_is_unavailable_at_start_and_proven_later(self) -> None:
        with client_of(error(503)) as (client, _):
            store = OpenSearchVectorStore(client, IndexOptions(), ManualClock())
            with pytest.raises(Unavailable):
                store.prepare(SPACE)
            assert store.tenant_filter() is TenantFilter.UNVERIFIED

    @pytest.mark.parametrize("url", ["", "search.example", "ftp://search.example", "/path"])
    def test_what_is_no_url_is_refused(self, url: str) -> None:
        with pytest.raises(ConfigurationError, match="WEFT_OPENSEARCH_URL"):
            connect(url, "none")

    @pytest.mark.parametrize("service", ["es", "aoss"])
    def test_requests_are_signed_for_the_service(self, service: Any) -> None:
        seen: list[str] = []

        def respond(request: Request) -> Answer:
            seen.append(request.headers["authorization"])
            assert request.headers["x-amz-content-sha256"]
            return answer(FOUND)

        with serving(respond) as url:
            client = Client(connect(url, service), ManualClock())
            assert count(client) == 7
            client.close()
        assert f"/{service}/aws4_request" in seen[0]

    def test_signing_needs_credentials(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
        with pytest.raises(ConfigurationError, match="region"):
            connect("https://search.example", "aoss")

"""Page tokens are opaque and signed, and belong to one tenant and one query."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.metadata import table
from core.metadata.dynamo import Table
from core.metadata.paging import PageTokens
from core.model.errors import InvalidArgument
from core.model.tenant import Tenant
from tests.support.clock import ManualClock
from tests.support.dynamodb import MemoryDynamoDB
from tests.support.engines import ACME, GLOBEX, TABLE, World

QUERY: dict[str, Any] = {"list": "documents", "collection": "col_1", "order": "newest"}


@pytest.fixture
def rows() -> Table:
    clock = ManualClock()
    memory: Any = MemoryDynamoDB(clock.monotonic)
    return Table(memory, TABLE, clock)


@pytest.fixture
def tokens(rows: Table) -> PageTokens:
    return PageTokens(rows)


def refused(tokens: PageTokens, tenant: Tenant, query: dict[str, Any], token: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        tokens.read(tenant, query, token)
    assert error.value.extras == {"field": "page_token"}


@pytest.mark.parametrize("position", ["doc_1", "", "é\ud800", 7, None, ["a", 1], {"pk": "x"}])
def test_a_page_token_returns_its_position(tokens: PageTokens, position: Any) -> None:
    assert tokens.read(ACME, QUERY, tokens.write(ACME, QUERY, position)) == position


def test_a_page_token_of_another_tenant_is_refused(tokens: PageTokens) -> None:
    refused(tokens, GLOBEX, QUERY, tokens.write(ACME, QUERY, "doc_1"))


@pytest.mark.parametrize(
    "other",
    [
        {**QUERY, "order": "oldest"},
        {**QUERY, "collection": "col_2"},
        {**QUERY, "collection": None},
        {**QUERY, "list": "chunks"},
        {**QUERY, "state": "ready"},
        {},
    ],
)
def test_a_page_token_of_another_query_is_refused(tokens: PageTokens, other: dict[str, Any]) -> None:
    refused(tokens, ACME, other, tokens.write(ACME, QUERY, "doc_1"))


@pytest.mark.parametrize(
    "token",
    ["", "x", "é", "\ud800", "====", "AAAA", "A" * 4096, base64.urlsafe_b64encode(b"0" * 16 + b'"doc_1"').decode()],
)
def test_a_made_up_page_token_is_refused(tokens: PageTokens, token: str) -> None:
    refused(tokens, ACME, QUERY, token)


def test_a_page_token_that_is_cut_anywhere_is_refused(tokens: PageTokens) -> None:
    token = tokens.write(ACME, QUERY, "doc_1")
    for length in range(len(token)):
        refused(tokens, ACME, QUERY, token[:length])


@given(st.integers(0, 22), st.integers(1, 255))
def test_a_page_token_with_one_changed_byte_is_refused(place: int, change: int) -> None:
    memory: Any = MemoryDynamoDB()
    tokens = PageTokens(Table(memory, TABLE, ManualClock()))
    token = tokens.write(ACME, QUERY, "doc_1")
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    raw[place] ^= change
    refused(tokens, ACME, QUERY, base64.urlsafe_b64encode(bytes(raw)).decode())


def test_a_page_token_does_not_contain_its_position_in_clear(tokens: PageTokens, rows: Table) -> None:
    key = (rows.get(table.PAGE_TOKEN_KEY) or {}).get("key", "none yet")
    assert key not in tokens.write(ACME, QUERY, "doc_1")


def test_a_page_token_is_read_by_another_process_with_the_key_in_the_table(rows: Table) -> None:
    token = PageTokens(rows).write(ACME, QUERY, "doc_1")
    assert PageTokens(rows).read(ACME, QUERY, token) == "doc_1"
    assert len(bytes.fromhex((rows.get(table.PAGE_TOKEN_KEY) or {})["key"])) == 32


def test_two_processes_that_start_at_the_same_time_use_the_same_signing_key(rows: Table) -> None:
    memory: Any = rows._client
    first, second = PageTokens(rows), PageTokens(rows)
    read, made = memory.get_item, []

    def read_then_let_the_other_go_first(**arguments: Any) -> Any:
        memory.get_item = read
        answer = read(**arguments)
        made.append(second.write(ACME, QUERY, "doc_1"))
        return answer

    memory.get_item = read_then_let_the_other_go_first
    assert first.read(ACME, QUERY, first.write(ACME, QUERY, "doc_2")) == "doc_2"
    assert first.read(ACME, QUERY, made[0]) == "doc_1"


def test_a_page_token_of_another_table_is_refused(tokens: PageTokens) -> None:
    memory: Any = MemoryDynamoDB()
    other = PageTokens(Table(memory, TABLE, ManualClock()))
    refused(tokens, ACME, QUERY, other.write(ACME, QUERY, "doc_1"))


def test_the_signing_key_lies_outside_every_tenants_partitions(world: World) -> None:
    assert table.tenant_of(table.PAGE_TOKEN_KEY) is None

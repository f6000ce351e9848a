"""Page tokens: opaque, signed, and of one tenant and one query."""

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
def test_a_token_gives_its_position_back(tokens: PageTokens, position: Any) -> None:
    assert tokens.read(ACME, QUERY, tokens.write(ACME, QUERY, position)) == position


def test_a_token_is_of_one_tenant(tokens: PageTokens) -> None:
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
def test_a_token_is_of_one_query(tokens: PageTokens, other: dict[str, Any]) -> None:
    refused(tokens, ACME, other, tokens.write(ACME, QUERY, "doc_1"))


@pytest.mark.parametrize(
    "token",
    ["", "x", "é", "\ud800", "====", "AAAA", "A" * 4096, base64.urlsafe_b64encode(b"0" * 16 + b'"doc_1"').decode()],
)
def test_a_token_that_nobody_made_is_refused(tokens: PageTokens, token: str) -> None:
    refused(tokens, ACME, QUERY, token)


def test_a_token_cut_anywhere_is_refused(tokens: PageTokens) -> None:
    token = tokens.write(ACME, QUERY, "doc_1")
    for length in range(len(token)):
        refused(tokens, ACME, QUERY, token[:length])


@given(st.integers(0, 22), st.integers(1, 255))
def test_a_token_with_one_byte_changed_is_refused(place: int, change: int) -> None:
    memory: Any = MemoryDynamoDB()
    tokens = PageTokens(Table(memory, TABLE, ManualClock()))
    token = tokens.write(ACME, QUERY, "doc_1")
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    raw[place] ^= change
    refused(tokens, ACME, QUERY, base64.urlsafe_b64encode(bytes(raw)).decode())


def test_a_token_says_nothing_in_clear_of_its_key(tokens: PageTokens, rows: Table) -> None:
    key = (rows.get(table.PAGE_TOKEN_KEY) or {}).get("key", "none yet")
    assert key not in tokens.write(ACME, QUERY, "doc_1")


def test_a_token_holds_over_processes_since_its_key_lies_in_the_table(rows: Table) -> None:
    token = PageTokens(rows).write(ACME, QUERY, "doc_1")
    assert PageTokens(rows).read(ACME, QUERY, token) == "doc_1"
    assert len(bytes.fromhex((rows.get(table.PAGE_TOKEN_KEY) or {})["key"])) == 32


def test_of_two_processes_that_start_at_once_both_use_the_first_ones_key(rows: Table) -> None:
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


def test_another_tables_token_is_refused(tokens: PageTokens) -> None:
    memory: Any = MemoryDynamoDB()
    other = PageTokens(Table(memory, TABLE, ManualClock()))
    refused(tokens, ACME, QUERY, other.write(ACME, QUERY, "doc_1"))


def test_the_key_lies_outside_every_tenant(world: World) -> None:
    assert table.tenant_of(table.PAGE_TOKEN_KEY) is None

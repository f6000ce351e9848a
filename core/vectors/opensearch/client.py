"""Requests to OpenSearch: guarded, bounded in time, and tried again while the server is the one to blame."""

import logging
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import boto3
from opensearchpy import OpenSearch, Transport, Urllib3AWSV4SignerAuth, Urllib3HttpConnection
from opensearchpy.exceptions import (
    ConnectionError,
    ImproperlyConfigured,
    NotFoundError,
    SerializationError,
    SSLError,
    TransportError,
)
from urllib3.util import Timeout

from core.clock import Clock
from core.model.errors import ConfigurationError, NotConfigured, Unavailable
from core.model.tenant import Tenant
from core.retry import Backoff, attempts
from core.vectors.opensearch.query import Json, check_search
from core.vectors.opensearch.writes import Operation, check_bulk

Auth = Literal["none", "es", "aoss"]
"""``es`` and ``aoss`` are the names under which AWS signs requests to domains and to Serverless."""

CONNECTIONS = 32
CONNECT_S = 2.0
BACKOFF = Backoff(tries=8, first_wait_s=0.1, longest_wait_s=4.0)
SHORTEST_TRY_S = 0.5
RETRY_AFTER_S = 5
TRANSIENT = frozenset({429, 502, 503, 504})
REFUSED = frozenset({401, 403})

# Below this level the library logs requests, which hold documents.
for _name in ("opensearch", "opensearchpy.trace"):
    logging.getLogger(_name).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """How long a request may take with all its tries, and how long one of them. In seconds."""

    total: float
    one_try: float


START = TimeBudget(total=6.0, one_try=5.0)
SEARCH = TimeBudget(total=8.0, one_try=5.0)
WRITE = TimeBudget(total=20.0, one_try=15.0)


class IndexMissing(Exception):
    """No index has that name."""


class Refusal(Exception):
    """An error that trying again does not mend. ``kind`` is the server's word for it."""

    def __init__(self, status: int, kind: str) -> None:
        super().__init__(f"OpenSearch answered {status} {kind}")
        self.status = status
        self.kind = kind


def connect(url: str, auth: Auth) -> Transport:
    """A connection that leaves retrying to ``Client``. Nothing is sent yet.

    Args:
        url: of the domain, the collection or a node.
        auth: how requests are signed, with the credentials and the region of the environment.

    Raises:
        ConfigurationError: the URL is none, or credentials or region are missing.
    """
    if not url.startswith(("https://", "http://")):
        raise ConfigurationError("WEFT_OPENSEARCH_URL: begins with https:// or http://")
    try:
        return OpenSearch(
            [url],
            http_auth=None if auth == "none" else _signer(auth),
            connection_class=Urllib3HttpConnection,
            pool_maxsize=CONNECTIONS,
            max_retries=0,
        ).transport
    except (ImproperlyConfigured, ValueError) as error:
        raise ConfigurationError("WEFT_OPENSEARCH_URL: not the URL of an OpenSearch") from error


def _signer(service: str) -> Urllib3AWSV4SignerAuth:
    session = boto3.Session()
    credentials = session.get_credentials()
    if credentials is None or session.region_name is None:
        raise ConfigurationError("WEFT_OPENSEARCH_AUTH: needs AWS credentials and a region (AWS_REGION)")
    return Urllib3AWSV4SignerAuth(credentials, session.region_name, service)


class Client:
    """The one way to the server. Thread-safe.

    Every function raises ``Unavailable`` when the server does not answer within the budget, ``NotConfigured`` when
    it refuses the credentials or is no OpenSearch, ``IndexMissing``, and ``Refusal`` for anything else.
    """

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock

    def index(self, name: str) -> Json | None:
        """What a name, or an alias, stands for: descriptions by index; None for nothing."""
        try:
            return self._request("GET", f"/{name}", START)
        except IndexMissing:
            return None

    def create_index(self, name: str, definition: Json) -> None:
        """Makes an index. One that is there already is left as it is."""
        try:
            self._request("PUT", f"/{name}", START, body=definition)
        except Refusal as refusal:
            if refusal.kind != "resource_already_exists_exception":
                raise

    def search(self, tenant: Tenant, index: str, body: Json) -> Json:
        """A whole answer, of every shard.

        Raises:
            Refused: the body is not confined to the tenant. Nothing is sent.
        """
        check_search(tenant, body)
        return self._request("POST", f"/{index}/_search", SEARCH, body=body)

    def bulk(self, tenant: Tenant, index: str, operations: Sequence[Operation], *, wait: bool) -> list[Json]:
        """Writes and deletes. Items that the server was too busy for are sent again.

        Args:
            wait: for searches to see what is written.

        Returns: What became of each operation, in order.

        Raises:
            Refused: an operation is not confined to the tenant. Nothing is sent.
        """
        check_bulk(tenant, operations)
        if not operations:
            return []
        # Without an alias, a bulk would make an index with a mapping of its own.
        params = {"require_alias": "true", **({"refresh": "wait_for"} if wait else {})}
        results: dict[int, Json] = {}
        open_ = list(range(len(operations)))
        for timeout_s in _timeouts(self._clock, WRITE):
            body = b"".join(operations[place].encoded for place in open_)
            answer = self._try("POST", f"/{index}/_bulk", timeout_s, params=params, body=body)
            if answer is None:
                continue
            for place, item in zip(open_, answer["items"], strict=True):
                [results[place]] = item.values()
            open_ = [place for place in open_ if results[place]["status"] in TRANSIENT]
            if not open_:
                break
        if open_:
            raise _unavailable()
        for result in results.values():
            _check_item(result)
        return [results[place] for place in range(len(operations))]

    def close(self) -> None:
        """Lets go of the connections."""
        self._transport.close()

    def _request(self, method: str, path: str, budget: TimeBudget, *, body: Json | None = None) -> Json:
        for timeout_s in _timeouts(self._clock, budget):
            answer = self._try(method, path, timeout_s, body=body)
            if answer is not None and _is_whole(answer):
                return answer
        raise _unavailable()

    def _try(
        self, method: str, path: str, timeout_s: float, *, params: dict[str, str] | None = None, body: Any = None
    ) -> Json | None:
        """One try: the answer, or None when another may help."""
        # The library hands the value on as it is, and calls it a number.
        timeout: Any = Timeout(connect=min(CONNECT_S, timeout_s), read=timeout_s)
        try:
            answer = self._transport.perform_request(method, path, params=params, body=body, timeout=timeout)
        except SSLError as error:
            raise _tls_failure(error) from error
        except ConnectionError:
            return None
        except TransportError as error:
            if error.status_code in TRANSIENT:
                return None
            raise _failure(error) from error
        except SerializationError as error:
            raise NotConfigured("What answers at WEFT_OPENSEARCH_URL is not OpenSearch") from error
        if not isinstance(answer, dict):
            raise NotConfigured("What answers at WEFT_OPENSEARCH_URL is not OpenSearch")
        return answer


def _timeouts(clock: Clock, budget: TimeBudget) -> Iterator[float]:
    """Yields the time-out of each try, in seconds, as long as the time budget leaves time for another try."""
    end = clock.monotonic() + budget.total
    for _ in attempts(clock, BACKOFF, end - SHORTEST_TRY_S):
        yield min(budget.one_try, end - clock.monotonic())


def _is_whole(answer: Json) -> bool:
    """Whether, if it is a search's, every shard has answered in time."""
    return not answer.get("timed_out") and not answer.get("_shards", {}).get("failed")


def _check_item(result: Json) -> None:
    """One item's result, whose status no other try mends. A record that is not there is no error of a delete."""
    if (error := result.get("error")) is not None:
        if error["type"] == "index_not_found_exception":
            raise IndexMissing
        raise Refusal(result["status"], error["type"])


def _unavailable() -> Unavailable:
    return Unavailable("The vector store throttles or does not answer", retry_after_s=RETRY_AFTER_S)


def _tls_failure(error: SSLError) -> Exception:
    reason = next(iter(getattr(error.info, "args", ())), None)
    # The other side hung up in the middle: it may be starting or ending.
    if isinstance(reason, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return _unavailable()
    return NotConfigured("The vector store's TLS certificate cannot be verified, or it does not speak TLS")


def _failure(error: TransportError) -> Exception:
    """What a refusal means. The server's own text may hold parts of documents, and stays out."""
    if error.status_code in REFUSED:
        return NotConfigured(
            f"The vector store refuses the credentials ({error.status_code}): check WEFT_OPENSEARCH_AUTH, the role's "
            "policy and the access policy of the domain or the collection"
        )
    if isinstance(error, NotFoundError) and error.error == "index_not_found_exception":
        return IndexMissing()
    return Refusal(int(error.status_code), error.error)

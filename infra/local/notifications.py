"""S3's notifications.

moto's own name no version and no sequencer, come twice for a multipart upload and not at all for a delete in a
versioned bucket. So they are made here, in front of moto, out of the requests that S3 clients send and the answers
that they get. Writes to the bucket run one at a time, so that the order of sequencers is the order of writes.
"""

import io
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, quote_plus
from xml.etree import ElementTree

from infra.local.names import ACCOUNT, BUCKET, REGION

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from types_boto3_s3 import S3Client

SUBRESOURCES = frozenset({"acl", "tagging", "retention", "legal-hold", "partNumber", "uploads", "restore", "select"})
"""Queries under which a request to an object writes no content."""

_ERROR = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>ServiceUnavailable</Code></Error>'


class Sequencer:
    """Numbers that rise, as S3's sequencer does: hex digits of a fixed length."""

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self._lock = threading.Lock()

    def next(self) -> str:
        with self._lock:
            self.last = max(self.last + 1, time.time_ns())
            return f"{self.last:018X}"


class Change(NamedTuple):
    """One write: ``ObjectCreated:Put``, the object's key, and its version, where the answer named it."""

    event: str
    key: str
    version: str | None


class Reply(NamedTuple):
    """What the application behind answered."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def ok(self) -> bool:
        return self.status.startswith("2")

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


class Notifications:
    """WSGI middleware that hands on one event record for every object written or removed.

    Args:
        application: the S3 service.
    """

    def __init__(self, application: "WSGIApplication") -> None:
        self.sequencer = Sequencer()
        self._application = application
        self._lock = threading.Lock()
        self._kinds: tuple[str, ...] = ()
        self._client: S3Client | None = None
        self._deliver: Callable[[dict[str, Any]], None] | None = None
        self._closed = False

    def start(self, kinds: Iterable[str], client: "S3Client", deliver: Callable[[dict[str, Any]], None]) -> None:
        """From now on records of these kinds (``s3:ObjectCreated:*``) go to ``deliver``. Until now none did."""
        self._kinds, self._client, self._deliver = tuple(kinds), client, deliver

    def close(self) -> None:
        """Refuses every later write to the bucket; returns when the last one has been handed on."""
        with self._lock:
            self._closed = True

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
        if environ["REQUEST_METHOD"] not in ("PUT", "POST", "DELETE") or path.split("/")[1:2] != [BUCKET]:
            return self._application(environ, start_response)
        # The body is read before the others are kept waiting.
        environ["wsgi.input"] = io.BytesIO(read_body(environ))
        with self._lock:
            reply = self._write(environ, path.removeprefix(f"/{BUCKET}").removeprefix("/"))
        start_response(reply.status, reply.headers)
        return [reply.body]

    def _write(self, environ: "WSGIEnvironment", key: str) -> Reply:
        if self._closed:
            return Reply("503 Service Unavailable", [("Content-Type", "application/xml")], _ERROR)
        reply = self._forward(environ)
        if reply.ok and self._deliver is not None:
            for change in changes(environ, key, reply):
                if any(fnmatchcase(f"s3:{change.event}", kind) for kind in self._kinds):
                    self._deliver(self._record(change))
        return reply

    def _forward(self, environ: "WSGIEnvironment") -> Reply:
        answered: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(
            status: str, headers: list[tuple[str, str]], _error: object = None, /
        ) -> Callable[[bytes], object]:
            answered.append((status, headers))
            return io.BytesIO().write

        body = b"".join(self._application(environ, start_response))
        status, headers = answered[-1]
        return Reply(status, headers, body)

    def _record(self, change: Change) -> dict[str, Any]:
        described: dict[str, Any] = {"key": quote_plus(change.key, safe="/"), "sequencer": self.sequencer.next()}
        version = change.version
        if change.event.startswith("ObjectCreated") and self._client is not None:
            head = self._client.head_object(Bucket=BUCKET, Key=change.key)
            version = head["VersionId"]
            described |= {"size": head["ContentLength"], "eTag": head["ETag"].strip('"')}
        if version is not None:
            described["versionId"] = version
        return {
            "eventVersion": "2.1",
            "eventSource": "aws:s3",
            "awsRegion": REGION,
            "eventTime": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "eventName": change.event,
            "userIdentity": {"principalId": f"AWS:{ACCOUNT}"},
            "requestParameters": {"sourceIPAddress": "127.0.0.1"},
            "responseElements": {"x-amz-request-id": uuid.uuid4().hex[:16].upper(), "x-amz-id-2": uuid.uuid4().hex},
            "s3": {
                "s3SchemaVersion": "1.0",
                "configurationId": "uploads",
                "bucket": {
                    "name": BUCKET,
                    "ownerIdentity": {"principalId": ACCOUNT},
                    "arn": f"arn:aws:s3:::{BUCKET}",
                },
                "object": described,
            },
        }


def changes(environ: "WSGIEnvironment", key: str, reply: Reply) -> Iterator[Change]:
    """What an accepted request to the bucket changed."""
    method = environ["REQUEST_METHOD"]
    query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    version = reply.header("x-amz-version-id")
    if not key:
        if method == "POST" and "delete" in query:
            yield from _removals(reply.body)
    elif SUBRESOURCES & query.keys():
        return
    elif method == "PUT":
        yield Change(f"ObjectCreated:{'Copy' if 'HTTP_X_AMZ_COPY_SOURCE' in environ else 'Put'}", key, version)
    elif method == "POST" and "uploadId" in query:
        yield Change("ObjectCreated:CompleteMultipartUpload", key, version)
    elif method == "DELETE" and "uploadId" not in query and version is not None:
        marker = "versionId" not in query
        yield Change(f"ObjectRemoved:{'DeleteMarkerCreated' if marker else 'Delete'}", key, version)


def _removals(body: bytes) -> Iterator[Change]:
    """What a DeleteObjects answer says was removed."""
    for deleted in ElementTree.fromstring(body).iterfind("{*}Deleted"):  # noqa: S314 - moto's own answer
        key = deleted.findtext("{*}Key") or ""
        marker, version = deleted.findtext("{*}DeleteMarkerVersionId"), deleted.findtext("{*}VersionId")
        if marker:
            yield Change("ObjectRemoved:DeleteMarkerCreated", key, marker)
        elif version:
            yield Change("ObjectRemoved:Delete", key, version)


def read_body(environ: "WSGIEnvironment") -> bytes:
    """A request's whole body."""
    if environ.get("wsgi.input_terminated"):
        return bytes(environ["wsgi.input"].read())
    return bytes(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))

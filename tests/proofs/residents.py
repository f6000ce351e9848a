"""Tenants that share the stores: the things of each tenant that are secret, and the things that other tenants know.

The form of every word, identifier and name says that it is one, and each is traced to its owner. No other tenant ever
sends a word that begins with ``sec``, so such a word proves a leak wherever another tenant receives it.
"""

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from random import Random
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel

from core.engine import Engine
from core.model.collection import NewCollection
from core.model.document import source_id
from core.model.ids import ChunkId, CollectionId, DocumentId, UploadId
from core.model.ingest import IngestInput
from core.model.page import Page, PageRequest
from core.model.query import RetrieveQuery
from core.model.tenant import Tenant
from core.model.upload import NewUpload

MILLISECONDS = 1_767_225_600_000
"""The time in identifiers that do not exist: 2026-01-01."""
ENDLESS = 1e9
_MAC_BYTES = 16

_FORMS = ("orgq{:04}", "orgq{:04}-x", "orgq{:04}.x", "orgq{:04}:x", "ORGQ{:04}")
"""Forms of names, of which some begin like another one, or differ from another one only in case."""
_MARK = re.compile(
    r"(?:sec|pub)[0-9a-f]{12}|(?:col|doc|chk|upl)_[0-9a-hjkmnp-tv-z]{26}|(?:orgq|ORGQ)[0-9]{4}(?:[-.:]x)?"
)
_TOKEN = re.compile(r'"next_page_token": ?"([^"]+)"')


def tenant_name(number: int) -> Tenant:
    return Tenant(_FORMS[number % len(_FORMS)].format(number // len(_FORMS)))


@dataclass(frozen=True)
class Things:
    """The things of a tenant that other tenants may name. Nothing among them is secret.

    Attributes:
        field, value: the name and the value of an attribute.
        words: words in the texts of the tenant's documents.
        tokens: page tokens, by listing.
    """

    tenant: str
    collection: str
    document: str
    chunk: str
    upload: str
    name: str
    source_key: str
    field: str
    value: str
    words: str
    tokens: Mapping[str, str]

    @property
    def source_id(self) -> str:
        return source_id(self.source_key)


IDENTIFIERS = ("collection", "document", "chunk", "upload", "tokens")
"""Things that only their owner can use: no answer may tell another tenant's from one that does not exist."""


@dataclass
class Resident:
    """A tenant of the proof.

    Attributes:
        things: those of the collection that the tenant never changes; its documents hold the secret words.
        spare: those of the collection in which the tenant writes.
        secrets: words that no other tenant ever sends.
        stored: marks of other tenants that the tenant has stored in its own documents, and may receive again.
    """

    tenant: Tenant
    things: Things
    spare: Things
    secrets: tuple[str, ...]
    stored: set[str] = field(default_factory=set)


def marks(text: str) -> set[str]:
    """The marks of a text: all its words, identifiers and names, those inside its URLs and page tokens too."""
    return set(_MARK.findall(unquote(text) + " ".join(map(inside, _TOKEN.findall(text)))))


def inside(token: str) -> str:
    """The inside of a page token, as anybody can decode it."""
    return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_")[_MAC_BYTES:].decode(errors="replace")


def word(kind: str, chance: Random) -> str:
    return f"{kind}{chance.getrandbits(48):012x}"


def nowhere(chance: Random) -> Things:
    """Things of the right form that do not exist."""
    document = DocumentId.new(MILLISECONDS, chance.getrandbits(74))
    token = base64.urlsafe_b64encode(chance.randbytes(60)).decode()
    return Things(
        tenant="nobody",
        collection=CollectionId.new(MILLISECONDS, chance.getrandbits(74)),
        document=document,
        chunk=ChunkId.of(document, 1, 0),
        upload=UploadId.new(MILLISECONDS, chance.getrandbits(74)),
        **{name: word("pub", chance) for name in ("name", "source_key", "field", "value", "words")},
        tokens=dict.fromkeys(LISTINGS, token),
    )


_caller: ContextVar[Tenant | None] = ContextVar("caller", default=None)


@contextmanager
def calling(tenant: Tenant) -> Iterator[None]:
    """Rows that are written in the block are this tenant's, whatever their key says."""
    token = _caller.set(tenant)
    try:
        yield
    finally:
        _caller.reset(token)


def caller() -> Tenant | None:
    """The tenant that makes the present call; None where the engine works in another thread."""
    return _caller.get()


LISTINGS = ("collections", "documents", "all documents", "chunks", "document's chunks")


def move_in(engine: Engine, tenant: Tenant, chance: Random) -> Resident:
    """Creates the two collections of a tenant: one that the tenant never changes, and one in which it writes."""
    secrets = tuple(word("sec", chance) for _ in range(2))
    with calling(tenant):
        kept = _furnish(engine, tenant, chance, " ".join(secrets))
        spare = _furnish(engine, tenant, chance, "")
        return Resident(tenant, replace(kept, tokens=_tokens(engine, tenant, kept)), spare, secrets)


def _furnish(engine: Engine, tenant: Tenant, chance: Random, note: str) -> Things:
    """Creates a collection with a document that has a source key and one that has none. The note is secret."""
    things = replace(nowhere(chance), tenant=str(tenant))
    new = NewCollection(name=things.name, description=note, chunk_size=8, chunk_overlap=0, metadata={"note": note})
    collection = engine.collections.create(tenant, new).id
    request = IngestInput(
        collection_id=collection,
        content=f"{things.words} one two three {note}\n\n{things.words} four five six {note}".encode(),
        source_key=things.source_key,
        **described(things, chance, note),
    )
    document = engine.ingest.ingest(tenant, request, ENDLESS).document_id
    if document is None:
        raise RuntimeError("a new document has no ID")
    unkeyed = {"content": f"{things.words} seven eight {note}".encode(), "source_key": None}
    engine.ingest.ingest(tenant, request.model_copy(update=unkeyed), ENDLESS)
    upload = engine.uploads.create(
        tenant, collection, NewUpload(source_key=f"{things.source_key}.txt", title=note, size=1)
    )
    return replace(
        things,
        collection=collection,
        document=document,
        chunk=ChunkId.of(document, 1, 0),
        upload=upload.headers["x-amz-meta-weft-upload"],
    )


def described(things: Things, chance: Random, note: str = "") -> dict[str, Any]:
    """The description of a document beside its content."""
    return {
        "title": f"{things.name} {note}",
        "source": f"https://example.org/{note}",
        "metadata": {"note": note},
        "attributes": {"lang": chance.choice(["en", "de"]), "year": chance.randrange(2000, 2030), "note": note}
        | {things.field: things.value},
    }


def _tokens(engine: Engine, tenant: Tenant, things: Things) -> dict[str, str]:
    """A page token of each listing."""
    page = PageRequest(limit=1)
    collection, document = CollectionId(things.collection), DocumentId(things.document)
    listed: tuple[Page[Any], ...] = (
        engine.collections.list(tenant, page),
        engine.documents.list(tenant, page, collection_id=collection),
        engine.documents.list(tenant, page),
        engine.chunks.list(tenant, page, collection_id=collection),
        engine.chunks.list(tenant, page, document_id=document),
    )
    return {name: str(listing.next_page_token) for name, listing in zip(LISTINGS, listed, strict=True)}


def mixed(theirs: Things, mine: Things, none: Things, chance: Random) -> tuple[Things, Things]:
    """Things for one call, most of them another tenant's; and the same things with identifiers that do not exist in the
    place of the other tenant's."""
    some: dict[str, Any] = {}
    for each in fields(Things):
        some[each.name] = chance.choices((theirs, mine, none), (15, 4, 1))[0]
    spoilt = spoiling(chance) if chance.random() < 0.1 else None
    victim = chance.choice([each.name for each in fields(Things)])
    pair = []
    for other in (theirs, none):
        values = {
            name: getattr(other if owner is theirs and name in IDENTIFIERS else owner, name)
            for name, owner in some.items()
        }
        if spoilt is not None and isinstance(values[victim], str):
            values[victim] = spoilt(values[victim])
        pair.append(Things(**values))
    return pair[0], pair[1]


def spoiling(chance: Random) -> Callable[[str], str]:
    """A way to change a text a little, as an injection would."""
    more = chance.choice(["#", "\x1f", "~", "*", "%23", "/../", "'", '"', "\x00", "\u202e", "#COL#", "]}"])
    ways: list[Callable[[str], str]] = [
        str.upper,
        lambda text: text[:-1],
        lambda text: text + more,
        lambda text: more + text,
        lambda text: text[: len(text) // 2] + more + text[len(text) // 2 :],
        lambda text: text * 3,
        lambda text: "",
        lambda text: f" {text} ",
    ]
    return chance.choice(ways)


def album(engine: Engine, resident: Resident) -> list[Callable[[], BaseModel | None]]:
    """Reads everything in the collection that its tenant never changes, as the tenant sees it."""
    tenant, things = resident.tenant, resident.things
    collection = CollectionId(things.collection)
    page = PageRequest(limit=100, total=True)
    question = RetrieveQuery(query=things.words, collections=[collection])
    return [
        lambda: engine.collections.get(tenant, collection),
        lambda: engine.documents.list(tenant, page, collection_id=collection),
        lambda: engine.chunks.list(tenant, page, collection_id=collection),
        lambda: engine.retrieve(tenant, question),
        lambda: engine.uploads.get(tenant, UploadId(things.upload)),
    ]

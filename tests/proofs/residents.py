"""Tenants that live beside one another: what each keeps to itself, and what others have come to know of it.

Every word, identifier and name can be told from its form and traced to its owner: a word that begins with `sec` is
never spoken by anyone else, so it is proof of a leak wherever another hears it.
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
"""When all that is nowhere would have been made: 2026-01-01."""
ENDLESS = 1e9
_MAC_BYTES = 16

_FORMS = ("orgq{:04}", "orgq{:04}-x", "orgq{:04}.x", "orgq{:04}:x", "ORGQ{:04}")
"""Names of which one begins as another does, or differs in case alone."""
_MARK = re.compile(
    r"(?:sec|pub)[0-9a-f]{12}|(?:col|doc|chk|upl)_[0-9a-hjkmnp-tv-z]{26}|(?:orgq|ORGQ)[0-9]{4}(?:[-.:]x)?"
)
_TOKEN = re.compile(r'"next_page_token": ?"([^"]+)"')


def tenant_name(number: int) -> Tenant:
    return Tenant(_FORMS[number % len(_FORMS)].format(number // len(_FORMS)))


@dataclass(frozen=True)
class Things:
    """What a tenant has and others may name. Nothing in it is secret.

    Attributes:
        field, value: of an attribute.
        words: they are in the texts of its documents.
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
"""What only its owner can have: an answer may not tell another's from one that is nowhere."""


@dataclass
class Resident:
    """A tenant of a proof.

    Attributes:
        things: of the collection that it never changes; its documents hold secret words.
        spare: of the collection in which it writes.
        secrets: words that no other tenant ever says.
        stored: marks of others that it has stored among its own, and may hear again.
    """

    tenant: Tenant
    things: Things
    spare: Things
    secrets: tuple[str, ...]
    stored: set[str] = field(default_factory=set)


def marks(text: str) -> set[str]:
    """All words, identifiers and names in a text, those inside its URLs and page tokens too."""
    return set(_MARK.findall(unquote(text) + " ".join(map(inside, _TOKEN.findall(text)))))


def inside(token: str) -> str:
    """What a page token says to whoever decodes it."""
    return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_")[_MAC_BYTES:].decode(errors="replace")


def word(kind: str, chance: Random) -> str:
    return f"{kind}{chance.getrandbits(48):012x}"


def nowhere(chance: Random) -> Things:
    """Things of the right form that nobody has."""
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
    """Whatever is written in the block is written for this tenant, whichever key it has."""
    token = _caller.set(tenant)
    try:
        yield
    finally:
        _caller.reset(token)


def caller() -> Tenant | None:
    """For whom this is called; None where the engine has taken another thread."""
    return _caller.get()


LISTINGS = ("collections", "documents", "all documents", "chunks", "document's chunks")


def settle(engine: Engine, tenant: Tenant, chance: Random) -> Resident:
    """A tenant moves in: one collection for good, and one to write in."""
    secrets = tuple(word("sec", chance) for _ in range(2))
    with calling(tenant):
        kept = _furnish(engine, tenant, chance, " ".join(secrets))
        spare = _furnish(engine, tenant, chance, "")
        return Resident(tenant, replace(kept, tokens=_tokens(engine, tenant, kept)), spare, secrets)


def _furnish(engine: Engine, tenant: Tenant, chance: Random, note: str) -> Things:
    """A collection with a document that has a key and one that has none; a note is secret."""
    things = replace(nowhere(chance), tenant=str(tenant))
    new = NewCollection(name=things.name, description=note, chunk_size=8, chunk_overlap=0, metadata={"note": note})
    collection = engine.collections.create(tenant, new).id
    given = IngestInput(
        collection_id=collection,
        content=f"{things.words} one two three {note}\n\n{things.words} four five six {note}".encode(),
        source_key=things.source_key,
        **described(things, chance, note),
    )
    document = engine.ingest.ingest(tenant, given, ENDLESS).document_id
    if document is None:
        raise RuntimeError("a new document has no ID")
    unkeyed = {"content": f"{things.words} seven eight {note}".encode(), "source_key": None}
    engine.ingest.ingest(tenant, given.model_copy(update=unkeyed), ENDLESS)
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
    """What is said of a document beside its content."""
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
    return {name: str(one.next_page_token) for name, one in zip(LISTINGS, listed, strict=True)}


def mixed(theirs: Things, mine: Things, none: Things, chance: Random) -> tuple[Things, Things]:
    """Things for one call, most of them another's; and the same with nobody's in place of the other's identifiers."""
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
    """A way to change a text a little: what an injection would try."""
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
    """Everything in the collection that its tenant never changes, as the tenant sees it when it looks."""
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

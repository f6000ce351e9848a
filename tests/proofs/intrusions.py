"""Calls that try to reach another tenant's things: through the real handlers, the engine and the vector store itself.

Most of the things that a call names are another tenant's. The caller may receive again what it has stored itself.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any

from pydantic import BaseModel, ValidationError

from core.analysis.terms import query_terms
from core.engine import Engine
from core.model.collection import CollectionUpdate
from core.model.context import ChunkRef
from core.model.errors import WeftError
from core.model.filter import Filter, parse_filter
from core.model.ids import ChunkId, CollectionId, DocumentId, UploadId
from core.model.ingest import IngestInput
from core.model.page import PageRequest
from core.model.query import RetrieveQuery
from core.model.tenant import Tenant
from core.model.vector import VectorSpace
from core.vectors.types import TextQuery, VectorQuery, VectorRecord, VectorStore
from tests.proofs.residents import ENDLESS, Things, described, marks
from tests.support.embedder import HashedEmbedder
from tests.support.gateway import Api

OK, FAILED = 200, 500


@dataclass(frozen=True)
class Answer:
    """An answer: its HTTP status, or the one that the failure would have, and its whole text, headers included."""

    status: int
    text: str


@dataclass
class Door:
    """The interfaces that one tenant can call.

    Attributes:
        own: the tenant's own things, which stand beside another tenant's in one call.
        sent: the marks that the tenant's calls have named so far.
    """

    engine: Engine
    store: VectorStore
    embedder: HashedEmbedder
    tenant: Tenant
    own: Things
    sent: set[str] = field(default_factory=set)

    @property
    def space(self) -> VectorSpace:
        return self.embedder.space

    def http(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Calls the real handlers with the verified claims of this tenant."""
        self.sent |= marks(json.dumps([path, body, query, headers], ensure_ascii=False))
        api = Api(claims={"tenant": str(self.tenant), "sub": "someone"})
        answer = api.call(method, path, body, query=query, headers=headers)
        return Answer(answer.status, json.dumps(dict(answer.headers)) + answer.text)

    def direct(self, call: Callable[[], Any], *named: str) -> Answer:
        """Calls the engine or the vector store; ``named``: the marks that the call names."""
        self.sent |= marks(" ".join(named))
        try:
            return Answer(OK, _text(call()))
        except WeftError as error:
            return Answer(error.status, f"{error.detail} {error.extras}")
        except ValidationError as error:
            return Answer(400, str(error.errors(include_url=False, include_input=False)))
        except Exception as error:  # noqa: BLE001 - any other exception is a server error
            return Answer(FAILED, repr(error))


def _text(answer: Any) -> str:
    if isinstance(answer, BaseModel):
        return answer.model_dump_json()
    if isinstance(answer, set | frozenset):
        return str(sorted(answer))
    return str(answer)


Make = Callable[[Door, Things, Random], Answer]


class Kind(Enum):
    """The kind of a call, which says whose things may be mixed into it without harm."""

    READ = "reads: the caller's own things in it are those that never change"
    REFUSED = "names another tenant's things alone, and changes nothing"
    WRITE = "writes into the caller's spare collection"


@dataclass(frozen=True)
class Intrusion:
    """One kind of call. Its weight says how often it is made, relative to the others."""

    make: Make
    kind: Kind
    weight: int = 1


# -- parts of calls ----------------------------------------------------------------------------------


def _digest(tenant: str) -> str:
    """The beginning of the terms of a tenant's attributes in a vector store."""
    return hashlib.sha256(tenant.encode()).hexdigest()[:16]


def _field(things: Things, chance: Random) -> str:
    """An attribute's name: one that all tenants have, another tenant's, or one that looks like a term or a field of the
    vector store."""
    return chance.choice(
        [
            *("lang", "year", "note") * 3,
            things.field,
            _digest(things.tenant) + "note",
            _digest(things.tenant) + things.field,
            "tenant_id",
            "attribute_terms",
        ]
    )


def _value(things: Things, chance: Random) -> Any:
    """A value to compare with: another tenant's, or a text that would end a term or begin another tenant's term."""
    digest = _digest(things.tenant)
    return chance.choice(
        [
            things.value,
            things.tenant,
            f"{digest}{things.field}\x1fs{things.value}",
            f"\x1fs{things.value}",
            f"{things.value}\x1f",
            "",
            "\U0010ffff",
            chance.randrange(1990, 2040),
            True,
            "2020-01-01T00:00:00Z",
            things.collection,
        ]
    )


def _filter(things: Things, chance: Random, depth: int = 0) -> dict[str, Any]:
    kind = chance.randrange(7) if depth < 3 else 6
    if kind == 0:
        return {"not": _filter(things, chance, depth + 1)}
    if kind in (1, 2):
        joined = [_filter(things, chance, depth + 1) for _ in range(chance.randrange(4))]
        return {"and" if kind == 1 else "or": joined}
    operator = chance.choice(["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "exists"])
    value: Any = _value(things, chance)
    if operator in ("in", "nin"):
        value = [_value(things, chance) for _ in range(chance.randrange(4))]
    if operator == "exists":
        value = chance.random() < 0.5
    return {_field(things, chance): {operator: value}}


def _page(things: Things, chance: Random, *listings: str) -> dict[str, Any]:
    page: dict[str, Any] = {}
    if chance.random() < 0.6:
        page["page_token"] = things.tokens[chance.choice(listings)]
    if chance.random() < 0.7:
        page["limit"] = chance.choice([1, 1, 2, 100])
    if chance.random() < 0.3:
        page["order"] = chance.choice(["oldest", "newest"])
    if chance.random() < 0.3:
        page["include_total"] = "true"
    return page


def _question(things: Things, chance: Random) -> dict[str, Any]:
    body: dict[str, Any] = {
        "query": chance.choice([things.words, f"{things.words} one two", things.source_key, things.value, "two five"]),
        "top_k": chance.choice([1, 3, 10, 100]),
    }
    if chance.random() < 0.4:
        body["collections"] = [things.collection]
    if chance.random() < 0.5:
        body["strategy"] = chance.choice(["similarity", "mmr", "hybrid"])
        body["options"] = {"explain": chance.random() < 0.5}
    if chance.random() < 0.5:
        body["filter"] = _filter(things, chance)
    if chance.random() < 0.2:
        body["min_score"] = chance.choice([-1.0, 0.0, 0.5])
    return body


def _document(things: Things, chance: Random) -> dict[str, Any]:
    """A body that another tenant could have sent, word for word except for the secret words."""
    body = {"content": f"{things.words} one two three", "source_key": things.source_key}
    said = described(things, chance)
    if chance.random() < 0.5:
        said["attributes"] |= {_digest(things.tenant) + "note": f"\x1fs{things.value}"}
    body |= {name: value for name, value in said.items() if chance.random() < 0.8}
    if chance.random() < 0.3:
        del body["source_key"]
    elif chance.random() < 0.3:
        body["source_key"] = f"{things.tenant}/{things.collection}/{things.source_key}"
    elif chance.random() < 0.2:
        body["source_key"] = f"T#{things.tenant}#C#{things.collection}#S#{things.source_id}"
    return body


# -- through the handlers ----------------------------------------------------------------------------


def read_one(door: Door, things: Things, chance: Random) -> Answer:
    path = chance.choice(
        [
            f"/v1/collections/{things.collection}",
            f"/v1/collections/{things.collection}/stats",
            f"/v1/collections/{things.collection}/reindex",
            f"/v1/documents/{things.document}",
            f"/v1/chunks/{things.chunk}",
            f"/v1/chunks/{things.chunk}/lineage",
            "/v1/components",
            "/v1/extensions",
            "/v1/health",
        ]
    )
    return door.http("GET", path, query=_stray(things, chance), headers=_headers(things, chance))


def _stray(things: Things, chance: Random) -> dict[str, str]:
    """A query parameter that no route has."""
    return {"tenant": things.tenant} if chance.random() < 0.05 else {}


def _headers(things: Things, chance: Random) -> dict[str, str]:
    """Headers from which other systems read a tenant."""
    return chance.choice([{}, {}, {"x-tenant": things.tenant}, {"x-tenant-id": things.tenant, "x-user": "root"}])


def list_collections(door: Door, things: Things, chance: Random) -> Answer:
    query = _page(things, chance, "collections", "all documents")
    if chance.random() < 0.4:
        query[chance.choice(["name", "name_contains"])] = chance.choice([things.name, "pub", ""])
    return door.http("GET", "/v1/collections", query=query)


def list_documents(door: Door, things: Things, chance: Random) -> Answer:
    query = _page(things, chance, "documents", "all documents", "chunks")
    if chance.random() < 0.7:
        query["collection_id"] = things.collection
    if chance.random() < 0.4:
        query["source_key"] = chance.choice([things.source_key, things.source_id])
    if chance.random() < 0.2:
        query["state"] = chance.choice(["ready", "failed"])
    return door.http("GET", "/v1/documents", query=query)


def list_chunks(door: Door, things: Things, chance: Random) -> Answer:
    query = _page(things, chance, "chunks", "document's chunks", "documents")
    if chance.random() < 0.4:
        return door.http("GET", f"/v1/documents/{things.document}/chunks", query=query)
    if chance.random() < 0.6:
        query["collection_id"] = things.collection
    if chance.random() < 0.4:
        query["document_id"] = things.document
    return door.http("GET", "/v1/chunks", query=query)


def ask(door: Door, things: Things, chance: Random) -> Answer:
    body = _question(things, chance)
    if "collections" in body and chance.random() < 0.3:
        body["collections"].insert(chance.randrange(2), door.own.collection)
    if chance.random() < 0.1:
        body["tenant"] = things.tenant
    path = chance.choice(["/v1/retrieve", "/v1/compare"])
    if path == "/v1/retrieve" and chance.random() < 0.3:
        body["assemble"] = {"max_tokens": 500, "expand": chance.randrange(3)}
    return door.http("POST", path, body, headers=_headers(things, chance))


def assemble(door: Door, things: Things, chance: Random) -> Answer:
    refs = [{"chunk_id": things.chunk}]
    if chance.random() < 0.5:
        refs.insert(chance.randrange(2), {"chunk_id": door.own.chunk})
    return door.http("POST", "/v1/assemble", {"refs": refs, "max_tokens": 1000, "expand": chance.randrange(3)})


def change(door: Door, things: Things, chance: Random) -> Answer:
    """Changes and removals of another tenant's things."""
    collection = f"/v1/collections/{things.collection}"
    document, other = _document(things, chance), _document(things, chance)
    upload = {"source_key": f"{things.source_key}.txt", "size": 3}
    calls: list[tuple[Any, ...]] = [
        ("PATCH", collection, {"description": things.words, "metadata": {}}),
        ("DELETE", collection),
        ("DELETE", f"/v1/documents/{things.document}"),
        ("DELETE", f"{collection}/sources", None, {"key": things.source_key}),
        ("POST", f"{collection}/reindex"),
        ("POST", f"{collection}/uploads", upload),
        ("POST", f"{collection}/documents", document),
        ("POST", f"{collection}/documents/batch", {"documents": [document, other]}),
    ]
    return door.http(*chance.choice(calls))


def write(door: Door, things: Things, chance: Random) -> Answer:
    """Another tenant's body, written into a collection that is mostly the caller's own."""
    collection = f"/v1/collections/{things.collection}"
    document, other = _document(things, chance), _document(things, chance)
    named = document | {"tenant": things.tenant}
    key = f"{things.tenant}/{things.collection}/{things.source_key}.txt"
    upload = {"source_key": chance.choice([key, f"../{key}"]), "size": 3, "title": things.words}
    headers = _headers(things, chance)
    calls: list[tuple[Any, ...]] = [
        ("POST", "/v1/collections", {"name": things.name, "description": things.words}),
        ("PATCH", collection, {"name": things.name, "metadata": {"note": things.value}}),
        ("DELETE", f"/v1/documents/{things.document}"),
        ("DELETE", f"{collection}/sources", None, {"key": things.source_key}),
        ("POST", f"{collection}/uploads", upload),
        ("POST", f"{collection}/documents/batch", {"documents": [document, other]}),
        ("POST", f"{collection}/documents", named),
        *[("POST", f"{collection}/documents", document, None, headers)] * 4,
    ]
    return door.http(*chance.choice(calls))


# -- through the engine ------------------------------------------------------------------------------


def engine_reads(door: Door, things: Things, chance: Random) -> Answer:
    """The engine's own functions, which take the tenant as an argument."""
    engine, tenant = door.engine, door.tenant
    question = _question(things, chance)
    token = _page(things, chance, "collections").get("page_token")
    calls: list[Callable[[], Any]] = [
        lambda: engine.documents.get(tenant, DocumentId(things.document)),
        lambda: engine.chunks.get(tenant, ChunkId(things.chunk)),
        lambda: engine.chunks.lineage(tenant, ChunkId(things.chunk)),
        lambda: engine.assemble_refs(tenant, [ChunkRef(chunk_id=ChunkId(things.chunk))]),
        lambda: engine.collections.get_by_name(tenant, things.name),
        lambda: engine.uploads.get(tenant, UploadId(things.upload)),
        lambda: engine.documents.count(tenant, CollectionId(things.collection)),
        lambda: engine.chunks.count(tenant, document_id=DocumentId(things.document)),
        lambda: engine.retrieve(tenant, RetrieveQuery(**question)),
        lambda: engine.collections.list(tenant, PageRequest(limit=2, token=token)),
    ]
    named = (things.document, things.chunk, things.name, things.upload, things.collection, str(token))
    return door.direct(chance.choice(calls), *named, json.dumps(question))


def engine_changes(door: Door, things: Things, chance: Random) -> Answer:
    """Changes of another tenant's things through the engine."""
    engine, tenant = door.engine, door.tenant

    def collection() -> CollectionId:
        return CollectionId(things.collection)

    def document() -> IngestInput:
        content = things.words.encode()
        return IngestInput(collection_id=collection(), content=content, source_key=things.source_key)

    calls: list[Callable[[], Any]] = [
        lambda: engine.documents.delete(tenant, DocumentId(things.document)),
        lambda: engine.documents.delete_source(tenant, collection(), things.source_key, ENDLESS),
        lambda: engine.collections.delete(tenant, collection(), ENDLESS),
        lambda: engine.collections.update(tenant, collection(), CollectionUpdate(description=things.words)),
        lambda: engine.reindex.start(tenant, collection(), ENDLESS),
        lambda: engine.reconcile.run(tenant, collection(), ENDLESS),
        lambda: engine.ingest.ingest(tenant, document(), ENDLESS),
    ]
    named = (things.collection, things.document, things.source_key, things.words)
    return door.direct(chance.choice(calls), *named)


# -- through the vector store ------------------------------------------------------------------------


def store_reads(door: Door, things: Things, chance: Random) -> Answer:
    """The vector store's functions, without the engine's checks before them."""
    store, tenant, space = door.store, door.tenant, door.space
    filter_ = _filter(things, chance) if chance.random() < 0.5 else None
    vector = door.embedder.embed([f"{things.words} one two"]).vectors[0]
    limit = chance.choice([1, 10, 1000])

    def collection() -> CollectionId:
        return CollectionId(things.collection)

    def parsed() -> Filter | None:
        return None if filter_ is None else parse_filter(filter_)

    def search() -> Any:
        return store.search(tenant, space, VectorQuery(vector, [collection()], limit, filter=parsed()))

    def search_text() -> Any:
        terms = query_terms(f"{things.words} {things.value} one")
        return store.search_text(tenant, space, TextQuery(terms, [collection()], limit, filter=parsed()))

    calls: list[Callable[[], Any]] = [
        search,
        search_text,
        lambda: store.present(tenant, space, [ChunkId(things.chunk)]),
        lambda: store.scan(tenant, space, collection(), None, 10),
        lambda: store.matching(tenant, space, [collection()], parsed()),
    ]
    return door.direct(chance.choice(calls), things.collection, things.chunk, json.dumps(filter_))


def plant(door: Door, things: Things, chance: Random) -> Answer:
    """Writes a record of the caller's under another tenant's identifiers, searches for it, and deletes it; or only
    deletes it."""
    text = f"planted {things.words}"
    vector = door.embedder.embed([text]).vectors[0]
    store, tenant, space = door.store, door.tenant, door.space

    def planted() -> list[Any]:
        chunk, collection = ChunkId(things.chunk), CollectionId(things.collection)
        record = VectorRecord(chunk, collection, things.source_id, things.source_key, text, vector, {"year": 2000})
        if chance.random() < 0.7:
            store.write(tenant, space, [record])
        found = store.search(tenant, space, VectorQuery(vector, [collection], 10))
        return [len(found), store.count(tenant, space) > 0, store.delete(tenant, space, [chunk])]

    return door.direct(planted, things.collection, things.chunk, things.source_key, things.words)


INTRUSIONS = (
    Intrusion(read_one, Kind.READ, 10),
    Intrusion(list_collections, Kind.READ, 6),
    Intrusion(list_documents, Kind.READ, 8),
    Intrusion(list_chunks, Kind.READ, 8),
    Intrusion(ask, Kind.READ, 20),
    Intrusion(assemble, Kind.READ, 6),
    Intrusion(change, Kind.REFUSED, 12),
    Intrusion(write, Kind.WRITE, 10),
    Intrusion(engine_reads, Kind.READ, 10),
    Intrusion(engine_changes, Kind.REFUSED, 6),
    Intrusion(store_reads, Kind.READ, 10),
    Intrusion(plant, Kind.REFUSED, 2),
)

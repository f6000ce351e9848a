"""Keys of the one table. No other module builds one.

A tenant holds no ``#``, nor does an identifier, so no part of a key can reach into the next.
"""

import hashlib
from datetime import datetime, timedelta
from typing import NamedTuple

from core.model.base import rfc3339
from core.model.ids import ChunkId, CollectionId, DocumentId, TypeId, UploadId
from core.model.tenant import Tenant

GATES = 16
SWEEP_SHARDS = 16
CHUNKS_PER_PARTITION = 256
_ROUNDING = timedelta(minutes=5)

LISTING = "listing"
SWEEP = "sweep"


class Key(NamedTuple):
    """A primary key."""

    pk: str
    sk: str


def collection(tenant: Tenant, collection_id: CollectionId) -> Key:
    return Key(collections(tenant), f"COL#{collection_id}")


def collections(tenant: Tenant) -> str:
    """The partition of a tenant's collections."""
    return f"T#{tenant}"


COLLECTION_PREFIX = "COL#"


def name(tenant: Tenant, collection_name: str) -> Key:
    return Key(collections(tenant), f"NAME#{collection_name}")


def gate(tenant: Tenant, collection_id: CollectionId, number: int) -> Key:
    """One of the ``GATES`` rows that hold a collection's counters."""
    return Key(f"T#{tenant}#C#{collection_id}#G#{number}", "GATE")


def fields(tenant: Tenant, collection_id: CollectionId) -> Key:
    """The names of the attributes that the collection's documents have carried."""
    return Key(f"T#{tenant}#C#{collection_id}#F", "FIELDS")


def head(tenant: Tenant, document_id: DocumentId) -> Key:
    return Key(f"T#{tenant}#D#{document_id}", "HEAD")


def info(tenant: Tenant, document_id: DocumentId) -> Key:
    return Key(f"T#{tenant}#D#{document_id}", "INFO")


def gone(tenant: Tenant, document_id: DocumentId, attempt: int | None = None) -> Key:
    """The mark of an abandoned attempt, or of a removed document."""
    return Key(f"T#{tenant}#D#{document_id}", f"GONE#{'ALL' if attempt is None else attempt}")


GONE_PREFIX = "GONE#"


def chunk(tenant: Tenant, chunk_id: ChunkId) -> Key:
    partition = chunk_id.chunk_index // CHUNKS_PER_PARTITION
    return Key(
        f"T#{tenant}#D#{chunk_id.document_id}#B#{partition}",
        f"CHUNK#{chunk_id.attempt:02}#{chunk_id.chunk_index:07}",
    )


def source(tenant: Tenant, collection_id: CollectionId, source_hash: str) -> Key:
    """``source_hash``: the source's ID, SHA-256 of its key."""
    return Key(f"T#{tenant}#C#{collection_id}#S#{source_hash}", "SOURCE")


def version(tenant: Tenant, collection_id: CollectionId, source_hash: str, document_id: DocumentId) -> Key:
    return Key(source(tenant, collection_id, source_hash).pk, f"V#{document_id}")


VERSION_PREFIX = "V#"


def content(tenant: Tenant, collection_id: CollectionId, fingerprint: str) -> Key:
    return Key(f"T#{tenant}#C#{collection_id}#H#{fingerprint}", "CONTENT")


def upload(tenant: Tenant, upload_id: UploadId) -> Key:
    return Key(f"T#{tenant}#U#{upload_id}", "UPLOAD")


def job(tenant: Tenant, collection_id: CollectionId, kind: str) -> Key:
    """The progress of a collection's reindex or reconcile; ``kind`` names which."""
    return Key(f"T#{tenant}#C#{collection_id}#J", f"{JOB_PREFIX}{kind}")


JOB_PREFIX = "JOB#"


PAGE_TOKEN_KEY = Key("SYSTEM", "PAGE_TOKEN_KEY")


def documents_of_collection(tenant: Tenant, collection_id: CollectionId) -> str:
    """Partition of the listing index: a collection's documents, by their HEAD rows."""
    return f"T#{tenant}#C#{collection_id}"


def documents_of_tenant(tenant: Tenant) -> str:
    """Partition of the listing index: a tenant's documents, by their INFO rows."""
    return f"T#{tenant}"


def entries_of_collection(tenant: Tenant, collection_id: CollectionId) -> str:
    """Partition of the listing index: a collection's source and content rows."""
    return f"T#{tenant}#C#{collection_id}#ENTRIES"


def listing(partition: str, sort: str) -> dict[str, str]:
    """The attributes that put a row into the listing index."""
    return {"listing_pk": partition, "listing_sk": sort}


def sweep_shard(identifier: TypeId) -> str:
    """Which partition of the sweep's index a row is in."""
    digest = hashlib.sha256(identifier.encode()).digest()
    return sweep_shards()[digest[0] % SWEEP_SHARDS]


def sweep_shards() -> list[str]:
    """The partitions of the sweep's index."""
    return [f"SWEEP#{number}" for number in range(SWEEP_SHARDS)]


def stalled_since(moment: datetime) -> str:
    """Sort key of a row that the sweep takes when ``moment`` is before its cutoff. Rounded down to five
    minutes, so that a heartbeat seldom moves the row in its index; the row itself has the exact time."""
    return "S#" + rfc3339(moment - timedelta(seconds=moment.timestamp() % _ROUNDING.total_seconds()))


def due_at(moment: datetime) -> str:
    """Sort key of a row that the sweep takes once ``moment`` has come."""
    return "D#" + rfc3339(moment)


def tenant_of(key: Key) -> Tenant | None:
    """The tenant in a partition key; None where there is none."""
    kind, _, rest = key.pk.partition("#")
    owner = rest.partition("#")[0]
    return Tenant(owner) if kind == "T" and owner else None


def moment_of(due: str) -> str:
    """The time in a sort key of the sweep's index, as text that sorts."""
    return due[2:]


def document_of(key: Key) -> DocumentId:
    """The document in the partition key of its rows."""
    return DocumentId(key.pk.rpartition("#D#")[2])


def collection_of(key: Key) -> CollectionId:
    """The collection in the partition key of its jobs."""
    return CollectionId(key.pk.rpartition("#C#")[2].removesuffix("#J"))

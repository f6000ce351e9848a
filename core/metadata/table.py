"""The keys of the one DynamoDB table. No other module builds a key.

A key's parts are joined with ``#``. Tenants and identifiers hold no ``#``, so no part of a key can reach into the next
part, and no tenant can name another tenant's row.

`core.metadata.rows` says what each row holds.
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
    """A primary key of the table."""

    pk: str
    sk: str


def collection(tenant: Tenant, collection_id: CollectionId) -> Key:
    """Returns the key of a collection's row."""
    return Key(collections(tenant), f"COL#{collection_id}")


def collections(tenant: Tenant) -> str:
    """Returns the partition of a tenant's collections and their names."""
    return f"T#{tenant}"


COLLECTION_PREFIX = "COL#"


def name(tenant: Tenant, collection_name: str) -> Key:
    """Returns the key of the row that says which collection has a name."""
    return Key(collections(tenant), f"NAME#{collection_name}")


def gate(tenant: Tenant, collection_id: CollectionId, number: int) -> Key:
    """Returns the key of one of the ``GATES`` rows that hold a collection's counters."""
    return Key(f"T#{tenant}#C#{collection_id}#G#{number}", "GATE")


def fields(tenant: Tenant, collection_id: CollectionId) -> Key:
    """Returns the key of the names of all attributes that a collection's documents have ever carried."""
    return Key(f"T#{tenant}#C#{collection_id}#F", "FIELDS")


def head(tenant: Tenant, document_id: DocumentId) -> Key:
    """Returns the key of a document's HEAD row."""
    return Key(f"T#{tenant}#D#{document_id}", "HEAD")


def info(tenant: Tenant, document_id: DocumentId) -> Key:
    """Returns the key of a document's INFO row."""
    return Key(f"T#{tenant}#D#{document_id}", "INFO")


def late_writer_mark(tenant: Tenant, document_id: DocumentId, attempt: int | None = None) -> Key:
    """Returns the key of the late-writer mark of an abandoned attempt; without an attempt, of a removed document."""
    return Key(f"T#{tenant}#D#{document_id}", f"GONE#{'ALL' if attempt is None else attempt}")


LATE_WRITER_MARK_PREFIX = "GONE#"


def chunk(tenant: Tenant, chunk_id: ChunkId) -> Key:
    """Returns the key of a chunk's row. It follows from the chunk's ID alone."""
    partition = chunk_id.chunk_index // CHUNKS_PER_PARTITION
    return Key(
        f"T#{tenant}#D#{chunk_id.document_id}#B#{partition}",
        f"CHUNK#{chunk_id.attempt:02}#{chunk_id.chunk_index:07}",
    )


def source(tenant: Tenant, collection_id: CollectionId, source_hash: str) -> Key:
    """Returns the key of a source.

    Args:
        source_hash: the source's ID, which is the SHA-256 of its source key.
    """
    return Key(f"T#{tenant}#C#{collection_id}#S#{source_hash}", "SOURCE")


def version(tenant: Tenant, collection_id: CollectionId, source_hash: str, document_id: DocumentId) -> Key:
    """Returns the key of the row by which a source's versions are listed."""
    return Key(source(tenant, collection_id, source_hash).pk, f"V#{document_id}")


VERSION_PREFIX = "V#"


def content(tenant: Tenant, collection_id: CollectionId, fingerprint: str) -> Key:
    """Returns the key of the row that says which document holds a content without a source key."""
    return Key(f"T#{tenant}#C#{collection_id}#H#{fingerprint}", "CONTENT")


def upload(tenant: Tenant, upload_id: UploadId) -> Key:
    """Returns the key of an upload's row."""
    return Key(f"T#{tenant}#U#{upload_id}", "UPLOAD")


def job(tenant: Tenant, collection_id: CollectionId, kind: str) -> Key:
    """Returns the key of a collection's job. ``kind`` is ``reindex`` or ``reconcile``."""
    return Key(f"T#{tenant}#C#{collection_id}#J", f"{JOB_PREFIX}{kind}")


JOB_PREFIX = "JOB#"


PAGE_TOKEN_KEY = Key("SYSTEM", "PAGE_TOKEN_KEY")


def documents_of_collection(tenant: Tenant, collection_id: CollectionId) -> str:
    """Returns the partition of the listing index that lists a collection's documents, by their HEAD rows."""
    return f"T#{tenant}#C#{collection_id}"


def documents_of_tenant(tenant: Tenant) -> str:
    """Returns the partition of the listing index that lists a tenant's documents, by their INFO rows."""
    return f"T#{tenant}"


def entries_of_collection(tenant: Tenant, collection_id: CollectionId) -> str:
    """Returns the partition of the listing index that lists a collection's source and content rows."""
    return f"T#{tenant}#C#{collection_id}#ENTRIES"


def listing(partition: str, sort: str) -> dict[str, str]:
    """Returns the attributes that put a row into the listing index."""
    return {"listing_pk": partition, "listing_sk": sort}


def sweep_shard(identifier: TypeId) -> str:
    """Returns the partition of the sweep's index that a row belongs to."""
    digest = hashlib.sha256(identifier.encode()).digest()
    return sweep_shards()[digest[0] % SWEEP_SHARDS]


def sweep_shards() -> list[str]:
    """Lists the partitions of the sweep's index."""
    return [f"SWEEP#{number}" for number in range(SWEEP_SHARDS)]


def stalled_since(moment: datetime) -> str:
    """Returns the sort key of a row that the sweep takes up when `moment` lies before the sweep's cutoff.

    The moment is rounded down to five minutes, so that a heartbeat seldom moves the row in the index. The row itself
    holds the exact time.
    """
    return "S#" + rfc3339(moment - timedelta(seconds=moment.timestamp() % _ROUNDING.total_seconds()))


def due_at(moment: datetime) -> str:
    """Returns the sort key of a row that the sweep takes up once `moment` has come."""
    return "D#" + rfc3339(moment)


def tenant_of(key: Key) -> Tenant | None:
    """Returns the tenant that a partition key names; None for a key that names no tenant."""
    kind, _, rest = key.pk.partition("#")
    owner = rest.partition("#")[0]
    return Tenant(owner) if kind == "T" and owner else None


def moment_of(due: str) -> str:
    """Returns the time in a sort key of the sweep's index, as text that sorts by time."""
    return due[2:]


def document_of(key: Key) -> DocumentId:
    """Returns the document that the partition key of its rows names."""
    return DocumentId(key.pk.rpartition("#D#")[2])


def collection_of(key: Key) -> CollectionId:
    """Returns the collection that the partition key of its jobs names."""
    return CollectionId(key.pk.rpartition("#C#")[2].removesuffix("#J"))

"""The fingerprint of an ingest: a hash of the content and of every setting that shapes what is made of it.

Two ingests with the same fingerprint would make the same document.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from core.metadata.rows import CollectionRow


def content_hash(content: bytes) -> str:
    """Returns the SHA-256 of the raw bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


def fingerprint_of(
    hash_of_content: str,
    *,
    loader: str,
    charset: str | None,
    splitter: str,
    row: CollectionRow,
    attributes: Mapping[str, Any] | None,
) -> str:
    """Returns the SHA-256, in hex, of the content's hash and the loading, splitting and embedding settings.

    Title, source and metadata are left out: they change in place.

    Args:
        attributes: the attributes of a content with a source key, because they are written onto its chunks. None for a
            content without a source key, which is a duplicate whatever its attributes are.
    """
    settings = [
        hash_of_content,
        loader,
        charset,
        splitter,
        row.chunk_size,
        row.chunk_overlap,
        row.embedding_model,
        row.embedding_dims,
        None if attributes is None else sorted(attributes.items()),
    ]
    return hashlib.sha256(json.dumps(settings, separators=(",", ":")).encode()).hexdigest()

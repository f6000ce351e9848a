"""What makes two ingests the same: the content, and every setting that decides what is made of it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from core.metadata.rows import CollectionRow


def content_hash(content: bytes) -> str:
    """SHA-256 of the raw bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


def fingerprint_of(
    hashed: str,
    *,
    loader: str,
    charset: str | None,
    splitter: str,
    row: CollectionRow,
    attributes: Mapping[str, Any] | None,
) -> str:
    """SHA-256, in hex, of the content's hash and of the loading, chunking and embedding settings.

    Title, source and metadata are not in it: they change in place. ``attributes`` are part of a keyed version,
    since they are written onto its chunks; None for content without a key, which is a duplicate whatever
    its attributes.
    """
    settings = [
        hashed,
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

"""Weft: documents in; ranked, explained chunks and cited contexts out, for many tenants.

`open_engine` opens an engine in this process; `core.wiring.build_engine` builds one from settings, on AWS or anywhere
else. Everything that Weft does is a member of `Engine`. `core/README.md` is the map of the package.
"""

from core.engine import Engine
from core.model.chunk import Chunk
from core.model.collection import Collection, CollectionUpdate, NewCollection
from core.model.comparison import CompareResult
from core.model.context import AssembledContext, AssembleOptions, ChunkRef, Citation
from core.model.document import Document, DocumentState
from core.model.errors import WeftError
from core.model.hit import Hit, RetrieveResult
from core.model.ids import ChunkId, CollectionId, DocumentId
from core.model.ingest import Deletion, IngestInput, IngestResult
from core.model.page import Page, PageRequest
from core.model.query import RetrieveOptions, RetrieveQuery, Strategy
from core.model.tenant import Tenant
from core.settings import Settings
from core.wiring import build_engine, open_engine

__all__ = [
    "AssembleOptions",
    "AssembledContext",
    "Chunk",
    "ChunkId",
    "ChunkRef",
    "Citation",
    "Collection",
    "CollectionId",
    "CollectionUpdate",
    "CompareResult",
    "Deletion",
    "Document",
    "DocumentId",
    "DocumentState",
    "Engine",
    "Hit",
    "IngestInput",
    "IngestResult",
    "NewCollection",
    "Page",
    "PageRequest",
    "RetrieveOptions",
    "RetrieveQuery",
    "RetrieveResult",
    "Settings",
    "Strategy",
    "Tenant",
    "WeftError",
    "build_engine",
    "open_engine",
]

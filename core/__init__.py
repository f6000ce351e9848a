"""Weft: documents in; ranked, explained chunks and cited contexts out, for many tenants.

`open_engine` opens an engine in this process; `core.wiring.build_engine` builds one from settings, on AWS or anywhere
else. Everything that Weft does is a member of `Engine`. `core/README.md` is the map of the package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.engine import Engine as Engine
    from core.model.chunk import Chunk as Chunk
    from core.model.collection import Collection as Collection
    from core.model.collection import CollectionUpdate as CollectionUpdate
    from core.model.collection import NewCollection as NewCollection
    from core.model.comparison import CompareResult as CompareResult
    from core.model.context import AssembledContext as AssembledContext
    from core.model.context import AssembleOptions as AssembleOptions
    from core.model.context import ChunkRef as ChunkRef
    from core.model.context import Citation as Citation
    from core.model.document import Document as Document
    from core.model.document import DocumentState as DocumentState
    from core.model.errors import WeftError as WeftError
    from core.model.hit import Hit as Hit
    from core.model.hit import RetrieveResult as RetrieveResult
    from core.model.ids import ChunkId as ChunkId
    from core.model.ids import CollectionId as CollectionId
    from core.model.ids import DocumentId as DocumentId
    from core.model.ingest import Deletion as Deletion
    from core.model.ingest import IngestInput as IngestInput
    from core.model.ingest import IngestResult as IngestResult
    from core.model.page import Page as Page
    from core.model.page import PageRequest as PageRequest
    from core.model.query import RetrieveOptions as RetrieveOptions
    from core.model.query import RetrieveQuery as RetrieveQuery
    from core.model.query import Strategy as Strategy
    from core.model.tenant import Tenant as Tenant
    from core.settings import Settings as Settings
    from core.wiring import build_engine as build_engine
    from core.wiring import open_engine as open_engine

# Python imports this module before any module of the package. A public name is therefore imported only when it is
# used: with all of them, importing a single model would take a second instead of a sixth of one.
_MODULES = {
    "core.engine": ["Engine"],
    "core.model.chunk": ["Chunk"],
    "core.model.collection": ["Collection", "CollectionUpdate", "NewCollection"],
    "core.model.comparison": ["CompareResult"],
    "core.model.context": ["AssembleOptions", "AssembledContext", "ChunkRef", "Citation"],
    "core.model.document": ["Document", "DocumentState"],
    "core.model.errors": ["WeftError"],
    "core.model.hit": ["Hit", "RetrieveResult"],
    "core.model.ids": ["ChunkId", "CollectionId", "DocumentId"],
    "core.model.ingest": ["Deletion", "IngestInput", "IngestResult"],
    "core.model.page": ["Page", "PageRequest"],
    "core.model.query": ["RetrieveOptions", "RetrieveQuery", "Strategy"],
    "core.model.tenant": ["Tenant"],
    "core.settings": ["Settings"],
    "core.wiring": ["build_engine", "open_engine"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605 - the names that type checkers see are those imported above


if not TYPE_CHECKING:  # a type checker that saw this function would accept every name

    def __getattr__(name: str) -> Any:
        """Imports a public name when it is used for the first time."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'core' has no attribute {name!r}")
        return getattr(import_module(_MODULE_OF[name]), name)

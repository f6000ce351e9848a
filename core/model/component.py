"""What the engine says about itself."""

from enum import StrEnum

from core.model.base import Model
from core.model.query import ScoreKind, Strategy


class TenantFilter(StrEnum):
    """``verified`` only when the exact tenant filter is known to work."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"


class Component(Model):
    """One stage of the pipeline. ``configured`` is false for a stage that is not there. ``max_tokens`` is the
    longest text that an embedder takes, and how much of a query and a text together a reranker reads; 0 where its model
    does not say."""

    name: str = ""
    type: str = ""
    configured: bool = False
    content_types: list[str] = []
    dimensions: int = 0
    max_tokens: int = 0


class Components(Model):
    """What the engine runs.

    Attributes:
        strategies: what questions can ask for, and what a score means then, within one embedding model and with the
            default options.
        score: what it means when nothing is asked for.
    """

    loader: Component
    chunker: Component
    embedder: Component
    vector_store: Component
    retriever: Component
    reranker: Component
    strategies: dict[Strategy, ScoreKind]
    score: ScoreKind
    tenant_filter: TenantFilter


class ExtensionInfo(Model):
    """An extension and the hooks it has, in registration order."""

    name: str
    hooks: list[str]


class Health(Model):
    """Whether each store answers."""

    status: str
    stores: dict[str, str]

"""What the engine says about itself."""

from enum import StrEnum
from typing import Any

from core.model.base import Model, with_example
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


def _example_component(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "configured": True, "content_types": [], "dimensions": 0, **more}


class Components(Model):
    """What the engine runs.

    Attributes:
        strategies: what questions can ask for, and what a score means then, within one embedding model and with the
            default options.
        score: what it means when nothing is asked for.
    """

    model_config = with_example(
        {
            "loader": _example_component(
                "loaders", "registry", content_types=["text/plain", "text/markdown", "text/html"]
            ),
            "chunker": _example_component("splitters", "registry"),
            "embedder": _example_component("amazon.titan-embed-text-v2:0", "bedrock", dimensions=1024),
            "vector_store": _example_component("embedded", "exact"),
            "retriever": _example_component("strategies", "similarity, mmr, hybrid, rerank"),
            "reranker": _example_component("ms-marco-MiniLM-L-12-v2-int8", "onnx", max_tokens=256),
            "strategies": {"similarity": "cosine", "mmr": "mmr_relevance", "hybrid": "rrf", "rerank": "rrf"},
            "score": "cosine",
            "tenant_filter": "verified",
        }
    )

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

    model_config = with_example({"name": "audit", "hooks": ["ingest_completed"]})

    name: str
    hooks: list[str]


class Health(Model):
    """Whether each store answers."""

    model_config = with_example({"status": "ok", "stores": {"metadata": "ok", "vectors": "ok"}})

    status: str
    stores: dict[str, str]

"""What the engine says of itself: its components, its extensions and its health."""

from enum import StrEnum
from typing import Any

from core.model.base import Model, with_example
from core.model.query import ScoreKind, Strategy


class TenantFilter(StrEnum):
    """Whether the vector store is proven to filter by the exact tenant.

    ``verified``: the store has read its own index mapping and found that tenants are compared exactly.
    """

    VERIFIED = "verified"
    UNVERIFIED = "unverified"


class Component(Model):
    """One stage of the pipeline.

    Attributes:
        name: The name of the model, store or registry.
        type: The kind of implementation, such as ``bedrock`` or ``onnx``.
        configured: False for a stage that the engine does not have.
        content_types: The media types that a loader reads.
        dimensions: The number of dimensions of an embedder's vectors; 0 for every other stage.
        max_tokens: The longest text that an embedder takes, or how many tokens of a query and a text together a
            reranker reads; 0 where the model does not say.
    """

    name: str = ""
    type: str = ""
    configured: bool = False
    content_types: list[str] = []
    dimensions: int = 0
    max_tokens: int = 0


def _example_component(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "configured": True, "content_types": [], "dimensions": 0, **more}


class Components(Model):
    """The stages of the engine's pipeline, and the strategies that questions can name.

    Attributes:
        strategies: The kind of score of each strategy that questions can name, for collections of one embedding model
            and with the default options.
        score: The kind of score of a question that names no strategy.
        tenant_filter: Whether the vector store is proven to filter by the exact tenant.
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
    """An extension and the names of its hooks."""

    model_config = with_example({"name": "audit", "hooks": ["ingest_completed"]})

    name: str
    hooks: list[str]


class Health(Model):
    """Whether the stores answer.

    Attributes:
        status: ``ok`` when every store answers, otherwise ``failing``.
        stores: ``ok`` or ``failing`` for each store by name.
    """

    model_config = with_example({"status": "ok", "stores": {"metadata": "ok", "vectors": "ok"}})

    status: str
    stores: dict[str, str]

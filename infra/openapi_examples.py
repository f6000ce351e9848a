"""One example of each body and answer, by the name of its schema."""

from typing import Any

COLLECTION_ID = "col_01ksr49200e008000001000000"
DOCUMENT_ID = "doc_01ksr49200e0080c1s00000000"
CHUNK_ID = "chk_01ksr49200e0080c1s00010003"
UPLOAD_ID = "upl_01ksr49200e008000000000002"
_CREATED = "2026-11-30T09:15:00.123Z"
_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

COLLECTION = {
    "id": COLLECTION_ID,
    "tenant": "acme",
    "name": "handbook",
    "description": "What new weavers read",
    "embedding_model": "amazon.titan-embed-text-v2:0",
    "embedding_dims": 1024,
    "chunk_strategy": "markdown",
    "chunk_size": 512,
    "chunk_overlap": 50,
    "retrieval_strategy": "hybrid",
    "metadata": {"team": "looms"},
    "document_count": 1,
    "chunk_count": 12,
    "created_at": _CREATED,
    "updated_at": _CREATED,
}
DOCUMENT = {
    "id": DOCUMENT_ID,
    "tenant": "acme",
    "collection_id": COLLECTION_ID,
    "title": "Looms",
    "source": "https://example.org/looms.md",
    "source_type": "text/markdown",
    "source_key": "looms.md",
    "source_id": "5c7d1f1c7a0f5fd9f4f6a5f0d7b6a1f8f1d1a9f7f5f9e1c8a0c1d2e3f4a5b6c7",
    "source_version": None,
    "content_hash": _HASH,
    "state": "ready",
    "error": None,
    "metadata": {},
    "attributes": {"lang": "en", "year": 2024},
    "chunk_count": 12,
    "created_at": _CREATED,
    "updated_at": _CREATED,
}
CHUNK = {
    "text": "A loom holds the warp threads under tension.",
    "start_index": 9,
    "end_index": 53,
    "char_count": 44,
    "context": "Looms",
    "origin": "https://example.org/looms.md",
    "attributes": {"lang": "en", "year": 2024},
    "id": CHUNK_ID,
    "document_id": DOCUMENT_ID,
    "collection_id": COLLECTION_ID,
    "index": 3,
    "token_count": 9,
    "lineage": {
        "parent_id": DOCUMENT_ID,
        "chunk_index": 3,
        "total_chunks": 12,
        "splitter": "markdown",
        "chunker_chain": [],
    },
}
HIT = {
    "rank": 1,
    "score": 0.8123,
    "hydrated": True,
    "orphaned": False,
    "chunk": CHUNK,
    "document": {
        "id": DOCUMENT_ID,
        "title": "Looms",
        "source": "https://example.org/looms.md",
        "source_key": "looms.md",
        "source_type": "text/markdown",
        "metadata": {},
    },
}
OPTIONS = {
    "mmr_lambda": 0.7,
    "rrf_k": 60,
    "weights": {"vector": 1.0, "bm25": 1.0},
    "first_stage": "hybrid",
    "fuse": True,
    "fallback": False,
    "explain": True,
}
FOUND = {
    **HIT,
    "score": 1 / 62 + 1 / 61,
    "signals": {
        "vector": {"rank": 2, "score": 0.6911},
        "bm25": {"rank": 1, "score": 4.2105},
        "fused": {"rank": 1, "score": 1 / 62 + 1 / 61},
        "mmr": None,
        "first_stage": None,
        "rerank": None,
        "final": {"rank": 1, "score": 1 / 62 + 1 / 61},
    },
}
CUT = {
    **HIT,
    "rank": 0,
    "score": 1 / 61,
    "chunk": {
        **CHUNK,
        "text": "The weft is woven in with a shuttle.",
        "start_index": 55,
        "end_index": 91,
        "char_count": 36,
        "id": "chk_01ksr49200e0080c1s00010004",
        "index": 4,
        "token_count": 9,
        "lineage": {**CHUNK["lineage"], "chunk_index": 4},  # type: ignore[dict-item]  # a dict of its own kind
    },
    "signals": {
        "vector": {"rank": 1, "score": 0.7014},
        "bm25": None,
        "fused": {"rank": 2, "score": 1 / 61},
        "mmr": None,
        "first_stage": None,
        "rerank": None,
        "final": {"rank": 2, "score": 1 / 61},
    },
}
REASON = {
    "code": "below_min_score",
    "detail": "The best score that was cut is 0.01639; lower min_score to see more",
    "in_progress": None,
    "best_score": 1 / 61,
    "filtered": None,
    "attribute": None,
    "found": None,
}
INGESTED = {
    "document_id": DOCUMENT_ID,
    "chunk_count": 12,
    "state": "ready",
    "unchanged": False,
    "replaced": [],
    "superseded_by": None,
}
BODY = {
    "content": "# Looms\n\nA loom holds the warp threads under tension.",
    "title": "Looms",
    "source": "https://example.org/looms.md",
    "source_type": "text/markdown",
    "source_key": "looms.md",
    "attributes": {"lang": "en", "year": 2024},
}
PROBLEM = {
    "type": "urn:weft:error:empty_content",
    "title": "Empty content",
    "status": 400,
    "detail": "There is nothing to ingest",
    "code": "empty_content",
    "field": "content",
}


QUESTION = {
    "query": "What holds the warp threads?",
    "collections": [COLLECTION_ID],
    "top_k": 5,
    "min_score": 0.02,
    "strategy": "hybrid",
    "options": OPTIONS,
    "filter": {"year": {"gte": 2020}, "lang": {"in": ["en", "de"]}},
}
CONTEXT = {
    "context": "Relevant context:\n\n[1] A loom holds the warp threads under tension.",
    "total_tokens": 17,
    "max_tokens": 2000,
    "included": [0],
    "first_excluded": -1,
    "token_counter": "chars/4",
    "citations": [
        {
            "marker": 1,
            "chunk_id": CHUNK_ID,
            "chunk_ids": [CHUNK_ID],
            "document_id": DOCUMENT_ID,
            "source": "https://example.org/looms.md",
            "title": "Looms",
            "context": "Looms",
            "page": None,
            "start_index": 9,
            "end_index": 53,
        }
    ],
}


def _stage(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "configured": True, "content_types": [], "dimensions": 0, **more}


def _page(*items: Any) -> dict[str, Any]:
    return {"items": list(items), "next_page_token": None}


EXAMPLES: dict[str, Any] = {
    "NewCollection": {
        "name": "handbook",
        "chunk_strategy": "markdown",
        "retrieval_strategy": "hybrid",
        "metadata": {"team": "looms"},
    },
    "CollectionUpdate": {"description": "What new weavers read"},
    "Collection": COLLECTION,
    "ListAnswer_Collection_": _page(COLLECTION),
    "CollectionStats": {
        "collection_id": COLLECTION_ID,
        "collection_name": "handbook",
        "document_count": 1,
        "chunk_count": 12,
        "embedding_model": "amazon.titan-embed-text-v2:0",
        "chunk_strategy": "markdown",
    },
    "DocumentBody": BODY,
    "BatchBody": {"documents": [BODY, {"content": ""}]},
    "IngestResult": INGESTED,
    "BatchAnswer": {"results": [{"result": INGESTED}, {"error": PROBLEM}]},
    "Deletion": {"documents": [DOCUMENT_ID], "chunks": 12, "vectors": 12, "complete": True},
    "ReindexProgress": {
        "collection_id": COLLECTION_ID,
        "documents": 120,
        "chunks": 1440,
        "finished": False,
        "started_at": _CREATED,
        "updated_at": _CREATED,
    },
    "NewUpload": {
        "source_key": "manuals/looms.html",
        "source_type": "text/html",
        "title": "Looms",
        "attributes": {"lang": "en"},
        "size": 1048576,
    },
    "Upload": {
        "url": f"https://bucket.s3.eu-central-1.amazonaws.com/acme/{COLLECTION_ID}/manuals/looms.html?X-Amz-Signature=…",
        "method": "PUT",
        "headers": {
            "content-type": "text/html",
            "content-length": "1048576",
            "x-amz-meta-weft-upload": UPLOAD_ID,
        },
        "expires_at": "2026-11-30T09:30:00.123Z",
        "max_bytes": 10485760,
    },
    "Document": DOCUMENT,
    "ListAnswer_Document_": _page(DOCUMENT),
    "Chunk": CHUNK,
    "ListAnswer_Chunk_": _page(CHUNK),
    "LineageChain": {"chunks": [CHUNK_ID], "document": HIT["document"]},
    "QuestionBody": QUESTION,
    "RetrieveBody": {**QUESTION, "assemble": {"max_tokens": 2000, "token_counter": "chars/4", "expand": 1}},
    "RetrieveResult": {
        "hits": [FOUND],
        "score": "rrf",
        "strategy": "hybrid",
        "options": OPTIONS,
        "models": ["amazon.titan-embed-text-v2:0"],
        "reason": REASON,
        "fallback": None,
        "context": CONTEXT,
    },
    "CompareResult": {
        "hits": [
            {
                **FOUND,
                "vector_rank": 2,
                "vector_score": 0.6911,
                "move": {
                    "code": "moved_up",
                    "detail": "From 2 to 1; vector 2 (0.6911), BM25 1 (4.21), fused 1 (0.03252)",
                },
            }
        ],
        "left_out": [
            {
                **CUT,
                "vector_rank": 1,
                "vector_score": 0.7014,
                "move": {
                    "code": "below_min_score",
                    "detail": "Its score 0.01639 is below min_score 0.02; vector 1 (0.7014), fused 2 (0.01639)",
                },
            }
        ],
        "window": 50,
        "vector_matches": 2,
        "best_vector_score": 0.7014,
        "reordered": True,
        "same_search": False,
        "score": "rrf",
        "strategy": "hybrid",
        "options": OPTIONS,
        "models": ["amazon.titan-embed-text-v2:0"],
        "candidates": 50,
        "top_k": 5,
        "min_score": 0.02,
        "retriever_ms": 11.8,
        "vector_ms": 4.2,
        "reason": REASON,
        "fallback": None,
    },
    "AssembleBody": {
        "refs": [{"chunk_id": CHUNK_ID}],
        "max_tokens": 2000,
        "token_counter": "chars/4",
        "expand": 1,
    },
    "AssembledRefs": {
        "context": CONTEXT,
        "hits": [HIT],
    },
    "Components": {
        "loader": _stage("loaders", "registry", content_types=["text/plain", "text/markdown", "text/html"]),
        "chunker": _stage("splitters", "registry"),
        "embedder": _stage("amazon.titan-embed-text-v2:0", "bedrock", dimensions=1024),
        "vector_store": _stage("embedded", "exact"),
        "retriever": _stage("strategies", "similarity, mmr, hybrid, rerank"),
        "reranker": _stage("ms-marco-MiniLM-L-12-v2-int8", "onnx", max_tokens=256),
        "strategies": {"similarity": "cosine", "mmr": "mmr_relevance", "hybrid": "rrf", "rerank": "rrf"},
        "score": "cosine",
        "tenant_filter": "verified",
    },
    "ListAnswer_ExtensionInfo_": _page({"name": "audit", "hooks": ["ingest_completed"]}),
    "Problem": PROBLEM,
    "Health": {"status": "ok", "stores": {"metadata": "ok", "vectors": "ok"}},
}

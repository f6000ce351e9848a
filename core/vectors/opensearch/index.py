"""An index of one vector space: its name, its mapping, and the proof that its tenant filter is exact."""

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum

from core.model.errors import ConfigurationError
from core.model.vector import VectorSpace
from core.vectors.opensearch.query import TENANT, Json

SPACE_TYPE = "innerproduct"
"""On unit vectors it is the cosine, and every engine has it."""

_KEYWORD: Json = {"type": "keyword"}
_KEYWORDS = (
    TENANT,
    "collection_id",
    "document_id",
    "generation",
    "source_id",
    "source_key",
    "chunk_id",
    "attribute_names",
    "attribute_terms",
)
# Terms are analysed before they come here: the server only splits them and counts.
_TERMS: Json = {"type": "text", "analyzer": "whitespace", "norms": False, "index_options": "freqs"}
_TERM_COUNT: Json = {"type": "integer"}
_PIPELINES = ("default_pipeline", "final_pipeline", "search.default_pipeline")


class KnnEngine(StrEnum):
    """``faiss``: every vector under the filter is compared, so answers are exact and no graph is built.
    ``lucene``: a graph (HNSW), approximate where a filter leaves many vectors."""

    FAISS = "faiss"
    LUCENE = "lucene"


class Dialect(StrEnum):
    """``domain``: OpenSearch itself. ``serverless``: a NextGen collection, which chooses its own graph, has no
    refresh, and makes writes searchable some seconds later."""

    DOMAIN = "domain"
    SERVERLESS = "serverless"


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """What a new index is made of. The last four are for domains alone.

    Attributes:
        prefix: how every name begins.
        m: edges of a node in the graph.
        ef_construction: candidates when a node is added.
        ef_search: candidates in a search.
        refresh_ms: how often new writes become searchable; a write waits for it.
    """

    prefix: str = "weft"
    dialect: Dialect = Dialect.DOMAIN
    engine: KnnEngine = KnnEngine.FAISS
    m: int = 16
    ef_construction: int = 128
    ef_search: int = 128
    refresh_ms: int = 200


def alias_of(options: IndexOptions, space: VectorSpace) -> str:
    """The alias of a space: readable, and one's own also where two models' names differ in signs alone."""
    name = re.sub(r"[^a-z0-9]+", "-", space.model.lower()).strip("-")[:64]
    digest = hashlib.sha256(space.model.encode()).hexdigest()[:12]
    return f"{options.prefix}-{name}-{digest}-{space.dimensions}"


def definition(options: IndexOptions, space: VectorSpace) -> Json:
    """The body that makes the space's first index together with its alias."""
    return {
        "aliases": {alias_of(options, space): {}},
        "settings": {"index": _settings(options)},
        "mappings": {"dynamic": "strict", "properties": _properties(options, space)},
    }


def _settings(options: IndexOptions) -> Json:
    if options.dialect is Dialect.SERVERLESS:
        return {"knn": True}
    settings: Json = {
        "knn": True,
        "refresh_interval": f"{options.refresh_ms}ms",
        # With segment replication a refresh promises nothing of the replicas.
        "replication.type": "DOCUMENT",
    }
    if options.engine is KnnEngine.FAISS:
        settings["knn.advanced.approximate_threshold"] = -1
    return settings


def _properties(options: IndexOptions, space: VectorSpace) -> Json:
    vector: Json = {"type": "knn_vector", "dimension": space.dimensions}
    properties: Json = {
        **dict.fromkeys(_KEYWORDS, _KEYWORD),
        "chunk_index": {"type": "integer", "index": False},
        "text": {"type": "text", "index": False},
        "terms": _TERMS,
        "term_count": _TERM_COUNT,
        "vector": vector,
    }
    if options.dialect is Dialect.SERVERLESS:
        # Unasked, a NextGen collection keeps one bit of 32.
        vector |= {"space_type": SPACE_TYPE, "compression_level": "1x"}
        properties["write_id"] = _KEYWORD
    else:
        parameters = {"m": options.m, "ef_construction": options.ef_construction}
        vector["method"] = {
            "name": "hnsw",
            "engine": str(options.engine),
            "space_type": SPACE_TYPE,
            "parameters": parameters,
        }
    return properties


def prove(options: IndexOptions, space: VectorSpace, found: Json) -> None:
    """Holds an index to what the exact tenant filter and the score need.

    Args:
        found: the server's description of what the alias stands for, by index.

    Raises:
        ConfigurationError: it is none of ours, or could mix tenants.
    """
    alias = alias_of(options, space)
    if len(found) != 1 or alias in found:
        raise ConfigurationError(f"OpenSearch: {alias} must be the alias of one index; make the index again")
    [(name, index)] = found.items()
    wrong = [
        *_wrong_of_alias(index.get("aliases", {}).get(alias)),
        *_wrong_of_settings(index.get("settings", {}).get("index", {})),
        *_wrong_of_mapping(options, space, index.get("mappings", {})),
    ]
    if wrong:
        raise ConfigurationError(
            f"OpenSearch's index {name} cannot keep tenants apart or scores right: {'; '.join(wrong)}. "
            "Delete it, or name another with WEFT_OPENSEARCH_INDEX"
        )


def _wrong_of_alias(alias: Json | None) -> list[str]:
    # A filter or a routing on the alias would hide or misplace records.
    return [] if alias is not None and alias.keys() <= {"is_write_index"} else ["its alias has options"]


def _wrong_of_settings(settings: Json) -> list[str]:
    pipelines = {key for key in _PIPELINES if _setting(settings, key) not in (None, "_none")}
    return [f"it has a {key}, which may change records or queries" for key in sorted(pipelines)]


def _setting(settings: Json, key: str) -> object:
    """A setting by its dotted name; the server answers nested objects."""
    value: object = settings
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _wrong_of_mapping(options: IndexOptions, space: VectorSpace, mapping: Json) -> list[str]:
    wrong = [] if mapping.get("dynamic") == "strict" else ["its mapping is not strict"]
    if mapping.keys() - {"dynamic", "properties", "_meta"}:
        wrong.append("its mapping has more than fields")
    fields = mapping.get("properties", {})
    expected = _properties(options, space)
    # The description leaves out what is a default, so any option of a keyword shows here.
    wrong += [
        f"the field {name} is not exactly a keyword"
        for name, field in expected.items()
        if field == _KEYWORD and fields.get(name) != _KEYWORD
    ]
    wrong += [f"the field {name} is missing" for name in expected if name not in fields]
    wrong += [
        f"the field {name} is not made for BM25"
        for name in ("terms", "term_count")
        if fields.get(name) != expected[name]
    ]
    return wrong + _wrong_of_vector(options, space, fields.get("vector", {}))


def _wrong_of_vector(options: IndexOptions, space: VectorSpace, vector: Json) -> list[str]:
    method = vector.get("method", {})
    wrong = []
    if (vector.get("type"), vector.get("dimension")) != ("knn_vector", space.dimensions):
        wrong.append(f"its vector does not have {space.dimensions} dimensions")
    if (vector.get("space_type") or method.get("space_type")) != SPACE_TYPE:
        wrong.append(f"its vectors are not compared by {SPACE_TYPE}")
    if options.dialect is Dialect.DOMAIN and method.get("engine") != options.engine:
        wrong.append(f"its engine is {method.get('engine')}, and WEFT_OPENSEARCH_ENGINE says {options.engine}")
    return wrong

"""Bodies of searches, each for one tenant, and the guard that lets no other pass.

A query's filter is one ``bool`` whose first ``filter`` clause is the tenant's term. What stands beside it in ``filter``
and ``must_not`` can only narrow; nothing else may stand there, and nothing else may speak of tenants.
"""

from collections.abc import Sequence
from typing import Any

from core.model.filter import Filter
from core.model.ids import ChunkId, CollectionId
from core.model.tenant import Tenant
from core.ranking.bm25 import K1, B, Statistics
from core.vectors.attributes import AllOf, AnyOf, Condition, Name, TermRange, Terms, Without, compile_filter
from core.vectors.types import TextQuery, VectorQuery

Json = dict[str, Any]

TENANT = "tenant_id"
MATCH_FIELDS = [TENANT, "collection_id", "chunk_id", "source_id", "source_key", "text"]
ID_FIELDS = [TENANT, "chunk_id"]
VECTOR_FIELDS = [*MATCH_FIELDS, "vector"]
TERM_FIELDS = [*MATCH_FIELDS, "terms"]

BM25 = """
double length = params.k1 * (1.0 - params.b + params.b * doc['term_count'].value / params.average_length);
double score = 0.0;
for (int i = 0; i < params.terms.size(); i++) {
    double frequency = termFreq('terms', params.terms[i]);
    if (frequency > 0.0) { score += params.idf[i] * frequency / (frequency + length); }
}
return score;
"""
"""`core.ranking.bm25`, for one record."""

_BODY = {"size", "query", "_source", "sort", "search_after", "track_total_hits", "aggs"}
_PARAMETERS = {"k1", "b", "average_length", "terms", "idf"}
_KNN = {"vector", "k", "filter", "method_parameters"}
_BOOL = {"filter", "must_not"}
_INNER_BOOL = _BOOL | {"should", "minimum_should_match"}
_BY_CHUNK = [{"chunk_id": "asc"}]


class Refused(RuntimeError):
    """A request that is not confined to its tenant. It has not been sent."""


def record_id(tenant: Tenant, chunk_id: ChunkId) -> str:
    """The ``_id`` of a record. A tenant has no ``~``, so no two tenants share one."""
    return f"{tenant}~{chunk_id}"


def nearest(tenant: Tenant, vector: Sequence[float], query: VectorQuery, size: int, *, ef_search: int | None) -> Json:
    """The ``size`` records nearest to a vector. The filter acts inside the search.

    Args:
        vector: the query's, as it is sent.
        size: instead of the query's limit.
        ef_search: how widely a graph is searched; None where there is none to search.
    """
    clauses = _within(tenant, query.collection_ids, query.filter)
    knn: Json = {
        "vector": vector,
        "k": size,
        "filter": _filter(tenant, *clauses, exclude=query.exclude_generations),
    }
    if ef_search is not None:
        knn["method_parameters"] = {"ef_search": ef_search}
    fields = VECTOR_FIELDS if query.with_vectors else MATCH_FIELDS
    return {"size": size, "_source": fields, "query": {"knn": {"vector": knn}}}


def statistics(tenant: Tenant, query: TextQuery) -> Json:
    """What BM25 needs to know of all records in the query's collections: see ``read_statistics``."""
    body = _number(_filter(tenant, _terms("collection_id", query.collection_ids)))
    return body | {"aggs": _aggregations(query.terms)}


def read_statistics(query: TextQuery, answer: Json) -> Statistics:
    """The statistics in an answer."""
    found = answer["aggregations"]
    counts = [bucket["doc_count"] for bucket in found["containing"]["buckets"]]
    return Statistics(
        records=answer["hits"]["total"]["value"],
        total_length=int(found["length"]["value"]),
        containing=dict(zip(query.terms, counts, strict=True)),
    )


def best(tenant: Tenant, query: TextQuery, of: Statistics, size: int) -> Json:
    """The ``size`` records with the best scores by BM25."""
    clauses = [*_within(tenant, query.collection_ids, query.filter), _terms("terms", query.terms)]
    parameters = {
        "k1": K1,
        "b": B,
        "average_length": of.average_length,
        "terms": list(query.terms),
        "idf": [of.idf(term) for term in query.terms],
    }
    scored = {
        "query": _filter(tenant, *clauses, exclude=query.exclude_generations),
        "script": {"source": BM25, "params": parameters},
    }
    return {"size": size, "_source": TERM_FIELDS, "query": {"script_score": scored}}


def _aggregations(terms: Sequence[str]) -> Json:
    """They look at nothing but what the query finds."""
    return {
        "length": {"sum": {"field": "term_count"}},
        "containing": {"filters": {"filters": [_terms("terms", [term]) for term in terms]}},
    }


def among(tenant: Tenant, chunk_ids: Sequence[ChunkId]) -> Json:
    """Those of these chunks that have a record."""
    return {"size": len(chunk_ids), "_source": ID_FIELDS, "query": _filter(tenant, _terms("chunk_id", chunk_ids))}


def in_order(tenant: Tenant, collection_id: CollectionId, after: ChunkId | None, size: int) -> Json:
    """A collection's first records in order of chunk ID, beyond ``after``."""
    query = _filter(tenant, _terms("collection_id", [collection_id]))
    body: Json = {"size": size, "_source": ID_FIELDS, "query": query, "sort": _BY_CHUNK}
    if after is not None:
        body["search_after"] = [str(after)]
    return body


def how_many(tenant: Tenant) -> Json:
    """The number of the tenant's records."""
    return _number(_filter(tenant))


def how_many_among(tenant: Tenant, chunk_ids: Sequence[ChunkId]) -> Json:
    """How many of these chunks have a record."""
    return _number(_filter(tenant, _terms("chunk_id", chunk_ids)))


def how_many_match(tenant: Tenant, collection_ids: Sequence[CollectionId], filter: Filter | None) -> Json:
    """How many records of the collections fulfil a filter."""
    return _number(_filter(tenant, *_within(tenant, collection_ids, filter)))


def how_many_of_write(tenant: Tenant, write_id: str) -> Json:
    """How many records of one write can be found."""
    return _number(_filter(tenant, _terms("write_id", [write_id])))


def _number(query: Json) -> Json:
    return {"size": 0, "query": query, "track_total_hits": True}


def _filter(tenant: Tenant, *clauses: Json, exclude: Sequence[str] = ()) -> Json:
    """The one place that names the tenant in a query."""
    narrowed: Json = {"filter": [_tenant_term(tenant), *clauses]}
    if exclude:
        narrowed["must_not"] = [_terms("generation", exclude)]
    return {"bool": narrowed}


def _within(tenant: Tenant, collection_ids: Sequence[CollectionId], filter: Filter | None) -> list[Json]:
    clauses = [_terms("collection_id", collection_ids)]
    if filter is not None:
        clauses.append(_clause(compile_filter(tenant, filter)))
    return clauses


def _clause(condition: Condition) -> Json:
    """A condition on a record's attributes. A ``terms`` of none finds nothing, a ``filter`` of none everything."""
    match condition:
        case Name(term):
            return _terms("attribute_names", [term])
        case Terms(terms):
            return _terms("attribute_terms", terms)
        case TermRange():
            above, below = "gte" if condition.includes_low else "gt", "lte" if condition.includes_high else "lt"
            return {"range": {"attribute_terms": {above: condition.low, below: condition.high}}}
        case AllOf(parts):
            return {"bool": {"filter": [_clause(part) for part in parts]}}
        case AnyOf(parts):
            nothing = _terms("attribute_terms", [])
            return {"bool": {"should": [nothing, *map(_clause, parts)], "minimum_should_match": 1}}
        case Without(part):
            return {"bool": {"must_not": [_clause(part)]}}


def _tenant_term(tenant: Tenant) -> Json:
    return {"term": {TENANT: {"value": str(tenant)}}}


def _terms(field: str, values: Sequence[str]) -> Json:
    return {"terms": {field: [str(value) for value in values]}}


def check_search(tenant: Tenant, body: Json) -> None:
    """Lets a search pass that can find nothing of another tenant.

    Raises:
        Refused: any part is not known to be confined.
    """
    _require(body.keys() <= _BODY and "query" in body, "members of the body")
    _require(body.get("sort", _BY_CHUNK) == _BY_CHUNK, "the order")
    fields = (ID_FIELDS, MATCH_FIELDS, VECTOR_FIELDS, TERM_FIELDS)
    _require(body.get("_source", ID_FIELDS) in fields, "the fields")
    _check_aggregations(body.get("aggs"))
    query = body["query"]
    _require(isinstance(query, dict) and len(query) == 1, "one query")
    if "knn" in query:
        knn = query["knn"]
        _require(isinstance(knn, dict) and knn.keys() == {"vector"}, "the vector field")
        _require(isinstance(knn["vector"], dict) and knn["vector"].keys() <= _KNN, "members of the k-NN query")
        query = knn["vector"].get("filter")
    elif "script_score" in query:
        scored = query["script_score"]
        _require(isinstance(scored, dict) and scored.keys() == {"query", "script"}, "members of the scored query")
        _check_script(scored["script"])
        query = scored["query"]
    _check_filter(tenant, query)


def _check_aggregations(aggregations: Any) -> None:
    """Others could look beyond the query."""
    if aggregations is None:
        return
    try:
        terms = [one["terms"]["terms"][0] for one in aggregations["containing"]["filters"]["filters"]]
    except (TypeError, LookupError):
        terms = []
    _require(aggregations == _aggregations(terms) and all(type(term) is str for term in terms), "the aggregations")


def _check_script(script: Any) -> None:
    _require(isinstance(script, dict) and script.keys() == {"source", "params"}, "members of the script")
    _require(script["source"] == BM25, "the script")
    _require(isinstance(script["params"], dict) and script["params"].keys() == _PARAMETERS, "the script's parameters")


def _check_filter(tenant: Tenant, query: Any) -> None:
    _require(isinstance(query, dict) and query.keys() == {"bool"}, "one bool")
    narrowed = query["bool"]
    _require(isinstance(narrowed, dict) and narrowed.keys() <= _BOOL, "members of the bool")
    clauses = narrowed.get("filter")
    _require(isinstance(clauses, list) and clauses[:1] == [_tenant_term(tenant)], "the tenant's term")
    _check_clauses(clauses[1:])
    _check_clauses(narrowed.get("must_not", []))


def _check_clauses(clauses: Any) -> None:
    _require(isinstance(clauses, list), "a list of clauses")
    for clause in clauses:
        _require(isinstance(clause, dict) and len(clause) == 1, "one kind of clause")
        [(kind, inner)] = clause.items()
        _require(kind in ("bool", "terms", "range") and isinstance(inner, dict), "a known clause")
        if kind == "bool":
            _require(inner.keys() <= _INNER_BOOL, "members of a bool")
            _require(inner.get("minimum_should_match", 1) == 1, "one of several clauses")
            for member in inner.keys() - {"minimum_should_match"}:
                _check_clauses(inner[member])
        else:
            _require(len(inner) == 1 and TENANT not in inner, "a clause of one field, not the tenant's")
            [values] = inner.values()
            # An object in a list's place would read its terms from a document of anyone's.
            expected = list if kind == "terms" else dict
            _require(type(values) is expected, "values")
            texts = values.values() if isinstance(values, dict) else values
            _require(all(type(text) is str for text in texts), "values as strings")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise Refused(f"A search that is not confined to its tenant was not sent: {what}")


def check_hit(tenant: Tenant, hit: Json) -> Json:
    """A hit's fields, once it is the tenant's.

    Raises:
        RuntimeError: it is not; the filter has failed.
    """
    source: Json = hit["_source"]
    if source[TENANT] != tenant or hit["_id"] != f"{tenant}~{source['chunk_id']}":
        raise RuntimeError("the vector store answered with another tenant's record")
    return source

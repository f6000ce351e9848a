"""Mutants of the vector stores: the tenant of every record, and that a write is found once it is answered."""

from core.retrieval.search import _Search
from core.vectors import embedded
from core.vectors.embedded import EmbeddedVectorStore
from core.vectors.opensearch import query as queries
from core.vectors.opensearch.client import Client
from core.vectors.opensearch.store import OpenSearchVectorStore
from tests.proofs.edits import becomes, condition, never, parameter, skip, value
from tests.proofs.mutation import Mutant
from tests.proofs.probes import beside, isolated, readied

_UNCHECKED_MATCH = never(_Search._matches, "tenant")

MUTANTS = (
    # -- embedded --------------------------------------------------------------------------------------
    Mutant(
        "the embedded store keeps all tenants' rows under one key, and the tenant of a match is not checked",
        parameter(embedded._key, "tenant", "'all'"),
        _UNCHECKED_MATCH,
        probes=[isolated],
        vectors="embedded",
    ),
    Mutant(
        "the embedded store does not see what another process wrote",
        condition(EmbeddedVectorStore._matrix, "version !=", "not _1"),
        probes=[readied],
        vectors="embedded",
    ),
    Mutant(
        "the embedded store's statistics for BM25 are of all tenants",
        becomes(EmbeddedVectorStore.search_text, "one_of()", "_ | True"),
        parameter(embedded._key, "tenant", "'all'"),
        value(embedded._match, "tenant", "Tenant('quiet')"),
        probes=[beside],
        vectors="embedded",
    ),
    # -- OpenSearch ------------------------------------------------------------------------------------
    Mutant(
        "a search of OpenSearch has no term for the tenant",
        skip(queries._filter, "tenant_term()"),
        probes=[isolated],
        vectors="opensearch",
    ),
    Mutant(
        "a search of OpenSearch has no term for the tenant, and neither the search nor its hits are checked",
        skip(queries._filter, "tenant_term()"),
        becomes(queries._check_filter, "tenant_term() ==", "True"),
        never(queries.check_hit, "TENANT _id"),
        _UNCHECKED_MATCH,
        probes=[isolated],
        vectors="opensearch",
    ),
    Mutant(
        "the ID of a record in OpenSearch does not name its tenant, and neither writes nor hits are checked for it",
        parameter(queries.record_id, "tenant", "''"),
        skip(Client.bulk, "check_bulk()"),
        never(queries.check_hit, "_id"),
        probes=[isolated],
        vectors="opensearch",
    ),
    Mutant(
        "a write to OpenSearch does not wait until searches see it",
        value(OpenSearchVectorStore._send, "wait", "False"),
        probes=[readied],
        vectors="opensearch",
    ),
    Mutant(
        "the statistics for BM25 in OpenSearch are of all tenants, and the search is not checked",
        becomes(queries.statistics, "filter()", "{'bool': {'filter': []}}"),
        skip(Client.search, "check_search()"),
        probes=[beside],
        vectors="opensearch",
    ),
)

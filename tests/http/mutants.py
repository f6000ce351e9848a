"""Mutants of the HTTP interface: whose a request is, and what an answer that was cut says."""

from core.http.limits import fit_retrieval
from core.http.request import tenant_of
from tests.proofs.edits import becomes, without
from tests.proofs.mutation import Mutant
from tests.proofs.probes import isolated, reasoned

MUTANTS = (
    Mutant(
        "a header of the request names the tenant",
        becomes(tenant_of, "jwt claims claim", "request.headers.get('x-tenant') or _"),
        probes=[isolated],
    ),
    Mutant(
        "an answer that was cut does not say so",
        without(fit_retrieval, "reason"),
        probes=[reasoned("too large")],
    ),
)

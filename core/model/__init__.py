"""The words of the product: what callers send and get back, and what the rooms of `core` hand to each other.

Every model is frozen and refuses unknown fields (`core.model.base.Model`). A model that the HTTP interface shows
carries its example, and its ``Attributes:`` become descriptions in ``infra/openapi.json``: run ``make openapi`` after a
change.

| subject | module |
| --- | --- |
| identifiers, and the tenant of a call | `ids`, `tenant` |
| vectors and vector spaces | `vector` |
| collections, documents, chunks | `collection`, `document`, `chunk` |
| what goes into an ingest, an upload or a deletion, and what comes out | `ingest`, `upload` |
| questions, with the defaults of every option such as ``rrf_k`` | `query` |
| filters by attributes | `filter` |
| hits and answers, comparisons, and contexts with citations | `hit`, `comparison`, `context` |
| pages of a listing | `page` |
| what the engine says of itself, of a sweep and of work on a whole collection | `component`, `recovery` |
| every error, with code and status | `errors` |

This room imports no other room.
"""

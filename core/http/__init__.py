"""What every HTTP function shares.

**A call from end to end.** API Gateway verifies the token and calls a function with an event. `app` turns the event
into a request for FastAPI. Before any endpoint runs, `route.StrictRoute` refuses unknown query parameters and bodies
that are not expected, reads the body as strict JSON and compares a ``tenant`` in it with the token. `dependencies`
gives the endpoint the engine, the tenant and the deadline. `schemas` turns bodies and queries into the engine's models,
`limits` cuts answers to their size, and `problem` turns every error into ``application/problem+json``.

**The tenant** comes from the verified token alone. `request`, at its head, says why no handler can forget it.

**A new route**, say ``GET /v1/things``:

1. a function with ``@app.get("/v1/things", tags=[…], responses=problems(…))`` in ``functions/NAME/handler.py``. It
   takes `dependencies.CurrentEngine` and `dependencies.CurrentTenant`, names the errors that it can answer, and returns
   a model of `core.model`, or of `schemas` where the form over HTTP is another. The model carries an example;
2. an event of the function in ``template.yaml``: the local gateway and the tests route by the template;
3. ``make openapi``;
4. tests in ``tests/http``. ``test_strictness.py`` calls the new route by itself, with wrong tokens, bodies and queries.

**Errors that are not the caller's.** When DynamoDB, OpenSearch or a model throttles, the room that calls it repeats the
request (`core.retry`) and then raises `core.model.errors.Unavailable`. A 429 of OpenSearch thus becomes 503 with the
code ``unavailable``, ``retry_after_s`` and the header ``Retry-After``. An unexpected error becomes 500 with the
request's ID.

| module | holds |
| --- | --- |
| `app` | the FastAPI application of a function, and its Lambda handler |
| `route` | what is done before and after every endpoint |
| `request` | the tenant, the body and the query of a request, read strictly |
| `dependencies` | the engine, the tenant and the deadline that endpoints take as arguments |
| `schemas` | bodies, queries and answers whose form over HTTP is not the engine's |
| `limits` | answers that are cut to their size |
| `problem` | errors as ``application/problem+json`` |
| `answers` | the errors in the description of an endpoint |
"""

"""The route class of every function. It does before and after each endpoint what no endpoint can forget."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from core.http.dependencies import current_tenant
from core.http.problem import unexpected
from core.http.request import agree_on_tenant, read_body, validate_no_body, validate_query
from core.model.errors import WeftError

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class _JsonRequest(Request):
    """A request whose body has been read and validated already."""

    document: Any = None

    async def json(self) -> Any:
        return self.document


class StrictRoute(APIRoute):
    """A route that refuses input which it does not read, and answers unexpected errors with 500.

    It refuses unknown query parameters, a body where none is read, and a body that names another tenant.
    """

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()
        known = frozenset(self._query_names())

        async def strict(request: Request) -> Response:
            try:
                validate_query(request, known)
                return await handle(await self._with_validated_body(request))
            except (WeftError, RequestValidationError, HTTPException):
                raise
            except Exception as error:  # noqa: BLE001  the last resort: logged whole, answered 500
                return unexpected(request, error)

        return strict

    async def _with_validated_body(self, request: Request) -> Request:
        validated = _JsonRequest(request.scope, request.receive)
        body = await validated.body()
        if self.body_field is None:
            validate_no_body(body)
        else:
            tenant = await current_tenant(request)
            validated.document = agree_on_tenant(read_body(body, request.headers), tenant)
        return validated

    def _query_names(self) -> set[str]:
        names: set[str] = set()
        for parameter in self.dependant.query_params:
            model = parameter.field_info.annotation
            if isinstance(model, type) and issubclass(model, BaseModel):
                names.update(field.alias or name for name, field in model.model_fields.items())
            else:
                names.add(parameter.alias)
        return names

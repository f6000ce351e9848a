"""The route class of every function: what no endpoint can forget."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from core.http.dependencies import current_tenant
from core.http.problem import unexpected
from core.http.request import agree_on_tenant, check_no_body, check_query, read_body
from core.model.errors import WeftError

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class _JsonRequest(Request):
    """A request whose body has been read and checked."""

    document: Any = None

    async def json(self) -> Any:
        return self.document


class StrictRoute(APIRoute):
    """Unknown query parameters, unread bodies, a body of another tenant: refused. Unexpected errors: 500."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()
        known = frozenset(self._query_names())

        async def strict(request: Request) -> Response:
            try:
                check_query(request, known)
                return await handle(await self._checked(request))
            except (WeftError, RequestValidationError, HTTPException):
                raise
            except Exception as error:  # noqa: BLE001  the last resort: logged whole, answered 500
                return unexpected(request, error)

        return strict

    async def _checked(self, request: Request) -> Request:
        checked = _JsonRequest(request.scope, request.receive)
        body = await checked.body()
        if self.body_field is None:
            check_no_body(body)
        else:
            tenant = await current_tenant(request)
            checked.document = agree_on_tenant(read_body(body, request.headers), tenant)
        return checked

    def _query_names(self) -> set[str]:
        names: set[str] = set()
        for parameter in self.dependant.query_params:
            model = parameter.field_info.annotation
            if isinstance(model, type) and issubclass(model, BaseModel):
                names.update(field.alias or name for name, field in model.model_fields.items())
            else:
                names.add(parameter.alias)
        return names

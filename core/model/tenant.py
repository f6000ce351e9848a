"""The tenant: who owns the data that a call works on. Every call runs in exactly one tenant."""

import re
from typing import Any, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from core.model.errors import InvalidArgument, TenantRequired

_NAME = re.compile(r"[A-Za-z0-9._:@=+-]{1,128}")


class Tenant(str):
    """The validated name of a tenant: 1 to 128 of the characters ``A-Z a-z 0-9 . _ : @ = + -``.

    None of these characters separates the parts of a table key, a path or a query, so the name is used in all three
    without escaping. Every function that reads or writes data takes a Tenant; the type checker accepts no plain string.

    Raises:
        InvalidArgument: the name has another form.
    """

    __slots__ = ()

    def __new__(cls, name: str) -> Self:
        if not _NAME.fullmatch(name):
            raise InvalidArgument("A tenant is 1 to 128 letters, digits and . _ : @ = + -", field="tenant")
        return super().__new__(cls, name)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema())


def resolve_tenant(context: Tenant | None, explicit: str | None, *, empty_is_none: bool = False) -> Tenant:
    """Decides in which tenant a call runs.

    Args:
        context: the tenant of the caller's verified token; None where there is no token.
        explicit: the tenant that the call itself names; None when the call names none.
        empty_is_none: whether an explicit ``""`` names no tenant, as in the engine's deprecated option, or is a name
            like any other.

    Raises:
        InvalidArgument: both tenants are named and differ, or the explicit name has a wrong form.
        TenantRequired: neither tenant is named.
    """
    if explicit == "" and empty_is_none:
        explicit = None
    if context is not None:
        if explicit is not None and explicit != context:
            raise InvalidArgument("The call names another tenant than its token", field="tenant")
        return context
    if not explicit:
        raise TenantRequired
    return Tenant(explicit)

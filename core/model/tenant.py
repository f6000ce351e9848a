"""The tenant: who owns the data of a call."""

import re
from typing import Any, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from core.model.errors import InvalidArgument, TenantRequired

_FORM = re.compile(r"[A-Za-z0-9._:@=+-]{1,128}")


class Tenant(str):
    """A checked tenant name: 1 to 128 of ``A-Z a-z 0-9 . _ : @ = + -``.

    Nothing in it can end a part of a table key, a path or a query, so it is used in all three as it is.
    Every store function takes one; a plain string is not accepted by the type checker.

    Raises:
        InvalidArgument: the name has another form.
    """

    __slots__ = ()

    def __new__(cls, name: str) -> Self:
        if not _FORM.fullmatch(name):
            raise InvalidArgument("A tenant is 1 to 128 letters, digits and . _ : @ = + -", field="tenant")
        return super().__new__(cls, name)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema())


def resolve_tenant(context: Tenant | None, explicit: str | None, *, empty_is_none: bool = False) -> Tenant:
    """The one tenant a call runs in.

    Args:
        context: the tenant the caller is known to be, from a verified token.
        explicit: the tenant that the call itself names; None when it names none.
        empty_is_none: whether an explicit ``""`` names nothing (the older option) or is a value of its own.

    Raises:
        InvalidArgument: both are there and differ, or the explicit one has a wrong form.
        TenantRequired: there is none.
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

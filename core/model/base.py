"""The base class of every model, and the forms of time and example that all models share."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, PlainSerializer


def rfc3339(moment: datetime) -> str:
    """Writes a time as RFC 3339 in UTC with milliseconds: ``2026-11-30T09:15:00.123Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


EXAMPLE_TIME = "2026-11-30T09:15:00.123Z"
"""The time in every example."""

Timestamp = Annotated[AwareDatetime, PlainSerializer(rfc3339, when_used="json")]


def with_example(example: dict[str, Any]) -> ConfigDict:
    """Gives a model the example that the API's description shows: ``model_config = with_example({…})``."""
    return ConfigDict(json_schema_extra={"example": example})


class Model(BaseModel):
    """The base of every model: frozen, and closed, so that a misspelt field is an error and never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

"""What every model shares."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, PlainSerializer


def rfc3339(moment: datetime) -> str:
    """``2026-11-30T09:15:00.123Z``: UTC, milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Timestamp = Annotated[AwareDatetime, PlainSerializer(rfc3339, when_used="json")]


class Model(BaseModel):
    """Frozen, and closed: an unknown field is an error, so that a misspelt one is never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

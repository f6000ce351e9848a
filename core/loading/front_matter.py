"""The front matter of Markdown: a YAML mapping before the text, which gives the document a title and attributes."""

import re
from collections.abc import Iterator
from datetime import date
from itertools import islice
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from core.model.chunk import AttributeName, Attributes, AttributeValue

MAX_FRONT_MATTER = 64 * 1024
"""The longest front matter that is read, in characters. A longer one stays part of the text."""
MAX_FRONT_MATTER_DEPTH = 16
"""How deep lists and mappings may be nested. Front matter that is nested deeper stays part of the text."""
MAX_ATTRIBUTES = 64
"""The most attributes that are taken from a document's front matter, and the most that a document may have."""
MAX_TITLE = 1024
"""The longest title that a document gives itself, in characters. A longer title is cut."""

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?\r?\n)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
# When a value does not fit its tag, PyYAML raises its own errors or lets one of Python's errors pass.
_YAML_ERRORS = (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_ATTRIBUTE: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[AttributeName, AttributeValue])


def take_front_matter(text: str) -> tuple[str, str, Attributes]:
    """Splits a Markdown text into the text after its front matter, the title and the attributes.

    Front matter is a YAML mapping between ``---`` lines at the very start of the text, of at most 64 Ki characters.
    Its ``title`` becomes the title. Of its other entries, the first 64 whose values an attribute can have become
    attributes, with dates as ISO 8601 text. Further entries and entries with other values are left out.

    A text whose beginning is no such mapping, or uses YAML aliases, has no front matter. Such a text is returned whole,
    with an empty title and no attributes.
    """
    match = _FRONT_MATTER.match(text, 0, MAX_FRONT_MATTER)
    if not match:
        return text, "", {}
    try:
        values = _read_yaml(match[1])
    except _YAML_ERRORS:
        return text, "", {}
    if not isinstance(values, dict):
        return text, "", {}
    title = values.pop("title", "")
    attributes = dict(islice(_valid_attributes(values), MAX_ATTRIBUTES))
    return text[match.end() :], title[:MAX_TITLE] if isinstance(title, str) else "", attributes


def _read_yaml(text: str) -> Any:
    """Reads YAML that has no aliases and is not nested deep.

    PyYAML takes quadratic time for deep nesting and exponential memory for aliases, so both are refused before any
    value is built.
    """
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_FRONT_MATTER_DEPTH or isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError
    return yaml.safe_load(text)


def _valid_attributes(values: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        plain_value = value.isoformat() if isinstance(value, date) else value
        try:
            yield from _ATTRIBUTE.validate_python({name: plain_value}).items()
        except ValidationError:
            continue

"""Sizes of DynamoDB items, by the rules of its developer guide ("DynamoDB item sizes and formats")."""

from collections.abc import Mapping
from typing import Any

Wire = Mapping[str, Any]
"""An item as it goes over the wire: ``{"name": {"S": "text"}}``."""


def item_size(item: Wire) -> int:
    """Bytes of an item: its attributes' names and values."""
    return sum(len(name.encode()) + value_size(value) for name, value in item.items())


def value_size(value: Mapping[str, Any]) -> int:
    """Bytes of a value. A list or map costs 3, and 1 for each element."""
    [(kind, content)] = value.items()
    match kind:
        case "S" | "B" | "N":
            size = _scalar_size(content, number=kind == "N")
        case "SS" | "BS" | "NS":
            size = sum(_scalar_size(one, number=kind == "NS") for one in content)
        case "L":
            size = 3 + sum(1 + value_size(one) for one in content)
        case "M":
            size = 3 + sum(1 + len(name.encode()) + value_size(one) for name, one in content.items())
        case _:  # NULL, BOOL
            size = 1
    return size


def _scalar_size(content: str | bytes, *, number: bool) -> int:
    if isinstance(content, bytes):
        return len(content)
    return _number_size(content) if number else len(content.encode())


def _number_size(number: str) -> int:
    """One byte for two significant digits, one more, and one for a sign."""
    digits = number.lower().partition("e")[0].replace(".", "").replace("-", "").replace("+", "").strip("0")
    return (len(digits) + 1) // 2 + 1 + number.startswith("-")

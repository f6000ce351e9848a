"""Converts items between plain dictionaries and the form in which DynamoDB's client has them.

In the client's form each value carries its type: ``{"name": {"S": "text"}}``. Every number in the table is an integer.
"""

from collections.abc import Callable, Mapping
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from core.metadata.table import Key

Item = dict[str, Any]
"""An item as a plain dictionary."""


class _IntegerDeserializer(TypeDeserializer):
    def _deserialize_n(self, value: str) -> int:
        return int(value)


serialize: Callable[[Any], Any] = TypeSerializer().serialize
_deserialize: Callable[[Any], Any] = _IntegerDeserializer().deserialize


def to_wire(item: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an item in the client's form. Attributes that are None are left out."""
    return {name: serialize(value) for name, value in item.items() if value is not None}


def from_wire(item: Mapping[str, Any]) -> Item:
    """Returns an item as a plain dictionary."""
    return {name: _deserialize(value) for name, value in item.items()}


def key_to_wire(key: Key) -> dict[str, Any]:
    """Returns a primary key in the client's form."""
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


def key_of(item: Mapping[str, Any]) -> Key:
    """Returns the primary key of a plain item."""
    return Key(item["pk"], item["sk"])

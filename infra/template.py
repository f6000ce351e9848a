"""template.yaml as data, so that tests and the local stack build and route what is deployed."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

PATH = Path(__file__).parent.parent / "template.yaml"

Template = dict[str, Any]


class _Loader(yaml.SafeLoader):
    """Reads CloudFormation's short tags as their long forms: ``!Ref X`` is ``{"Ref": "X"}``."""


def _long_form(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> dict[str, Any]:
    value: Any = None
    match node:
        case yaml.ScalarNode():
            value = loader.construct_scalar(node)
        case yaml.SequenceNode():
            value = loader.construct_sequence(node, deep=True)
        case yaml.MappingNode():
            value = loader.construct_mapping(node, deep=True)
    if tag == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {tag if tag in {"Ref", "Condition"} else f"Fn::{tag}": value}


_Loader.add_multi_constructor("!", _long_form)


def load(path: Path = PATH) -> Template:
    """The template, its short tags in their long forms."""
    template: Template = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a SafeLoader
    return template


def create_table(client: "DynamoDBClient", name: str) -> None:
    """Creates the template's table, its indexes and its time to live, and waits until it is there.

    Raises:
        client.exceptions.ResourceInUseException: a table of that name exists.
    """
    properties = load()["Resources"]["Table"]["Properties"]
    client.create_table(
        TableName=name,
        AttributeDefinitions=properties["AttributeDefinitions"],
        KeySchema=properties["KeySchema"],
        GlobalSecondaryIndexes=properties["GlobalSecondaryIndexes"],
        BillingMode=properties["BillingMode"],
    )
    client.get_waiter("table_exists").wait(TableName=name)
    client.update_time_to_live(TableName=name, TimeToLiveSpecification=properties["TimeToLiveSpecification"])

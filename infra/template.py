"""template.yaml as data, so that tests and the local stack build and route what is deployed."""

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient

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


def parameter_default(template: Template, value: Any) -> Any:
    """What a property holds when nothing is set at deployment: a reference to a parameter is its default, and what a
    mapping says is found there."""
    if isinstance(value, dict) and set(value) == {"Fn::FindInMap"}:
        name, first, second = (parameter_default(template, key) for key in value["Fn::FindInMap"])
        return template["Mappings"][name][first][second]
    if isinstance(value, dict) and set(value) == {"Ref"}:
        parameter = template.get("Parameters", {}).get(value["Ref"], {})
        return parameter.get("Default", value)
    return value


@dataclass(frozen=True, slots=True)
class Function:
    """A Lambda function.

    Attributes:
        name: its logical id.
        handler: the dotted path of what is called.
        timeout_s: seconds until it is ended.
        environment: its variables; what is known at deployment only is missing.
        events: its events, as the template has them, by name.
    """

    name: str
    handler: str
    timeout_s: int
    environment: dict[str, str]
    events: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Route:
    """What the API sends where.

    Attributes:
        method: in capitals; empty for the default route.
        path: with names in braces; ``$default`` for the default route, which takes what no other takes.
        function: the logical id of the function that answers.
        authorizer: the authorizer's name; None where no token is needed.
    """

    method: str
    path: str
    function: str
    authorizer: str | None

    @property
    def key(self) -> str:
        """The route's key, as events name it: ``GET /v1/collections``, ``$default``."""
        return f"{self.method} {self.path}".strip()


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue between the bucket and its function.

    Attributes:
        function: the logical id of the function that takes its messages.
        batch_size: at most so many messages in one call.
        concurrency: at most so many calls at once.
        visibility_s: seconds until a message that was not settled is handed out again.
        max_receives: after so many a message goes to the dead letters.
    """

    function: str
    batch_size: int
    concurrency: int
    visibility_s: int
    max_receives: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which function is called how often."""

    function: str
    interval: timedelta


def functions(template: Template) -> dict[str, Function]:
    """The functions by logical id, with what the globals give them."""
    shared = template["Globals"]["Function"]
    answer = {}
    for name, resource in template["Resources"].items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        own = resource["Properties"]
        variables = shared["Environment"]["Variables"] | own.get("Environment", {}).get("Variables", {})
        known = {key: parameter_default(template, value) for key, value in variables.items()}
        answer[name] = Function(
            name=name,
            handler=own["Handler"],
            timeout_s=own.get("Timeout", shared["Timeout"]),
            environment={key: str(value) for key, value in known.items() if not isinstance(value, dict)},
            events=own.get("Events", {}),
        )
    return answer


def _events(template: Template, kind: str) -> list[tuple[str, dict[str, Any]]]:
    """The function and the properties of each event of one type."""
    return [
        (function.name, event["Properties"])
        for function in functions(template).values()
        for event in function.events.values()
        if event["Type"] == kind
    ]


def routes(template: Template) -> list[Route]:
    """The API's routes, in the template's order. None of them depends on it: the most exact path wins."""
    default = template["Resources"]["Api"]["Properties"]["Auth"]["DefaultAuthorizer"]
    answer = []
    for function, event in _events(template, "HttpApi"):
        authorizer = event.get("Auth", {}).get("Authorizer", default)
        answer.append(
            Route(
                method=event.get("Method", "").upper(),
                path=event.get("Path", "$default"),
                function=function,
                authorizer=None if authorizer == "NONE" else authorizer,
            )
        )
    return answer


def queue(template: Template) -> Queue:
    """The bucket's queue, and how its function takes from it."""
    [(function, event)] = _events(template, "SQS")
    properties = template["Resources"]["Queue"]["Properties"]
    return Queue(
        function=function,
        batch_size=event["BatchSize"],
        concurrency=event["ScalingConfig"]["MaximumConcurrency"],
        visibility_s=properties["VisibilityTimeout"],
        max_receives=properties["RedrivePolicy"]["maxReceiveCount"],
    )


def schedule(template: Template) -> Schedule:
    """The sweep's schedule, at its default rate."""
    [(function, event)] = _events(template, "ScheduleV2")
    rate = str(parameter_default(template, event["ScheduleExpression"]))
    count, _unit = rate.removeprefix("rate(").removesuffix(")").split()  # the template allows minutes alone
    return Schedule(function=function, interval=timedelta(minutes=int(count)))


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


def create_queue(client: "SQSClient", name: str) -> str:
    """Creates the template's queue, and its dead letters as ``<name>-dead-letters``.

    Returns:
        The queue's URL.
    """
    resources = load()["Resources"]
    dead_letters = client.create_queue(
        QueueName=f"{name}-dead-letters",
        Attributes={"MessageRetentionPeriod": str(resources["DeadLetters"]["Properties"]["MessageRetentionPeriod"])},
    )["QueueUrl"]
    properties = resources["Queue"]["Properties"]
    redrive = properties["RedrivePolicy"] | {"deadLetterTargetArn": queue_arn(client, dead_letters)}
    return client.create_queue(
        QueueName=name,
        Attributes={
            "VisibilityTimeout": str(properties["VisibilityTimeout"]),
            "MessageRetentionPeriod": str(properties["MessageRetentionPeriod"]),
            "RedrivePolicy": json.dumps(redrive),
        },
    )["QueueUrl"]


def queue_arn(client: "SQSClient", url: str) -> str:
    """The name by which a bucket knows a queue."""
    return client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def create_bucket(client: "S3Client", name: str, queue_arn: str) -> None:
    """Creates the template's bucket, with its versions, and sends the template's events to a queue.

    Raises:
        client.exceptions.BucketAlreadyOwnedByYou: a bucket of that name exists.
    """
    properties = load()["Resources"]["Bucket"]["Properties"]
    region: Any = client.meta.region_name
    if region == "us-east-1":  # the one region that may not be named
        client.create_bucket(Bucket=name)
    else:
        client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": region})
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration=properties["VersioningConfiguration"])
    events = [each["Event"] for each in properties["NotificationConfiguration"]["QueueConfigurations"]]
    client.put_bucket_notification_configuration(
        Bucket=name,
        NotificationConfiguration={"QueueConfigurations": [{"QueueArn": queue_arn, "Events": events}]},
        SkipDestinationValidation=True,
    )

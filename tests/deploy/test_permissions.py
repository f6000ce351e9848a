"""Each function may do what it needs and nothing else."""

from collections import defaultdict
from typing import Any

import pytest

from core.embedding import bedrock

Resources = dict[str, dict[str, Any]]

READ = {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"}
WRITE = {
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchWriteItem",
}
CHECK = {"dynamodb:ConditionCheckItem"}
LOGS = {"Logs": {"logs:CreateLogStream", "logs:PutLogEvents"}}
MODEL = {f"arn:${{AWS::Partition}}:bedrock:${{AWS::Region}}::foundation-model/{bedrock.MODEL}": {"bedrock:InvokeModel"}}
LISTING = {"${Table.Arn}/index/listing": {"dynamodb:Query"}}
SWEEP = {"${Table.Arn}/index/sweep": {"dynamodb:Query"}}

ALLOWED: dict[str, dict[str, set[str]]] = {
    "CatalogFunction": {"Table": READ | WRITE, **LISTING, **MODEL, **LOGS},
    "IngestFunction": {"Table": READ | WRITE, "${Bucket.Arn}/*": {"s3:PutObject"}, **MODEL, **LOGS},
    "IngestEventsFunction": {
        "Table": READ | WRITE,
        "Bucket": {"s3:ListBucket"},
        "${Bucket.Arn}/*": {"s3:GetObject", "s3:GetObjectVersion"},
        "Queue": {
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:ChangeMessageVisibility",
        },
        **MODEL,
        **LOGS,
    },
    "RetrieveFunction": {"Table": READ, **MODEL, **LOGS},
    "CompareFunction": {"Table": READ, **MODEL, **LOGS},
    "RecoveryFunction": {"Table": READ | WRITE | CHECK, **LISTING, **SWEEP, **MODEL, **LOGS},
}


def name_of(resource: Any) -> str:
    """What a statement speaks of: a resource's logical id, or the text that is filled in."""
    match resource:
        case {"Fn::GetAtt": [str(name), "Arn"]}:
            return name
        case {"Fn::Sub": str(text)}:
            return text
    pytest.fail(f"Not one resource of this stack: {resource}")


def allowed(resources: Resources, function: str) -> dict[str, set[str]]:
    """The actions that a function's role grants, by resource."""
    role = resources[resources[function]["Properties"]["Role"]["Fn::GetAtt"][0]]["Properties"]
    assert set(role) == {"AssumeRolePolicyDocument", "ManagedPolicyArns"}, "a role grants through its policies alone"
    answer = defaultdict(set)
    for policy in role["ManagedPolicyArns"]:
        for statement in resources[policy["Ref"]]["Properties"]["PolicyDocument"]["Statement"]:
            assert set(statement) == {"Effect", "Action", "Resource"}
            assert statement["Effect"] == "Allow"
            answer[name_of(statement["Resource"])].update(statement["Action"])
    return dict(answer)


@pytest.mark.parametrize("function", ALLOWED)
def test_a_function_may_do_exactly_this(resources: Resources, function: str) -> None:
    assert allowed(resources, function) == ALLOWED[function]


def test_every_function_is_in_the_table(resources: Resources) -> None:
    functions = {name for name, each in resources.items() if each["Type"] == "AWS::Serverless::Function"}

    assert functions == set(ALLOWED)


def test_no_action_is_a_wildcard(resources: Resources) -> None:
    actions = {action for name in ALLOWED for granted in allowed(resources, name).values() for action in granted}

    assert [action for action in actions if "*" in action] == []


def test_roles_are_taken_by_lambda_and_by_the_scheduler_alone(transformed: Resources) -> None:
    services: set[str] = set()
    for resource in transformed.values():
        if resource["Type"] == "AWS::IAM::Role":
            [statement] = resource["Properties"]["AssumeRolePolicyDocument"]["Statement"]
            service = statement["Principal"]["Service"]
            services.update([service] if isinstance(service, str) else service)

    assert services == {"lambda.amazonaws.com", "scheduler.amazonaws.com"}


def test_sam_adds_no_policy_of_aws(transformed: Resources) -> None:
    arns = [
        arn
        for resource in transformed.values()
        if resource["Type"] == "AWS::IAM::Role"
        for arn in resource["Properties"].get("ManagedPolicyArns", [])
    ]

    assert [arn for arn in arns if set(arn) != {"Ref"}] == []


def test_only_this_bucket_may_send_to_the_queue(resources: Resources) -> None:
    statements = resources["QueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    [grant] = [statement for statement in statements if statement["Effect"] == "Allow"]
    [arn_template, filled_in] = grant["Condition"]["ArnEquals"]["aws:SourceArn"]["Fn::Sub"]
    bucket_name = resources["Bucket"]["Properties"]["BucketName"]

    assert grant["Action"] == "sqs:SendMessage"
    assert grant["Principal"] == {"Service": "s3.amazonaws.com"}
    assert grant["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    assert bucket_name == {"Fn::Sub": [arn_template.rpartition(":")[2], filled_in]}


@pytest.mark.parametrize(
    ("policy", "target"), [("BucketPolicy", "Bucket"), ("QueuePolicy", "Queue"), ("DeadLettersPolicy", "DeadLetters")]
)
def test_data_travels_encrypted_only(resources: Resources, policy: str, target: str) -> None:
    statements = resources[policy]["Properties"]["PolicyDocument"]["Statement"]
    [refusal] = [statement for statement in statements if statement["Effect"] == "Deny"]
    named = refusal["Resource"] if isinstance(refusal["Resource"], list) else [refusal["Resource"]]

    assert refusal["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert refusal["Principal"] == "*"
    assert target in {name_of(resource) for resource in named}

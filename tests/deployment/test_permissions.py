"""Each function may do what it needs and nothing else."""

from collections import defaultdict
from fnmatch import fnmatchcase
from typing import Any

import pytest

from core.embedding import bedrock
from core.model.vector import VectorSpace
from core.vectors.opensearch.index import IndexOptions, alias_of

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

DOMAIN = "arn:${AWS::Partition}:es:${AWS::Region}:${AWS::AccountId}:domain/${VectorStoreName}"
COLLECTION = "arn:${AWS::Partition}:aoss:${AWS::Region}:${AWS::AccountId}:collection/${VectorStoreName}"
SEARCH = {
    f"{DOMAIN}/weft*": {"es:ESHttpGet"},
    f"{DOMAIN}/weft-amazon-titan-embed-text-v2-0-????????????-${{EmbeddingDimensions}}-1": {"es:ESHttpPut"},
    f"{DOMAIN}/weft-*/_search": {"es:ESHttpPost"},
}
WRITE_VECTORS = {f"{DOMAIN}/weft-*/_bulk": {"es:ESHttpPost"}}
RERANK = {
    "*": {"bedrock:Rerank"},  # it knows no resources
    "arn:${AWS::Partition}:bedrock:${AWS::Region}::foundation-model/${RerankerModel}": {"bedrock:InvokeModel"},
}
INGEST = {"IngestFunction", "IngestEventsFunction"}
WRITERS = {"CatalogFunction", "RecoveryFunction"} | INGEST

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
        case "*":
            return "*"
    pytest.fail(f"Not one resource of this stack: {resource}")


def allowed(resources: Resources, function: str) -> dict[str, set[str]]:
    """The actions that a function's role grants whatever is deployed, by resource."""
    role = resources[role_of(resources, function)]["Properties"]
    assert set(role) == {"AssumeRolePolicyDocument", "ManagedPolicyArns"}, "a role grants through its policies alone"
    return granted(resources, [policy["Ref"] for policy in role["ManagedPolicyArns"]])


def allowed_with(resources: Resources, function: str, condition: str) -> dict[str, set[str]]:
    """What the policies add that are there on a condition."""
    role = {"Ref": role_of(resources, function)}
    conditional = [name for name, each in resources.items() if each.get("Condition") == condition]
    return granted(resources, [name for name in conditional if role in resources[name]["Properties"]["Roles"]])


def role_of(resources: Resources, function: str) -> str:
    name: str = resources[function]["Properties"]["Role"]["Fn::GetAtt"][0]
    return name


def granted(resources: Resources, policies: list[str]) -> dict[str, set[str]]:
    answer = defaultdict(set)
    for policy in policies:
        for statement in resources[policy]["Properties"]["PolicyDocument"]["Statement"]:
            assert set(statement) == {"Effect", "Action", "Resource"}
            assert statement["Effect"] == "Allow"
            answer[name_of(statement["Resource"])].update(statement["Action"])
    return dict(answer)


@pytest.mark.parametrize("function", ALLOWED)
def test_a_function_may_do_exactly_this(resources: Resources, function: str) -> None:
    assert allowed(resources, function) == ALLOWED[function]


@pytest.mark.parametrize("function", ALLOWED)
def test_a_domain_takes_writes_of_vectors_from_those_alone_that_write(resources: Resources, function: str) -> None:
    expected = SEARCH | WRITE_VECTORS if function in WRITERS else SEARCH
    assert allowed_with(resources, function, "HasDomain") == expected


@pytest.mark.parametrize("function", ALLOWED)
def test_a_collection_lets_every_function_in_and_an_ingest_may_be_finished_from_the_queue(
    resources: Resources, function: str
) -> None:
    later = {"Queue": {"sqs:SendMessage"}} if function in INGEST else {}
    assert allowed_with(resources, function, "HasServerless") == {COLLECTION: {"aoss:APIAccessAll"}} | later


def test_who_may_send_to_the_queue_knows_it(resources: Resources) -> None:
    for function in INGEST:
        variables = resources[function]["Properties"]["Environment"]["Variables"]
        assert variables == {"WEFT_QUEUE_URL": {"Ref": "Queue"}}, function


@pytest.mark.parametrize("function", ALLOWED)
def test_a_reranker_is_asked_by_those_alone_that_answer_questions(resources: Resources, function: str) -> None:
    expected = RERANK if function in {"RetrieveFunction", "CompareFunction"} else {}
    assert allowed_with(resources, function, "HasReranker") == expected


@pytest.mark.parametrize("dimensions", bedrock.DIMENSIONS)
def test_the_index_that_a_function_may_make_is_the_one_that_the_store_makes(dimensions: int) -> None:
    [pattern] = [name for name, actions in SEARCH.items() if actions == {"es:ESHttpPut"}]
    name = f"{alias_of(IndexOptions(), VectorSpace(model=bedrock.MODEL, dimensions=dimensions))}-1"
    filled = pattern.removeprefix(f"{DOMAIN}/").replace("${EmbeddingDimensions}", str(dimensions))

    assert fnmatchcase(name, filled)


def test_every_function_is_in_the_table(resources: Resources) -> None:
    functions = {name for name, each in resources.items() if each["Type"] == "AWS::Serverless::Function"}

    assert functions == set(ALLOWED)


def test_no_action_is_a_wildcard(resources: Resources) -> None:
    statements = [
        statement
        for each in resources.values()
        if each["Type"] == "AWS::IAM::ManagedPolicy"
        for statement in each["Properties"]["PolicyDocument"]["Statement"]
    ]
    actions = {action for statement in statements for action in statement["Action"]}

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

"""The stack keeps its data, hides nothing and can stand twice in one account."""

from typing import Any

import boto3
import pytest
from moto import mock_aws

from core.embedding import bedrock
from core.settings import PREFIX, Settings
from infra.template import (
    Template,
    create_bucket,
    create_queue,
    create_table,
    functions,
    queue,
    queue_arn,
    routes,
    schedule,
)

Resources = dict[str, dict[str, Any]]

NAMES = {
    "AlarmName",
    "FunctionName",
    "GroupName",
    "LogGroupName",
    "ManagedPolicyName",
    "Name",
    "QueueName",
    "RoleName",
    "TableName",
}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws():
        yield


def test_every_setting_of_the_template_is_one_of_ours(template: Template) -> None:
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    names = {name.removeprefix(PREFIX).lower() for name in variables if name.startswith(PREFIX)}

    assert names <= set(Settings.model_fields)


def test_the_defaults_of_the_template_are_settings_that_can_be_read(template: Template) -> None:
    for function in functions(template).values():
        settings = Settings.read(function.environment)
        assert (settings.embedder, settings.vectors) == ("bedrock", "none"), function.name


@pytest.mark.parametrize(("kind", "auth"), [("none", "none"), ("domain", "es"), ("serverless", "aoss")])
def test_each_kind_of_vector_store_makes_settings_that_fit_together(template: Template, kind: str, auth: str) -> None:
    parameters = template["Parameters"]
    chosen = {"VectorStore": kind, "VectorStoreUrl": "https://search.example" if kind != "none" else ""}
    changed = parameters | {name: parameters[name] | {"Default": value} for name, value in chosen.items()}
    for function in functions({**template, "Parameters": changed}).values():
        settings = Settings.read(function.environment)
        assert settings.vectors == ("none" if kind == "none" else "opensearch")
        assert settings.opensearch_auth == auth
        assert settings.opensearch_dialect == ("serverless" if kind == "serverless" else "domain")


def test_a_reranking_model_that_can_be_chosen_makes_settings_that_can_be_read(template: Template) -> None:
    none, *models = template["Parameters"]["RerankerModel"]["AllowedValues"]
    assert (none, models[0]) == ("", Settings().bedrock_reranker_model)
    for model in models:
        chosen = {"WEFT_RERANKER": "bedrock", "WEFT_BEDROCK_RERANKER_MODEL": model}
        assert Settings.read(chosen).bedrock_reranker_model == model


@pytest.mark.parametrize("function", ["CatalogFunction", "RetrieveFunction", "CompareFunction"])
def test_who_asks_the_reranker_or_tells_of_it_has_its_settings(resources: Resources, function: str) -> None:
    variables = resources[function]["Properties"]["Environment"]["Variables"]
    assert variables == {
        "WEFT_RERANKER": {"Fn::If": ["HasReranker", "bedrock", "none"]},
        "WEFT_BEDROCK_RERANKER_MODEL": {"Ref": "RerankerModel"},
    }


def test_parameters_that_are_settings_too_have_the_same_defaults(template: Template) -> None:
    settings = Settings.read(functions(template)["CatalogFunction"].environment)

    assert settings == Settings()


def test_the_embedding_model_and_its_dimensions_are_those_that_the_code_knows(template: Template) -> None:
    assert Settings.read(functions(template)["IngestFunction"].environment).bedrock_model == bedrock.MODEL
    assert template["Parameters"]["EmbeddingDimensions"]["AllowedValues"] == list(bedrock.DIMENSIONS)


@pytest.mark.parametrize("name", ["Table", "Bucket"])
def test_data_outlives_the_stack(resources: Resources, name: str) -> None:
    assert (resources[name]["DeletionPolicy"], resources[name]["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_no_resource_has_a_fixed_name(transformed: Resources) -> None:
    """Two stacks in one account would fight over it."""
    named = {
        name
        for name, resource in transformed.items()
        if resource["Type"] not in {"AWS::Lambda::Permission", "AWS::Lambda::EventInvokeConfig"}
        and resource["Type"] != "AWS::Lambda::EventSourceMapping"
        and NAMES & set(resource["Properties"])
    }

    assert named == set()
    assert "AWS::StackId" in str(transformed["Bucket"]["Properties"]["BucketName"])


def test_the_bucket_is_versioned_encrypted_and_closed(resources: Resources) -> None:
    bucket = resources["Bucket"]["Properties"]

    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert bucket["BucketEncryption"]
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4


def test_what_is_no_longer_needed_leaves_the_bucket(resources: Resources) -> None:
    [rule] = resources["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]

    assert rule["Status"] == "Enabled"
    assert rule["NoncurrentVersionExpiration"]["NoncurrentDays"] >= 14
    assert "AbortIncompleteMultipartUpload" in rule
    assert "ExpirationInDays" not in rule


def test_every_change_of_an_object_is_an_event(resources: Resources) -> None:
    configurations = resources["Bucket"]["Properties"]["NotificationConfiguration"]["QueueConfigurations"]

    assert {each["Event"] for each in configurations} == {
        "s3:ObjectCreated:*",
        "s3:ObjectRemoved:*",
        "s3:LifecycleExpiration:*",
    }
    assert all(each["Queue"] == {"Fn::GetAtt": ["Queue", "Arn"]} for each in configurations)


def test_the_queue_accepts_the_bucket_before_the_bucket_sends(resources: Resources) -> None:
    assert resources["Bucket"]["DependsOn"] == "QueuePolicy"


def test_one_failed_message_does_not_repeat_its_batch(transformed: Resources) -> None:
    mapping = transformed["IngestEventsFunctionObjects"]["Properties"]

    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"]["MaximumConcurrency"] == 10


@pytest.mark.parametrize("name", ["Queue", "DeadLetters"])
def test_queues_are_encrypted(resources: Resources, name: str) -> None:
    assert resources[name]["Properties"]["SqsManagedSseEnabled"] is True


def test_a_message_that_fails_ends_among_the_dead_letters_and_alarms(resources: Resources) -> None:
    redrive = resources["Queue"]["Properties"]["RedrivePolicy"]
    [dimension] = resources["DeadLettersAlarm"]["Properties"]["Dimensions"]

    assert redrive["deadLetterTargetArn"] == {"Fn::GetAtt": ["DeadLetters", "Arn"]}
    assert dimension["Value"] == {"Fn::GetAtt": ["DeadLetters", "QueueName"]}


def test_errors_of_every_function_alarm(template: Template, resources: Resources) -> None:
    metrics = resources["FunctionErrorsAlarm"]["Properties"]["Metrics"]
    watched = {
        each["MetricStat"]["Metric"]["Dimensions"][0]["Value"]["Ref"] for each in metrics if "MetricStat" in each
    }

    assert watched == set(functions(template))


def test_every_log_has_an_end(transformed: Resources) -> None:
    groups = {name: each for name, each in transformed.items() if each["Type"] == "AWS::Logs::LogGroup"}
    assert set(groups) == {"Logs", "AccessLogs"}
    for name, group in groups.items():
        assert group["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}, name


def test_every_function_writes_json_to_the_log_that_ends(transformed: Resources) -> None:
    for name, resource in transformed.items():
        if resource["Type"] == "AWS::Lambda::Function":
            logging = resource["Properties"]["LoggingConfig"]
            assert logging == {"LogFormat": "JSON", "LogGroup": {"Ref": "Logs"}}, name


def test_a_sweep_is_never_retried(transformed: Resources) -> None:
    assert transformed["RecoveryFunctionSweep"]["Properties"]["Target"]["RetryPolicy"]["MaximumRetryAttempts"] == 0
    assert transformed["RecoveryFunctionEventInvokeConfig"]["Properties"]["MaximumRetryAttempts"] == 0


def test_the_template_names_the_queue_s_and_the_schedule_s_functions(template: Template) -> None:
    assert queue(template).function == "IngestEventsFunction"
    assert schedule(template).function == "RecoveryFunction"
    assert "IngestEventsFunction" not in {route.function for route in routes(template)}


@pytest.mark.usefixtures("aws")
def test_the_table_that_tests_build_is_the_template_s(resources: Resources) -> None:
    client = boto3.client("dynamodb")
    create_table(client, "weft")
    table = client.describe_table(TableName="weft")["Table"]
    deployed = resources["Table"]["Properties"]

    assert table["KeySchema"] == deployed["KeySchema"]
    assert {index["IndexName"]: index["Projection"] for index in table["GlobalSecondaryIndexes"]} == {
        "listing": {"ProjectionType": "KEYS_ONLY"},
        "sweep": {"ProjectionType": "KEYS_ONLY"},
    }
    ttl = client.describe_time_to_live(TableName="weft")["TimeToLiveDescription"]
    assert ttl["AttributeName"] == "expires_at"


@pytest.mark.usefixtures("aws")
def test_an_object_of_the_local_bucket_reaches_the_local_queue() -> None:
    queues, buckets = boto3.client("sqs"), boto3.client("s3")
    url = create_queue(queues, "events")
    create_bucket(buckets, "objects", queue_arn(queues, url))
    buckets.put_object(Bucket="objects", Key="acme/col/a.txt", Body=b"a")

    bodies = [each["Body"] for each in queues.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]]
    assert any("acme%2Fcol%2Fa.txt" in body for body in bodies)
    assert buckets.get_bucket_versioning(Bucket="objects")["Status"] == "Enabled"

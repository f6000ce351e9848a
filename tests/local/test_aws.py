"""The services on this machine keep what the real ones promise."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from infra.local.aws import AwsServer, lead_clients_to
from infra.local.names import TABLE


def test_a_transaction_that_fails_takes_no_other_write_away(aws: AwsServer) -> None:
    def write(number: int) -> None:
        key = {"pk": {"S": f"p{number}"}, "sk": {"S": "s"}}
        aws.dynamodb.put_item(TableName=TABLE, Item=key)
        with pytest.raises(ClientError, match="TransactionCanceled"):
            aws.dynamodb.transact_write_items(
                TransactItems=[
                    {"Put": {"TableName": TABLE, "Item": {"pk": {"S": "t"}, "sk": {"S": f"{number}"}}}},
                    {
                        "ConditionCheck": {
                            "TableName": TABLE,
                            "Key": key,
                            "ConditionExpression": "attribute_not_exists(pk)",
                        }
                    },
                ]
            )

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    rows = aws.dynamodb.scan(TableName=TABLE)["Items"]
    assert sorted(row["pk"]["S"] for row in rows) == sorted(f"p{number}" for number in range(40))


def test_nothing_of_the_machine_s_own_configuration_leads_a_client_elsewhere() -> None:
    environ = {
        "AWS_PROFILE": "production",
        "AWS_SESSION_TOKEN": "real",
        "AWS_ENDPOINT_URL_S3": "https://elsewhere.example",
        "HOME": "/home/someone",
    }
    lead_clients_to("http://127.0.0.1:1", environ)
    assert environ["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"} & environ.keys()
    assert environ["HOME"] == "/home/someone"

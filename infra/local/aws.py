"""AWS's services on this machine: moto's server, with the table, the bucket and the queues of template.yaml in it."""

import json
import logging
import os
import threading
from typing import TYPE_CHECKING, Any

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from infra import template
from infra.local.names import ACCOUNT, BUCKET, QUEUE, REGION, TABLE
from infra.local.objects import Notifications

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient

HOST = "127.0.0.1"


class AwsServer:
    """DynamoDB, S3 and SQS in memory, on a free loopback port.

    From the start on, every AWS client of this process is led here, past the machine's own configuration.
    """

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.WARNING)
        self.notifications = Notifications(DomainDispatcherApplication(create_backend_app))
        self._server = make_server(HOST, 0, self.notifications, threaded=True, request_handler=MotoRequestHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="aws", daemon=True)
        self.url = f"http://{HOST}:{self._server.server_port}"

    def start(self) -> None:
        _lead_clients_to(self.url)
        self.dynamodb: DynamoDBClient = boto3.client("dynamodb")
        self.s3: S3Client = boto3.client("s3")
        self.sqs: SQSClient = boto3.client("sqs")
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def create_resources(self) -> None:
        """Creates what the template describes."""
        template.create_table(self.dynamodb, TABLE)
        template.create_bucket(self.s3, BUCKET, template.queue_arn(self.sqs, template.create_queue(self.sqs, QUEUE)))

    def start_notifications(self) -> None:
        """Takes the bucket's notifications over from moto: from now on every write to it is told to the queue."""
        configured = self.s3.get_bucket_notification_configuration(Bucket=BUCKET)["QueueConfigurations"]
        kinds = [kind for each in configured for kind in each["Events"]]
        self.s3.put_bucket_notification_configuration(Bucket=BUCKET, NotificationConfiguration={})
        self.notifications.start(kinds, self.s3, self._tell)

    def _tell(self, record: dict[str, Any]) -> None:
        self.sqs.send_message(QueueUrl=self.queue_url(QUEUE), MessageBody=json.dumps({"Records": [record]}))

    def queue_url(self, name: str) -> str:
        return f"{self.url}/{ACCOUNT}/{name}"


def _lead_clients_to(url: str) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": HOST,
        "no_proxy": HOST,
    }

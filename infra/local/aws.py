"""AWS's services on this machine: moto's server, with the table, the bucket and the queues of template.yaml in it."""

import io
import json
import logging
import os
import threading
from collections.abc import Iterable, MutableMapping
from typing import TYPE_CHECKING, Any

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from infra import template
from infra.local.names import ACCOUNT, BUCKET, QUEUE, REGION, TABLE
from infra.local.notifications import Notifications, read_body

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient

HOST = "127.0.0.1"
CREDENTIAL = "local"
"""moto takes any."""


class OneAtATime:
    """WSGI middleware that lets DynamoDB's requests in one after the other.

    moto undoes a failed transaction by putting the whole table back as it was before, and with it whatever another
    thread had written meanwhile.
    """

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application
        self._lock = threading.Lock()

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        if not environ.get("HTTP_X_AMZ_TARGET", "").startswith("DynamoDB"):
            return self._application(environ, start_response)
        environ["wsgi.input"] = io.BytesIO(read_body(environ))
        with self._lock:
            return list(self._application(environ, start_response))


class AwsServer:
    """DynamoDB, S3 and SQS in memory, on a free loopback port."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.WARNING)
        self.notifications = Notifications(OneAtATime(DomainDispatcherApplication(create_backend_app)))
        self._server = make_server(HOST, 0, self.notifications, threaded=True, request_handler=MotoRequestHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="aws", daemon=True)
        self.url = f"http://{HOST}:{self._server.server_port}"
        session = boto3.Session(CREDENTIAL, CREDENTIAL, region_name=REGION)
        self.dynamodb: DynamoDBClient = session.client("dynamodb", endpoint_url=self.url)
        self.s3: S3Client = session.client("s3", endpoint_url=self.url)
        self.sqs: SQSClient = session.client("sqs", endpoint_url=self.url)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def create_resources(self) -> None:
        """Creates what the template describes. The bucket's notifications are taken over from moto."""
        template.create_table(self.dynamodb, TABLE)
        queue = template.queue_arn(self.sqs, template.create_queue(self.sqs, QUEUE))
        template.create_bucket(self.s3, BUCKET, queue)
        configured = self.s3.get_bucket_notification_configuration(Bucket=BUCKET)["QueueConfigurations"]
        self._kinds = [kind for each in configured for kind in each["Events"]]
        self.s3.put_bucket_notification_configuration(Bucket=BUCKET, NotificationConfiguration={})

    def start_notifications(self) -> None:
        """From now on every write to the bucket is told to the queue."""
        self.notifications.start(self._kinds, self.s3, self._tell)

    def _tell(self, record: dict[str, Any]) -> None:
        self.sqs.send_message(QueueUrl=self.queue_url(QUEUE), MessageBody=json.dumps({"Records": [record]}))

    def queue_url(self, name: str) -> str:
        return f"{self.url}/{ACCOUNT}/{name}"


def lead_clients_to(url: str, environ: MutableMapping[str, str]) -> None:
    """Leads every AWS client of an environment to a server, past the machine's own configuration and proxy."""
    for name in [name for name in environ if name.startswith("AWS_")]:
        del environ[name]
    environ.update(
        {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": CREDENTIAL,
            "AWS_SECRET_ACCESS_KEY": CREDENTIAL,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": HOST,
            "no_proxy": HOST,
        }
    )

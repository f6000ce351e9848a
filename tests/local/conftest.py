"""What the tests of the local stack share."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from infra.local.authorizer import DevelopmentKey
from infra.local.aws import AwsServer


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> DevelopmentKey:
    return DevelopmentKey.in_folder(tmp_path_factory.mktemp("key"))


@pytest.fixture
def other_key(tmp_path: Path) -> DevelopmentKey:
    return DevelopmentKey.in_folder(tmp_path / "another machine")


@pytest.fixture
def new_aws() -> Iterator[Callable[[], AwsServer]]:
    """Makes empty services with the template's resources, as a new process would.

    moto keeps one state a process, so the services made before are empty then, too.
    """
    servers: list[AwsServer] = []

    def make() -> AwsServer:
        server = AwsServer()
        servers.append(server)
        server.start()
        httpx.post(f"{server.url}/moto-api/reset", trust_env=False).raise_for_status()
        server.create_resources()
        return server

    yield make
    for server in servers:
        server.stop()


@pytest.fixture
def aws(new_aws: Callable[[], AwsServer]) -> AwsServer:
    """Empty services whose bucket tells the queue of its objects."""
    server = new_aws()
    server.start_notifications()
    return server

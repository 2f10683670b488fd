"""The flavours of clients to test, and one embedded cloud for all tests, empty but for a bucket before each."""

import socket
from collections.abc import Iterator

import pytest

from forbear.testing.cloud import Cloud
from tests.support.clients.flavours import FLAVOURS, Flavour


@pytest.fixture(params=FLAVOURS, ids=lambda flavour: flavour.name)
def flavour(request: pytest.FixtureRequest) -> Flavour:
    """One library in one style."""
    chosen: Flavour = request.param
    return chosen


@pytest.fixture(scope="session")
def running_cloud() -> Iterator[Cloud]:
    """A cloud for all tests, since starting one takes longer than most of them; some reach it by other names."""
    with Cloud(allowed_hosts=["api.example.com", "storage.googleapis.com.evil.example"]) as cloud:
        yield cloud


@pytest.fixture
def cloud(running_cloud: Cloud) -> Cloud:
    """The cloud with nothing in it but the bucket "bkt"."""
    running_cloud.reset()
    running_cloud.clear_faults()
    running_cloud.store.create_bucket("bkt")
    return running_cloud


@pytest.fixture
def closed_port() -> int:
    """Return a port of loopback on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port

"""The flavours of clients to test, and one embedded cloud for all tests, empty but for a bucket before each.

`make test` runs the modules that take longest with every library and every style, but not with each pair of them.
"""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from forbear.testing.cloud import Cloud
from tests.support.clients.flavours import FLAVOURS, Flavour

LONG = {
    "test_httpx_downloads": "flavour",
    "test_httpx_faults": "flavour",
    "test_httpx_outcomes": "flavour",
    "test_httpx_sessions": "flavour",
    "test_httpx_storm": "flavour",
    "test_cluster": "cluster",
    "test_cluster_watch": "cluster",
    "test_commands": "flavour",
    "test_counting": "flavour",
    "test_lost_exec": "flavour",
    "test_policies": "flavour",
    "test_first_attempts": "flavour",
}
"""The modules that take longest, and the parameter that tells the flavour."""

FEW = {"httpx", "httpx-trio", "httpx2-asyncio", "requests", "aiohttp", "redis", "valkey-async"}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave the other flavours of a long module to `make soak`."""
    if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
        flavour: Any = item.callspec.params.get(LONG.get(item.path.stem, ""))
        if flavour is not None and flavour.name not in FEW:
            item.add_marker(pytest.mark.soak)


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

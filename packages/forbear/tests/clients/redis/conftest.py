"""One real server and one cluster for all tests here, emptied before each, and the four flavours of clients."""

from collections.abc import Iterator

import pytest
import redis

from forbear.testing.valkey import valkey_server
from forbear_testkit.clients.redis.flavours import FLAVOURS, Flavour
from forbear_testkit.clients.redis.nodes import beginning_cluster, wait_for


@pytest.fixture(scope="session")
def running_server() -> Iterator[str]:
    """The Unix socket of a server, since starting one takes longer than most tests."""
    with valkey_server() as path:
        yield path


@pytest.fixture
def server(running_server: str) -> Iterator[redis.Redis]:
    """A plain client on the Unix socket, past every proxy; the database is empty."""
    with redis.Redis(unix_socket_path=running_server) as client:
        client.flushall()
        client.script_flush()
        yield client


@pytest.fixture
def path(server: redis.Redis, running_server: str) -> str:
    """Return the path at which the server listens, once it is empty."""
    return running_server


@pytest.fixture(params=FLAVOURS, ids=lambda flavour: flavour.name)
def flavour(request: pytest.FixtureRequest) -> Flavour:
    """One library in one style."""
    chosen: Flavour = request.param
    return chosen


@pytest.fixture(scope="session", autouse=True)
def beginning_nodes() -> Iterator[tuple[int, ...]]:
    """One cluster for all tests here; it begins with the first, since it takes two seconds to be ready."""
    with beginning_cluster() as ports:
        yield ports


@pytest.fixture(scope="session")
def running_nodes(beginning_nodes: tuple[int, ...]) -> tuple[int, ...]:
    """Its ports, once it is ready."""
    wait_for(beginning_nodes)
    return beginning_nodes


@pytest.fixture
def nodes(running_nodes: tuple[int, ...]) -> tuple[int, ...]:
    """Its ports, once it is empty."""
    for port in running_nodes:
        with redis.Redis(port=port) as client:
            client.flushall()
    return running_nodes

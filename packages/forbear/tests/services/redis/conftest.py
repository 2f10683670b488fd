"""One real server for all tests here, emptied before each."""

from collections.abc import Iterator

import pytest

from forbear.testing.valkey import valkey_server
from forbear_testkit.services.redis.server import Live


@pytest.fixture(scope="session")
def socket_path() -> Iterator[str]:
    """Return the path of the server's socket."""
    with valkey_server() as path:
        yield path


@pytest.fixture
def live(socket_path: str) -> Iterator[Live]:
    """A connection to the server, in which nothing is left of other tests."""
    connection = Live(socket_path)
    connection("FLUSHALL")
    connection("FUNCTION", "FLUSH")
    yield connection
    connection.close()

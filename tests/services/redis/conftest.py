"""One real server for all tests here, emptied before each."""

from collections.abc import Iterator

import pytest

from tests.services.redis.server import Live, running


@pytest.fixture(scope="session")
def socket_path() -> Iterator[str]:
    """Where the server listens."""
    with running() as path:
        yield path


@pytest.fixture
def live(socket_path: str) -> Iterator[Live]:
    """A connection to the server, in which nothing is left of other tests."""
    connection = Live(socket_path)
    connection("FLUSHALL")
    connection("FUNCTION", "FLUSH")
    yield connection
    connection.close()

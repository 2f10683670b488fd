"""The server that the tests of both shops talk to."""

from collections.abc import Iterator
from threading import Thread

import pytest

from forbear_audit import storm
from partners import Partners


@pytest.fixture
def partners() -> Iterator[Partners]:
    """Run the server in a thread; a storm asks it what it has executed."""
    with Partners() as server, storm.effects(server.executed):
        Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
        yield server
        server.shutdown()

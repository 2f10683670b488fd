"""The pool of connections keeps those that the next requests can use, and no others."""

import pytest

from forbear_testkit.transfer.wire_server import OK, fetched, serving
from forbear_transfer.wire.pool import Pool

pytestmark = pytest.mark.anyio


async def test_idle_connections_are_closed_by_age() -> None:
    """That of every origin, also if no request follows; those that their servers have closed are forgotten, too."""
    pool = Pool(2, 60, {})
    with serving(lambda n, head, connection: [OK]) as server, serving(lambda n, head, connection: [OK]) as other:
        for url in (server.url, other.url):
            await fetched(pool, url)
        sweeper = pool._sweeper
        assert sweeper is not None
        old, young = pool._open
        pool._sweep()
        assert list(pool._open) == [old, young]
        old.idle_since -= 15
        pool._sweep()
        assert list(pool._open) == [young]
        assert old.transport.is_closing()
        assert await fetched(pool, other.url) == (200, b"ok")
        young.eof_received()
        pool._sweep()
        assert [pool._open, pool._idle] == [{}, {}]
        assert pool._sweeper is None
    await pool.close()

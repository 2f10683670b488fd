"""The time that a response may take in all, whatever arrives meanwhile."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from forbear_testkit.transfer.wire_server import OK, serving
from forbear_transfer.errors import Stalled
from forbear_transfer.wire.pool import Pool

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("length", ["Content-Length: 5", "X-Without: one"])
async def test_a_response_that_takes_too_long_is_not_whole(length: str) -> None:
    """Neither is one without a length, which ends with its connection, although that is closed then."""
    release = threading.Event()

    def answer(n: int, head: bytes, connection: socket.socket) -> Iterator[bytes]:
        yield f"HTTP/1.1 200 OK\r\n{length}\r\n\r\nhe".encode()
        release.wait(10)

    with serving(answer) as server:
        pool = Pool(1, 60, {})
        async with await pool.request("GET", server.url, {}, None, 0.05) as response:
            with pytest.raises(Stalled, match=r"did not arrive within 0\.05 s"):
                await response.read()
        release.set()
        await pool.close()


async def test_the_time_of_one_request_is_not_that_of_the_next() -> None:
    """On one connection, nothing is left of an earlier limit while the body of the next request is sent."""
    with serving(lambda n, head, connection: [OK]) as server:
        pool = Pool(1, 60, {})
        async with await pool.request("GET", server.url, {}, None, 5) as response:
            await response.read()
        (connection,) = pool._open
        sending = float("nan")

        class Body:
            def __len__(self) -> int:
                return 1

            def pieces(self) -> Iterator[bytes]:
                nonlocal sending
                sending = connection._end_at
                yield b"x"

        async with await pool.request("PUT", server.url, {}, Body(), 5) as response:
            await response.read()
        assert (sending, list(pool._open)) == (float("inf"), [connection])
        await pool.close()


async def test_a_slow_reader_is_not_a_slow_server() -> None:
    """If the time runs out while nobody waits for the response, it begins anew with the next wait."""
    release = threading.Event()

    def answer(n: int, head: bytes, connection: socket.socket) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"
        release.wait(10)
        yield b"llo"

    with serving(answer) as server:
        pool = Pool(1, 60, {})
        async with await pool.request("GET", server.url, {}, None, 30) as response:
            assert await response.readany() == b"he"
            (connection,) = pool._open
            connection._end_at -= 31
            connection._check()
            reading = asyncio.ensure_future(response.read())
            asyncio.get_running_loop().call_soon(release.set)
            assert await reading == b"llo"
        await pool.close()

"""The body of a response: read piece by piece, or passed on as it arrives."""

import asyncio
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import pytest

from forbear_testkit.transfer.wire_server import OK, serving
from forbear_transfer.errors import Stalled
from forbear_transfer.wire.pool import Pool
from forbear_transfer.wire.response import Broken
from forbear_transfer.wire.watched import RateLimit

pytestmark = pytest.mark.anyio

ask = ContextVar[Callable[[], None]]("ask")


@contextmanager
def answering(*pieces: bytes, length: int) -> Generator[str]:
    """A server that sends a head with `length`, then a piece each time that it is asked; b"" closes the connection."""
    asked = threading.Semaphore(0)

    def answer(n: int, head: bytes, connection: socket.socket) -> Iterator[bytes]:
        if n > 1:
            yield OK
            return
        yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length
        for piece in pieces:
            asked.acquire(timeout=10)
            yield piece

    ask.set(asked.release)
    with serving(answer) as server:
        yield server.url


@pytest.mark.parametrize("rate", [None, RateLimit(1e9)], ids=["at once", "within a rate"])
async def test_a_body_is_poured_piece_by_piece(rate: RateLimit | None) -> None:
    """Without a rate, the connection calls the function itself, in the context of the reader."""
    pool, came, tasks, deadlines = Pool(1, 60, {}, rate=rate), list[bytes](), list[bool](), list[float]()

    def take(data: bytes) -> bool:
        came.append(data)
        tasks.append(asyncio.current_task() is not None)
        (connection,) = pool._open
        deadlines.append(connection._deadline)
        ask.get()()
        return True

    with answering(b"ab", b"cd", b"ef", length=6) as url:
        async with await pool.request("GET", url, {}) as response:
            ask.get()()
            await response.pour(take)
            assert response.ended
        async with await pool.request("GET", url, {}) as response:
            assert [await response.read(), len(pool._open)] == [b"ok", 1]
    assert came == [b"ab", b"cd", b"ef"]
    assert tasks == [True, rate is not None, rate is not None]
    assert deadlines == sorted(set(deadlines)), "each piece starts the stall timeout anew"
    await pool.close()


@pytest.mark.parametrize("needed", [1, 2])
async def test_a_body_is_poured_until_enough_came(needed: int) -> None:
    """The bytes after it wait for the next reader."""
    pool, came = Pool(1, 60, {}), list[bytes]()

    def take(data: bytes) -> bool:
        came.append(data)
        ask.get()()
        return len(came) < needed

    with answering(b"ab", b"cd", b"ef", length=6) as url:
        async with await pool.request("GET", url, {}) as response:
            ask.get()()
            await response.pour(take)
            assert b"".join(came) == b"abcd"[: 2 * needed]
            ask.get()()
            assert await response.read() == b"abcdef"[2 * needed :]
    await pool.close()


@pytest.mark.parametrize("bad", [1, 2])
async def test_an_error_of_the_function_ends_the_pouring(bad: int) -> None:
    """It is the first piece that the reader passes on, and the second that the connection does."""
    pool, came = Pool(1, 60, {}), list[bytes]()

    def take(data: bytes) -> bool:
        came.append(data)
        ask.get()()
        return len(came) / (bad - len(came)) > 0

    with answering(b"ab", b"cd", length=6) as url:
        async with await pool.request("GET", url, {}) as response:
            ask.get()()
            with pytest.raises(ZeroDivisionError):
                await response.pour(take)
    assert (len(came), pool._open) == (bad, {})
    await pool.close()


async def test_a_cancelled_reader_takes_no_more() -> None:
    """A piece that arrives between the cancellation and its effect is not passed on."""
    pool, came, begun = Pool(1, 60, {}), list[bytes](), asyncio.Event()

    def take(data: bytes) -> bool:
        came.append(data)
        begun.set()
        return True

    with answering(b"ab", length=6) as url:
        async with await pool.request("GET", url, {}) as response:
            (connection,) = pool._open
            ask.get()()
            reading = asyncio.ensure_future(response.pour(take))
            await begun.wait()
            reading.cancel()
            connection.data_received(b"cd")
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert [came, await response.readany()] == [[b"ab"], b"cd"]
    await pool.close()


@pytest.mark.parametrize("stalls", [False, True])
async def test_a_body_that_ends_early_is_an_error(stalls: bool) -> None:
    """The bytes before are passed on."""
    pool, came = Pool(1, 60, {}), list[bytes]()

    def stall() -> None:
        (connection,) = pool._open
        connection._deadline = 0
        connection._check()

    def take(data: bytes) -> bool:
        came.append(data)
        if stalls and len(came) == 2:
            asyncio.get_running_loop().call_soon(stall)
        else:
            ask.get()()
        return True

    with answering(b"ab", b"cd", b"", length=6) as url:
        async with await pool.request("GET", url, {}) as response:
            ask.get()()
            with pytest.raises(Stalled if stalls else Broken):
                await response.pour(take)
        ask.get()()
    assert came == [b"ab", b"cd"]
    await pool.close()


async def test_the_first_bytes_can_be_seen_before_they_are_read() -> None:
    """They are fewer if the body ends before, and an error if it breaks."""
    pool = Pool(1, 60, {})
    with answering(b"a", b"b", b"", length=6) as url:
        async with await pool.request("GET", url, {}) as response:
            ask.get()()
            assert await response.peek(1) == b"a"
            ask.get()()
            assert [await response.peek(2), await response.readany()] == [b"ab", b"a"]
            ask.get()()
            with pytest.raises(Broken):
                await response.peek(2)
        async with await pool.request("GET", url, {}) as response:
            assert [await response.peek(3), await response.read()] == [b"ok", b"ok"]
    await pool.close()


@pytest.mark.parametrize(
    ("lines", "headers"),
    [
        (b"X-One: 1\r\nX-Two:\r\n", {"x-one": "1", "x-two": ""}),
        (b"x-a: 1\r\nX-B: \xe9\r\nX-A: 2\r\nx-a:3\r\n", {"x-a": "1, 2, 3", "x-b": "\xe9"}),
    ],
)
async def test_headers_have_lower_case_names_and_repeated_ones_are_joined(
    lines: bytes, headers: dict[str, str]
) -> None:
    """Those of an interim response before are dropped."""

    def answer(n: int, head: bytes, connection: socket.socket) -> Iterator[bytes]:
        yield b"HTTP/1.1 103 Early Hints\r\nX-One: 0\r\nLink: </a>\r\n\r\n"
        yield b"HTTP/1.1 200 OK\r\n" + lines + b"Content-Length: 0\r\n\r\n"

    with serving(answer) as server:
        pool = Pool(1, 60, {})
        async with await pool.request("GET", server.url, {}) as response:
            assert response.headers == {**headers, "content-length": "0"}
        await pool.close()

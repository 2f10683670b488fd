"""The wire of transfers among servers and proxies that are wrong or hostile, and tasks that are cancelled."""

import asyncio
import gc
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from forbear.core.verdict import NOT_EXECUTED, PERMANENT
from forbear_testkit.clients.listen import listening
from forbear_testkit.clients.secure import self_signed, trusted
from forbear_testkit.growth import grows_linearly
from forbear_testkit.transfer.wire_server import OK, Lump, Server, fetched, serving
from forbear_transfer.errors import Stalled
from forbear_transfer.wire.connection import Connection
from forbear_transfer.wire.pool import Pool
from forbear_transfer.wire.response import BadResponse, Broken, NotConnected, Untrusted

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BOUND = 10
"""Seconds after which a test that hangs fails."""


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    """A pool of one connection: a place that is not given back stops the next request."""
    made = Pool(1, 5, {})
    async with asyncio.timeout(BOUND):
        yield made
    await made.close()


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks run until the condition is true."""
    async with asyncio.timeout(BOUND):
        while not condition():
            await asyncio.to_thread(threading.Event().wait, 0.001)


@pytest.mark.parametrize(
    ("names", "accepted"), [([x509.DNSName("localhost")], True), ([], False)], ids=["named", "none"]
)
async def test_a_certificate_must_name_its_host(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[x509.DNSName], accepted: bool
) -> None:
    """A subjectAltName does; the common name, which is localhost in both, does not."""
    context = trusted(tmp_path / "pem", monkeypatch, names)

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(65_536)
            secured.sendall(OK)

    with listening(serve) as port:
        url = f"https://localhost:{port}/"
        if accepted:
            assert await fetched(pool, url) == (200, b"ok")
        else:
            with pytest.raises(Untrusted):
                await fetched(pool, url)


MORE = {
    "a byte": b"!",
    "a response": b"HTTP/1.1 200 OK\r\nX-More: 1\r\nContent-Length: 4\r\n\r\nevil",
    "half a head": b"HTTP/1.1 200 OK\r\nX-More: 1\r\nContent-Le",
    "three responses": OK * 3,
}


@pytest.mark.parametrize("more", MORE.values(), ids=MORE)
@pytest.mark.parametrize("first", [OK, CHUNKED + b"2\r\nok\r\n0\r\n\r\n"], ids=["length", "chunks"])
async def test_bytes_after_a_response_answer_no_other_request(pool: Pool, first: bytes, more: bytes) -> None:
    """They change nothing in the response before them, and the connection is not used again."""
    with serving(lambda n, head, connection: [first + more] if n == 1 else [OK]) as server:
        async with await pool.request("GET", server.url, {}) as response:
            assert await response.read() == b"ok"
        assert "x-more" not in response.headers
        assert await fetched(pool, server.url) == (200, b"ok")
        assert server.connections == 2


async def test_trailers_are_left_out(pool: Pool) -> None:
    """They come when the headers have been acted upon."""
    body = b"2\r\nok\r\n0\r\nX-Goog-Generation: 2\r\nX-After: 1\r\n\r\n"
    with serving(lambda n, head, connection: [CHUNKED[:-2] + b"X-Goog-Generation: 1\r\n\r\n", body]) as server:
        async with await pool.request("GET", server.url, {}) as response:
            assert await response.read() == b"ok"
        assert response.headers["x-goog-generation"] == "1"
        assert "x-after" not in response.headers
        assert await fetched(pool, server.url) == (200, b"ok")
        assert server.connections == 1


ENDLESS = {
    "trailers": (b"2\r\nok\r\n0\r\n", b"X-%d: y\r\n"),
    "a trailer": (b"2\r\nok\r\n0\r\nX: ", b"%020d"),
    "a chunk extension": (b"2;", b"%020d"),
}


@pytest.mark.parametrize(("begin", "more"), ENDLESS.values(), ids=ENDLESS)
async def test_framing_without_end_is_an_error(pool: Pool, begin: bytes, more: bytes) -> None:
    """It is refused after some 64 KiB, whatever the server goes on to send."""

    def answer(n: int, head: bytes, connection: socket.socket) -> Iterator[bytes]:
        yield CHUNKED + begin
        for start in range(0, 10**9, 1000):
            yield b"".join(more % number for number in range(start, start + 1000))

    with serving(lambda n, head, connection: answer(n, head, connection) if n == 1 else [OK]) as server:
        with pytest.raises(BadResponse, match="framing of the body of the response is longer than 64 KiB"):
            await fetched(pool, server.url)
        assert await fetched(pool, server.url) == (200, b"ok")


async def test_the_work_for_a_head_grows_with_its_length() -> None:
    """A head is read before it is refused, in pieces of up to 256 KiB: not in the square of its headers."""

    def read(names: list[bytes]) -> None:
        connection = Connection(BOUND, lambda _: None)
        for name in names:
            connection.on_header(name, b"")

    assert grows_linearly(lambda size: [b"x"] * size, read, 2000)


async def test_a_body_of_tiny_chunks_takes_little_memory(pool: Pool) -> None:
    """Each chunk costs memory of its own, which counts: 1 MiB, and what one read brings."""
    chunk = b"2\r\nxx\r\n" * 10_000

    def answer(n: int, head: bytes, connection: socket.socket) -> Iterator[bytes]:
        yield CHUNKED
        for _ in range(20):
            yield chunk
        yield b"0\r\n\r\n"

    with serving(answer) as server:
        async with await pool.request("GET", server.url, {}) as response:
            await until(lambda: response._paused)
            assert sum(map(sys.getsizeof, response._chunks)) < 4 << 20
            assert await response.read() == b"x" * 400_000


async def test_closing_the_pool_ends_what_is_under_way() -> None:
    """A request without a response, one within its body, and others that wait for a place."""
    arrived = threading.Semaphore(0)

    def answer(n: int, head: bytes, connection: socket.socket) -> Iterator[bytes]:
        if b"/body" in head:
            yield b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"
        arrived.release()
        connection.recv(1)

    with serving(answer) as server:
        for path in ("/head", "/body"):
            made = Pool(1, 5, {})
            requests = [asyncio.ensure_future(fetched(made, server.url + path)) for _ in range(2)]
            await asyncio.to_thread(arrived.acquire)
            await made.close()
            ends = await asyncio.gather(*requests, return_exceptions=True)
            assert [type(end) for end in ends] == [Broken, RuntimeError]
            with pytest.raises(RuntimeError, match="closed"):
                await made.request("GET", server.url, {})


async def test_a_connection_that_opens_while_the_pool_closes_is_closed(pool: Pool) -> None:
    """Nothing is sent over it."""
    with serving(lambda n, head, connection: [OK]) as server:
        request = asyncio.ensure_future(fetched(pool, server.url))
        await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop: it has begun to connect
        await pool.close()
        with pytest.raises(RuntimeError, match="closed"):
            await request
        assert not server.heads


async def test_a_cancelled_request_leaves_the_next_one_alone(pool: Pool) -> None:
    """Its response came, and another request went out over its connection before it noticed."""
    came = asyncio.Event()

    async def next_one() -> tuple[int, bytes]:
        await came.wait()
        return await fetched(pool, server.url)

    with serving(lambda n, head, connection: [OK]) as server:
        await fetched(pool, server.url)
        (connection,) = pool._open
        headers_complete = connection.on_headers_complete

        def and_cancel() -> None:
            came.set()  # the task of the next request runs before the one whose response this is
            headers_complete()
            first.cancel()

        following = asyncio.ensure_future(next_one())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(connection, "on_headers_complete", and_cancel)
            first = asyncio.ensure_future(fetched(pool, server.url))
            with pytest.raises(asyncio.CancelledError):
                await first
        assert await following == (200, b"ok")
        assert server.connections == 1


async def test_a_place_is_given_back_once(pool: Pool) -> None:
    """A pool of one connection never has two, however its requests ended."""
    with serving(lambda n, head, connection: [b""] if n % 2 else [b"HTTP/1.1 200 OK\r\n\r\n"]) as server:
        for _ in range(3):
            with pytest.raises(Broken):
                await fetched(pool, server.url)
            (await pool.request("GET", server.url, {})).close()
        assert pool._slots._value == 1


@pytest.mark.parametrize("length", [99, 101])
async def test_a_body_has_its_length(pool: Pool, length: int) -> None:
    """A server would take what is too much for another request, and wait for what is missing."""
    with serving(lambda n, head, connection: [OK]) as server:
        with pytest.raises(ValueError, match="`body` must have as many bytes as its length says"):
            await fetched(pool, server.url, "PUT", Lump(10, 10, length))
        assert await fetched(pool, server.url) == (200, b"ok")
    assert max(len(body) for body in server.bodies) <= length


async def test_no_error_is_left_unread(pool: Pool) -> None:
    """The connection is reset while the body is read, and reading it fails as well."""
    unread: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: unread.append(context))

    class Failing(Lump):
        def pieces(self) -> Iterator[bytes]:
            yield from super().pieces()
            (connection,) = pool._open
            connection.connection_lost(ConnectionResetError())
            raise OSError("the disk is gone")

    with serving(lambda n, head, connection: [OK]) as server:
        with pytest.raises(OSError, match="the disk is gone"):
            await fetched(pool, server.url + "/expect-nothing", "PUT", Failing(1, 10))
        assert await fetched(pool, server.url) == (200, b"ok")
    gc.collect()
    assert not unread


async def test_bytes_that_leave_slowly_are_no_stall() -> None:
    """A full connection has as long again whenever fewer bytes wait than before, and has stalled when none left."""
    release = threading.Event()
    pool = Pool(1, 3600, {})

    def hold(connection: socket.socket) -> None:
        release.wait(BOUND)

    with listening(hold) as port:
        request = asyncio.ensure_future(fetched(pool, f"http://127.0.0.1:{port}", "PUT", Lump(1000)))
        await until(lambda: any(connection._full for connection in pool._open))
        (connection,) = pool._open
        now = asyncio.get_running_loop().time()
        for left in (1, 0):
            connection._deadline = now - 1
            connection._unsent_before = connection.transport.get_write_buffer_size() + left
            connection._check()
            assert (connection._deadline > now) == bool(left)
        with pytest.raises(Stalled, match="took no byte"):
            await request
        release.set()
    await pool.close()


PROXY_ANSWERS = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH\r\n\r\n",
    "half a head": b"HTTP/1.1 200",
    "a head without end": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20000,
}


@pytest.mark.parametrize("answer", PROXY_ANSWERS.values(), ids=PROXY_ANSWERS)
async def test_a_proxy_that_opens_no_tunnel_has_passed_nothing_on(answer: bytes) -> None:
    """However it fails, the request was not executed."""

    def proxy(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_RDWR)

    with listening(proxy) as port:
        pool = Pool(1, 5, {}, proxy=f"http://127.0.0.1:{port}")
        for _ in range(2):
            with pytest.raises(NotConnected, match=f"the proxy 127.0.0.1:{port} opened no tunnel") as caught:
                await fetched(pool, "https://localhost/x", "POST", b"data")
            assert caught.value.verdict == NOT_EXECUTED
        await pool.close()


async def test_bytes_of_a_proxy_before_tls_are_no_response(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A response that stands behind that of the proxy is not taken for the server's."""
    context = trusted(tmp_path / "pem", monkeypatch)
    server = Server(lambda n, head, connection: [OK])

    def proxy(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        with context.wrap_socket(connection, server_side=True) as secure:
            server.talk(secure)

    with listening(proxy) as port:
        pool = Pool(1, 5, {}, proxy=f"http://127.0.0.1:{port}")
        assert await fetched(pool, "https://localhost/x") == (200, b"ok")
        await pool.close()


async def test_tls_through_a_proxy_with_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy has a certificate of its own, which is checked, and named where it is not valid."""
    context = trusted(tmp_path / "pem", monkeypatch)

    def proxy(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(65536)
            secure.sendall(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")

    with listening(proxy) as port:
        pool = Pool(1, 5, {}, proxy=f"https://localhost:{port}")
        with pytest.raises(NotConnected, match=f"localhost:{port} opened no tunnel: 503"):
            await fetched(pool, "https://example.test/x")
        await pool.close()
    self_signed(tmp_path / "other")
    context.load_cert_chain(tmp_path / "other")
    with listening(proxy) as port:
        pool = Pool(1, 5, {}, proxy=f"https://localhost:{port}")
        with pytest.raises(Untrusted, match=f"the certificate of localhost:{port} is not valid") as caught:
            await fetched(pool, "https://example.test/x")
        assert caught.value.verdict == PERMANENT
        await pool.close()


async def test_a_certificate_for_another_host_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name in the URL counts, behind a tunnel, too, and no byte of the request is sent."""
    context = trusted(tmp_path / "pem", monkeypatch)
    sent: list[bytes] = []

    def proxy(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with context.wrap_socket(connection, server_side=True) as secure:
            sent.append(secure.recv(65536))

    with listening(proxy) as port:
        pool = Pool(1, 5, {}, proxy=f"http://127.0.0.1:{port}")
        with pytest.raises(Untrusted, match=r"the certificate of example\.test is not valid"):
            await fetched(pool, "https://example.test/")
        await pool.close()
    assert not any(sent)


@pytest.mark.parametrize("proxy", ["socks5://me:secret@h:1", "http://me:sec/ret@h", "http://me:secret@", "me:secret@h",
                                   "http://me:secret@h:99999"])  # fmt: skip
async def test_a_proxy_that_cannot_be_used_is_named_without_its_password(proxy: str) -> None:
    """The error says where the setting comes from."""
    with pytest.raises(ValueError, match=r"`proxy` must be .* look at HTTPS_PROXY") as caught:
        Pool(1, 5, {}, proxy=proxy)
    assert "sec" not in str(caught.value)
    assert "me:" not in str(caught.value)


def test_no_socket_outlives_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """The pool closes connections with TLS, too, before the loop ends."""
    context = trusted(tmp_path / "pem", monkeypatch)
    server = Server(lambda n, head, connection: [OK])

    def talk(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            server.talk(secure)

    async def main(port: int) -> None:
        pool = Pool(3, 5, {})
        await asyncio.gather(*(fetched(pool, f"https://localhost:{port}/") for _ in range(3)))
        await pool.close()

    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    with listening(talk) as port:
        asyncio.run(main(port))
        gc.collect()
    assert not unraisable
    assert not recwarn.list

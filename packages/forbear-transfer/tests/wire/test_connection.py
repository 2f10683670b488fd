"""The wire of transfers: requests and responses over real sockets, with servers that behave and others."""

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from forbear.core.verdict import NOT_EXECUTED, PERMANENT
from forbear_cloud import Cloud
from forbear_testkit.clients.listen import listening
from forbear_testkit.clients.secure import self_signed, trusted
from forbear_testkit.transfer.wire_server import OK, Lump, Server, fetched, serving
from forbear_transfer import Storage, acp, arsync
from forbear_transfer.errors import Stalled
from forbear_transfer.wire.pool import Pool
from forbear_transfer.wire.response import BadResponse, Broken, NotConnected, ProxyRefused, Untrusted, WireError


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    """A pool of two connections, none of which may stall for long."""
    made = Pool(2, 5, {"User-Agent": "forbear"})
    yield made
    await made.close()


async def test_connections_are_used_again(pool: Pool) -> None:
    """Requests one after another need one connection, those side by side as many as the limit allows."""
    with serving(lambda n, head, connection: [OK]) as server:
        for _ in range(5):
            assert await fetched(pool, server.url + "/x?y=1") == (200, b"ok")
        assert server.connections == 1
        assert await asyncio.gather(*(fetched(pool, server.url) for _ in range(20))) == [(200, b"ok")] * 20
        assert server.connections <= 2
    assert server.heads[0] == b"GET /x?y=1 HTTP/1.1\r\nHost: %s\r\nUser-Agent: forbear\r\n" % server.url[7:].encode()


async def test_a_read_takes_more_than_the_default(pool: Pool) -> None:
    """The event loop reads 512 KiB at once, which a large download needs to be fast."""
    with serving(lambda n, head, connection: [OK]) as server:
        response = await pool.request("GET", server.url, {}, None)
        assert getattr(response._connection.transport, "max_size") == 512 * 1024  # noqa: B009
        response.close()


FRAMES = {
    "length": [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", b"llo"],
    "chunks": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", b"2\r\nlo\r\n0\r\n\r\n"],
    "trailer": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-After: 1\r\n\r\n"],
    "interim": [
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    ],
    "until the end": [b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo", b""],
    "old": [b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", b""],
    "a byte too many": [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", b"llo!"],
}


@pytest.mark.parametrize("pieces", FRAMES.values(), ids=FRAMES)
async def test_a_body_is_framed_in_every_way_of_http(pool: Pool, pieces: list[bytes]) -> None:
    """The same bytes each time, and a connection for the next request."""
    with serving(lambda n, head, connection: pieces) as server:
        for _ in range(2):
            assert await fetched(pool, server.url) == (200, b"hello")


LIES = {
    "nothing": ([b""], Broken),
    "half a head": ([b"HTTP/1.1 200 OK\r\nContent-Le", b""], Broken),
    "half a body": ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", b""], Broken),
    "no last chunk": ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", b""], Broken),
    "no HTTP": ([b"SSH-2.0-OpenSSH\r\n\r\n"], BadResponse),
    "a length of no number": ([b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n"], BadResponse),
    "a length without end": ([b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 4400 + b"\r\n\r\n"], BadResponse),
    "two lengths": ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"], BadResponse),
    "a chunk of no size": ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"], BadResponse),
    "another protocol": ([b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"], BadResponse),
    "a head without end": ([b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 2000] * 20, BadResponse),
    "interim responses without end": ([b"HTTP/1.1 100 Continue\r\n\r\n" * 1000] * 20, BadResponse),
}


@pytest.mark.parametrize(("pieces", "expected"), LIES.values(), ids=LIES)
async def test_what_is_no_whole_response_is_an_error(
    pool: Pool, pieces: list[bytes], expected: type[WireError]
) -> None:
    """It ends, its outcome is unknown, and the pool goes on."""
    with serving(lambda n, head, connection: pieces if n == 1 else [OK]) as server:
        with pytest.raises(expected) as caught:
            await fetched(pool, server.url, "POST", b"data")
        assert type(caught.value) is expected
        assert caught.value.verdict != NOT_EXECUTED
        assert await asyncio.gather(*(fetched(pool, server.url) for _ in range(3))) == [(200, b"ok")] * 3


async def test_a_peer_that_stalls_is_left() -> None:
    """Before its response, within it, and while it takes no byte."""
    release = threading.Event()

    def answer(n: int, head: bytes, connection: socket.socket) -> Iterator[bytes]:
        if b"/within" in head:
            yield b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"
        release.wait(10)
        yield b""

    with serving(answer) as server:
        pool = Pool(2, 0.05, {})
        for path, body, says in (("/before", None, "has not answered"), ("/expect-nothing", Lump(400), "took no byte")):
            with pytest.raises(Stalled, match=says):
                await fetched(pool, server.url + path, "PUT", body)
        await pool.close()
        pool = Pool(2, 0.3, {})
        async with await pool.request("GET", server.url + "/within", {}) as response:
            assert await response.readany() == b"he"
            with pytest.raises(Stalled, match="sent no byte"):
                await response.readany()
        await pool.close()
        release.set()


async def test_an_early_response_ends_the_sending(pool: Pool) -> None:
    """The rest of the body is not sent, and the connection is used no more."""
    with serving(
        lambda n, head, connection: [b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"] if n == 1 else [OK]
    ) as server:
        body = Lump(4000)
        assert await fetched(pool, server.url + "/expect-nothing", "PUT", body) == (503, b"busy")
        assert body.taken < body.count
        assert await fetched(pool, server.url) == (200, b"ok")
        assert server.connections == 2


async def test_a_body_goes_out_whole(pool: Pool) -> None:
    """However large it is, with its length."""
    with serving(lambda n, head, connection: [OK]) as server:
        assert await fetched(pool, server.url, "PUT", Lump(100, 100_000)) == (200, b"ok")
        assert server.bodies == [b"x" * 10_000_000]
        assert await fetched(pool, server.url, "POST") == (200, b"ok")
        assert b"Content-Length: 0\r\n" in server.heads[1]


async def test_a_slow_reader_holds_the_server_back(pool: Pool) -> None:
    """No more than a few MiB wait in memory."""
    sent = 0

    def answer(n: int, head: bytes, connection: socket.socket) -> Iterator[bytes]:
        nonlocal sent
        yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (64 << 20)
        for _ in range(64):
            yield b"x" * (1 << 20)
            sent += 1

    with serving(answer) as server:
        async with await pool.request("GET", server.url, {}) as response:
            first = await response.readany()
            before = -1
            while before != sent:  # until the server cannot send any more
                before = sent
                await asyncio.to_thread(threading.Event().wait, 0.05)
            assert sent < 32
            size = len(first)
            while data := await response.readany():
                size += len(data)
            assert size == 64 << 20


async def test_cancelled_and_closed_requests_free_their_place(pool: Pool) -> None:
    """Twice as many as the limit, and still the next one goes through."""
    with serving(
        lambda n, head, connection: [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"] if b"/half" in head else [OK]
    ) as server:
        for _ in range(3):
            response = await pool.request("GET", f"{server.url}/half", {})
            response.close()
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await fetched(pool, f"{server.url}/half")
        assert await fetched(pool, server.url) == (200, b"ok")


async def test_no_connection_is_no_execution(pool: Pool) -> None:
    """Nobody listens, or the name is unknown."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        unused_port = server.getsockname()[1]
    for url in (f"http://127.0.0.1:{unused_port}/", f"https://127.0.0.1:{unused_port}/"):
        with pytest.raises(NotConnected, match="cannot connect") as caught:
            await fetched(pool, url)
        assert caught.value.verdict == NOT_EXECUTED


async def test_a_certificate_that_is_not_trusted_ends_it(tmp_path: Path, pool: Pool) -> None:
    """Nothing is sent, and another try would not help."""
    self_signed(tmp_path / "pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pem")
    with listening(lambda connection: context.wrap_socket(connection, server_side=True).close()) as port:
        with pytest.raises(Untrusted, match="is not valid") as caught:
            await fetched(pool, f"https://localhost:{port}/")
        assert caught.value.verdict == PERMANENT


@pytest.mark.parametrize("refusal", [None, 407, 503])
async def test_tls_through_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: int | None) -> None:
    """The proxy sees the tunnel and its own password, the server the request; a refused tunnel is no execution."""
    context = trusted(tmp_path / "pem", monkeypatch)
    tunnels: list[bytes] = []
    server = Server(lambda n, head, connection: [OK])

    def proxy(connection: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        tunnels.append(head)
        if refusal is not None:
            connection.sendall(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % refusal)
            return
        connection.sendall(b"HTTP/1.0 200 Connection established\r\n\r\n")
        with context.wrap_socket(connection, server_side=True) as secure:
            server.talk(secure)

    with listening(proxy) as port:
        pool = Pool(2, 5, {}, proxy=f"http://me:pa%3Ass@127.0.0.1:{port}")
        if refusal is None:
            for _ in range(2):
                assert await fetched(pool, "https://localhost/x") == (200, b"ok")
            assert server.heads[0].startswith(b"GET /x HTTP/1.1\r\nHost: localhost\r\n")
            assert b"Proxy-Authorization" not in server.heads[0]
        else:
            with pytest.raises(ProxyRefused, match=str(refusal)) as caught:
                await fetched(pool, "https://localhost/x", "POST", b"data")
            assert caught.value.verdict == (NOT_EXECUTED if refusal == 503 else PERMANENT)
        await pool.close()
    assert tunnels == [
        b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\nProxy-Authorization: Basic bWU6cGE6c3M=\r\n\r\n"
    ]


async def test_plain_http_through_a_proxy() -> None:
    """The proxy gets the whole URL, and a lost response is no refusal of the proxy."""
    with serving(lambda n, head, connection: [OK] if n == 1 else [b""]) as proxy:
        pool = Pool(2, 5, {}, proxy=proxy.url)
        assert await fetched(pool, "http://example.test:8080/x?y") == (200, b"ok")
        assert proxy.heads[0].startswith(b"GET http://example.test:8080/x?y HTTP/1.1\r\nHost: example.test:8080\r\n")
        with pytest.raises(Broken) as caught:
            await fetched(pool, "http://example.test:8080/x?y", "POST", b"data")
        assert caught.value.verdict != NOT_EXECUTED
        await pool.close()


@pytest.mark.parametrize("headers", [{"X": "a\r\nEvil: 1"}, {"X\n": "a"}])
async def test_a_header_cannot_become_two(pool: Pool, headers: dict[str, str]) -> None:
    """Nothing is sent."""
    with pytest.raises(ValueError, match="line end"):
        await pool.request("GET", "http://127.0.0.1:1/", headers)
    for target in ("secret\r\nEvil: 1", "secret HTTP/1.1"):
        with pytest.raises(ValueError, match="`url` no line end or space") as caught:
            await pool.request("GET", f"http://127.0.0.1:1/{target}", headers={})
        innermost = caught.traceback[-1].frame.f_locals  # some tools show them: the target may be a signed one
        assert "secret" not in repr(innermost)


@pytest.mark.parametrize("size", [5, 9 * 1024 * 1024])
def test_another_event_loop_will_do(cloud: Cloud, here: Path, size: int) -> None:
    """Files go up and come down on uvloop, which has other arguments and transports of its own."""
    uvloop = pytest.importorskip("uvloop")
    data = b"hello"[:size] * (size // 5)
    Path("up").write_bytes(data)

    async def main() -> None:
        async with Storage(endpoint=cloud.url) as storage:
            assert (await acp(storage, "up", "gs://bkt/")).ok
            assert (await acp(storage, "gs://bkt/up", "down")).ok
            assert (await arsync(storage, ".", "gs://bkt/all")).done == 2

    with asyncio.Runner(loop_factory=uvloop.Loop) as runner:
        runner.run(main())
    assert Path("down").read_bytes() == data

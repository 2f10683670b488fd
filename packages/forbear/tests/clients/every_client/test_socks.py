"""Refusals of a SOCKS proxy, before it gets a byte of the request, mean the same through every client."""

import asyncio
import gc
import socket
import threading
from collections.abc import Callable, Iterator

import aiohttp
import httpx
import pytest
import requests
from aiohttp_socks import ProxyConnector
from urllib3.contrib.socks import SOCKSProxyManager

from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.httpx import AsyncRetryTransport, RetryTransport
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry
from forbear.run.runtime import current
from forbear.services import rfc9110
from forbear.testing import virtual_time

# Some clients leave the socket of a failed handshake to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

URL = "http://username.authentication.test/"  # a name like the words of refusals
TWICE = rfc9110.policy.with_attempts(2)
GREETED, PASSWORD, WRONG = b"\5\0", b"\5\2", b"\1\1"


def connected(code: int, version: int = 5) -> bytes:
    """Return the proxy's answer to the request for a connection."""
    return bytes([5, code]) + b"\0\1\0\0\0\0\0\0" if version == 5 else bytes([0, code]) + b"\0\0\0\0\0\0"


class Proxy:
    """A proxy that answers each message by the next of `answers`, then hangs up."""

    def __init__(self) -> None:
        self.answers: tuple[bytes, ...] = ()
        self.count = 0  # connections
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host = "{}:{}".format(*self._listener.getsockname())
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            self.count += 1
            with connection:
                for answer in self.answers:
                    connection.recv(512)
                    connection.sendall(answer)

    def close(self) -> None:
        """Stop listening."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture(scope="module")
def started() -> Iterator[Proxy]:
    """A proxy for all tests."""
    proxy = Proxy()
    yield proxy
    proxy.close()
    gc.collect()


@pytest.fixture
def proxy(started: Proxy) -> Proxy:
    """The proxy, which was not asked yet."""
    started.count = 0
    return started


def over_httpx(proxy: str) -> None:
    """Send a POST by httpx."""
    with httpx.Client(
        transport=RetryTransport(TWICE, transport=httpx.HTTPTransport(verify=False, proxy=proxy))
    ) as client:
        client.post(URL)


def over_async_httpx(proxy: str) -> None:
    """Send a POST by the async client of httpx."""
    runtime = current.get()

    async def send() -> None:
        current.set(runtime)
        transport = AsyncRetryTransport(TWICE, transport=httpx.AsyncHTTPTransport(verify=False, proxy=proxy))
        async with httpx.AsyncClient(transport=transport) as client:
            await client.post(URL)

    asyncio.run(send())


def over_requests(proxy: str) -> None:
    """Send a POST by requests."""
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", RetryAdapter(TWICE))
        session.proxies = {"http": proxy.replace("socks5:", "socks5h:").replace("socks4:", "socks4a:")}
        session.post(URL)


def over_urllib3(proxy: str) -> None:
    """Send a POST by urllib3."""
    with SOCKSProxyManager(proxy.replace("socks5:", "socks5h:").replace("socks4:", "socks4a:")) as pool:
        pool.request("POST", URL, retries=Retry(TWICE))


def over_aiohttp(proxy: str) -> None:
    """Send a POST by aiohttp, through aiohttp-socks."""
    runtime = current.get()

    async def send() -> None:
        current.set(runtime)
        connector = ProxyConnector.from_url(proxy, rdns=True)
        async with (
            aiohttp.ClientSession(connector=connector, middlewares=(RetryMiddleware(TWICE),)) as session,
            session.post(URL) as response,
        ):
            await response.read()

    asyncio.run(send())


CLIENTS = [over_httpx, over_async_httpx, over_requests, over_urllib3, over_aiohttp]


@pytest.mark.parametrize("send", CLIENTS)
@pytest.mark.parametrize(
    ("answers", "attempts"),
    [
        pytest.param((b"",), 2, id="hangs up"),
        pytest.param((b"HTTP/1.1 400 Bad\r\n\r\n",), 2, id="is another server", marks=pytest.mark.soak),
        pytest.param((GREETED, b""), 2, id="hangs up later"),
        pytest.param((GREETED, b"\5"), 2, id="hangs up in its answer", marks=pytest.mark.soak),
        pytest.param((GREETED, connected(4)), 2, id="passing 4"),
        pytest.param((GREETED, connected(2)), 1, id="lasting 2"),
        *(
            pytest.param((GREETED, connected(code)), 2, id=f"passing {code}", marks=pytest.mark.soak)
            for code in (1, 3, 5, 6, 0x5F)
        ),
        *(pytest.param((GREETED, connected(code)), 1, id=f"lasting {code}", marks=pytest.mark.soak) for code in (7, 8)),
        pytest.param((b"\5\xff",), 1, id="wants credentials"),
        pytest.param((GREETED, connected(0), b""), 1, id="loses the response"),
    ],
)
def test_each_answer(send: Callable[[str], None], proxy: Proxy, answers: tuple[bytes, ...], attempts: int) -> None:
    """A refusal that lasts is not repeated; whatever passes is, even a POST. What is lost later, is not."""
    proxy.answers = answers
    with virtual_time(), pytest.raises(Exception):  # noqa: B017, PT011 - each library has its own
        send(f"socks5://{proxy.host}")
    assert proxy.count == attempts


@pytest.mark.parametrize("send", CLIENTS)
def test_wrong_credentials(send: Callable[[str], None], proxy: Proxy) -> None:
    """No other attempt makes them right."""
    proxy.answers = (PASSWORD, WRONG)
    with virtual_time(), pytest.raises(Exception):  # noqa: B017, PT011
        send(f"socks5://user:wrong@{proxy.host}")
    assert proxy.count == 1


@pytest.mark.parametrize("send", [over_requests, over_urllib3, over_aiohttp])
@pytest.mark.parametrize(("code", "attempts"), [(91, 2), (92, 1), (93, 1)])
def test_the_older_version(send: Callable[[str], None], proxy: Proxy, code: int, attempts: int) -> None:
    """SOCKS 4 has one failure that passes, and two of the identity."""
    proxy.answers = (connected(code, version=4),)
    with virtual_time(), pytest.raises(Exception):  # noqa: B017, PT011
        send(f"socks4://{proxy.host}")
    assert proxy.count == attempts


@pytest.mark.parametrize("send", CLIENTS)
def test_no_proxy(send: Callable[[str], None], closed_port: int, caplog: pytest.LogCaptureFixture) -> None:
    """A proxy that cannot be reached has passed nothing on."""
    with virtual_time() as time, pytest.raises(Exception):  # noqa: B017, PT011
        send(f"socks5://127.0.0.1:{closed_port}")
    assert len(time.slept) == 1

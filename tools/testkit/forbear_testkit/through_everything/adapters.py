"""The adapters, one an entry: each makes a client that retries, and sends a request through it. They judge nothing."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import aiohttp
import requests
import trio
import urllib3
from anyio.lowlevel import checkpoint
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession
from google.cloud import storage
from requests.adapters import HTTPAdapter

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.google_storage import install
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry
from forbear.policy import Policy
from forbear.run.runtime import current
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_testkit.clients.flavours import FLAVOURS, Flavour
from forbear_testkit.through_everything.rules import ATTEMPTS, Operation, Row

ANONYMOUS = cast("Callable[[], Any]", AnonymousCredentials)()


@dataclass(frozen=True)
class Call:
    """One request, and the way it takes: to `url`, through a `proxy` or not, after another one or not."""

    operation: Operation
    url: str
    proxy: str | None
    certificate: Path
    http2: bool
    timeout: float
    """Seconds for each wait for the network."""
    reused: bool

    @property
    def policy(self) -> Policy:
        """The policy of its operation."""
        return self.operation.policy.with_attempts(ATTEMPTS)

    def trust(self) -> ssl.SSLContext:
        """Return a context that trusts the server; libraries change the one that they are given."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.certificate)
        return context


@dataclass
class Outcome:
    """The end of a call: a response, or an error."""

    slept: list[float]
    response: Any = None
    status: int | None = None
    content: bytes = b""
    error: Exception | None = None

    @property
    def report(self) -> forbear.events.Report | None:
        """The report, if forbear gave up."""
        return forbear.report(self.response if self.error is None else self.error)

    def take(self, response: Any, status: int, content: bytes) -> None:
        """Note a response that was read to its end."""
        self.response, self.status, self.content = response, status, content


Send = Callable[[str, str, bytes | None, dict[str, str]], tuple[Any, int, bytes]]
AsyncSend = Callable[[str, str, bytes | None, dict[str, str]], Awaitable[tuple[Any, int, bytes]]]


@dataclass(frozen=True)
class Adapter:
    """A client library with retries, in one style; `opened` makes the client."""

    name: str
    opened: Callable[[Call], AbstractContextManager[Send]] | None = None
    aopened: Callable[[Call], AbstractAsyncContextManager[AsyncSend]] | None = None
    trio: bool = False
    http2: bool = False
    trusts_headers: bool = True
    """True where a condition in a header counts: Cloud Storage does not promise to heed one, urllib3 shows none."""
    broken: Row = Row.DONE
    """The verdict on a response that breaks: urllib3 does not show its status; under requests nothing is shown."""

    def talk(self, call: Call) -> Outcome:
        """Send the request in virtual time, and read the response."""
        with virtual_time(seed=7) as time:
            outcome = Outcome(time.slept)
            try:
                if self.opened is not None:
                    self._talk(self.opened, call, outcome)
                elif self.aopened is not None:
                    self._run(self.aopened, call, outcome)
            except Exception as error:
                outcome.error = error
        return outcome

    def _talk(self, opened: Callable[[Call], AbstractContextManager[Send]], call: Call, outcome: Outcome) -> None:
        with opened(call) as send:
            if call.reused:
                send("GET", f"{call.url}/warm", None, {})
            outcome.take(*send(*_arguments(call)))

    def _run(
        self, aopened: Callable[[Call], AbstractAsyncContextManager[AsyncSend]], call: Call, outcome: Outcome
    ) -> None:
        runtime = current.get()

        async def inside() -> None:
            current.set(runtime)
            async with aopened(call) as send:
                if call.reused:
                    await send("GET", f"{call.url}/warm", None, {})
                outcome.take(*await send(*_arguments(call)))

        async def to_the_end() -> None:
            try:
                await inside()
            finally:
                await _abort()

        if self.trio:
            trio.run(inside)
        else:
            asyncio.run(to_the_end())


async def _abort() -> None:
    """Abort connections that still close: one with TLS waits for the server, which may have stalled."""
    loop: Any = asyncio.get_running_loop()
    for transport in list(loop._transports.values()):
        transport.abort()
    await checkpoint()


def _arguments(call: Call) -> tuple[str, str, bytes | None, dict[str, str]]:
    operation = call.operation
    headers = dict([operation.header] if operation.header else [])
    return operation.method, call.url + operation.target, operation.body, headers


def _httpx(flavour: Flavour) -> Adapter:
    """An entry for httpx or httpx2."""

    def client(call: Call) -> Any:
        cleartext = call.http2 and call.url.startswith("http:")
        base = flavour.base(http1=not cleartext, http2=call.http2, verify=call.trust(), proxy=call.proxy)
        return flavour.client(flavour.transport(call.policy, transport=base), timeout=call.timeout)

    @contextmanager
    def opened(call: Call) -> Generator[Send]:
        with client(call) as open_client:

            def send(method: str, url: str, body: bytes | None, headers: dict[str, str]) -> tuple[Any, int, bytes]:
                response = open_client.request(method, url, content=body, headers=headers)
                return response, response.status_code, response.content

            yield send

    @asynccontextmanager
    async def aopened(call: Call) -> AsyncGenerator[AsyncSend]:
        async with client(call) as open_client:

            async def send(
                method: str, url: str, body: bytes | None, headers: dict[str, str]
            ) -> tuple[Any, int, bytes]:
                response = await open_client.request(method, url, content=body, headers=headers)
                return response, response.status_code, response.content

            yield send

    if flavour.is_async:
        return Adapter(flavour.name, aopened=aopened, trio=flavour.loop == "trio", http2=True)
    return Adapter(flavour.name, opened=opened, http2=True)


def _requests(name: str, session: Callable[[Policy], requests.Session], **sees: Any) -> Adapter:
    """An entry for a session of requests, or of what builds on it."""

    @contextmanager
    def opened(call: Call) -> Generator[Send]:
        with session(call.policy) as open_session:
            open_session.trust_env = False
            open_session.verify = str(call.certificate)
            if call.proxy is not None:
                open_session.proxies = {"http": call.proxy, "https": call.proxy}

            def send(method: str, url: str, body: bytes | None, headers: dict[str, str]) -> tuple[Any, int, bytes]:
                response = open_session.request(method, url, data=body, headers=headers, timeout=call.timeout)
                return response, response.status_code, response.content

            yield send

    return Adapter(name, opened=opened, **sees)


def _mounted(session: requests.Session, adapter: HTTPAdapter) -> requests.Session:
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def _authorized() -> requests.Session:
    return AuthorizedSession(ANONYMOUS)  # type: ignore[no-untyped-call]


def _installed(policy: Policy) -> requests.Session:
    """The session of a storage client, to which every host is Cloud Storage."""
    session = _authorized()
    client = storage.Client(project="p", credentials=ANONYMOUS, _http=session)
    install(client, cloud_storage.policy.with_limits(policy.limits))
    return session


@contextmanager
def _urllib3(call: Call) -> Generator[Send]:
    options: dict[str, Any] = {
        "retries": Retry(call.policy, bodies_are_reusable=True),
        "timeout": call.timeout,
        "ca_certs": str(call.certificate),
    }
    with urllib3.ProxyManager(call.proxy, **options) if call.proxy else urllib3.PoolManager(**options) as pool:

        def send(method: str, url: str, body: bytes | None, headers: dict[str, str]) -> tuple[Any, int, bytes]:
            response = pool.request(method, url, body=body, headers=headers)
            return response, response.status, response.data

        yield send


@asynccontextmanager
async def _aiohttp(call: Call) -> AsyncGenerator[AsyncSend]:
    async with aiohttp.ClientSession(
        middlewares=(RetryMiddleware(call.policy),),
        connector=aiohttp.TCPConnector(ssl=call.trust()),
        timeout=aiohttp.ClientTimeout(sock_read=call.timeout),
        proxy=call.proxy,
    ) as session:

        async def send(method: str, url: str, body: bytes | None, headers: dict[str, str]) -> tuple[Any, int, bytes]:
            async with session.request(method, url, data=body, headers=headers) as response:
                return response, response.status, await response.read()

        yield send


ADAPTERS = (
    *map(_httpx, FLAVOURS),
    _requests("requests", lambda policy: _mounted(requests.Session(), RetryAdapter(policy))),
    _requests("AuthorizedSession", lambda policy: _mounted(_authorized(), RetryAdapter(policy))),
    _requests("google_storage.install", _installed, trusts_headers=False),
    _requests(
        "requests with Retry",
        lambda policy: _mounted(requests.Session(), HTTPAdapter(max_retries=Retry(policy, bodies_are_reusable=True))),
        trusts_headers=False,
        broken=Row.PERMANENT,
    ),
    Adapter("urllib3 Retry", opened=_urllib3, trusts_headers=False, broken=Row.UNKNOWN),
    Adapter("aiohttp", aopened=_aiohttp),
)

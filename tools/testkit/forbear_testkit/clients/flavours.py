"""The six ways to send a request: httpx and httpx2, sync, on asyncio and on trio. One test table runs through all."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import httpx
import httpx2
import trio

import forbear
import forbear.clients.httpx
import forbear.clients.httpx2
from forbear.run.runtime import current
from forbear.testing import virtual_time
from forbear.testing.virtual_clock import VirtualTime

READ_TIMEOUT = 10.0
"""Longer than any response takes: a test that wants a timeout asks for a short one."""


@dataclass
class Result:
    """The end of one call, and the waits on the way: a response that was read to its end, or an error."""

    response: Any = None
    error: Exception | None = None
    pieces: list[bytes] = field(default_factory=list[bytes])
    slept: list[float] = field(default_factory=list[float])
    open_connections: int = 0
    size: int = 0

    def add(self, piece: bytes) -> int:
        self.pieces.append(piece)
        self.size += len(piece)
        return self.size

    @property
    def status(self) -> int:
        if self.error is not None:
            raise self.error
        status: int = self.response.status_code
        return status

    @property
    def content(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def report(self) -> forbear.events.Report:
        report = forbear.report(self.response if self.error is None else self.error)
        assert report is not None, "no report"
        return report

    @property
    def notes(self) -> list[str]:
        return list(getattr(self.error, "__notes__", ()))

    @property
    def retries(self) -> int:
        return len([delay for delay in self.slept if delay])


@dataclass(frozen=True)
class Flavour:
    """One library in one style."""

    name: str
    library: ModuleType
    adapter: ModuleType
    loop: str | None

    @property
    def is_async(self) -> bool:
        return self.loop is not None

    def base(self, **options: Any) -> Any:
        """A plain transport; it trusts no certificate, which saves loading those of the machine."""
        kind = self.library.AsyncHTTPTransport if self.is_async else self.library.HTTPTransport
        return kind(**{"verify": False, **options})

    def tampered(self, before: Callable[[Any], None], base: Any = None) -> Any:
        """A plain transport that shows each request to `before`, which may change it or raise."""
        inner = self.base() if base is None else base
        library = self.library

        class Tampered(library.BaseTransport, library.AsyncBaseTransport):  # type: ignore[name-defined, misc]
            _pool = getattr(inner, "_pool", None)

            def handle_request(self, request: Any) -> Any:
                before(request)
                return inner.handle_request(request)

            async def handle_async_request(self, request: Any) -> Any:
                before(request)
                return await inner.handle_async_request(request)

            def close(self) -> None:
                inner.close()

            async def aclose(self) -> None:
                await inner.aclose()

        return Tampered()

    def rerouted(self, url: str) -> Any:
        """A plain transport that dials `url`, whichever host is asked for."""
        to = self.library.URL(url)

        def before(request: Any) -> None:
            request.url = request.url.copy_with(scheme=to.scheme, host=to.host, port=to.port)

        return self.tampered(before)

    def played(self, *replies: tuple[int, Mapping[str, str], Callable[[], Iterable[bytes]]]) -> Any:
        """Return a transport that answers with these responses in turn, each of which may end with an error."""
        library, left = self.library, list(replies)

        class Stream(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[name-defined, misc]
            def __init__(self, pieces: Callable[[], Iterable[bytes]]) -> None:
                self.pieces = pieces

            def __iter__(self) -> Iterator[bytes]:
                yield from self.pieces()

            async def __aiter__(self) -> AsyncIterator[bytes]:
                for piece in self.pieces():
                    yield piece

        def answer(request: Any) -> Any:
            status, headers, pieces = left.pop(0)
            return library.Response(status, headers=headers, stream=Stream(pieces), request=request)

        return library.MockTransport(answer)

    def once(self, pieces: Iterable[bytes], end: Exception | None = None) -> Any:
        """A body that comes once, in these pieces, and then ends or raises."""

        def generate() -> Iterator[bytes]:
            yield from pieces
            if end is not None:
                raise end

        async def agenerate() -> AsyncIterator[bytes]:
            for piece in generate():
                yield piece

        return agenerate() if self.is_async else generate()

    def transport(self, policy: Any = None, **options: Any) -> Any:
        """A retrying transport."""
        kind = self.adapter.AsyncRetryTransport if self.is_async else self.adapter.RetryTransport
        options.setdefault("transport", self.base())
        return kind(policy, **options)

    def client(self, transport: Any, **options: Any) -> Any:
        """A client that sends through `transport`."""
        kind = self.library.AsyncClient if self.is_async else self.library.Client
        return kind(transport=transport, **{"timeout": READ_TIMEOUT, **options})

    def run(self, main: Callable[[], Awaitable[Any]]) -> Any:
        """Run a coroutine function in the flavour's loop; the virtual clock of the caller holds there too."""
        runtime = current.get()

        async def inside() -> Any:
            current.set(runtime)
            return await main()

        return trio.run(inside) if self.loop == "trio" else asyncio.run(inside())

    def call(
        self,
        transport: Any,
        method: str,
        url: str,
        *,
        client: Mapping[str, Any] | None = None,
        send: Mapping[str, Any] | None = None,
        times: int = 1,
        stop_after: int | None = None,
        clock: Callable[[VirtualTime], object] = lambda _: None,
        **request: Any,
    ) -> Result:
        """Send one request in virtual time and read the response.

        With `times`, the very same request object is sent so often, and the last result counts. With `stop_after`, the
        raw response is read piece by piece, and closed after so many bytes. `clock` gets the virtual time.
        """
        with virtual_time(seed=7) as time:
            clock(time)
            result = Result(slept=time.slept)
            talk = Talk(result, transport, stop_after, times, dict(send or {}))
            try:
                with_client = partial(self.client, transport, **dict(client or {}))
                if self.is_async:
                    self.run(lambda: talk.arun(with_client, method, url, request))
                else:
                    talk.run(with_client, method, url, request)
            except Exception as error:
                result.error = error
        return result


@dataclass
class Talk:
    """One request on its way, in both styles."""

    result: Result
    transport: Any
    stop_after: int | None
    times: int
    send: dict[str, Any]

    def run(self, with_client: Callable[[], Any], method: str, url: str, kwargs: Mapping[str, Any]) -> None:
        result = self.result
        with with_client() as client:
            request = client.build_request(method, url, **kwargs)
            for _ in range(self.times):
                result.response = response = client.send(request, stream=self.stop_after is not None, **self.send)
                if self.stop_after is None:
                    result.pieces = [response.content]
                    continue
                try:
                    for piece in response.iter_raw():
                        if result.add(piece) >= self.stop_after:
                            break
                finally:
                    response.close()
            result.open_connections = busy(self.transport)

    async def arun(self, with_client: Callable[[], Any], method: str, url: str, kwargs: Mapping[str, Any]) -> None:
        result = self.result
        async with with_client() as client:
            request = client.build_request(method, url, **kwargs)
            for _ in range(self.times):
                stream = self.stop_after is not None
                result.response = response = await client.send(request, stream=stream, **self.send)
                if self.stop_after is None:
                    result.pieces = [response.content]
                    continue
                try:
                    async for piece in response.aiter_raw():
                        if result.add(piece) >= self.stop_after:
                            break
                finally:
                    await response.aclose()
            result.open_connections = busy(self.transport)


FLAVOURS = [
    Flavour("httpx", httpx, forbear.clients.httpx, None),
    Flavour("httpx-asyncio", httpx, forbear.clients.httpx, "asyncio"),
    Flavour("httpx-trio", httpx, forbear.clients.httpx, "trio"),
    Flavour("httpx2", httpx2, forbear.clients.httpx2, None),
    Flavour("httpx2-asyncio", httpx2, forbear.clients.httpx2, "asyncio"),
    Flavour("httpx2-trio", httpx2, forbear.clients.httpx2, "trio"),
]


def busy(transport: Any) -> int:
    """Return how many connections of a retrying transport's pool are not idle."""
    pool = getattr(transport._transport, "_pool", None)
    return 0 if pool is None else sum(not connection.is_idle() for connection in pool.connections)

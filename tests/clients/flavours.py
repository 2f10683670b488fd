"""The six ways to send a request: httpx and httpx2, sync, on asyncio and on trio. One test table runs through all."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
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

READ_TIMEOUT = 10.0
"""Longer than any reply takes: a test that wants a timeout asks for a short one."""


@dataclass
class Result:
    """How one call ended, and the waits on the way: a reply that was read to its end, or an error."""

    response: Any = None
    error: Exception | None = None
    pieces: list[bytes] = field(default_factory=list[bytes])
    slept: list[float] = field(default_factory=list[float])
    open_connections: int = 0

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
    def report(self) -> forbear.Report:
        report = forbear.report(self.response if self.error is None else self.error)
        assert report is not None, "no report"
        return report

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
        times: int = 1,
        stop_after: int | None = None,
        **request: Any,
    ) -> Result:
        """Send one request in virtual time and read the reply piece by piece, `stop_after` so many bytes of it.

        With `times`, the very same request object is sent so often, and the last result counts.
        """
        with virtual_time(seed=7) as time:
            result = Result(slept=time.slept)
            try:
                if self.is_async:
                    self.run(lambda: self._acall(result, transport, method, url, client, times, stop_after, request))
                else:
                    self._call(result, transport, method, url, client, times, stop_after, request)
            except Exception as error:
                result.error = error
        return result

    def _call(
        self,
        result: Result,
        transport: Any,
        method: str,
        url: str,
        options: Mapping[str, Any] | None,
        times: int,
        stop_after: int | None,
        kwargs: Mapping[str, Any],
    ) -> None:
        with self.client(transport, **(options or {})) as client:
            request = client.build_request(method, url, **kwargs)
            for _ in range(times):
                result.pieces.clear()
                try:
                    result.response = client.send(request, stream=True)
                    for piece in result.response.iter_raw() if stop_after else result.response.iter_bytes():
                        result.pieces.append(piece)
                        if stop_after and len(result.content) >= stop_after:
                            break
                finally:
                    if result.response is not None:
                        result.response.close()
            result.open_connections = busy(transport)

    async def _acall(
        self,
        result: Result,
        transport: Any,
        method: str,
        url: str,
        options: Mapping[str, Any] | None,
        times: int,
        stop_after: int | None,
        kwargs: Mapping[str, Any],
    ) -> None:
        async with self.client(transport, **(options or {})) as client:
            request = client.build_request(method, url, **kwargs)
            for _ in range(times):
                result.pieces.clear()
                try:
                    result.response = await client.send(request, stream=True)
                    raw = result.response.aiter_raw() if stop_after else result.response.aiter_bytes()
                    async for piece in raw:
                        result.pieces.append(piece)
                        if stop_after and len(result.content) >= stop_after:
                            break
                finally:
                    if result.response is not None:
                        await result.response.aclose()
            result.open_connections = busy(transport)


FLAVOURS = [
    Flavour("httpx", httpx, forbear.clients.httpx, None),
    Flavour("httpx-asyncio", httpx, forbear.clients.httpx, "asyncio"),
    Flavour("httpx-trio", httpx, forbear.clients.httpx, "trio"),
    Flavour("httpx2", httpx2, forbear.clients.httpx2, None),
    Flavour("httpx2-asyncio", httpx2, forbear.clients.httpx2, "asyncio"),
    Flavour("httpx2-trio", httpx2, forbear.clients.httpx2, "trio"),
]


def busy(transport: Any) -> int:
    """How many connections of a retrying transport's pool are not idle."""
    pool = getattr(transport._transport, "_pool", None)
    return 0 if pool is None else sum(not connection.is_idle() for connection in pool.connections)

"""Attempts to make a pattern or a scope cover a request that its author did not mean, through every adapter."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextvars import copy_context
from dataclasses import replace
from typing import Any

import anyio.lowlevel
import httpx
import pytest

import forbear
from forbear.clients.httpx import AsyncRetryTransport, RetryTransport
from forbear.core.decide import Reason
from forbear.testing import virtual_time
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.others import EVERY
from forbear_testkit.clients.wire import Wire, reply

BUSY, FINE = reply(503), reply(200)


def posts(wire: Wire) -> int:
    """Return how many requests arrived."""
    return len(wire.seen)


def follow(flavour: Flavour) -> dict[str, Any]:
    """Return the options by which a client follows redirects."""
    return {"client": {"follow_redirects": True}} if "httpx" in flavour.name else {}


@EVERY
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:x"])
def test_another_host_header(flavour: Flavour, host: str) -> None:
    """It may decide who answers, so neither a pattern nor a key covers the request, and a wrong port is no error."""
    with Wire(BUSY) as wire:
        api = forbear.Api(wire.url, safe="POST /", not_executed=[503], key=forbear.IdempotencyKey("X-Key"))
        transport = flavour.transport(safe=f"POST {wire.url}/", apis=api)
        result = flavour.call(transport, "POST", f"{wire.url}/", content=b"x", headers={"Host": host, "X-Key": "k"})
        assert (result.report.reason, posts(wire)) == (Reason.UNSAFE, 1)


@EVERY
@pytest.mark.parametrize("word", ["safe", "scope"])
@pytest.mark.parametrize("path", ["/delete", "/search"])
def test_a_redirect_to_another_origin(flavour: Flavour, word: str, path: str) -> None:
    """The redirected request is matched on its own: neither pattern nor scope covers another origin."""
    with Wire(BUSY) as other, Wire(BUSY, reply(307, b"", f"Location: {other.url}{path}")) as wire:
        pattern = f"POST {wire.url}/search"
        transport = flavour.transport(safe=pattern if word == "safe" else ())
        with forbear.safe_to_repeat(pattern if word == "scope" else "POST https://h.example/"):
            flavour.call(transport, "POST", f"{wire.url}/search", content=b"x", **follow(flavour))
        assert (posts(wire), posts(other)) == (2, 1)


@EVERY
def test_a_redirect_on_the_same_origin(flavour: Flavour) -> None:
    """Another path needs a pattern of its own."""
    with Wire(reply(307, b"", "Location: /delete"), BUSY) as wire:
        transport = flavour.transport(safe=f"POST {wire.url}/search")
        flavour.call(transport, "POST", f"{wire.url}/search", content=b"x", **follow(flavour))
        assert [seen.target for seen in wire.seen] == ["/search", "/delete"]


@EVERY
@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/search", {"X-HTTP-Method-Override": "DELETE"}),
        ("/v1/search", {"X-Method-Override": "delete"}),
        ("/v1/search", {"Host": "evil.example"}),
        ("/v1/search?delete=all", {}),
        ("/v1/search/all", {}),
        ("/v1/searchx%2f..%2fdelete", {}),
        ("/v1/search%2Fdelete", {}),
        ("/v1/search%5cdelete", {}),
        ("/v1//search", {}),
    ],
)
def test_another_request(flavour: Flavour, path: str, headers: dict[str, str]) -> None:
    """An overridden method, another host, a query, and paths that a server may read otherwise are not covered."""
    with Wire(BUSY) as wire:
        pattern = f"POST {wire.url}/v1/search*"
        with forbear.safe_to_repeat(pattern):
            transport = flavour.transport(safe=pattern)
            result = flavour.call(transport, "POST", wire.url + path, content=b"x", headers=headers)
        assert (result.report.reason, posts(wire)) == (Reason.UNSAFE, 1)


@EVERY
def test_another_port_or_user(flavour: Flavour) -> None:
    """The host before an @ is a user name; the port is a part of the origin."""
    with Wire(BUSY) as wire:
        port = wire.url.rpartition(":")[2]
        for pattern in ("POST http://127.0.0.1/a", f"POST https://127.0.0.1:{port}/a", f"POST http://trusted:{port}/a"):
            with forbear.safe_to_repeat(pattern):
                transport = flavour.transport(safe=pattern)
                url = f"http://trusted:pw@127.0.0.1:{port}/a"
                assert flavour.call(transport, "POST", url, content=b"x").report.reason is Reason.UNSAFE
        assert posts(wire) == 3


@EVERY
def test_a_scope_that_ended(flavour: Flavour) -> None:
    """A copy of its context covers nothing, and neither does the scope for a request that was under way at its exit."""
    with Wire(BUSY) as wire:
        url = f"{wire.url}/search"
        scope = forbear.safe_to_repeat(f"POST {url}")
        with scope:
            context = copy_context()
        result = context.run(lambda: flavour.call(flavour.transport(), "POST", url, content=b"x"))
        assert result.report.reason is Reason.UNSAFE
        wire.answers = [replace(BUSY, first=lambda: scope.__exit__(None, None, None))]
        with scope:
            result = flavour.call(flavour.transport(), "POST", url, content=b"x")
        assert result.report.reason is Reason.UNSAFE
        assert posts(wire) == 2


class TokenFlow(httpx.Auth):
    """An auth flow that posts for a token before the request."""

    def __init__(self, url: str) -> None:
        self.url = url

    def auth_flow(self, request: httpx.Request) -> Any:
        """Post for a token, then send the request."""
        yield httpx.Request("POST", self.url)
        yield request


def test_an_international_host() -> None:
    """It is compared as it goes over the wire, in xn-- form, by httpx as by the other clients."""
    sent: list[httpx.Request] = []

    def fail(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(503)

    transport = RetryTransport(transport=httpx.MockTransport(fail), safe="POST https://xn--bcher-kva.example/search")
    with virtual_time(), httpx.Client(transport=transport) as client:
        client.post("https://b\u00fccher.example/search")
    assert len(sent) == 5


def test_an_auth_flow() -> None:
    """The POST for a token goes through the same transport and scope, and is matched on its own."""
    with Wire(BUSY) as issuer, Wire(BUSY, FINE) as wire, virtual_time(), forbear.safe_to_repeat(f"POST {wire.url}/a"):
        transport = RetryTransport(safe=f"POST {wire.url}/a")
        with httpx.Client(transport=transport, auth=TokenFlow(f"{issuer.url}/a")) as client:
            assert client.post(f"{wire.url}/a").status_code == 200
        assert (posts(issuer), posts(wire)) == (1, 2)


async def test_a_task_that_outlives_the_scope() -> None:
    """A task that was started inside is covered while the scope is open, and not afterwards."""
    with Wire(BUSY, FINE, BUSY) as wire, virtual_time():
        async with httpx.AsyncClient(transport=AsyncRetryTransport()) as client:
            statuses: list[int] = []
            inside, outside = asyncio.Event(), asyncio.Event()

            async def work() -> None:
                for event in (inside, outside):
                    await event.wait()
                    statuses.append((await client.post(f"{wire.url}/a")).status_code)

            with forbear.safe_to_repeat(f"POST {wire.url}/a"):
                task = asyncio.create_task(work())
                inside.set()
                while not statuses:
                    await anyio.lowlevel.checkpoint()
            outside.set()
            await task
        assert statuses == [200, 503]


async def test_the_consumer_of_a_generator() -> None:
    """A scope that an async generator holds open covers its own requests, not those of its consumer."""
    with Wire(BUSY, FINE, BUSY) as wire, virtual_time():
        async with httpx.AsyncClient(transport=AsyncRetryTransport()) as client:

            async def pages() -> AsyncGenerator[int]:
                with forbear.safe_to_repeat(f"POST {wire.url}/a"):
                    yield (await client.post(f"{wire.url}/a")).status_code

            generator = pages()
            assert await anext(generator) == 200
            assert (await client.post(f"{wire.url}/a")).status_code == 503
            await generator.aclose()


def test_another_thread() -> None:
    """A thread that was not given the context is not covered."""
    statuses: list[int] = []
    with Wire(BUSY) as wire, forbear.safe_to_repeat(f"POST {wire.url}/a"):

        def work() -> None:
            with httpx.Client(transport=RetryTransport()) as client:
                statuses.append(client.post(f"{wire.url}/a").status_code)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert (statuses, posts(wire)) == ([503], 1)

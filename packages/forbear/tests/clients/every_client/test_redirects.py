"""Redirects with 307 and 308 in a function: the server that sends one has executed nothing."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import aiohttp
import httpx
import pytest
import requests

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.run.keys import RepeatRefused
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply

LOST, OK = Answer(end="close"), reply(200, b"{}")
POLICY = forbear.retry(on=Exception, attempts=2, timeout=None)
Post = Callable[..., int]

_OPEN = ExitStack()


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the clients that a test has opened."""
    with _OPEN:
        yield


class Broken(Exception):
    """The error of a function."""


def moved(status: int) -> Answer:
    """Return a redirect to /moved."""
    return reply(status, b"", "Location: /moved")


def with_httpx(wire: Wire, **more: Any) -> Post:
    """Return a function that posts by httpx, follows redirects, and returns the status."""
    client = _OPEN.enter_context(httpx.Client(follow_redirects=True, verify=False))
    forbear.install(client, attempts=1, **more)

    def post(path: str = "/charges", **rest: Any) -> int:
        return client.post(wire.url + path, **rest).status_code

    return post


def with_requests(wire: Wire, **more: Any) -> Post:
    """Return a function that posts by requests, and returns the status."""
    session = forbear.install(_OPEN.enter_context(requests.Session()), attempts=1, **more)

    def post(path: str = "/charges", **rest: Any) -> int:
        return session.post(wire.url + path, timeout=5, **rest).status_code

    return post


BOTH = pytest.mark.parametrize("make", [with_httpx, with_requests])


@BOTH
@pytest.mark.parametrize(("status", "attempts"), [(307, 2), (308, 2), (302, 1)])
def test_what_was_only_redirected_was_not_executed(make: Callable[..., Post], status: int, attempts: int) -> None:
    """A redirect and a refusal leave nothing executed, so the function is called again; 302 may follow a success."""
    with Wire(moved(status), reply(404), moved(status), reply(404)) as wire, virtual_time():
        post, calls = make(wire), list[int]()

        def charge() -> None:
            calls.append(post())
            raise Broken

        with pytest.raises(Broken):
            POLICY.call(charge)
        assert calls == [404] * attempts


def keyed(wire: Wire) -> dict[str, Any]:
    """Return the options for an API that honours keys."""
    return {"apis": [forbear.Api(wire.url, key=forbear.IdempotencyKey("Idempotency-Key", hours=24))]}


def send_all(post: Post, *bodies: str, path: str = "/charges") -> None:
    """Post these bodies in turn with one key of the run."""
    headers = {"Idempotency-Key": forbear.run_key("charge", 1)}
    for body in bodies:
        try:
            post(path, data={"body": body}, headers=headers)
        except (httpx.TransportError, requests.ConnectionError):
            continue


@BOTH
@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_takes_the_callers_key_along(make: Callable[..., Post], status: int) -> None:
    """Each hop has the key of the run, because the one before it has executed nothing."""
    with Wire(moved(status), moved(status), OK) as wire, virtual_time():
        POLICY.call(send_all, make(wire, **keyed(wire)), "a")
        assert [seen.target for seen in wire.seen] == ["/charges", "/moved", "/moved"]
        assert len({seen.header("idempotency-key") for seen in wire.seen}) == 1


def test_an_async_redirect_takes_the_callers_key_along() -> None:
    """So it is with aiohttp, whose middlewares see each hop."""

    async def charge(wire: Wire) -> None:
        async with aiohttp.ClientSession(middlewares=[RetryMiddleware(attempts=1, **keyed(wire))]) as session:
            headers = {"Idempotency-Key": forbear.run_key("charge", 1)}
            async with session.post(f"{wire.url}/charges", headers=headers) as response:
                assert response.status == 200

    with Wire(moved(307), OK) as wire, virtual_time():
        asyncio.run(POLICY(charge)(wire))
        assert len({seen.header("idempotency-key") for seen in wire.seen}) == 1
        assert len(wire.seen) == 2


@BOTH
@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_corrected_request_may_have_the_key_of_a_refused_one(make: Callable[..., Post], status: int) -> None:
    """A refused request does not count as sent, so its key goes with another body."""
    with Wire(reply(status), reply(status), OK) as wire, virtual_time():
        POLICY.call(send_all, make(wire, **keyed(wire)), "a", "b", "c")
        assert len(wire.seen) == 3


@BOTH
@pytest.mark.parametrize("first", [[OK], [LOST], [reply(500)], [reply(409)], [LOST, reply(404)], [OK, reply(404)]])
def test_k10_what_may_have_been_executed_keeps_its_key(make: Callable[..., Post], first: list[Answer]) -> None:
    """K10: another body is refused after a request whose outcome is unknown, even if an equal one was refused since."""
    with Wire(*first, OK) as wire, virtual_time():
        with pytest.raises(RepeatRefused, match="the same key with another request"):
            POLICY.call(send_all, make(wire, **keyed(wire)), *["a"] * len(first), "b")
        assert len(wire.seen) == len(first)


AROUND = POLICY.with_changes(retry_exhausted=True)


def added(wire: Wire) -> dict[str, Any]:
    """Return the options for an API whose keys the adapter adds."""
    return {"apis": [forbear.Api(wire.url, key=forbear.IdempotencyKey("Idempotency-Key", hours=24, add=True))]}


def keys_by_target(wire: Wire) -> dict[str, set[str | None]]:
    """Return the keys with which each target was asked."""
    found: dict[str, set[str | None]] = {}
    for seen in wire.seen:
        found.setdefault(seen.target, set()).add(seen.header("idempotency-key"))
    return found


@BOTH
@pytest.mark.parametrize("status", [307, 308])
def test_each_hop_keeps_its_added_key(make: Callable[..., Post], status: int) -> None:
    """If the response of the second hop is lost, the next attempt sends the keys of both hops again."""
    with Wire(moved(status), LOST, moved(status), OK) as wire, virtual_time():
        assert AROUND.call(make(wire, **added(wire)), data={"amount": "5"}) == 200
        assert [seen.target for seen in wire.seen] == ["/charges", "/moved"] * 2
        assert {target: len(keys) for target, keys in keys_by_target(wire).items()} == {"/charges": 1, "/moved": 1}


def test_each_hop_keeps_its_added_key_with_aiohttp() -> None:
    """So it is with aiohttp, whose middlewares see each hop."""

    async def charge(wire: Wire) -> int:
        middleware = RetryMiddleware(attempts=1, **added(wire))
        async with (
            aiohttp.ClientSession(middlewares=[middleware]) as session,
            session.post(f"{wire.url}/charges", data=b"5") as response,
        ):
            return response.status

    with Wire(moved(307), LOST, moved(307), OK) as wire, virtual_time():
        assert asyncio.run(AROUND(charge)(wire)) == 200
        assert {target: len(keys) for target, keys in keys_by_target(wire).items()} == {"/charges": 1, "/moved": 1}


@BOTH
def test_an_added_key_does_not_count_elsewhere(make: Callable[..., Post]) -> None:
    """K7: the server of a redirect may not honour the key, so what it lost stops the run."""
    with Wire(LOST) as other, Wire(reply(307, b"", f"Location: {other.url}/moved")) as wire, virtual_time():
        with pytest.raises((httpx.TransportError, requests.ConnectionError)):
            AROUND.call(make(wire, **added(wire)), data={"amount": "5"})
        assert (len(wire.seen), len(other.seen)) == (1, 1)


@BOTH
def test_an_added_key_that_the_second_hop_used_up(make: Callable[..., Post]) -> None:
    """A charge that the second hop has executed forbids the next attempt, which would have another key."""
    with Wire(moved(307), OK) as wire, virtual_time():
        post = make(wire, **added(wire))

        def charge() -> None:
            post(data={"amount": "5"})
            raise Broken

        with pytest.raises(Broken):
            AROUND.call(charge)
        assert len(wire.seen) == 2

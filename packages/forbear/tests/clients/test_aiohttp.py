"""Tests of aiohttp alone: its own hidden repeats, its readers, its payloads, its timeouts."""

import asyncio
import gc
import subprocess
import sys
import weakref
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.events import Reason
from forbear.run.runtime import AttemptTimeout
from forbear.services import cloud_storage, rfc9110
from forbear.testing import virtual_time
from forbear_testkit.clients.retrying import retrying
from forbear_testkit.clients.secure import untrusted
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.garbage import loops_through_forbear
from forbear_testkit.plugin import collect_leftovers

pytestmark = pytest.mark.anyio

LINES = b"one\ntwo\nthree\n"
BROKEN = reply(200, LINES[:5], 'ETag: "e"', length=len(LINES), end="close")
REST = reply(206, LINES[5:], 'ETag: "e"', f"Content-Range: bytes 5-{len(LINES) - 1}/{len(LINES)}")
OBJECT = "/storage/v1/b/bkt/o/thing"
SESSION = "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=big&ifGenerationMatch=0"


@pytest.mark.parametrize("method", ["DELETE", "PUT", "GET"])
@pytest.mark.parametrize("plain", [True, False])
async def test_nothing_is_sent_again_behind_our_back(method: str, plain: bool) -> None:
    """The library sends PUT and DELETE once more when a connection breaks; under us a request is sent once or by us."""
    policy = cloud_storage.policy if method != "GET" else cloud_storage.policy.with_attempts(1)
    target = "/upload/storage/v1/b/bkt/o/thing?uploadType=media" if method == "PUT" else OBJECT
    with Wire(reply(200), Answer(end="close")) as wire:
        async with retrying(policy) as session:
            await session.get(wire.url, middlewares=())
            chosen: dict[str, Any] = {"middlewares": ()} if plain else {}
            with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
                await session.request(method, wire.url + target, data=b"x" if method == "PUT" else None, **chosen)
        assert len(wire.seen) == (3 if plain else 2)
    assert (forbear.report(caught.value) is not None) is not plain
    assert len(getattr(caught.value, "__notes__", ())) == (0 if plain else 1)


async def test_the_callers_own_repeat_is_sent() -> None:
    """Only the library's repeat is stopped: a caller who tries again in the same task is heard."""
    with Wire(Answer(end="close"), reply(200)) as wire:
        async with retrying(cloud_storage.policy) as session:
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await session.delete(wire.url + OBJECT)
            assert (await session.delete(wire.url + OBJECT)).status == 200
        assert len(wire.seen) == 2


async def _read(response: aiohttp.ClientResponse) -> bytes:
    assert (await response.read()) == (await response.text()).encode()
    return await response.read()


async def _lines(response: aiohttp.ClientResponse) -> bytes:
    return b"".join([line async for line in response.content])


async def _chunked(response: aiohttp.ClientResponse) -> bytes:
    return b"".join([piece async for piece in response.content.iter_chunked(3)])


async def _chunks(response: aiohttp.ClientResponse) -> bytes:
    return b"".join([piece async for piece, _ in response.content.iter_chunks()])


async def _exactly(response: aiohttp.ClientResponse) -> bytes:
    return await response.content.readexactly(len(LINES))


@pytest.mark.parametrize("read", [_read, _lines, _chunked, _chunks, _exactly])
async def test_a_broken_body_goes_on_whichever_way_it_is_read(
    read: Callable[[aiohttp.ClientResponse], Awaitable[bytes]],
) -> None:
    """Everything that reads in aiohttp finds the whole body, and the connections are given back."""
    with Wire(BROKEN, REST) as wire:
        async with retrying() as session:
            async with session.get(wire.url) as response:
                assert await read(response) == LINES
            assert session.connector is not None
            assert not session.connector._acquired


@pytest.mark.parametrize("stop", [3, 7])
async def test_an_early_end_closes_the_response_the_body_came_from(stop: int) -> None:
    """Who leaves a body before its end, before or after it went on, leaves no connection behind."""
    stalled = Answer(REST.data[:-3], "stall")
    with Wire(BROKEN, stalled) as wire:
        async with retrying() as session:
            async with session.get(wire.url) as response:
                assert await response.content.readexactly(stop) == LINES[:stop]
            assert session.connector is not None
            assert not session.connector._acquired


async def test_who_stops_waiting_may_come_back() -> None:
    """A read that is cancelled loses nothing, as in a plain body."""
    go = asyncio.Event()
    loop = asyncio.get_running_loop()
    first = Answer(reply(200, b"ab", length=4).data, end="keep", then=lambda: loop.call_soon_threadsafe(go.set))
    with Wire(first) as wire:
        async with retrying() as session, session.get(wire.url) as response:
            await go.wait()
            assert await response.content.readexactly(2) == b"ab"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(response.content.read(1), 0.01)
            assert response.content.exception() is None


async def test_a_body_that_stays_broken_raises_and_never_looks_whole() -> None:
    """The first error is raised with its report; reading on raises again instead of ending the body."""
    with Wire(BROKEN, reply(404)) as wire:
        async with retrying() as session, session.get(wire.url) as response:
            with pytest.raises(aiohttp.ClientPayloadError) as caught:
                await response.content.readexactly(9)
            with pytest.raises(aiohttp.ClientPayloadError, match="broken off before"):
                await response.content.read()
    told = forbear.report(caught.value)
    assert told is not None
    assert told.reason is Reason.BODY
    assert caught.value.__notes__ == [told.note]


async def test_a_settled_response_is_read_as_any_other() -> None:
    """The short response to a write is in memory already, and its stream can still be read."""
    with Wire(reply(200, LINES)) as wire:
        async with retrying() as session:
            async with session.post(wire.url, data=b"x") as response:
                assert await response.content.readline() == b"one\n"
            async with session.put(wire.url, data=b"x") as response:
                assert await response.read() == LINES


async def raised(request: Any) -> None:
    """Send a request and raise for its status."""
    async with request as response:
        response.raise_for_status()


@pytest.mark.parametrize("by_session", [False, True])
async def test_the_error_of_a_response_has_its_report(by_session: bool) -> None:
    """Who raises for its status loses the response, and must not lose what was tried."""
    policy = cloud_storage.policy.with_attempts(2)
    with Wire(reply(503)) as wire, virtual_time():
        async with aiohttp.ClientSession(
            middlewares=(RetryMiddleware(policy),), raise_for_status=by_session
        ) as session:
            with pytest.raises(aiohttp.ClientResponseError) as caught:
                await raised(session.get(wire.url))
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.ATTEMPTS
    assert "limit of 2 attempts reached" in caught.value.__notes__[0]


async def test_a_continued_body_leaves_no_loop_behind() -> None:
    """Nothing of forbear needs the garbage collector after a body that broke and went on."""

    async def fetch() -> bytes:
        async with session.get(wire.url) as response:
            return await response.read()

    collect_leftovers()
    gc.disable()
    try:
        with Wire(BROKEN, REST) as wire:
            async with retrying() as session:
                assert await fetch() == LINES
                assert loops_through_forbear() == []
    finally:
        gc.enable()


@pytest.mark.parametrize("status", [503, None], ids=["failed reply", "error"])
@pytest.mark.parametrize("failures", [1, 2, 3])
async def test_no_failed_attempt_keeps_anything_alive(status: int | None, failures: int) -> None:
    """With the garbage collector off, no response and no error that was retried or raised stays alive."""
    watched = list[weakref.ref[Any]]()

    async def failing(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        if status is None and len(watched) < failures:
            lost = aiohttp.ClientConnectionError()
            watched.append(weakref.ref(lost))
            try:
                raise lost
            finally:
                del lost
        response = await handler(request)
        watched.append(weakref.ref(response))
        return response

    async def fetch() -> int | None:
        try:
            async with session.get(wire.url) as response:
                return response.status
        except aiohttp.ClientConnectionError:
            return None

    collect_leftovers()
    gc.disable()
    try:
        with Wire(*[reply(503)] * failures * (status is not None), reply(200)) as wire, virtual_time(seed=7):
            retries = RetryMiddleware(rfc9110.policy.with_attempts(3))
            async with aiohttp.ClientSession(middlewares=(retries, failing)) as session:
                assert await fetch() == (200 if failures < 3 else status)
        assert [reference() for reference in watched] == [None] * min(failures + 1, 3)
    finally:
        gc.enable()


async def test_what_was_not_sent_is_always_repeated() -> None:
    """A refused connection is no execution: even a bare POST waits for the server to come up."""
    async with retrying() as session:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await session.post("http://127.0.0.1:9/", data=b"x")
    told = forbear.report(caught.value)
    assert told is not None
    assert len(told.attempts) > 1


@pytest.mark.parametrize("before", [True, False])
async def test_another_request_of_a_middleware_proves_nothing(before: bool) -> None:
    """A middleware that also calls elsewhere may fail to connect there when the request itself has been executed."""

    async def audited(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        if not before:
            await handler(request)
        return await request.session.get("http://127.0.0.1:9/", middlewares=())

    with Wire(reply(200)) as wire, virtual_time(seed=7):
        async with aiohttp.ClientSession(middlewares=(RetryMiddleware(), audited)) as session:
            with pytest.raises(aiohttp.ClientConnectorError) as caught:
                await session.post(wire.url, data=b"x")
        assert len(wire.seen) == (0 if before else 1)
    told = forbear.report(caught.value)
    assert told is not None
    assert told.reason is Reason.UNSAFE


async def test_a_certificate_that_is_not_trusted_is_final(tmp_path: Path) -> None:
    """No other attempt makes a certificate trusted."""
    with untrusted(tmp_path / "pem") as (url, handshakes):
        async with retrying() as session:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await session.get(url)
        assert len(handshakes) == 1


@pytest.mark.parametrize(("status", "attempts"), [(503, 4), (407, 1)])
async def test_a_proxy_that_refuses_counts_by_its_status(status: int, attempts: int) -> None:
    """A tunnel that is not there yet is waited for, one that is forbidden is not."""
    with Wire(reply(status, end="close")) as wire:
        async with retrying(cloud_storage.policy.with_attempts(4)) as session:
            with pytest.raises(aiohttp.ClientHttpProxyError):
                await session.post("https://host.invalid/", data=b"x", proxy=wire.url)
        assert len(wire.seen) == attempts


async def test_a_response_that_is_no_http_has_an_unknown_outcome() -> None:
    """A response that is no HTTP does not say what was done."""
    with Wire(Answer(b"nonsense\r\n\r\n", "close"), reply(200)) as wire:
        async with retrying() as session:
            assert (await session.get(wire.url)).status == 200


async def test_an_attempt_is_cut_short() -> None:
    """The policy's attempt timeout ends an attempt whose response does not begin."""
    with Wire(Answer(end="stall"), reply(200)) as wire:
        async with retrying(cloud_storage.policy.with_attempt_timeout(0.05)) as session:
            assert (await session.get(wire.url)).status == 200
            wire.answers[:] = [Answer(end="stall")]
            with pytest.raises(AttemptTimeout):
                await session.post(wire.url + SESSION.replace("resumable", "media").partition("&if")[0], data=b"x")


async def test_the_sessions_timeout_ends_it_all() -> None:
    """The total timeout is the caller's, and no attempt outlives it."""
    with Wire(Answer(end="stall")) as wire:
        async with retrying() as session:
            with pytest.raises(TimeoutError):
                await session.get(wire.url, timeout=aiohttp.ClientTimeout(total=0.05))
        assert len(wire.seen) == 1


async def test_one_request_has_a_policy_of_its_own() -> None:
    """The library's place for exceptions: the middlewares of one request replace those of the session."""
    with Wire(reply(503)) as wire:
        async with retrying() as session:
            await session.get(wire.url, middlewares=(RetryMiddleware(cloud_storage.policy.with_attempts(2)),))
            await session.get(wire.url, middlewares=())
        assert len(wire.seen) == 3


async def test_a_client_without_retries_returns_the_failed_response() -> None:
    """The failed response is returned unchanged."""
    with Wire(reply(503), reply(200)) as wire:
        async with retrying() as session:
            with forbear.disabled():
                assert (await session.get(wire.url)).status == 503


async def test_a_redirect_is_another_request() -> None:
    """Each hop is retried by itself."""
    with Wire(reply(503), reply(302, b"", "Location: /there"), reply(503), reply(200, b"ok")) as wire:
        async with retrying() as session:
            response = await session.get(wire.url)
            assert (await response.read(), response.url.path) == (b"ok", "/there")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"policy": 3}, "`policy` must be a forbear.Policy or None (each service's own), got 3"),
        ({"buffer": -1}, "`buffer` must be 0 or more, got -1"),
    ],
)
def test_wrong_arguments_are_refused_with_a_cure(options: dict[str, Any], text: str) -> None:
    """Each error names the parameter, the rule and the value."""
    with pytest.raises((TypeError, ValueError)) as caught:
        RetryMiddleware(**options)
    assert str(caught.value) == text


def test_a_missing_library_is_said_with_its_cure() -> None:
    """Importing the adapter without aiohttp names the extra to install; forbear itself does without."""
    script = "import sys; sys.modules['aiohttp'] = None; import forbear; import forbear.clients.aiohttp"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.rstrip().endswith(
        'forbear.clients.aiohttp needs aiohttp>=3.12.15; install it with: pip install "forbear[aiohttp]"'
    )

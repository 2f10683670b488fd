"""The work of a client around the transport is as without us: redirects, logins, hooks, cookies, nesting, memory."""

import gc
import weakref
from collections.abc import Generator, Iterator
from functools import partial
from typing import Any

import pytest

import forbear
from forbear.services import rfc9110
from forbear.testing import virtual_time
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.plugin import collect_leftovers


def test_redirects_are_followed(flavour: Flavour) -> None:
    """Each hop is a request of its own, with a policy's attempts for each."""
    hop = reply(302, b"", "Location: /there")
    with Wire(reply(503), hop, reply(503), reply(200, b"found")) as wire:
        result = flavour.call(flavour.transport(), "GET", wire.url, client={"follow_redirects": True})
        assert result.content == b"found"
        assert [seen.target for seen in wire.seen] == ["/", "/", "/there", "/there"]
    assert [response.status_code for response in result.response.history] == [302]


def test_logging_in_works(flavour: Flavour) -> None:
    """An auth flow sees the 401, answers it, and its second request is retried as any other."""

    class Login(flavour.library.Auth):  # type: ignore[name-defined, misc]
        def auth_flow(self, request: Any) -> Generator[Any, Any, None]:
            response = yield request
            if response.status_code == 401:
                request.headers["Authorization"] = "Bearer fresh"
                yield request

    with Wire(reply(401), reply(503), reply(200, b"in")) as wire:
        result = flavour.call(flavour.transport(), "GET", wire.url, client={"auth": Login()})
        assert result.content == b"in"
        assert [seen.header("authorization") for seen in wire.seen] == [None, "Bearer fresh", "Bearer fresh"]


def test_hooks_and_cookies_see_one_request_and_one_response(flavour: Flavour) -> None:
    """Event hooks are called once, with the caller's own request, and cookies are taken from the last response."""
    seen: list[Any] = []

    async def alook(thing: Any) -> None:
        seen.append(thing)

    hook = alook if flavour.is_async else seen.append
    hooks = {"request": [hook], "response": [hook]}
    cookie = "Set-Cookie: {}=1; Path=/"
    with Wire(reply(503, b"", cookie.format("failed")), reply(200, b"", cookie.format("good"))) as wire:
        result = flavour.call(flavour.transport(), "GET", wire.url, client={"event_hooks": hooks})
    request, response = seen
    assert response is result.response
    assert response.request is request
    assert dict(response.cookies) == {"good": "1"}


def test_nested_transports_do_not_multiply(flavour: Flavour) -> None:
    """The outer transport does not begin again after the inner one gave up: responses, errors, broken bodies."""
    policy = rfc9110.policy.with_attempts(3)
    broken = reply(200, b"every", 'ETag: "one"', length=18, end="close")
    for answer, requests in ((reply(503), 3), (Answer(end="reset"), 3), (broken, 3)):
        with Wire(answer) as wire:
            nested = flavour.transport(policy, transport=flavour.transport(policy))
            result = flavour.call(nested, "GET", wire.url)
            assert len(wire.seen) == requests
        assert len(result.report.attempts) == 3


def test_an_outer_policy_does_not_multiply(flavour: Flavour) -> None:
    """A policy around the call sees the report, in the error and in that of raise_for_status()."""
    outer = forbear.retry(on=flavour.library.HTTPError, attempts=4)
    inner = rfc9110.policy.with_attempts(2)
    for answer in (reply(503), Answer(end="reset")):
        with Wire(answer) as wire, virtual_time():

            def call(url: str = wire.url) -> Any:
                with flavour.client(flavour.transport(inner)) as client:
                    return client.get(url).raise_for_status()

            async def acall(url: str = wire.url) -> Any:
                async with flavour.client(flavour.transport(inner)) as client:
                    return (await client.get(url)).raise_for_status()

            with pytest.raises(flavour.library.HTTPError):
                flavour.run(partial(outer.acall, acall)) if flavour.is_async else outer.call(call)
            assert len(wire.seen) == 2


BREAKS = "it breaks"
HALF = (200, {"ETag": '"one"', "Content-Length": "6"}, [b"abc", BREAKS])
REST = (206, {"ETag": '"one"', "Content-Length": "3", "Content-Range": "bytes 3-5/6"}, [b"def"])
FAILED = (503, {"Content-Length": "1"}, [b"x"])


@pytest.mark.parametrize(
    ("script", "expected"),
    [([FAILED, HALF, REST], b"abcdef"), ([FAILED, FAILED, FAILED], b"x"), ([HALF, HALF, HALF], None), ([], None)],
    ids=["success", "failed reply", "broken body", "error"],
)
def test_nothing_is_left_for_the_garbage_collector(flavour: Flavour, script: list[Any], expected: bytes | None) -> None:
    """A request, however it ends, leaves no reference cycle of ours behind: neither of it nor of its responses."""
    library, watched = flavour.library, list[weakref.ref[Any]]()

    def pieces(all_of_them: list[Any]) -> Iterator[bytes]:
        for piece in all_of_them:
            if piece is BREAKS:
                raise library.ReadError("broken")
            yield piece

    replies = [(status, headers, partial(pieces, body)) for status, headers, body in script]

    def watch(request: Any) -> None:
        watched.append(weakref.ref(request))
        if not script:
            raise library.ReadError("reset")

    tampered = flavour.tampered(watch, flavour.played(*replies))
    transport = flavour.transport(rfc9110.policy.with_attempts(3), transport=tampered)

    def exchange() -> bytes | None:
        request = library.Request("GET", "http://localhost")
        try:
            response = transport.handle_request(request)
            watched.append(weakref.ref(response.stream))
            return b"".join(response.stream)
        except library.ReadError:
            return None

    async def aexchange() -> bytes | None:
        request = library.Request("GET", "http://localhost")
        try:
            response = await transport.handle_async_request(request)
            watched.append(weakref.ref(response.stream))
            return b"".join([piece async for piece in response.stream])
        except library.ReadError:
            return None

    collect_leftovers()
    gc.disable()
    try:
        with virtual_time():
            assert (flavour.run(aexchange) if flavour.is_async else exchange()) == expected
        assert [reference() for reference in watched] == [None] * len(watched)
        assert len(watched) >= 3
    finally:
        gc.enable()

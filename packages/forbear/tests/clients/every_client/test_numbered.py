"""SDKs that number their attempts do not repeat what forbear gave up, whichever options they are given later."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

import forbear
from forbear.clients.httpx import AsyncRetryTransport, RetryTransport
from forbear.clients.httpx2 import install
from forbear.services import rfc9110
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.lazily import Library

openai: Any = Library("openai")

POLICY = rfc9110.policy.with_attempts(2).with_backoff(forbear.Constant(0))
LOST, BUSY = Answer(end="close"), reply(503, b"{}", "Content-Type: application/json", "retry-after-ms: 1")
CHAT: Any = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


def _no_wait(self: object, **details: object) -> None:
    """Wait for nothing."""


@pytest.mark.parametrize(("answer", "kind"), [(LOST, "APIConnectionError"), (BUSY, "InternalServerError")])
@pytest.mark.parametrize(("vouched", "times"), [(False, 1), (True, 2)])
def test_an_sdk_with_retries_of_its_own(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, kind: str, vouched: bool, times: int
) -> None:
    """The last attempt of forbear is the last one, and an outer policy does not begin again."""
    monkeypatch.setattr(openai.OpenAI, "_sleep_for_retry", _no_wait)
    with Wire(answer) as wire, virtual_time():
        safe = f"POST {wire.url}/v1/*/*" if vouched else ()
        made = openai.OpenAI(api_key="k", base_url=f"{wire.url}/v1", max_retries=0)
        with install(made, POLICY, safe=safe) as client:
            asking: Any = client.with_options(max_retries=3)
            outer = forbear.retry(on=openai.APIError, attempts=2, backoff=forbear.Constant(0))
            with pytest.raises(getattr(openai, kind)) as caught:
                outer.call(asking.chat.completions.create, **CHAT)
        assert len(wire.seen) == times
    assert forbear.report(caught.value) is not None


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
BROKEN = {
    "chunked": Answer(HEAD + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"id"\r\n', "close"),
    "chunked, nothing": Answer(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", "close"),
    "long": Answer(HEAD + b'Content-Length: 70000\r\n\r\n{"id"', "close"),
    "short": Answer(HEAD + b'Content-Length: 100\r\n\r\n{"id"', "close"),
}
"""Responses to a POST that was executed; their bodies break."""


@pytest.mark.parametrize("name", BROKEN)
def test_a_body_that_breaks_is_no_reason_to_repeat(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The SDK reads the body after the transport returned it; the POST is executed once all the same."""
    monkeypatch.setattr(openai.OpenAI, "_sleep_for_retry", _no_wait)
    with Wire(BROKEN[name]) as wire, virtual_time():
        made = openai.OpenAI(api_key="k", base_url=f"{wire.url}/v1", max_retries=0)
        with install(made, POLICY) as client, pytest.raises(openai.APIConnectionError):
            client.with_options(max_retries=3).chat.completions.create(**CHAT)
        assert len(wire.seen) == 1


@pytest.mark.parametrize("name", BROKEN)
async def test_an_async_body_that_breaks_is_no_reason_to_repeat(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The same for the async SDK."""

    async def no_wait(self: object, **details: object) -> None:
        """Wait for nothing."""

    monkeypatch.setattr(openai.AsyncOpenAI, "_sleep_for_retry", no_wait)
    with Wire(BROKEN[name]) as wire, virtual_time():
        made = openai.AsyncOpenAI(api_key="k", base_url=f"{wire.url}/v1", max_retries=0)
        async with install(made, POLICY) as client:
            with pytest.raises(openai.APIConnectionError):
                await client.with_options(max_retries=3).chat.completions.create(**CHAT)
        assert len(wire.seen) == 1


def _sent(handle: Callable[[httpx.Request], httpx.Response]) -> Callable[..., Any]:
    client = httpx.Client(transport=RetryTransport(POLICY, transport=httpx.MockTransport(handle)))

    def send(count: int | str, url: str = "https://api.example.com/chat", method: str = "POST") -> httpx.Response:
        return client.request(method, url, headers={"x-stainless-retry-count": str(count)})

    return send


@pytest.fixture
def seen() -> list[str]:
    """The counts of the requests that arrived."""
    return []


@pytest.fixture
def send(seen: list[str]) -> Iterator[Callable[..., Any]]:
    """Send a numbered request; every one is lost."""

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["x-stainless-retry-count"])
        raise httpx.ReadError("lost")

    with virtual_time():
        yield _sent(handle)


def test_only_a_repeat_of_the_same_call_is_stopped(send: Callable[..., Any], seen: list[str]) -> None:
    """The first attempt of a call, another URL or method, and a request without a number are sent."""
    for count in (0, 1, 2, 0, 1):
        with pytest.raises(httpx.TransportError):
            send(count)
    assert seen == ["0", "0"]
    for other in ({"url": "https://api.example.com/other"}, {"method": "PATCH"}):
        with pytest.raises(httpx.ReadError):
            send(0)
        with pytest.raises(httpx.ReadError):
            send(1, **other)
    with pytest.raises(httpx.ReadError):
        send("many")
    assert seen == ["0", "0", "0", "1", "0", "1", "many"]


def test_the_error_of_a_stopped_repeat(send: Callable[..., Any]) -> None:
    """It is one of the library, with the report and the note of the request that was given up."""
    with pytest.raises(httpx.ReadError) as first:
        send(0)
    with pytest.raises(httpx.RemoteProtocolError, match=r"was not sent again: .*must not be executed twice") as second:
        send(1)
    assert forbear.report(second.value) == forbear.report(first.value)


def test_a_given_up_response_stops_the_sdk() -> None:
    """A response that forbear gave up has the header that these SDKs obey; other responses stay unchanged."""
    with virtual_time():
        for status, told in ((503, "false"), (404, None), (200, None)):
            send = _sent(lambda request, status=status: httpx.Response(status))  # type: ignore[misc]
            assert send(0).headers.get("x-should-retry") == told
        handle = httpx.MockTransport(lambda request: httpx.Response(503))
        with httpx.Client(transport=RetryTransport(POLICY, transport=handle)) as client:
            assert "x-should-retry" not in client.post("https://api.example.com/").headers


@pytest.mark.anyio
async def test_async_sdks_do_not_repeat_either() -> None:
    """The same in async code."""
    seen = []

    async def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        raise httpx.ReadError("lost")

    transport = AsyncRetryTransport(POLICY, transport=httpx.MockTransport(handle))
    with virtual_time():
        async with httpx.AsyncClient(transport=transport) as client:
            for count in range(3):
                with pytest.raises(httpx.TransportError):
                    await client.post("https://api.example.com/", headers={"x-stainless-retry-count": str(count)})
    assert len(seen) == 1

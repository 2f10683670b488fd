"""Responses that variables of a failed function hold: what it has sent counts, whatever its own error shows."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Any

import aiohttp
import httpx
import pytest
import requests
import urllib3

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.httpx import RetryTransport
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry
from forbear.evidence import read
from forbear.evidence.variables import codes, learn
from forbear.judges.functions import may_repeat
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Wire, reply

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)


class ShopError(Exception):
    """An error of the user's own, which knows no request."""


def by_requests(method: str, url: str) -> None:
    """Send by requests, and fail afterwards."""
    got = requests.request(method, url, timeout=5)
    raise ShopError(got.status_code)


def by_httpx(method: str, url: str) -> None:
    """Send by httpx, and fail in a function that looks at the response."""
    got = httpx.request(method, url)
    refuse(got)


def refuse(response: Any) -> None:
    """Fail with a response that is an argument."""
    raise ShopError(response.status_code)


def by_urllib3(method: str, url: str) -> None:
    """Send by urllib3, and fail with one of Python's own errors."""
    with urllib3.PoolManager(retries=False) as pool:
        got = pool.request(method, url)
    raise KeyError(got.status)


def by_urllib(method: str, url: str) -> None:
    """Send by urllib, and fail afterwards."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method)) as got:
            raise ShopError(got.status)
    except urllib.error.HTTPError as error:
        error.close()
        raise


def by_aiohttp(method: str, url: str) -> None:
    """Send by aiohttp, and fail afterwards."""

    async def send() -> None:
        async with aiohttp.ClientSession() as session, session.request(method, url) as got:
            raise ShopError(await got.text())

    asyncio.run(send())


SENDERS = [by_requests, by_httpx, by_urllib3, by_urllib, by_aiohttp]


def attempts(work: Callable[[str], object], status: int, policy: forbear.Policy = POLICY) -> tuple[int, str]:
    """Return how often a function is called whose requests are answered by a status, and the last note."""
    calls = list[str]()
    with Wire(*[reply(status, b"{}")] * 3) as wire, virtual_time():

        def function() -> None:
            calls.append(wire.url)
            work(f"{wire.url}/orders")

        with pytest.raises(Exception) as caught:  # noqa: PT011 - of the client or the function
            policy.call(function)
    return len(calls), caught.value.__notes__[-1]


@pytest.mark.parametrize("sender", SENDERS, ids=lambda each: str(each.__name__))
@pytest.mark.parametrize(
    ("method", "status", "calls", "text"),
    [
        ("POST", 200, 1, "has been executed"),
        ("POST", 500, 1, "may have been executed"),
        ("POST", 404, 3, "limit of 3 attempts"),
        ("GET", 500, 3, "limit of 3 attempts"),
        ("PUT", 200, 3, "limit of 3 attempts"),
    ],
)
def test_a_response_counts(sender: Callable[[str, str], None], method: str, status: int, calls: int, text: str) -> None:
    """A write that was answered is not sent again after an error of the function's own, unless it was refused."""
    called, note = attempts(partial(sender, method), status)
    assert (called, text in note) == (calls, True), note


def test_the_users_word() -> None:
    """`safe=` covers what a variable shows."""
    with Wire(*[reply(200, b"{}")] * 3) as wire, virtual_time(), pytest.raises(ShopError):
        POLICY.with_changes(safe=f"POST {wire.url}/orders").call(by_httpx, "POST", f"{wire.url}/orders")
    assert len(wire.seen) == 3


def test_a_response_from_outside() -> None:
    """A response that is an argument was not sent in the attempt."""
    counted = list[int]()

    def check(response: Any) -> None:
        counted.append(1)
        refuse(response)

    with Wire(reply(200)) as wire, virtual_time():
        response = httpx.post(wire.url)
        bound = partial(check, response)
        with pytest.raises(ShopError):
            POLICY.call(check, response)
        with pytest.raises(ShopError):
            POLICY.call(bound)
    assert len(counted) == 6


def test_a_request_that_was_answered_and_is_sent_again() -> None:
    """That the second time it was not sent says nothing of the first."""
    with Wire() as nobody:
        pass

    def work(url: str) -> None:
        with httpx.Client() as client:
            request = client.build_request("POST", url)
            got = client.send(request)
            request.url = httpx.URL(nobody.url)
            client.send(request)
            raise ShopError(got)

    assert attempts(work, 200)[0] == 1


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("as_request", [True, False])
def test_a_redirect_of_urllib(method: str, as_request: bool) -> None:
    """A POST that was answered by 303 counts, although the response to the GET after it is what a variable holds."""
    calls = list[int]()
    data = b"order" if method == "POST" else None
    with Wire(*[reply(303, b"", "Location: /done"), reply(200, b"{}")] * 3) as wire, virtual_time():

        def send() -> None:
            with urllib.request.urlopen(wire.url, data=data, timeout=5) as got:
                raise ShopError(got.status)

        def send_request() -> None:
            request = urllib.request.Request(wire.url, data=data, method=method)
            with urllib.request.urlopen(request, timeout=5) as got:
                raise ShopError(got.status)

        def work() -> None:
            calls.append(1)
            send_request() if as_request else send()

        with pytest.raises(ShopError):
            POLICY.call(work)
    assert len(calls) == (3 if method == "GET" and as_request else 1)  # `data=` alone does not say what it sent


def test_a_redirect_of_urllib3() -> None:
    """The POST before a 303 is in the history of the response."""
    calls = list[int]()
    with Wire(*[reply(303, b"", "Location: /done"), reply(200, b"{}")] * 3) as wire, virtual_time():

        def work() -> None:
            calls.append(1)
            with urllib3.PoolManager() as pool:
                got = pool.request("POST", wire.url)
                raise ShopError(got.status)

        with pytest.raises(ShopError):
            POLICY.call(work)
    assert len(calls) == 1


def test_the_users_own_copy_of_the_variables() -> None:
    """A dict of `locals()` that an error keeps is left alone."""

    def work() -> None:
        got = httpx.Response(404, request=httpx.Request("GET", "http://127.0.0.1"))
        error = ShopError(got.status_code)
        error.context = locals()  # type: ignore[attr-defined]
        raise error

    with virtual_time(), pytest.raises(ShopError) as caught:
        POLICY.call(work)
    assert set(caught.value.context) == {"got", "error"}  # type: ignore[attr-defined]


def test_what_is_only_called_a_response() -> None:
    """A variable of a known package that knows no request, such as azure's PipelineResponse, shows nothing."""
    kind = type("PipelineResponse", (), {"__module__": "azure.core.pipeline"})

    def work(_: str) -> None:
        answer = kind()
        raise ShopError(str(answer))

    assert attempts(work, 200)[0] == 3


def test_a_read_proves_nothing() -> None:
    """A read that worked says nothing of what failed: `unknown="stop"` stops all the same."""
    called, note = attempts(partial(by_httpx, "GET"), 200, POLICY.with_changes(unknown="stop"))
    assert (called, "nothing shows" in note) == (1, True)


def _send_by_adapter(name: str, url: str) -> None:
    safe = f"POST {url}"
    if name == "requests":
        with requests.Session() as session:
            session.mount("http://", RetryAdapter(safe=safe))
            got: Any = session.post(url)
            raise ShopError(got)
    if name == "httpx":
        with httpx.Client(transport=RetryTransport(safe=safe)) as client:
            got = client.post(url)
            raise ShopError(got)

    async def send() -> None:
        middlewares = (RetryMiddleware(safe=safe),)
        async with aiohttp.ClientSession(middlewares=middlewares) as session, session.post(url) as got:
            raise ShopError(await got.text())

    asyncio.run(send())


@pytest.mark.parametrize("name", ["requests", "httpx", "aiohttp"])
def test_an_adapter_of_ours_knows_more(name: str) -> None:
    """Its own `safe=` vouches for the request: the response is left to its ledger."""
    assert attempts(partial(_send_by_adapter, name), 200)[0] == 3


def test_a_retry_object_of_urllib3_knows_no_success() -> None:
    """It sees failures only, so a response in a variable counts."""

    def work(url: str) -> None:
        with urllib3.PoolManager(retries=Retry()) as pool:
            got = pool.request("POST", url)
        raise ShopError(got.status)

    assert attempts(work, 200)[0] == 1


SDK = """
def call(verb, url):
    raise LookupError("no answer")
"""


def sdk(name: str) -> Callable[[str, str], None]:
    """Return a function of a package that is installed."""
    names: dict[str, Any] = {"__name__": name}
    exec(compile(SDK, f"/lib/site-packages/{name}.py", "exec"), names)
    call: Callable[[str, str], None] = names["call"]
    return call


@pytest.mark.parametrize(
    ("verb", "repeated"), [("POST", False), ("patch", False), ("PUT", True), ("GET", True), ("", True)]
)
def test_the_words_of_an_sdk(verb: str, repeated: bool) -> None:
    """An SDK that raises an error of its own after a response has the method and the URL as texts."""
    call = sdk("shop_sdk")
    with pytest.raises(LookupError) as caught:
        call(verb, "https://shop.example/orders")
    assert may_repeat(caught.value) is repeated
    evidence = read(caught.value)
    shown = [] if evidence is None else [(each.client, each.resource) for each in evidence.requests]
    assert shown == ([("shop_sdk", "https://shop.example/orders")] if verb in ("POST", "patch", "PUT") else [])


def test_what_is_learnt_of_functions_is_bounded() -> None:
    """The code of functions is kept, so that its id stays its own, but not of more than some thousands."""
    frames = list[Any]()
    for _ in range(6000):
        with pytest.raises(LookupError) as caught:
            sdk("many")("GET", "")
        trace = caught.value.__traceback__
        assert trace is not None
        assert trace.tb_next is not None
        frames.append(trace.tb_next.tb_frame)
        learn(frames[-1])
    assert 0 < len(codes) <= 5000

"""Errors of the user's own after a look at a response, and errors of workers in other processes."""

import asyncio
import concurrent.futures.process
import contextlib
import http.client
import multiprocessing.pool
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx
import pytest
import requests
import urllib3

import forbear
from forbear.clients.httpx import RetryTransport
from forbear.evidence import read
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.evidence.http_clients import send

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
OK, BUSY = reply(200, b"{}"), reply(503, b"{}")
LOST, HALF = Answer(end="close"), reply(200, b"half", length=100, end="close")


class ShopError(Exception):
    """An error of the user's own layer."""

    def __init__(self, *args: object, answer: object = None) -> None:
        super().__init__(*args)
        self.answer = answer


def _by_http_client(method: str, url: str) -> Any:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=5)
    connection.request(method, parts.path)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def _by_urllib3(method: str, url: str) -> Any:
    with urllib3.PoolManager(retries=False) as pool:
        return pool.request(method, url)


def _by_httpx(method: str, url: str) -> Any:
    with httpx.Client(verify=False) as client:
        return client.request(method, url)


SENDERS: dict[str, Callable[[str, str], Any]] = {
    "requests": lambda method, url: requests.request(method, url, timeout=5),
    "httpx": _by_httpx,
    "urllib3": _by_urllib3,
    "http.client": _by_http_client,
}


def _as_argument(response: Any) -> None:
    if response.status_code >= 500:
        raise ShopError("busy", response)


def _as_attribute(response: Any) -> None:
    if response.status_code >= 500:
        raise ShopError(answer=response)


def _as_variable(response: Any) -> None:
    if response.status_code != 200:
        raise RuntimeError("busy")


def _by_assertion(response: Any) -> None:
    assert response.status_code == 200


def _while_handling(response: Any) -> None:
    try:
        if response.status_code != 200:
            raise KeyError("busy")
    except KeyError:
        raise ShopError("busy") from None


def _by_key(response: Any) -> object:
    return response.json()["order"]


Raises = Callable[[Any], Any]
RAISES: list[Raises] = [_as_argument, _as_attribute, _as_variable, _by_assertion, _while_handling, _by_key]


def executed(work: Callable[[str], object], *answers: Answer, policy: forbear.Policy = POLICY) -> int:
    """Run a function of a URL under a policy, and return how often the server executes its request."""
    with Wire(*answers) as wire, virtual_time():
        with contextlib.suppress(Exception):
            policy.call(work, f"{wire.url}/orders")
        return len(wire.seen)


def _look(raises: Raises, client: str, method: str, url: str) -> object:
    return raises(SENDERS[client](method, url))


@pytest.mark.parametrize("raises", RAISES, ids=lambda raises: raises.__name__)
def test_an_error_after_a_look_at_a_response(raises: Raises) -> None:
    """A POST that was answered by an error status is not sent again; reads and absolute writes are."""
    for method, expected in (("POST", 1), ("PATCH", 1), ("GET", 2), ("PUT", 2)):
        answers = (BUSY, reply(200, b'{"order": 1}'))
        assert executed(partial(_look, raises, "requests", method), *answers) == expected


def test_a_response_of_httpx() -> None:
    """Its classes name another module than the one where they are defined."""
    for method, expected in (("POST", 1), ("GET", 2)):
        for raises in (_as_argument, _as_variable):
            assert executed(partial(_look, raises, "httpx", method), BUSY, OK) == expected


@pytest.mark.parametrize("client", ["urllib3", "http.client"])
def test_responses_that_have_a_status(client: str) -> None:
    """The standard library and urllib3 call it `status`."""

    def work(method: str, url: str) -> None:
        response = SENDERS[client](method, url)
        if response.status != 200:
            raise RuntimeError("busy")

    def hold(method: str, url: str) -> None:
        response = SENDERS[client](method, url)
        if response.status != 200:
            raise ShopError(answer=response)

    for function in (work, hold):
        for method, expected in (("POST", 1), ("GET", 2)):
            assert executed(partial(function, method), BUSY, OK) == expected


def test_a_response_of_aiohttp() -> None:
    """The variable of a coroutine counts, too."""

    async def work(url: str, method: str) -> None:
        async with aiohttp.ClientSession() as session, session.request(method, url) as response:
            if not response.ok:
                raise RuntimeError("busy")

    for method, expected in (("POST", 1), ("GET", 2)):
        with Wire(BUSY, OK) as wire, virtual_time():
            with contextlib.suppress(RuntimeError):
                asyncio.run(POLICY.acall(work, wire.url, method))
            assert len(wire.seen) == expected


def test_a_status_by_which_nothing_was_executed() -> None:
    """After a 404 the request is sent again, as after a status that an Api names; after a success it is not."""

    def work(url: str) -> None:
        response = requests.post(url, timeout=5)
        if response.status_code != 201:
            raise RuntimeError("not created")

    assert executed(work, reply(404), reply(201)) == 2
    assert executed(work, reply(202), reply(201)) == 1
    with Wire(BUSY, reply(201)) as wire, virtual_time():
        POLICY.with_changes(apis=[forbear.Api(wire.url, not_executed=[503])]).call(work, wire.url)
        assert len(wire.seen) == 2


def test_a_response_of_an_adapter() -> None:
    """The adapter has judged the request already, by its own `safe=`."""

    def work(client: httpx.Client, url: str) -> None:
        response = client.post(url)
        if response.status_code != 200:
            raise RuntimeError("busy")

    with Wire(reply(500)) as wire, virtual_time():
        transport = RetryTransport(attempts=2, safe=[f"POST {wire.url}/"], transport=httpx.HTTPTransport(verify=False))
        with httpx.Client(transport=transport) as client, pytest.raises(RuntimeError):
            POLICY.with_changes(attempts=2).call(work, client, f"{wire.url}/")
        assert len(wire.seen) == 4


def test_what_the_variables_prove_is_no_more_than_a_stop() -> None:
    """With `unknown="stop"` a read that stands in a variable does not let a function be repeated."""

    def work(url: str) -> None:
        response = requests.get(url, timeout=5)
        if response.status_code != 200:
            raise RuntimeError("busy")

    assert executed(work, BUSY, OK, policy=POLICY.with_changes(unknown="stop")) == 1


def test_a_response_that_cannot_be_read() -> None:
    """It is a request all the same."""
    response = httpx.Response(500)
    response._request = httpx.Request("POST", "http://shop.example/")
    response.history = 1  # type: ignore[assignment]
    evidence = read(ShopError(answer=response))
    assert evidence is not None
    assert [sent.unread for sent in evidence.requests] == ["TypeError in its reader"]


POOLS: list[Any] = [
    concurrent.futures.process._ExceptionWithTraceback,
    multiprocessing.pool.ExceptionWithTraceback,  # type: ignore[attr-defined]
]


def through_a_pool(work: Callable[[str], object], pool: Any) -> Callable[[str], object]:
    """Return a function that raises the error of another one as a pool of processes does, by pickle."""

    def call(url: str) -> object:
        try:
            return work(url)
        except Exception as error:
            packed = pickle.dumps(pool(error, error.__traceback__))
        raised: Exception = pickle.loads(packed)
        raise raised

    return call


@pytest.mark.parametrize("pool", POOLS, ids=["executor", "pool"])
@pytest.mark.parametrize("client", ["requests", "httpx", "urllib3", "urllib", "http.client"])
def test_an_error_of_a_worker(client: str, pool: Any) -> None:
    """The frames are lost. What the error keeps counts, or else a client in its text is enough."""
    for fault in (LOST, HALF):
        assert executed(through_a_pool(lambda url: send(client, "POST", url), pool), fault, OK) == 1
    assert executed(through_a_pool(int, pool), OK) == 0
    if client in ("requests", "httpx"):
        assert executed(through_a_pool(lambda url: send(client, "GET", url), pool), LOST, OK) == 2


def test_a_redirect_in_a_worker() -> None:
    """The POST before it is not in the error; the note says what to do."""
    work = through_a_pool(lambda url: requests.post(url, timeout=5), POOLS[0])
    with Wire(reply(303, b"", "Location: /done"), LOST) as wire, virtual_time():
        with pytest.raises(requests.ConnectionError) as caught:
            POLICY.call(work, wire.url)
        assert [seen.method for seen in wire.seen] == ["POST", "GET"]
    assert "a request of requests could not be read" in str(caught.value.__notes__)
    assert "decorate the function that runs in the other process" in str(caught.value.__notes__)


def test_an_error_of_a_worker_without_a_client() -> None:
    """A text that names no file of a client shows nothing."""
    calls = list[int]()

    def work(url: str) -> None:
        calls.append(1)
        raise ShopError(f'File "/app/http/client_of_ours.py", line 1, in getresponse {url}')

    with virtual_time(), contextlib.suppress(ShopError):
        POLICY.call(through_a_pool(work, POOLS[0]), "x")
    assert len(calls) == 3

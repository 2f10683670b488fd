"""Facts in the errors of HTTP clients: method, URL, whether the request was sent, and the redirects before it."""

import http.client
import socket
import threading
import urllib.request
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import aiohttp
import httpx
import pytest
import requests
import urllib3
from aiohttp.abc import AbstractResolver
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection

from forbear.evidence import read
from forbear.evidence.sent import Sent
from forbear.evidence.walk import Evidence
from forbear.http.request import Request
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.evidence.http_clients import NAMES, send

LOST = Answer(end="close")
ALL = pytest.mark.parametrize("client", NAMES)
REDIRECTED = [name for name in NAMES if name != "http.client"]  # it follows no redirects
WITH_HISTORY = [name for name in REDIRECTED if name != "urllib"]  # its response does not know the redirects
METHODS = pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])


def shown(client: str, method: str, url: str) -> Evidence:
    """Return the evidence of the error that the client raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any client's error
        send(client, method, url)
    evidence = read(caught.value)
    assert evidence is not None
    return evidence


def url_of(sent: Sent) -> str:
    """Return the URL, "" if it could not be read."""
    return sent.subject.resource if isinstance(sent.subject, Request) else ""


@ALL
@METHODS
def test_a_lost_response(client: str, method: str) -> None:
    """The error shows one request, that may have been executed; http.client keeps no URL."""
    with Wire(LOST) as wire:
        (sent,) = shown(client, method, f"{wire.url}/orders/7").requests
        assert (sent.method, bool(sent.unsent), sent.hop) == (method, False, False)
        assert url_of(sent) == ("" if client == "http.client" else f"{wire.url}/orders/7")


TIMED: dict[str, Callable[[str], object]] = {
    "httpx": lambda url: httpx.post(url, timeout=0.1),
    "requests": lambda url: requests.post(url, timeout=0.1),
    "urllib3": lambda url: urllib3.PoolManager().request("POST", url, timeout=0.1, retries=False),
    "urllib": lambda url: urllib.request.urlopen(url, b"", timeout=0.1),
}


@pytest.mark.parametrize("client", TIMED)
def test_a_response_that_takes_too_long(client: str) -> None:
    """The error below that of the client shows no second request."""
    with Wire(Answer(end="stall")) as wire:
        with pytest.raises(Exception, match=r".*") as caught:
            TIMED[client](f"{wire.url}/orders")
        evidence = read(caught.value)
        assert evidence is not None
        assert [(sent.method, url_of(sent), bool(sent.unsent)) for sent in evidence.requests] == [
            ("POST", f"{wire.url}/orders", False)
        ]


@ALL
def test_a_refused_connection(client: str) -> None:
    """The request is proven not to be sent."""
    with Wire(LOST) as wire:
        pass
    (sent,) = shown(client, "POST", f"{wire.url}/orders").requests
    assert (sent.method, sent.unsent) == ("POST", True)


@ALL
def test_a_body_that_breaks(client: str) -> None:
    """The response had begun, so the request was sent."""
    with Wire(reply(200, b"half", length=100, end="close")) as wire:
        (sent,) = shown(client, "POST", f"{wire.url}/orders").requests
        assert (sent.method, bool(sent.unsent)) == ("POST", False)
        assert url_of(sent) == ("" if client == "http.client" else f"{wire.url}/orders")


PARSED: dict[str, Callable[[str], object]] = {
    "httpx": lambda url: httpx.post(url).json(),
    "requests": lambda url: requests.post(url, timeout=20).json(),
    "urllib3": lambda url: urllib3.request("POST", url).json(),
}


@pytest.mark.parametrize("client", PARSED)
def test_a_body_that_is_no_json(client: str) -> None:
    """The request was executed, although the client cannot read the answer of whoever stands between."""
    with Wire(reply(200, b"<html>", end="close")) as wire:
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - each client's own
            PARSED[client](f"{wire.url}/orders")
        evidence = read(caught.value)
        assert evidence is not None
        assert [(sent.method, bool(sent.unsent), url_of(sent)) for sent in evidence.requests] == [
            ("POST", False, f"{wire.url}/orders")
        ]


@pytest.mark.parametrize("client", REDIRECTED)
def test_e1_a_redirect_hides_the_post(client: str) -> None:
    """E1: a POST is answered by 303 and the GET after it is lost; the error has only the GET, but both count."""
    with Wire(reply(303, b"", "Location: /receipt"), LOST) as wire:
        found = shown(client, "POST", f"{wire.url}/orders").requests
        assert {(sent.method, sent.hop) for sent in found} == {("POST", True), ("GET", False)}


@pytest.mark.parametrize("client", WITH_HISTORY)
def test_a_body_that_breaks_after_a_redirect(client: str) -> None:
    """The POST stands in the history of the response, and counts with the GET."""
    with Wire(reply(303, b"", "Location: /receipt"), reply(200, b"half", length=100, end="close")) as wire:
        found = shown(client, "POST", f"{wire.url}/orders").requests
        assert {sent.hop for sent in found} == {True, False}
        assert "POST" in {sent.method for sent in found if sent.hop} | {sent.method for sent in found if sent.unread}


@pytest.mark.parametrize("client", [name for name in NAMES if name not in ("http.client", "urllib3")])
def test_an_error_status(client: str) -> None:
    """An error made of a response shows its request."""
    with Wire(reply(503, b"")) as wire:
        (sent,) = shown(client, "POST", f"{wire.url}/orders").requests
        assert (sent.method, url_of(sent), bool(sent.unsent)) == ("POST", f"{wire.url}/orders", False)


def _of_httpx(url: str, headers: list[tuple[str, str]]) -> Exception:
    return httpx.ReadError("lost", request=httpx.Request("PUT", url, headers=headers))


def _of_requests(url: str, headers: list[tuple[str, str]]) -> Exception:
    request = requests.Request("PUT", url, headers={name: value.encode("latin-1") for name, value in headers})
    return requests.ConnectionError("lost", request=request.prepare())


PLACES = [
    ("https://user:secret@shop.example:8443/a%20b?x=1&y=%2F#end", ("https", "shop.example", 8443), "/a%20b?x=1&y=%2F"),
    ("http://[::1]/orders?", ("http", "::1", 80), "/orders"),
    ("http://[::1]:8080/?a", ("http", "::1", 8080), "/?a"),
    ("https://Shop.Example", ("https", "shop.example", 443), "/"),
]


@pytest.mark.parametrize("make", [_of_httpx, _of_requests], ids=["httpx", "requests"])
@pytest.mark.parametrize(("url", "origin", "target"), PLACES, ids=range(len(PLACES)))
def test_the_parts_of_a_request(
    make: Callable[[str, list[tuple[str, str]]], Exception], url: str, origin: tuple[str, str, int], target: str
) -> None:
    """Origin, target and headers are those of the request, without its user."""
    evidence = read(make(url, [("If-Match", '"1"'), ("X-HTTP-Method-Override", "POST")]))
    assert evidence is not None
    request: Request = evidence.requests[0].subject
    assert (request.origin, request.target.removesuffix("?")) == (origin, target)
    assert (request.body, request.headers["if-match"]) == (b"", '"1"')
    assert request.headers["x-http-method-override"] == "POST"


def test_headers_that_stand_there_twice() -> None:
    """All lines of a header count, and a URL without a host is not read."""
    twice, bare = _of_httpx("https://shop.example/1", [("If-Match", '"1"'), ("if-match", "*")]), _of_httpx("/1", [])
    found = [evidence.requests[0] for error in (twice, bare) if (evidence := read(error))]
    assert found[0].subject.headers["if-match"] == '"1", *'
    assert [sent.unread for sent in found] == [None, "its URL is not known"]


def _by_httpx(url: str) -> Callable[[], object]:
    return partial(httpx.Client(timeout=20).send, httpx.Request("POST", url, content=b"x"))


def _by_requests(url: str) -> Callable[[], object]:
    return partial(requests.Session().send, requests.Request("POST", url, data=b"x").prepare(), timeout=20)


def _by_urllib(url: str) -> Callable[[], object]:
    return partial(urllib.request.urlopen, urllib.request.Request(url, data=b"x"), timeout=20)


def _fail_twice(first: Callable[[], object], later: Callable[[], object]) -> Evidence:
    """Return the evidence of the error of `later`, which is called while that of `first` is handled."""

    def fail() -> None:
        try:
            first()
        except Exception:
            later()

    with pytest.raises(Exception) as caught:  # noqa: PT011 - any client's error
        fail()
    evidence = read(caught.value)
    assert evidence is not None
    return evidence


@pytest.mark.parametrize("lost_first", [True, False])
@pytest.mark.parametrize("make", [_by_httpx, _by_requests, _by_urllib], ids=["httpx", "requests", "urllib"])
def test_l6_a_request_object_that_is_sent_twice(make: Callable[[str], Callable[[], object]], lost_first: bool) -> None:
    """L6: one try was refused and the other was lost, of the same object: nothing proves that it was not executed."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        send_it = make(f"http://127.0.0.1:{server.getsockname()[1]}/orders")

        def lose_one() -> None:
            connection, _ = server.accept()
            if lost_first:
                server.close()
            with connection:
                connection.recv(4096)

        losing = threading.Thread(target=lose_one)

        def listen() -> None:
            server.listen()
            losing.start()

        if lost_first:
            listen()

        def send_it_again() -> None:
            if lost_first:
                losing.join()
            else:
                listen()
            send_it()

        evidence = _fail_twice(send_it, send_it_again)
        losing.join()
    assert [(sent.method, sent.unsent) for sent in evidence.requests] == [("POST", False)]


def test_l6_a_connection_that_has_sent_another_request() -> None:
    """L6: http.client lost the response of a POST, and a GET over the same object was lost, too; both count."""
    with Wire(LOST) as wire:
        connection = http.client.HTTPConnection(wire.url.removeprefix("http://"), timeout=20)

        def lose(method: str) -> None:
            connection.request(method, "/orders", body=b"x")
            connection.getresponse()

        evidence = _fail_twice(partial(lose, "POST"), partial(lose, "GET"))
    assert [(sent.method, bool(sent.unsent)) for sent in evidence.requests] == [("GET", False), ("POST", False)]


def test_l6_a_try_of_urllib3_that_was_refused_after_one_that_was_lost() -> None:
    """L6: urllib3 itself sent a POST again; the tries are one request, of which the first may have been executed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/orders"

        def lose_one() -> None:
            connection, _ = server.accept()
            server.close()
            with connection:
                connection.recv(4096)

        losing = threading.Thread(target=lose_one)
        losing.start()
        retries = urllib3.Retry(1, allowed_methods=None)
        with urllib3.PoolManager(retries=retries) as pool, pytest.raises(urllib3.exceptions.MaxRetryError) as caught:
            pool.request("POST", url, body=b"x", timeout=20)
        losing.join()
    evidence = read(caught.value)
    assert evidence is not None
    assert (evidence.requests[0].method, evidence.requests[0].unsent) == ("POST", False)
    assert {sent.method for sent in evidence.requests} == {"POST"}


BARE = pytest.mark.skipif(
    not issubclass(HTTPConnection, http.client.HTTPConnection), reason="urllib3-future has connections of its own"
)


def _post_alone(url: str) -> None:
    """Send a POST over a connection of urllib3 that no pool has."""
    with closing(HTTPConnection("127.0.0.1", int(url.strip("/").rpartition(":")[2]))) as connection:
        connection.request("POST", "/audit", body=b"x")
        connection.getresponse()


class _Audited(urllib3.HTTPConnectionPool):
    """A pool that sends a message before each request."""

    def _make_request(self, *args: Any, **options: Any) -> Any:
        _post_alone(f"http://{self.host}:{self.port}")
        return super()._make_request(*args, **options)


class _PostsInstead(HTTPAdapter):
    """An adapter that sends another request than its session has, and keeps it secret."""

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        try:
            return super().send(requests.Request("POST", f"{request.url}audit").prepare(), *args, **options)
        except requests.RequestException as error:
            error.request = None
            raise


def _get_with_hook(url: str) -> object:
    def notify(response: requests.Response, **_: object) -> None:
        response.close()
        _post_alone(url)

    return requests.get(url, hooks={"response": notify}, timeout=20)


def _get_by_pool(url: str) -> object:
    with _Audited("127.0.0.1", int(url.rpartition(":")[2]), retries=False) as pool:
        return pool.urlopen("GET", "/orders")


def _get_by_adapter(url: str) -> object:
    with requests.Session() as session:
        session.mount(url, _PostsInstead())
        return session.get(url, timeout=20)


@pytest.mark.parametrize(
    ("fetch", "answers"),
    [
        pytest.param(_get_with_hook, (reply(200), LOST), marks=BARE, id="hook"),
        pytest.param(_get_by_pool, (LOST,), marks=BARE, id="pool"),
        pytest.param(_get_by_adapter, (LOST,), id="adapter"),
    ],
)
def test_l6_a_read_hides_no_message_that_is_sent_within_it(fetch: Callable[[str], object], answers: Any) -> None:
    """L6: what a client's own functions send below a GET is that GET, but nothing that code of the user sends there."""
    with Wire(*answers) as wire:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - each client has its own
            fetch(wire.url)
        assert wire.seen[-1].method == "POST"
    evidence = read(caught.value)
    assert evidence is not None
    assert {sent.method for sent in evidence.requests} == {"GET", "POST"}


class _RefusedLater(AbstractResolver):
    """The address of a server, and from the second time on one where nobody listens."""

    def __init__(self, *ports: int) -> None:
        self._ports = list(ports)

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> Any:
        number = self._ports.pop(0)
        return [{"hostname": host, "host": "127.0.0.1", "port": number, "family": family, "proto": 0, "flags": 0}]

    async def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(("method", "tries"), [("PUT", 2), ("POST", 1)])
async def test_aiohttp_has_tried_before(method: str, tries: int) -> None:
    """aiohttp itself sent a PUT again, and was refused then: the first try may have been executed."""
    with Wire(LOST) as gone:
        pass
    closed = int(gone.url.rpartition(":")[2])
    with Wire(Answer(end="reset")) as wire:
        ports = (int(wire.url.rpartition(":")[2]), closed)[2 - tries :]
        connector = aiohttp.TCPConnector(resolver=_RefusedLater(*ports), use_dns_cache=False)
        async with aiohttp.ClientSession(connector=connector) as session:
            with pytest.raises(aiohttp.ClientConnectorError) as caught:
                await session.request(method, "http://orders.test/7", data=b"x")
        assert len(wire.seen) == tries - 1
    evidence = read(caught.value)
    assert evidence is not None
    assert [bool(sent.unsent) for sent in evidence.requests] == [tries == 1]

"""Responses that are cut off while the function reads them: the server has executed the request."""

import asyncio
import contextlib
import http.client
import itertools
import json
import urllib.request
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import httpx
import pytest
import requests
import urllib3

import forbear
from forbear.testing import virtual_time
from forbear_testkit.clients import aws
from forbear_testkit.clients.wire import Answer, Wire, reply

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
OK = reply(200, b"{}")
SEE_OTHER = reply(303, b"", "Location: /done")
HALF = reply(200, b"half", length=100, end="close")
CHUNKED = Answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", end="close")
GARBLED = reply(200, b"no gzip", "Content-Encoding: gzip")
FAULTS = {
    "half": (HALF, OK),
    "chunked": (CHUNKED, OK),
    "garbled": (GARBLED, OK),
    "redirected": (SEE_OTHER, HALF, SEE_OTHER, OK),
}


def _body(method: str) -> bytes | None:
    return None if method == "GET" else b"x"


def _urllib3(read: Callable[[Any], object], method: str, url: str) -> None:
    with urllib3.PoolManager(retries=False) as pool:
        read(pool.request(method, url, body=_body(method), preload_content=False, redirect=False))


def _requests(read: Callable[[Any], object], method: str, url: str) -> None:
    with requests.Session() as session, session.request(method, url, data=_body(method), stream=True) as response:
        read(response)


def _httpx(read: Callable[[Any], object], method: str, url: str) -> None:
    with (
        httpx.Client(verify=False, follow_redirects=True) as client,
        client.stream(method, url, content=_body(method)) as response,
    ):
        read(response)


def _aiohttp(read: Callable[[Any], AsyncIterator[object]], method: str, url: str) -> None:
    async def send() -> None:
        async with aiohttp.ClientSession() as session, session.request(method, url, data=_body(method)) as response:
            async for _ in read(response.content):
                pass

    asyncio.run(send())


def _urllib(read: Callable[[Any], object], method: str, url: str) -> None:
    request = urllib.request.Request(url, data=_body(method), method=method)
    with urllib.request.urlopen(request, timeout=5) as response:
        read(response)


def _urlopen(read: Callable[[Any], object], method: str, url: str) -> None:
    if method == "GET":
        _urllib(read, method, url)
    else:
        with urllib.request.urlopen(url, data=b"x", timeout=5) as response:
            read(response)


def _urlretrieve(read: Callable[[Any], object], method: str, url: str) -> None:
    path, _ = urllib.request.urlretrieve(url, data=_body(method))
    Path(path).unlink()


def _http_client(read: Callable[[Any], object], method: str, url: str) -> None:
    parts = urlsplit(url)
    with contextlib.closing(http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=5)) as connection:
        connection.request(method, parts.path, _body(method))
        read(connection.getresponse())


READS: dict[Callable[..., None], dict[str, Callable[[Any], Any]]] = {
    _urllib3: {
        "read": lambda response: response.read(),
        "read1": lambda response: [response.read1() for _ in range(3)],
        "stream": lambda response: list(response.stream(2)),
        "json": lambda response: response.json(),
        "readinto": lambda response: response.readinto(bytearray(200)),
    },
    _requests: {
        "content": lambda response: response.content,
        "iter_content": lambda response: list(response.iter_content(2)),
        "iter_lines": lambda response: list(response.iter_lines()),
        "json": lambda response: response.json(),
        "raw": lambda response: response.raw.read(decode_content=True),
    },
    _httpx: {
        "read": lambda response: response.read(),
        "iter_bytes": lambda response: list(response.iter_bytes(2)),
        "iter_lines": lambda response: list(response.iter_lines()),
    },
    _aiohttp: {
        "iter_chunked": lambda content: content.iter_chunked(10),
        "iter_chunks": lambda content: content.iter_chunks(),
        "lines": lambda content: content,
    },
    _urllib: {"read": lambda response: response.read(), "json": json.load},
    _urlopen: {"read": lambda response: response.read()},
    _urlretrieve: {"": lambda response: response},
    _http_client: {"read": lambda response: response.read()},
}


class Case(NamedTuple):
    """A client, how the function reads the response, and how that is cut off."""

    send: Callable[..., None]
    read: str
    fault: str


def _is_raised(case: Case) -> bool:
    """Return whether the client raises an error; the standard library does not decode."""
    of_python = case.send in (_urllib, _urlopen, _urlretrieve, _http_client)
    if case.fault == "redirected":
        return case.send not in (_http_client, _urllib3)
    if case.send is _urlretrieve:
        return case.fault == "half"
    if case.send is _urllib3 and case.read in ("read1", "json"):
        return case.fault == "garbled"
    return not (of_python and case.fault == "garbled")


ALL = [Case(send, *each) for send in READS for each in itertools.product(READS[send], FAULTS)]
CASES = list(filter(_is_raised, ALL))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.send.__name__}-{case.read}-{case.fault}")
def test_a_response_that_is_cut_off(case: Case) -> None:
    """A read is sent again; a POST is not, however the function reads, also if a redirect made a read of it."""
    for method, executed in (("POST", 1), ("GET", 2)):
        with Wire(*FAULTS[case.fault]) as wire, virtual_time():
            with contextlib.suppress(Exception):
                POLICY.call(case.send, READS[case.send][case.read], method, f"{wire.url}/orders")
            assert [seen.method for seen in wire.seen if seen.target == "/orders"] == [method] * executed


LAMBDA: dict[str, Callable[[Any], object]] = {
    "read": lambda body: body.read(),
    "iter_chunks": lambda body: list(body.iter_chunks(2)),
    "iter_lines": lambda body: list(body.iter_lines()),
    "readinto": lambda body: [body.readinto(bytearray(200)), body.readinto(bytearray(200))],
}


def _invoke(client: Any, read: Callable[[Any], object]) -> None:
    read(client.invoke(FunctionName="f")["Payload"])


@pytest.mark.parametrize("fault", ["half", "chunked"])
def test_a_function_of_lambda_whose_answer_is_cut_off(fault: str) -> None:
    """Botocore counts the bytes of a stream itself, in frames of its own."""
    with Wire(FAULTS[fault][0]) as wire, virtual_time():
        client = aws.client("lambda", wire.url, attempts=1)
        for name, read in LAMBDA.items():
            wire.seen.clear()
            with pytest.raises(Exception) as caught:  # noqa: PT011 - several
                POLICY.call(partial(_invoke, client, read))
            assert (name, len(wire.seen)) == (name, 1)
            assert "[unsafe]" in str(caught.value.__notes__)
        aws.close_all()


def test_a_stream_whose_response_is_no_variable() -> None:
    """Nobody knows what it belongs to, so it is read once."""

    async def get(url: str) -> None:
        async with aiohttp.ClientSession() as session:
            content = (await session.get(url)).content
            async for _ in content.iter_chunked(2):
                pass

    with Wire(HALF) as wire, virtual_time():
        with pytest.raises(aiohttp.ClientPayloadError):
            asyncio.run(POLICY.acall(get, wire.url))
        assert len(wire.seen) == 1


def test_a_wrapper_of_urlopen_that_may_have_sent_a_message() -> None:
    """A response of urllib does not know the request before a redirect, so words of the caller have to do."""

    def call(url: str, body: bytes | None) -> bytes:
        with urllib.request.urlopen(url, data=body, timeout=5) as response:
            found: bytes = response.read()
        return found

    with Wire(HALF) as wire, virtual_time():
        with pytest.raises(http.client.IncompleteRead):
            POLICY.call(call, wire.url, None)
        assert len(wire.seen) == 1

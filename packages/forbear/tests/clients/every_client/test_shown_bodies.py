"""`on_result` may look at the body of a response: it is read before, up to 1 MiB, and the caller reads it, too."""

import gzip
import json
from typing import Any

import pytest

import forbear
from forbear.exchange.http import responses
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.others import EVERY
from forbear_testkit.clients.wire import Answer, Wire, reply

PENDING, DONE = b'{"status": "pending"}', b'{"status": "done"}'
JSON = "Content-Type: application/json"


def sent(body: bytes, *, chunked: bool) -> Answer:
    """Return an answer with this body, in chunks or with its length."""
    if not chunked:
        return reply(200, body, JSON)
    head = f"HTTP/1.1 200 OK\r\n{JSON}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    pieces = [body[start : start + 15] for start in range(0, len(body), 15)]
    return Answer(head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*pieces, b"")))


def body_of(response: Any) -> Any:
    """Return the body of a response that was read: each client has its own way."""
    content = response.content
    return content.read_nowait() if hasattr(content, "read_nowait") else content


def is_pending(response: Any) -> bool:
    """Return whether the job goes on, by the response's JSON."""
    if hasattr(response.content, "read_nowait"):
        return bool(json.loads(response.content.read_nowait())["status"] == "pending")
    return bool(response.json()["status"] == "pending")


POLLING = forbear.retry(on=forbear.transient, on_result=is_pending, backoff=forbear.Constant(1))


@EVERY
@pytest.mark.parametrize("form", ["length", "chunked", "gzip"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_policy_can_poll_by_the_body(flavour: Flavour, method: str, form: str) -> None:
    """A policy polls by the body, and the caller gets the last one."""

    def answer(body: bytes) -> Answer:
        if form == "gzip":
            return reply(200, gzip.compress(body), JSON, "Content-Encoding: gzip")
        return sent(body, chunked=form == "chunked")

    with Wire(answer(PENDING), answer(DONE)) as wire:
        policy = POLLING.with_on_result(
            lambda response: forbear.verdicts.NOT_EXECUTED if is_pending(response) else False
        )
        result = flavour.call(flavour.transport(policy), method, wire.url)
        assert (result.error, result.content, len(wire.seen)) == (None, DONE, 2)


@EVERY
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_read_in_pieces(flavour: Flavour, chunked: bool) -> None:
    """A caller that streams gets all of it, although `on_result` has read it."""
    with Wire(sent(DONE, chunked=chunked)) as wire:
        result = flavour.call(flavour.transport(POLLING), "GET", wire.url, stop_after=1000)
        assert (result.error, result.content) == (None, DONE)


@EVERY
@pytest.mark.parametrize("form", ["length", "chunked", "gzip"])
@pytest.mark.parametrize("stop_after", [None, 10_000])
def test_a_long_body(flavour: Flavour, form: str, stop_after: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read before, nor is one that unpacks to a long one; the caller gets all of it."""
    for module in ("forbear.clients._httpx.port", "forbear.exchange.http.port"):
        monkeypatch.setattr(f"{module}.SHOWN", 100)
    monkeypatch.setattr(responses, "SHOWN", 100)
    body = b"0123456789" * 300
    policy = POLLING.with_on_result(lambda response: False)
    packed = reply(200, gzip.compress(body), "Content-Encoding: gzip")
    with Wire(packed if form == "gzip" else sent(body, chunked=form == "chunked")) as wire:
        result = flavour.call(flavour.transport(policy), "GET", wire.url, stop_after=stop_after)
        assert result.error is None
        coded = form == "gzip" and stop_after is not None and "httpx" in flavour.name  # whose raw bytes are read
        assert (gzip.decompress(result.content) if coded else result.content) == body


@EVERY
def test_a_body_that_breaks(flavour: Flavour) -> None:
    """It breaks before `on_result` is called, so the request is made again."""
    with Wire(reply(200, b'{"sta', JSON, length=18, end="close"), reply(200, DONE, JSON)) as wire:
        policy = forbear.retry(on=flavour.library.TransportError, on_result=is_pending)
        result = flavour.call(flavour.transport(policy), "GET", wire.url)
        assert (result.error, result.content, len(wire.seen)) == (None, DONE, 2)


@EVERY
def test_the_body_of_an_error(flavour: Flavour) -> None:
    """A verdict of `on_result` counts on an error, too, by what its body says."""
    policy = POLLING.with_on_result(
        lambda response: forbear.verdicts.NOT_EXECUTED if body_of(response) == b"full" else forbear.verdicts.PERMANENT
    )
    with Wire(reply(400, b"full"), reply(400, b"wrong")) as wire:
        result = flavour.call(flavour.transport(policy), "POST", wire.url, content=b"x")
        assert (result.status, result.content, len(wire.seen)) == (400, b"wrong", 2)


@EVERY
def test_events_are_not_read_before(flavour: Flavour) -> None:
    """They may go on for ever, so `on_result` sees no more than the head."""
    seen: list[str] = []

    def judge(response: Any) -> bool:
        seen.append(response.headers["content-type"])
        return False

    policy = POLLING.with_on_result(judge)
    with Wire(reply(200, b"data: 1\n\n", "Content-Type: text/event-stream")) as wire:
        result = flavour.call(flavour.transport(policy), "GET", wire.url, stop_after=1000)
        assert (result.error, result.content, seen) == (None, b"data: 1\n\n", ["text/event-stream"])

"""Keys that adapters add (`IdempotencyKey(add=True)`) in a function: the next attempt sends the same one (K1 to K3)."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
import requests

import forbear
from forbear.clients.httpx import AsyncRetryTransport, RetryTransport
from forbear.clients.requests import RetryAdapter
from forbear.run import harm, keys, ledger
from forbear.run.keys import RepeatRefused
from forbear.run.open_runs import run_keys
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Seen, Wire, reply
from forbear_testkit.run.budgets import ClosedAtFirst

LOST, OK = Answer(end="close"), reply(200, b"{}")
POLICY = forbear.retry(on=Exception, attempts=2, timeout=None, retry_exhausted=True)
Post = Callable[..., object]


_OPEN = ExitStack()


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the clients that a test has opened."""
    with _OPEN:
        yield


class Broken(Exception):
    """The error of a function."""


def options(wire: Wire, *, hours: float | None = None, add: bool = True, **more: Any) -> dict[str, Any]:
    """Return the options of an adapter that makes one attempt, and adds keys for the server."""
    key = forbear.IdempotencyKey("Idempotency-Key", hours=hours, add=add)
    return {"attempts": 1, "apis": [forbear.Api(wire.url, key=key)], **more}


def with_httpx(wire: Wire, **more: Any) -> Post:
    """Return a function that posts by httpx, and hides the loss of the response."""
    transport = RetryTransport(transport=httpx.HTTPTransport(verify=False), **options(wire, **more))
    client = _OPEN.enter_context(httpx.Client(transport=transport))

    def post(body: str = "", **rest: Any) -> None:
        try:
            client.post(f"{wire.url}/charges", content=body or None, **rest)
        except httpx.TransportError:
            raise Broken from None

    return post


def with_requests(wire: Wire, **more: Any) -> Post:
    """Return a function that posts by requests."""
    session = _OPEN.enter_context(requests.Session())
    session.mount("http://", RetryAdapter(**options(wire, **more)))

    def post(body: str = "", **rest: Any) -> None:
        try:
            session.post(f"{wire.url}/charges", data=body or None, timeout=5, **rest)
        except requests.ConnectionError:
            raise Broken from None

    return post


def key_of(seen: Seen) -> str | None:
    """Return the key of a request."""
    return seen.header("idempotency-key")


def keys_by_body(wire: Wire) -> dict[bytes, set[str | None]]:
    """Return the keys with which each body came."""
    found: dict[bytes, set[str | None]] = {}
    for seen in wire.seen:
        found.setdefault(seen.body, set()).add(key_of(seen))
    return found


def in_turn(*attempts: list[str]) -> Callable[[Post], object]:
    """Return work that posts these bodies, a list for each attempt; the loss of one ends the attempt at its end."""
    left = list(attempts)

    def work(post: Post) -> None:
        broken = False
        for body in left.pop(0):
            try:
                post(body)
            except Broken:
                broken = True
        if broken or left:
            raise Broken

    return work


@pytest.mark.parametrize("make", [with_httpx, with_requests])
def test_the_next_attempt_sends_the_same_key(make: Callable[..., Post]) -> None:
    """A charge whose response was lost is sent again with its key; the next run has another one."""
    with Wire(LOST, OK) as wire, virtual_time():
        post = make(wire)
        POLICY.call(in_turn(["a"], ["a"]), post)
        assert len({key_of(seen) for seen in wire.seen}) == 1
        POLICY.call(post, "a")
        assert len({key_of(seen) for seen in wire.seen}) == 2


def test_k1_another_order() -> None:
    """K1: a request is found by what it is, and by how many equal ones were sent before it, not by its position."""
    with Wire(LOST, LOST, LOST, OK) as wire, virtual_time():
        POLICY.call(in_turn(["a", "b", "b"], ["b", "a", "b"]), with_httpx(wire))
        assert len(wire.seen) == 6
        keys = keys_by_body(wire)
        assert len(keys[b"a"]) == 1
        assert len(keys[b"b"]) == 2
        assert not keys[b"a"] & keys[b"b"]


def test_k1_in_tasks() -> None:
    """K1: tasks that come in any order have the keys of their requests."""

    async def main(wire: Wire) -> None:
        transport = AsyncRetryTransport(transport=httpx.AsyncHTTPTransport(verify=False), **options(wire))
        async with httpx.AsyncClient(transport=transport) as client:
            turns = [["a", "b"], ["b", "a"]]

            async def work() -> None:
                posts = [client.post(f"{wire.url}/charges", content=body) for body in turns.pop(0)]
                results = await asyncio.gather(*posts, return_exceptions=True)
                if any(isinstance(result, Exception) for result in results):
                    raise Broken

            await POLICY(work)()

    with Wire(LOST, LOST, OK) as wire, virtual_time():
        asyncio.run(main(wire))
        assert all(len(keys) == 1 for keys in keys_by_body(wire).values())


def test_k2_what_is_drawn_anew() -> None:
    """K2: a boundary is left out of the comparison; a body with a time in it stops the run before it is sent."""
    with Wire(LOST, OK) as wire, virtual_time():
        post = with_requests(wire)
        POLICY.call(lambda: post(files={"file": b"content"}))
        assert len({key_of(seen) for seen in wire.seen}) == 1
        assert len(wire.seen) == 2
    with Wire(LOST, OK) as wire, virtual_time():
        with pytest.raises(RepeatRefused, match="this one may be the same"):
            POLICY.with_changes(attempts=9).call(in_turn(["at 12:00"], ["at 12:01"], ["at 12:02"]), with_httpx(wire))
        assert len(wire.seen) == 1


def test_k3_a_request_that_succeeded() -> None:
    """K3: a key is used again only for what is unknown; what succeeded stops the run."""
    with Wire(OK, LOST, OK) as wire, virtual_time():
        with pytest.raises(Broken) as caught:
            POLICY.call(in_turn(["message", "message"], ["message"]), with_httpx(wire))
        assert len(wire.seen) == 2
        assert len({key_of(seen) for seen in wire.seen}) == 2
        assert "would send it with another key" in caught.value.__notes__[0]
    with Wire(reply(400), OK) as wire, virtual_time():  # refused, so its key is not needed any more
        POLICY.call(in_turn(["message"], ["message"]), with_httpx(wire))
        assert len(wire.seen) == 2


@pytest.mark.parametrize("make", [with_httpx, with_requests])
def test_k3_a_request_that_was_under_way_at_a_sweep(make: Callable[..., Post], monkeypatch: pytest.MonkeyPatch) -> None:
    """K3: while it was under way a repeat did no harm, but it must be remembered: it succeeds after that."""
    monkeypatch.setattr(ledger, "_SWEPT", 1)
    monkeypatch.setattr(ledger, "_of_threads", dict[int, ledger.Entries]())
    with Wire(OK) as wire, virtual_time():
        with pytest.raises(Broken):
            POLICY.call(in_turn(["message", "message", "message"], []), make(wire))
        assert len(wire.seen) == 3


def test_many_keys_of_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run may add any number of keys; only those whose outcome is unknown are kept, and they have a bound."""
    monkeypatch.setattr(keys, "_MOST", 3)
    with Wire(OK) as wire, virtual_time():
        POLICY.call(in_turn([str(number) for number in range(10)]), with_httpx(wire))
        assert len({key_of(seen) for seen in wire.seen}) == 10
    with Wire(LOST) as wire, virtual_time():
        with pytest.raises(RepeatRefused, match="the outcome of 3 requests of this run is unknown"):
            POLICY.call(in_turn(["1", "2", "3", "4"]), with_httpx(wire))
        assert len(wire.seen) == 3


def test_keys_of_runs_that_have_ended_are_forgotten() -> None:
    """Also those of requests whose outcome stays unknown, and of runs within others."""
    run_keys.clear()  # no run is open here
    keys._swept[:] = [64]
    with Wire(LOST) as wire, virtual_time() as time:
        post = with_httpx(wire)
        for number in range(40):
            time.advance(1)  # each run has a time of its own
            if number == 31:
                harm._of_threads.clear()  # their reports keep the last runs for a while
                gc.collect()  # and so do the frames of their errors
            with pytest.raises(RepeatRefused):
                POLICY.call(POLICY.call, in_turn(["a"], ["b"]), post)
        assert len(run_keys) < 64


def test_k6_an_automatic_key_that_the_server_may_have_forgotten() -> None:
    """K6: the key counts from its first use, also in a later attempt; adapters look before they send."""
    with Wire(LOST, OK) as wire, virtual_time() as time:
        post, calls = with_httpx(wire), list[int]()

        def slow() -> None:
            calls.append(1)
            if len(calls) == 2:
                time.advance(280)
            post("a")

        with pytest.raises(RepeatRefused):
            POLICY.with_changes(timeout=200).call(slow)
        assert len(wire.seen) == 1


def test_k6_a_key_of_the_run_is_looked_at_before_it_is_sent() -> None:
    """K6: an attempt that works for longer than the key counts sends nothing."""
    with Wire(OK) as wire, virtual_time() as time:
        post = with_httpx(wire, hours=24, add=False)

        def slow() -> None:
            key = forbear.run_key("charge")
            time.advance(280)
            post("a", headers={"Idempotency-Key": key})

        with pytest.raises(RepeatRefused, match="first used 280 s ago"):
            POLICY.call(slow)
        assert not wire.seen


def test_k10_one_key_for_two_requests() -> None:
    """K10: an adapter refuses a key that the attempt has sent with another request."""
    with Wire(OK) as wire, virtual_time():
        post = with_httpx(wire, hours=24, add=False)

        def charge_all(order: str) -> None:
            for item in ("a", "b"):
                post(item, headers={"Idempotency-Key": order})

        with pytest.raises(RepeatRefused, match="the same key with another request"):
            POLICY.call(charge_all, "order-4711")
        assert len(wire.seen) == 1


@pytest.mark.parametrize("make", [with_httpx, with_requests])
@pytest.mark.parametrize("add", [True, False], ids=["added", "the caller's"])
def test_a_refused_first_attempt_has_used_no_key(make: Callable[..., Post], add: bool) -> None:
    """A refusal of the budget sends nothing: the next attempt of the function may ask for something else."""
    bodies = iter(["a", "b"])
    with Wire(OK) as wire, virtual_time():
        post = make(wire, add=add, budget=forbear.budgets.Budget(ClosedAtFirst(10)))
        headers = {} if add else {"Idempotency-Key": "0123456789abcdef"}
        POLICY(lambda: post(next(bodies), headers=headers))()
    assert [seen.body for seen in wire.seen] == [b"b"]

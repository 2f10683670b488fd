"""Budgets that count first attempts, in HTTP clients: nothing is sent without leave, and every attempt ends."""

import asyncio
import os
import sys
from dataclasses import replace
from types import FrameType
from typing import Any

import aiohttp
import httpx
import pytest
import requests
import urllib3

import forbear
from forbear import Constant, Throttled
from forbear.budgets import Budget
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.google import retry_for
from forbear.clients.httpx import AsyncRetryTransport, RetryTransport
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry
from forbear.events import Failed, GaveUp, Reason
from forbear.exchange.redis.descriptions import describe_command
from forbear.exchange.redis.loops import send
from forbear.exchange.redis.settings import RedisSettings
from forbear.services import redis, rfc9110
from forbear.testing import virtual_time
from forbear_testkit.clients.downloads import LEFT_BEFORE_ITS_END
from forbear_testkit.clients.others import EVERY
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.run.budgets import ONCE, TWICE, Closed, ClosedAtFirst, Noted, counted

AT_ONCE = rfc9110.policy.with_backoff(Constant(0))
WHOLE = b"0123456789" * 10
ETAG = 'ETag: "one"'
CUT = reply(200, WHOLE[:20], ETAG, length=len(WHOLE), end="close")
REST = reply(206, WHOLE[20:], ETAG, f"Content-Range: bytes 20-99/{len(WHOLE)}")


@EVERY
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nothing_is_sent_without_leave(flavour: Any, method: str) -> None:
    """A refused first attempt is a Throttled with a report, two events, and no byte on the wire."""
    events: list[forbear.events.Event] = []
    policy = AT_ONCE.with_budget(Budget(Closed())).with_on_event(events.append)
    with Wire(reply(200)) as wire:
        result = flavour.call(flavour.transport(policy), method, wire.url + "/x")
        assert (wire.seen, wire.connections) == ([], 0)
    assert type(result.error) is Throttled
    assert result.error.verdict is forbear.verdicts.NOT_EXECUTED
    assert (result.report.reason, result.report.count, result.report.method) == (Reason.BUDGET, 1, method)
    assert result.report.resource == f"{wire.url}/x"
    assert [type(event) for event in events] == [Failed, GaveUp]
    assert len(result.notes) == 1


@EVERY
def test_a_function_around_may_try_again(flavour: Any) -> None:
    """A refusal sends nothing, so that a function around a POST is called again."""
    transport = flavour.transport(AT_ONCE.with_budget(Budget(ClosedAtFirst(10))))

    @forbear.retry(on=Throttled, attempts=2, retry_exhausted=True, backoff=Constant(0))
    def post(url: str) -> None:
        result = flavour.call(transport, "POST", url)
        if result.error is not None:
            raise result.error

    with Wire(reply(200)) as wire:
        post(wire.url + "/x")
        assert len(wire.seen) == 1


@EVERY
@pytest.mark.parametrize(
    ("answers", "log"),
    [
        ((reply(200, b"ok"),), ONCE),
        ((reply(404),), ["admit", "release"]),
        ((reply(503), reply(200)), TWICE),
        ((Answer(end="reset"), reply(200)), TWICE),
        ((reply(503),), ["admit", "release", "take", "release", "take", "release"]),
        ((CUT, REST), [*ONCE, "take", "release", "success"]),
    ],
    ids=["ok", "permanent", "retried", "reset", "in-vain", "broken-body"],
)
def test_every_attempt_is_counted_and_ends(flavour: Any, answers: tuple[Answer, ...], log: list[str]) -> None:
    """In this order, and none is under way in the end; the body may be read later."""
    budget = Noted()
    with Wire(*answers) as wire:
        flavour.call(flavour.transport(AT_ONCE.with_attempts(3).with_budget(budget)), "GET", wire.url + "/x")
    assert budget.log == log
    assert budget.active == 0


@EVERY
@pytest.mark.parametrize(
    ("answers", "under_way", "in_the_end"),
    [
        ((reply(200, b"ok"),), [(0, 0)], (1, 1)),
        ((reply(404),), [(0, 0)], (1, 1)),
        ((reply(503), reply(200)), [(0, 0), (1, 0)], (2, 1)),
        ((Answer(end="reset"), reply(200)), [(0, 0), (1, 0)], (2, 1)),
        ((reply(503),) * 3, [(0, 0), (1, 0), (2, 0)], (3, 0)),
        ((CUT, REST), [(0, 0), (2, 1)], (3, 2)),  # its response began, and its body failed
    ],
    ids=["ok", "permanent", "retried", "reset", "in-vain", "broken-body"],
)
def test_the_throttle_counts_what_is_known(
    flavour: Any, answers: tuple[Answer, ...], under_way: list[tuple[int, int]], in_the_end: tuple[int, int]
) -> None:
    """Google's throttle counts an attempt with its outcome: while the server has it, it is no refused request."""
    budget, seen = Budget.google_sre(), list[tuple[int, int]]()

    def look() -> None:
        seen.append(counted(budget))

    policy = AT_ONCE.with_attempts(3).with_budget(budget)
    with Wire(*(replace(answer, first=look) for answer in answers)) as wire:
        flavour.call(flavour.transport(policy), "GET", wire.url + "/x")
    assert (seen, counted(budget)) == (under_way, in_the_end)


@EVERY
@LEFT_BEFORE_ITS_END
def test_an_attempt_is_active_until_its_response_begins(flavour: Any) -> None:
    """The server sees one under way each time, and the reader of the body none."""
    budget, seen = Noted(), list[int]()

    def look() -> None:
        seen.append(budget.active)

    with Wire(Answer(reply(503).data, first=look), Answer(reply(200, WHOLE).data, first=look)) as wire:
        result = flavour.call(flavour.transport(AT_ONCE.with_budget(budget)), "GET", wire.url, stop_after=5)
    assert seen == [1, 1]
    assert (result.status, budget.active, budget.log) == (200, 0, TWICE)


@EVERY
@LEFT_BEFORE_ITS_END
def test_a_body_that_is_left_ends_its_attempt(flavour: Any) -> None:
    """The caller closes a continued body before its end: the attempt that continued it is over."""
    budget = Noted()
    with Wire(CUT, REST) as wire:
        result = flavour.call(flavour.transport(AT_ONCE.with_budget(budget)), "GET", wire.url, stop_after=30)
        assert len(wire.seen) == 2
    assert len(result.content) >= 30
    assert budget.active == 0


def test_an_attempt_that_an_inner_policy_gave_up_ends(flavour: Any) -> None:
    """The outer transport does not retry it, and counts its end while the caller holds the response."""
    outer, inner = Noted(), Noted()
    below = flavour.transport(AT_ONCE.with_attempts(2).with_budget(inner))
    with Wire(reply(503)) as wire:
        result = flavour.call(flavour.transport(AT_ONCE.with_budget(outer), transport=below), "GET", wire.url)
    assert (result.status, outer.active, inner.active) == (503, 0, 0)
    assert outer.log == ["admit", "release"]
    assert inner.log == ["admit", "release", "take", "release"]


@EVERY
def test_writes_are_counted(flavour: Any) -> None:
    """A write is sent once, and its attempt ends, whether it succeeds or not."""
    budget = Noted()
    transport = flavour.transport(AT_ONCE.with_budget(budget))
    with Wire(reply(200), reply(503)) as wire:
        for _ in range(2):
            flavour.call(transport, "POST", wire.url, content=b"data")
    assert budget.log == [*ONCE, "admit", "release"]


@EVERY
def test_a_failing_host_harms_no_other(flavour: Any) -> None:
    """With a budget per host, the retries of one host are used up, and those of the other are not."""
    budget = Budget.per_host(forbear.budgets.TokenBucket(1, deposit=0))
    transport = flavour.transport(AT_ONCE.with_budget(budget))
    with Wire(reply(503)) as bad, Wire(reply(503), reply(200)) as good:
        ends = [flavour.call(transport, "GET", bad.url) for _ in range(3)]
        assert flavour.call(transport, "GET", good.url).status == 200
        assert [len(bad.seen), len(good.seen)] == [4, 2]
        assert not budget.of(bad.url.removeprefix("http://")).take()
    assert [end.report.reason for end in ends] == [Reason.BUDGET] * 3


@EVERY
def test_retries_off_count_nothing(flavour: Any) -> None:
    """Within `disabled` a closed budget refuses nothing."""
    with Wire(reply(200)) as wire, forbear.disabled():
        transport = flavour.transport(AT_ONCE.with_budget(Budget(Closed())))
        assert flavour.call(transport, "GET", wire.url).status == 200


@pytest.mark.parametrize(
    ("make", "status", "retries"),
    [
        (Budget.aws, 502, 35),
        (Budget.aws, 429, 100),
        (Budget.aws_until_2026, 503, 100),
        (Budget.grpc, 503, 4),
        (Budget.brooker, 503, 10),
        (Budget.finagle, 503, 100),
        (lambda: Budget.per_host(Budget.grpc), 503, 4),
    ],
)
def test_retries_of_a_client_in_a_total_outage(make: Any, status: int, retries: int) -> None:
    """A server that fails always sees as many retries as the preset grants to functions."""
    policy = AT_ONCE.with_limits(forbear.Limits(attempts=None, timeout=None, unlimited=True)).with_budget(make())
    with Wire(reply(status)) as wire, virtual_time(), requests.Session() as session:
        session.trust_env = False
        session.mount("http://", RetryAdapter(policy))
        for _ in range(4):
            assert session.get(wire.url).status_code == status
        assert len(wire.seen) == 4 + retries


def test_the_throttle_protects_a_server_that_fails() -> None:
    """Google's throttle: of 300 calls to a server that answers 503 only, most are not sent."""
    policy = AT_ONCE.with_attempts(2).with_budget(Budget.google_sre())
    refused = 0
    with Wire(reply(503)) as wire, virtual_time(seed=3), requests.Session() as session:
        session.trust_env = False
        session.mount("http://", RetryAdapter(policy))
        for _ in range(300):
            try:
                assert session.get(wire.url).status_code == 503
            except Throttled:
                refused += 1
        assert len(wire.seen) < 40
        assert len(wire.seen) + refused >= 300


async def _by_httpx(policy: forbear.Policy, url: str) -> object:
    async with httpx.AsyncClient(transport=AsyncRetryTransport(policy)) as client:
        return await client.get(url)


async def _by_aiohttp(policy: forbear.Policy, url: str) -> object:
    async with aiohttp.ClientSession(middlewares=(RetryMiddleware(policy),)) as session:
        return await session.get(url)


@pytest.mark.parametrize("get", [_by_httpx, _by_aiohttp])
@pytest.mark.parametrize("when", ["under way", "waiting"])
def test_a_cancelled_attempt_ends_at_once(get: Any, when: str) -> None:
    """In an attempt or in backoff, and while somebody still holds the error of the cancellation."""
    budget = Noted()

    async def main() -> None:
        loop, reached = asyncio.get_running_loop(), asyncio.Event()

        def reach() -> None:
            loop.call_soon_threadsafe(reached.set)

        def note(event: forbear.events.Event) -> None:
            if isinstance(event, forbear.events.Scheduled):
                reach()

        policy = rfc9110.policy.with_backoff(Constant(50)).with_budget(budget).with_on_event(note)
        answer = Answer(end="stall", first=reach) if when == "under way" else reply(503)
        with Wire(answer) as wire:
            task = asyncio.ensure_future(get(policy, wire.url))
            await reached.wait()
            assert budget.active == 1
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as kept:
                await task
            assert (budget.active, kept.value.args) == (0, ())

    asyncio.run(main())
    assert budget.log == ["admit", "release", *(["take", "release"] if when == "waiting" else [])]


@pytest.mark.parametrize(
    "make", [Budget.envoy, Budget.finagle, Budget.google_sre, Budget.per_host], ids=lambda make: make.__name__
)
def test_urllib3_refuses_what_it_does_not_see(make: Any) -> None:
    """The text says why, and what to do instead."""
    with pytest.raises(TypeError, match="because urllib3 does not show a Retry object the first attempt: mount a Ret"):
        Retry(AT_ONCE.with_budget(make()))


def test_urllib3_takes_the_other_budgets() -> None:
    """A bucket counts retries and successes, as before."""
    budget = Budget.brooker(1)
    with (
        Wire(reply(503), reply(200)) as wire,
        virtual_time(),
        urllib3.PoolManager(retries=Retry(AT_ONCE.with_budget(budget))) as pool,
    ):
        assert pool.request("GET", wire.url).status == 200
    assert not budget.take()


def test_without_a_budget_nothing_of_budgets_is_executed() -> None:
    """Requests, commands and RPCs that succeed at once call no function of the modules of budgets."""
    called: set[str] = set()

    def trace(frame: FrameType, event: str, argument: object) -> None:
        called.add(frame.f_code.co_filename.replace(os.sep, "/").rpartition("/forbear/")[2])

    settings = RedisSettings(redis.policy)
    rpc = retry_for("google.iam.admin.v1.IAM/ListRoles")(str)
    with httpx.Client(transport=RetryTransport(transport=httpx.MockTransport(lambda _: httpx.Response(200)))) as client:
        sys.setprofile(trace)
        try:
            client.get("http://api.example.com/")
            client.post("http://api.example.com/", content=b"x")
            send(settings, describe_command, ("GET", "k"), lambda: b"v")
            rpc("a")
        finally:
            sys.setprofile(None)
    assert {"exchange/http/drive.py", "exchange/redis/loops.py", "exchange/call_state.py"} <= called
    assert not called & {"run/budget.py", "run/spending.py", "core/budget.py", "core/admission.py"}

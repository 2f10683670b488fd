"""First attempts in functions and blocks: gated in every form, counted until their end, and free without a budget."""

import asyncio
import gc
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, cast

import pytest

import forbear
from forbear.core.budget import MICRO
from forbear.core.report import report
from forbear.policy import Policy, retry
from forbear.run.budget import Budget
from forbear.run.spending import Throttled
from forbear.testing.script import Script
from forbear.testing.virtual_clock import VirtualRuntime, virtual_time
from forbear_testkit.run.budgets import Closed, begun
from forbear_testkit.run.cases import Busy


def test_every_form_is_gated() -> None:
    """Decorated, called or in a block, sync or async, and in an update; `on_give_up` replaces the error."""
    sent: list[int] = []
    policy = retry(on=Busy, budget=Budget(Closed()))

    def send() -> None:
        sent.append(1)

    async def asend() -> None:
        sent.append(1)

    async def loop() -> None:
        async for attempt in policy:
            with attempt:
                sent.append(1)

    def block() -> None:
        for attempt in policy:
            with attempt:
                sent.append(1)

    def change() -> None:
        forbear.update(read=send, modify=lambda value: value, write=print, conflict=lambda error: True, policy=policy)

    for run in (policy(send), lambda: policy.call(send), block, change):
        with pytest.raises(Throttled) as caught:
            run()
        assert report(caught.value) is not None
    for coroutine in (policy(asend), lambda: policy.acall(asend), loop):
        with pytest.raises(Throttled):
            asyncio.run(coroutine())
    assert policy.replace(on_give_up="nothing").call(send) == "nothing"
    assert sent == []
    with forbear.disabled():
        policy.call(send)
    assert sent == [1]


def test_an_attempt_that_is_cancelled_ends() -> None:
    """At once, if an error that is no Exception ends it; one whose block was left ends with the garbage collector."""
    budget = Budget.envoy()
    policy = retry(on=Busy, budget=budget)

    def interrupt() -> None:
        assert budget._state[:2] == [1, 0]
        raise KeyboardInterrupt

    async def ainterrupt() -> None:
        interrupt()

    def block() -> None:
        for attempt in policy:
            with attempt:
                interrupt()

    def change() -> None:
        forbear.update(read=interrupt, modify=print, write=print, conflict=lambda error: True, policy=policy)

    async def achange() -> None:
        async def write(value: None) -> None:
            """Write nothing."""

        await forbear.aupdate(read=ainterrupt, modify=print, write=write, conflict=lambda error: True, policy=policy)

    def call() -> None:
        policy.call(interrupt)

    def acall() -> None:
        asyncio.run(policy.acall(ainterrupt))

    for run in (call, acall, block, change, lambda: asyncio.run(achange())):
        with pytest.raises(KeyboardInterrupt) as kept:
            run()
        assert (budget._state[:2], kept.value.args) == ([0, 0], ())  # while the error holds the frames

    def leave() -> None:
        for attempt in policy:
            with attempt:
                assert budget._state[:2] == [1, 0]
                return

    leave()
    gc.collect()
    assert budget._state[:2] == [0, 0]


class Interrupted(BaseException):
    """The error that ends a wait."""


def test_a_wait_that_is_interrupted_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A granted retry counts while it waits, and not after the wait was cancelled."""
    budget = Budget.envoy()
    policy = retry(on=Busy, backoff=forbear.Constant(50), budget=budget)

    def interrupt(self: VirtualRuntime, seconds: float) -> None:
        assert budget._state[:2] == [1, 1]
        raise Interrupted

    async def ainterrupt(self: VirtualRuntime, seconds: float) -> None:
        interrupt(self, seconds)

    async def fail() -> None:
        raise Busy

    monkeypatch.setattr(VirtualRuntime, "sleep", interrupt)
    monkeypatch.setattr(VirtualRuntime, "asleep", ainterrupt)

    def call() -> None:
        policy.call(Script(Busy))

    def acall() -> None:
        asyncio.run(policy.acall(fail))

    for run in (call, acall):
        with virtual_time(), pytest.raises(Interrupted) as kept:
            run()
        assert (budget._state[:2], kept.value.args) == ([0, 0], ())


def test_a_forked_child_has_no_active_attempts() -> None:
    """The attempts under way go on in the parent; a bucket is inherited as it is."""
    envoy, bucket = Budget.envoy(), Budget.brooker()
    runs = begun(retry(on=Busy, budget=envoy), 7)
    assert bucket.take()
    child = os.fork()
    if child == 0:
        envoy.put(retried=False)
        bucket.put(retried=False)
        os._exit(0 if envoy._state == [0, 0] and bucket._state[0] == 9 * MICRO + MICRO // 10 else 1)
    assert os.waitpid(child, 0) == (child, 0)
    assert envoy._state == [len(runs), 0]


def test_without_a_budget_nothing_of_budgets_is_executed() -> None:
    """The first attempt of every form calls no function of the modules of budgets."""
    policy = retry(on=Busy)
    called: set[str] = set()

    def trace(frame: FrameType, event: str, argument: object) -> None:
        called.add(frame.f_code.co_filename.replace(os.sep, "/").rpartition("/forbear/")[2])

    def work() -> None:
        """Do nothing."""

    decorated = policy(work)
    sys.setprofile(trace)
    try:
        decorated()
        policy.call(work)
        for attempt in policy:
            with attempt:
                pass
    finally:
        sys.setprofile(None)
    assert {"run/loops.py", "run/state.py"} <= called
    assert not called & {"run/budget.py", "run/spending.py", "core/budget.py", "core/admission.py"}


def _failing() -> None:
    raise OSError


async def _afailing() -> None:
    raise OSError


async def _never() -> None:
    raise AssertionError


def _wrong(*_: object) -> bool:
    raise ZeroDivisionError


def _interrupted(_: object) -> None:
    raise KeyboardInterrupt


UNUSUAL_ENDS: dict[str, Callable[[Policy], object]] = {
    "on raises": lambda policy: policy.replace(on=_wrong).call(_failing),
    "on_result raises": lambda policy: policy.replace(on_result=_wrong).call(str),
    "a listener is interrupted": lambda policy: policy.replace(on_event=_interrupted).call(_failing),
    "a coroutine from a sync function": lambda policy: policy.call(_never),
    "no awaitable": lambda policy: asyncio.run(policy.acall(cast("Any", str))),
    "on raises, async": lambda policy: asyncio.run(policy.replace(on=_wrong).acall(_afailing)),
}


@pytest.mark.parametrize("end", UNUSUAL_ENDS.values(), ids=UNUSUAL_ENDS)
def test_an_error_that_is_kept_keeps_no_attempt_active(end: Callable[[Policy], object]) -> None:
    """The attempt ends with the run, even if the error, whose traceback has the run, lives on."""
    budget = Budget.envoy()
    with virtual_time(seed=1), pytest.raises((TypeError, OSError, ZeroDivisionError, KeyboardInterrupt)) as caught:
        end(retry(OSError, budget=budget))
    assert caught.value.__traceback__ is not None
    assert budget._state[:2] == [0, 0]


def test_a_loop_that_is_left_gives_its_retry_back() -> None:
    """A retry that was granted does not stay active if the loop ends before it, or if a listener stops it."""
    budget = Budget.envoy()
    policy = retry(OSError, budget=budget)
    kept: list[object] = []
    for attempt in policy:
        kept.append(attempt)
        with attempt:
            raise OSError
        break
    assert budget._state[:2] == [0, 0]

    def interrupted() -> None:
        for attempt in policy.replace(on_event=_interrupted):
            kept.append(attempt)
            with attempt:
                raise OSError

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert budget._state[:2] == [0, 0]


def test_an_async_loop_that_is_cancelled_gives_its_retry_back() -> None:
    """A cancellation in the wait before a retry ends the retry, even if the attempt object lives on."""
    budget = Budget.envoy()
    kept: list[object] = []

    def cancel(_: object) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def work() -> None:
        async for attempt in retry(OSError, budget=budget, on_event=cancel):
            kept.append(attempt)
            with attempt:
                raise OSError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())
    assert len(kept) == 1
    assert budget._state[:2] == [0, 0]

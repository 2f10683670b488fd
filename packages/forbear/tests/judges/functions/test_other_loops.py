"""`may_repeat` and `explain` bring the knowledge of the table to other loops."""

from collections.abc import Callable
from functools import partial
from typing import Any

import backoff
import pytest
import requests
import stamina
import tenacity

import forbear
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.evidence.http_clients import SYNC

LOST, OK = Answer(end="close"), reply(200, b"{}")
Work = Callable[[], object]


def _by_tenacity(work: Work) -> object:
    condition = tenacity.retry_if_exception_type(OSError) & tenacity.retry_if_exception(forbear.may_repeat)
    stop = tenacity.stop_after_attempt(3)
    return tenacity.Retrying(retry=condition, stop=stop, reraise=True)(work)


def _by_stamina(work: Work) -> object:
    @stamina.retry(on=forbear.may_repeat, attempts=3, wait_initial=0, wait_jitter=0)
    def function() -> object:
        return work()

    return function()


def _by_backoff(work: Work) -> object:
    def gives_up(error: Exception) -> bool:
        return not forbear.may_repeat(error)

    @backoff.on_exception(backoff.constant, OSError, interval=0, max_tries=3, giveup=gives_up, jitter=None)
    def function() -> object:
        return work()

    return function()


def _by_hand(work: Work) -> object:
    for _ in range(3):
        try:
            return work()
        except OSError as error:
            if not forbear.may_repeat(error):
                raise
    raise AssertionError("the server answers in the end")


LOOPS = {"tenacity": _by_tenacity, "stamina": _by_stamina, "backoff": _by_backoff, "a loop": _by_hand}


@pytest.mark.parametrize("loop", LOOPS)
def test_may_repeat(loop: str) -> None:
    """A lost GET is repeated, a lost POST is not."""
    with Wire(LOST, OK) as wire:
        LOOPS[loop](partial(SYNC["requests"], "GET", wire.url))
        assert len(wire.seen) == 2
    with Wire(LOST, OK) as wire:
        with pytest.raises(requests.ConnectionError):
            LOOPS[loop](partial(SYNC["requests"], "POST", wire.url))
        assert len(wire.seen) == 1


def test_k12_keys_and_versions_count_as_new() -> None:
    """K12: without a run there are no arguments; an error that shows nothing may be repeated."""
    with Wire(LOST) as wire:
        with pytest.raises(requests.ConnectionError) as caught:
            requests.patch(f"{wire.url}/1", headers={"If-Match": '"version-1"'}, timeout=5)
        assert not forbear.may_repeat(caught.value)
        assert "depends on a version" in forbear.explain(caught.value).why
    assert forbear.may_repeat(ValueError("x"))
    with pytest.raises(TypeError, match="must be an exception"):
        forbear.may_repeat("x")  # type: ignore[arg-type]


def test_explain() -> None:
    """The answer names the request, and why."""
    with Wire(LOST) as wire:
        with pytest.raises(requests.ConnectionError) as caught:
            SYNC["requests"]("POST", f"{wire.url}/orders")
        answer = forbear.explain(caught.value)
        assert not answer.repeatable
        assert str(answer).startswith(f"ConnectionError, after POST {wire.url}/orders: must not be repeated (")
    nothing = forbear.explain(ValueError("x"))
    assert (nothing.repeatable, nothing.why) == (True, "the error shows no request")


def test_apis() -> None:
    """An Api of the decorator says which table knows the host, which key counts, and what a status means."""
    key = "charge-4711-2026"

    def charge(url: str, key: str) -> None:
        requests.post(url, headers={"Idempotency-Key": key}, timeout=5).raise_for_status()

    cases: tuple[tuple[dict[str, Any], tuple[Answer, ...], int], ...] = (
        ({"key": forbear.IdempotencyKey("Idempotency-Key", hours=24)}, (LOST, OK), 2),
        ({"not_executed": [503]}, (reply(503), OK), 2),
        ({"safe": "POST /"}, (LOST, OK), 2),
        ({}, (LOST, OK), 1),
    )
    for api, answers, sent in cases:
        with Wire(*answers) as wire, virtual_time():
            apis = [forbear.Api(wire.url, **api)]
            policy = forbear.retry(on=Exception, attempts=3, apis=apis)
            if sent == 1:
                with pytest.raises(requests.ConnectionError):
                    policy.call(charge, f"{wire.url}/", key)
            else:
                policy.call(charge, f"{wire.url}/", key)
            assert len(wire.seen) == sent

"""Decorated functions in other processes: by their name, and as copies, which cloudpickle makes for joblib and Dask."""

import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import pytest

import forbear

POLICY = forbear.retry(OSError, attempts=3, backoff=forbear.Constant(0))
CALLS: list[object] = []


def flaky(item: str) -> str:
    """Fail at first."""
    CALLS.append(item)
    if len(CALLS) % 2:
        raise OSError("lost")
    return item


@POLICY
def load(item: str) -> str:
    """Decorated where it is defined."""
    return flaky(item)


@POLICY
def fail() -> None:
    """Fail always."""
    raise OSError("lost")


class Loader:
    """Its method is found by the class."""

    @POLICY
    def load(self, item: str) -> str:
        """Fail at first."""
        return flaky(item)


elsewhere = POLICY(flaky)
"""The name of the function leads to what is not decorated."""


def test_a_pool_of_processes() -> None:
    """Functions and methods go by their names, and other functions through their policy; errors keep their report."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        for future in (
            executor.submit(load, "tea"),
            executor.submit(Loader().load, "tea"),
            executor.submit(POLICY.call, flaky, "tea"),
        ):
            assert future.result() == "tea"
        with pytest.raises(OSError, match="lost") as caught:
            executor.submit(fail).result()
    assert caught.value.__notes__[0].endswith("limit of 3 attempts reached [attempts]")
    report = forbear.report(caught.value)
    assert report is not None
    assert report.count == 3
    assert CALLS == []


@pytest.mark.parametrize("function", [elsewhere, forbear.with_policy(load, attempts=2), POLICY(lambda: None)])
def test_what_has_no_name_of_its_own(function: Callable[..., object]) -> None:
    """Pickle finds functions by their names, also those without a policy; so the copy must have its own."""
    with pytest.raises((pickle.PicklingError, AttributeError), match="pickle"):
        pickle.dumps(function)


_SEND = """
import sys, cloudpickle, forbear
policy = forbear.retry(OSError, attempts=3, backoff=forbear.Constant(0))
def flaky(items):
    items.append(forbear.run_key("order"))
    if len(items) == 1:
        raise OSError("lost")
    return items
@policy
def load(items):
    return flaky(items)
@policy
async def aload(items):
    return flaky(items)
@policy
def order(items):
    import httpx
    shop = httpx.MockTransport(lambda request: items.append(request.method) or httpx.Response(200))
    with forbear.install(httpx.Client(transport=shop)) as client:
        client.post("https://shop.example/orders")
    raise OSError("lost")
careful = forbear.with_policy(load, repeatable=False)
USED
cloudpickle.dump((load, aload, order, careful, policy.with_name("x")(load)), sys.stdout.buffer)
"""
_RECEIVE = """
import asyncio, sys, cloudpickle, forbear
load, aload, order, careful, twice = cloudpickle.load(sys.stdin.buffer)
for items in load([]), asyncio.run(aload([])), twice([]):
    print(len(items), len({*items}))
for function in order, careful:
    items = []
    try:
        function(items)
    except OSError as error:
        print(len(items), forbear.report(error).reason.code)
print(forbear.policy_of(load).limits.attempts, len(forbear.with_policy(load, attempts=2)([])))
"""


@pytest.mark.parametrize("used", ["", "load([])\nimport asyncio\nasyncio.run(aload([]))"], ids=["new", "used"])
def test_copies(used: str) -> None:
    """A copy of a function of `__main__` has the state of its new process: it is retried, and sends nothing twice."""
    run: Any = partial(subprocess.run, check=True, capture_output=True)
    copies: bytes = run([sys.executable, "-c", _SEND.replace("USED", used)]).stdout
    printed: bytes = run([sys.executable, "-c", _RECEIVE], input=copies).stdout
    assert printed.decode().splitlines() == [*["2 1"] * 3, "1 unsafe", "1 unsafe", "3 2"]

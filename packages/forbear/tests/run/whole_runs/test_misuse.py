"""A wrong call is refused once, and nothing is executed again because of it."""

import asyncio
import copy
import os
import pickle
import threading

import pytest

import forbear
from forbear.testing import virtual_time


def test_a_sync_function_awaited_runs_once() -> None:
    """It has done its work by the time that its value cannot be awaited, so even `on=Exception` must not repeat it."""
    done: list[int] = []

    def push() -> str:
        done.append(1)
        return "ok"

    policy = forbear.retry(on=Exception, backoff=forbear.Constant(0))
    with pytest.raises(TypeError, match=r"push was called as an async function, but returned no awaitable"):
        asyncio.run(policy.acall(push))  # type: ignore[arg-type]
    assert done == [1]


def test_a_sync_write_awaited_runs_once() -> None:
    """The same for the write of an async read-modify-write."""
    written: list[int] = []

    async def read() -> int:
        return 1

    async def change() -> None:
        await forbear.aupdate(
            read=read,
            modify=lambda value: value + 1,
            write=written.append,  # type: ignore[arg-type]
            conflict=lambda error: True,
            mine=lambda value: False,
            policy=forbear.retry(on=Exception, backoff=forbear.Constant(0)),
        )

    with virtual_time(), pytest.raises(TypeError, match="`write` returned no awaitable: use update"):
        asyncio.run(change())
    assert written == [2]


@pytest.mark.usefixtures("forkable")
def test_a_child_is_not_stuck_on_its_parents_lock() -> None:
    """A child that was forked while a thread counted in a budget can count in it."""
    budget = forbear.budgets.Budget(forbear.budgets.TokenBucket(capacity=1e6))
    over = threading.Event()

    def count() -> None:
        while not over.is_set():
            budget.take()

    threads = [threading.Thread(target=count) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                budget.take()
                os._exit(0)
            assert os.waitpid(child, 0) == (child, 0)
    finally:
        over.set()
        for thread in threads:
            thread.join()


class Touchy(Exception):
    """An error whose response cannot be looked at."""

    @property
    def response(self) -> object:
        raise RuntimeError("not read yet")


def test_an_error_that_cannot_be_looked_into_comes_out() -> None:
    """A property that raises must not take the place of the error."""

    def fail() -> None:
        raise Touchy

    with virtual_time(), pytest.raises(Touchy) as caught:
        forbear.retry(on=Touchy, attempts=2).call(fail)
    assert len(caught.value.__notes__) == 1


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: forbear.retry(on=OSError, backoff=forbear.Exponential), "`backoff` must have a delay"),  # type: ignore[call-overload]
        (lambda: forbear.budgets.Budget("x"), "`rule` must be a rule such as"),  # type: ignore[arg-type]
    ],
    ids=["backoff", "budget"],
)
def test_a_class_or_a_word_is_refused(make: "object", text: str) -> None:
    """When it is made, not at the first error."""
    assert callable(make)
    with pytest.raises(TypeError, match=text):
        make()


def test_a_report_equals_its_copy() -> None:
    """The events of a run are equal in another process."""

    def fail() -> None:
        raise TimeoutError

    with virtual_time(), pytest.raises(TimeoutError) as caught:
        forbear.retry(on=OSError, attempts=1).call(fail)
    report = forbear.report(caught.value)
    assert report is not None
    assert report == pickle.loads(pickle.dumps(report)) == copy.copy(report)
    assert "made" not in repr(report)


def test_one_switch_nests() -> None:
    """The same `disabled()` may be entered within itself."""
    off = forbear.disabled()
    with off, off:
        pass
    with virtual_time() as time, pytest.raises(FileNotFoundError):
        forbear.retry(on=OSError, attempts=2, backoff=forbear.Constant(3)).call(open, "/nowhere")
    assert time.slept == [3]

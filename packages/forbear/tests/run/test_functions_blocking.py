"""Sync code that waits in the thread of an event loop warns, once for each place, and names the cure."""

import ast
import asyncio
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from threading import Event
from typing import Any

import httpx
import pytest
import trio

import forbear
from forbear.run.functions import warn_of_blocking
from forbear.testing.virtual_clock import virtual_time

POLICY = forbear.retry(OSError, attempts=2, backoff=forbear.Constant(3))
Main = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(autouse=True)
def _time() -> Iterator[None]:
    with virtual_time():
        yield


def fail() -> None:
    """Fail."""
    raise OSError("down")


def by_decorator() -> None:
    """Call a decorated function."""
    POLICY(fail)()


def by_call() -> None:
    """Call through the policy."""
    POLICY.call(fail)


def by_block() -> None:
    """Loop in a sync function."""
    for attempt in POLICY:
        with attempt:
            fail()


def by_client() -> None:
    """Send by a sync client."""

    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("down", request=request)

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        forbear.install(client, attempts=2).get("http://api.example.com/orders")


def by_stoppable() -> None:
    """Wait within `stop_on`."""
    with forbear.stop_on(Event()):
        POLICY.call(fail)


def record(run: Callable[[Main], object], work: Callable[[], None], times: int = 1) -> list[warnings.WarningMessage]:
    """Run `work` so often at one place of a coroutine, and return the warnings."""

    async def main() -> None:
        for _ in range(times):
            try:
                work()
            except (OSError, httpx.ConnectError):
                continue

    globals().pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        run(main)
    return caught


def ignore(loop: object, context: object) -> None:
    """Pass over an error of a callback."""


def in_asyncio(main: Main) -> None:
    """Run in asyncio."""
    asyncio.run(main())


def in_trio(main: Main) -> None:
    """Run in trio."""
    trio.run(main)


@pytest.mark.parametrize("run", [in_asyncio, in_trio])
@pytest.mark.parametrize("work", [by_decorator, by_call, by_block, by_client, by_stoppable])
def test_a_wait_in_an_event_loop_warns_once(run: Callable[[Main], object], work: Callable[[], None]) -> None:
    """The warning points to the line of the coroutine, and names what waits and the cure."""
    (warning,) = record(run, work, times=3)
    name = "a client" if work is by_client else "block" if work is by_block else f"{__name__}.fail"
    assert warning.category is RuntimeWarning
    assert str(warning.message).startswith(f"{name} waits between attempts and blocks the event loop")
    assert "make it async, or call it by asyncio.to_thread" in str(warning.message)
    assert warning.filename == __file__


def test_success_and_threads_and_waits_of_zero_are_silent() -> None:
    """No warning where nothing waits, and where no loop runs in the thread."""

    async def main() -> None:
        POLICY(len)("abc")
        with pytest.raises(OSError, match="down"):
            POLICY.with_backoff(forbear.Constant(0)).call(fail)
        with pytest.raises(OSError, match="down"):
            await asyncio.to_thread(by_call)

    asyncio.run(main())
    with pytest.raises(OSError, match="down"):
        by_call()


def test_async_code_does_not_warn() -> None:
    """Its waits let other tasks run."""

    async def afail() -> None:
        fail()

    async def main() -> None:
        with pytest.raises(OSError, match="down"):
            await POLICY(afail)()

    asyncio.run(main())


@pytest.mark.unmutated
def test_a_callback_of_a_loop() -> None:
    """Without a coroutine, the warning points to the nearest line outside of forbear."""

    def call_soon(_: Main) -> None:
        loop = asyncio.new_event_loop()
        try:
            loop.set_exception_handler(ignore)
            loop.call_soon(by_call)
            loop.call_soon(loop.stop)
            loop.run_forever()
        finally:
            loop.close()

    (warning,) = record(call_soon, by_call)
    assert warning.filename == __file__


def test_a_cell_of_a_notebook_may_wait() -> None:
    """The loop of a kernel runs around each cell, and serves nobody else."""
    code = "async def run_code(work):\n    work()\n"
    shell: dict[str, Any] = {"__name__": "IPython.core.interactiveshell"}
    exec(code, shell)

    async def main() -> None:
        with pytest.raises(OSError, match="down"):
            await shell["run_code"](by_call)

    asyncio.run(main())


@pytest.mark.unmutated
def test_a_warning_needs_a_place() -> None:
    """A direct call warns at the line that makes it."""
    with pytest.warns(RuntimeWarning, match="^load waits") as caught:
        warn_of_blocking("load")
    assert caught[0].filename == __file__


def module(name: str, code: str) -> dict[str, Any]:
    """Return the variables of a module with this code, in a file of its name."""
    variables: dict[str, Any] = {"__name__": name, "warn": warn_of_blocking}
    exec(compile(code, f"{name}.py", "exec"), variables)
    return variables


JOBS = "def load():\n    warn('shop.load')\n\ndef handle(work):\n    work()\n"
WEB = "async def handle(work):\n    pass\n    work()\n"
TEXT = (
    "shop.load waits between attempts and blocks the event loop meanwhile: make it async, or call it by "
    "asyncio.to_thread (trio.to_thread.run_sync in trio)"
)


def drive(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never waits."""
    with suppress(StopIteration):
        coroutine.send(None)


def test_the_coroutine_of_a_warning() -> None:
    """The place is the line of the nearest coroutine, whatever it calls, and it warns once."""
    jobs, inner, outer = module("shop.jobs", JOBS), module("shop.web", WEB), module("shop.main", WEB)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            asyncio.run(outer["handle"](lambda: drive(inner["handle"](lambda: jobs["handle"](jobs["load"])))))
    assert [(warning.filename, warning.lineno) for warning in caught] == [("shop.web.py", 3)]
    assert (caught[0].category, str(caught[0].message)) == (RuntimeWarning, TEXT)
    assert "__warningregistry__" in inner


def test_a_filter_by_the_module_of_the_place() -> None:
    """The warning is that of the module where the line is."""
    jobs = module("shop.jobs", JOBS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module="shop.web")
        for name in ("shop.web", "shop.other"):
            asyncio.run(module(name, WEB)["handle"](jobs["load"]))
    assert [warning.filename for warning in caught] == ["shop.other.py"]


@pytest.mark.unmutated
def test_the_line_of_a_warning() -> None:
    """Without a coroutine it is the nearest one outside of forbear."""
    jobs, outer = module("shop.jobs", JOBS), module("shop.outer", JOBS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outer["handle"](jobs["load"])
    assert [(warning.filename, warning.lineno) for warning in caught] == [("shop.jobs.py", 2)]


async def ready() -> None:
    """Wait for nothing."""


def test_a_cell_with_an_await_may_wait() -> None:
    """Its code is a coroutine of a module, in any notebook; a function in it is none."""
    jobs = module("shop.jobs", JOBS)
    cell = compile("await ready\nload()\n", "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(eval(cell, {"__name__": "__main__", "load": jobs["load"], "ready": ready()}))
    assert caught == []

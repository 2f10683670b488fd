"""Scripts play one outcome per call, sync and async."""

from typing import Any

import anyio
import pytest

from forbear.core.backoff import Constant
from forbear.policy import retry
from forbear.run.functions import is_async
from forbear.testing import AsyncScript, Call, Script, ScriptEnded, virtual_time

POLICY = retry(on=lambda error: True, backoff=Constant(10), timeout=None)


async def asynchronous(value: object) -> object:
    """A coroutine function as an outcome."""
    await anyio.lowlevel.checkpoint()
    return value


def play(script: Any, *args: object, **kwargs: object) -> object:
    """Call a script of either kind, decorated or not."""
    if is_async(script):

        async def main() -> object:
            return await script(*args, **kwargs)

        return anyio.run(main)
    return script(*args, **kwargs)


@pytest.fixture(params=[Script, AsyncScript])
def kind(request: pytest.FixtureRequest) -> Any:
    """Both kinds of scripts."""
    return request.param


def test_values_and_callables(kind: type[Script]) -> None:
    """Values are returned, None too; callables are called with the arguments."""
    script = kind("one", None, divmod, int)
    assert [play(script), play(script), play(script, 7, 2), play(script, "7")] == ["one", None, (3, 1), 7]


def test_errors(kind: type[Script]) -> None:
    """Exceptions are raised themselves, exception classes as new instances; also those that end programs."""
    error = OSError("lost")
    script = kind(error, LookupError, KeyboardInterrupt)
    with pytest.raises(OSError, match="lost") as caught:
        play(script)
    assert caught.value is error
    with pytest.raises(LookupError):
        play(script)
    with pytest.raises(KeyboardInterrupt):
        play(script)


def test_async_callables() -> None:
    """An async script awaits what a callable returns; a sync one returns it."""
    assert play(AsyncScript(asynchronous), "done") == "done"
    coroutine: Any = play(Script(asynchronous), "done")
    coroutine.close()


def test_calls_are_recorded(kind: type[Script]) -> None:
    """`calls` has the time and arguments of each call, and `left` the outcomes not played."""
    script = kind(OSError, "one", "two", "three", takes=2)
    with virtual_time() as time:
        with pytest.raises(OSError, match=r"^$"):
            play(script)
        play(script, 1, key=2)
        assert time.elapsed == 4
        assert time.slept == []
    assert script.calls == [Call(0, (), {}), Call(2, (1,), {"key": 2})]
    assert script.calls[1].at == 2
    assert script.left == ["two", "three"]


def test_an_exhausted_script_is_not_retried(kind: type[Script]) -> None:
    """A call without an outcome fails the test, whatever the policy retries."""
    script = kind(OSError, OSError)
    with virtual_time(), pytest.raises(ScriptEnded) as caught:
        play(POLICY(script))
    assert str(caught.value) == "the script has no outcome left for call number 3; give it more"
    assert len(script.calls) == 3


def test_time_needs_a_virtual_clock(kind: type[Script]) -> None:
    """A script never waits for real."""
    with pytest.raises(RuntimeError, match="there is no virtual time here"):
        play(kind("done", takes=1))
    assert play(kind("done")) == "done"


@pytest.mark.parametrize("takes", [-1, float("nan"), "1"])
def test_bad_durations_are_refused(kind: type[Script], takes: Any) -> None:
    """The error for a bad duration names `takes`."""
    with pytest.raises((TypeError, ValueError), match="`takes` must be"):
        kind("done", takes=takes)


def test_a_script_under_a_policy() -> None:
    """A script works decorated or called, and a policy tells sync from async scripts."""
    with virtual_time() as time:
        assert POLICY(Script(OSError, "done", takes=1))() == "done"
        assert anyio.run(POLICY(AsyncScript(OSError, "done", takes=1))) == "done"
        assert time.slept == [10, 10]
        assert time.elapsed == 24

"""The off switch: for the process, for a block, for a task or thread, and by the environment."""

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from forbear.core.backoff import Constant
from forbear.policy import retry
from forbear.run.switch import disable, disabled, enable, is_off
from forbear.testing.script import AsyncScript
from forbear_testkit.run.cases import Busy

POLICY = retry(on=Busy, backoff=Constant(0))

SCRIPT = """
import forbear
calls = []
@forbear.retry(on=OSError, attempts=3, backoff=forbear.Constant(0))
def fail():
    calls.append(1)
    raise OSError
try:
    fail()
except OSError as error:
    print(len(calls), forbear.report(error) is not None)
forbear.enable()
try:
    fail()
except OSError as error:
    print(len(calls), forbear.report(error) is not None)
"""


@pytest.mark.parametrize(
    ("value", "off"),
    [(None, False), ("", False), ("0", False), ("no", False), ("1", True), ("true", True), ("YES", True), ("on", True)],
)
def test_by_the_environment(value: str | None, off: bool) -> None:
    """FORBEAR_DISABLED=1 turns retries off from the start, until `enable()`."""
    env = {name: text for name, text in os.environ.items() if name != "FORBEAR_DISABLED"}
    if value is not None:
        env["FORBEAR_DISABLED"] = value
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == (["1 False", "4 True"] if off else ["3 True", "6 True"])


def test_blocks_nest_and_end() -> None:
    """Off within, also after an inner block has ended; on again after the last one, whatever ended it."""
    with disabled():
        with disabled():
            assert is_off()
        assert is_off()
    assert not is_off()
    with pytest.raises(LookupError), disabled():
        raise LookupError
    assert not is_off()


def test_the_process_and_the_block_are_independent() -> None:
    """Each is enough to turn retries off; `enable()` does not end a block."""
    disable()
    try:
        with disabled():
            assert is_off()
        assert is_off()
    finally:
        enable()
    assert not is_off()
    with disabled():
        enable()
        assert is_off()


def test_other_tasks_go_on() -> None:
    """A task that turns retries off does so for itself and for the tasks it starts."""

    async def main() -> None:
        with disabled():
            mine = AsyncScript(Busy, "done")
            its = asyncio.create_task(POLICY.acall(mine))  # started here, so its retries are off
            with pytest.raises(Busy):
                await its
        others = AsyncScript(Busy, "done")

        async def turn_off() -> None:
            with disabled():
                await ready.wait()

        ready = asyncio.Event()
        off = asyncio.create_task(turn_off())
        assert await POLICY.acall(others) == "done"
        ready.set()
        await off

    asyncio.run(main())


def test_other_threads_go_on() -> None:
    """A new thread does not inherit the block."""
    seen: list[bool] = []
    with disabled():
        thread = threading.Thread(target=lambda: seen.append(is_off()))
        thread.start()
        thread.join()
        assert is_off()
    assert seen == [False]

"""The pytest plugin: two fixtures that need no configuration and cost nothing in tests without them."""

import subprocess
import sys
from pathlib import Path

import pytest

from forbear import testing
from forbear.core.backoff import Exponential
from forbear.core.report import report
from forbear.policy import retry
from forbear.run.runtime import current
from forbear.run.switch import is_off
from forbear.testing import AsyncScript, Script, VirtualTime

POLICY = retry(on=OSError, backoff=Exponential(100, maximum=1000), timeout=None)


def jitter_of_seed_0() -> list[float]:
    """Return the waits of the first two retries."""
    with testing.virtual_time(seed=0) as time:
        POLICY.call(Script(OSError, OSError, "done"))
    return time.slept


both = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


def test_virtual_time(virtual_time: VirtualTime) -> None:
    """The fixture yields the clock, with the same jitter in every test."""
    assert POLICY.call(Script(OSError, OSError, "done")) == "done"
    assert virtual_time.slept == jitter_of_seed_0()
    assert virtual_time.elapsed == sum(virtual_time.slept)


@both
@pytest.mark.filterwarnings("ignore:.*blocks the event loop")  # what it expects is computed by sync code
async def test_virtual_time_in_async_tests(virtual_time: VirtualTime, anyio_backend: str) -> None:
    """The fixture applies to the event loop that runs the test."""
    assert await POLICY.acall(AsyncScript(OSError, OSError, "done")) == "done"
    assert virtual_time.slept == jitter_of_seed_0()


@pytest.mark.usefixtures("no_retries")
def test_no_retries() -> None:
    """Every call is made once."""
    assert is_off()
    with pytest.raises(OSError, match="lost") as caught:
        POLICY.call(Script(OSError("lost")))
    assert report(caught.value) is None


@both
@pytest.mark.usefixtures("no_retries")
async def test_no_retries_in_async_tests(anyio_backend: str) -> None:
    """Every call is made once in async tests, too."""
    with pytest.raises(OSError, match="lost"):
        await POLICY.acall(AsyncScript(OSError("lost")))


def test_neither_reaches_other_tests() -> None:
    """The next test runs in real time with retries on."""
    assert not is_off()
    assert not hasattr(current.get(), "time")


def test_found_without_configuration(tmp_path: Path) -> None:
    """Installing forbear is enough to have the fixtures."""
    (tmp_path / "test_it.py").write_text("def test(virtual_time, no_retries):\n    virtual_time.advance(1)\n")
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_cheap_to_load() -> None:
    """pytest loads the plugin in every project, so it loads no module of forbear or anything else."""
    script = (
        "import sys, pytest; before = set(sys.modules)\n"
        "import forbear_pytest\n"
        "print(*sorted(set(sys.modules) - before - {'contextvars', '_contextvars'}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["forbear_pytest"]
